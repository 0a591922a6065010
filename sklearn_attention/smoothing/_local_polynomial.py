"""Local polynomial regression."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import attention
from ._regression import SmootherRegressor


class LocalPolynomialRegressor(SmootherRegressor):
    r"""Regression by lines or parabolas fitted to the neighbourhood of each query.

    .. math:: \hat m(x) = \hat\beta_0,\quad \hat\beta = \arg\min_\beta \sum_i w_i
              K\left(\tfrac{x - x_i}{h}\right)
              \bigl(y_i - \beta_0 - \beta_1^\top (x_i - x) - \dots\bigr)^2

    Nadaraya-Watson regression fits constants: where rows lie on one side of the query, at
    the edges of the data above all, its average is off by the slope. Local lines are not.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        How rows are compared: a name or a kernel of :mod:`sklearn_attention.kernels`, a
        function ``f(X, Y) -> (n, m)``, or a kernel of
        :mod:`sklearn.gaussian_process.kernels`.
    bandwidth : str, float, array-like or AdaptiveBandwidth, default="penalized-loo"
        By how much features are divided before rows are compared: one number, or one for
        each feature, in the features' own units, or a rule for choosing it:

        - "penalized-loo": one factor on each feature's standard deviation, at which the
          leave-one-out squared error, penalised for degrees of freedom, is smallest
          (:func:`~sklearn_attention.bandwidth.penalized_leave_one_out` says why);
        - "loo", "gcv", "aicc": the same for the plain leave-one-out squared error,
          generalised cross-validation, or the corrected Akaike criterion. See
          :func:`~sklearn_attention.bandwidth.select_bandwidth` for how many rows are
          looked at;
        - "scott" and "silverman": standard deviations times :math:`n^{-1/(d+4)}` or
          :math:`(n (d + 2) / 4)^{-1/(d+4)}`, times the ratio of the kernel's canonical
          bandwidth to the Gaussian's. :math:`n` is the sum of the weights;
        - "plug-in": the direct plug-in of Ruppert, Sheather and Wand, for one feature and
          one output (:func:`~sklearn_attention.bandwidth.plug_in_bandwidth`);
        - an :class:`~sklearn_attention.bandwidth.AdaptiveBandwidth`: the distance to a
          nearest neighbour, so that it differs from place to place; "knn-loo" chooses the
          number of neighbours by leave-one-out.
    degree : {0, 1, 2}, default=1
        Degree of the polynomials; 0 is :class:`NadarayaWatsonRegressor`, 2 includes the
        products of different features. Categories have no slopes.
    per_feature : bool, default=False
        Whether the searches by a criterion choose a bandwidth for each feature on its own, by
        gradients; features that do not help then get bandwidths so large that they have no
        say, which `relevance_` tells.
    categorical_features : "from_dtype" or list of (str, int or bool), default="from_dtype"
        As for :class:`NadarayaWatsonRegressor`.
    algorithm : {"auto", "dense"}, default="auto"
        How averages are computed; see :func:`sklearn_attention.attend`.
    empty : {"nearest", "nan", "mean", "raise"}, default="nearest"
        What is predicted where no training row has weight: the nearest row's target, NaN,
        the mean of all targets, or an error.
    random_state : int, RandomState instance or None, default=0
        Draws the sample that bandwidths are searched on in large data, and starts of the
        search for one each feature.
    device : str, default="auto"
        Where to compute; "auto" prefers CUDA.

    Attributes
    ----------
    bandwidth_ : ndarray of shape (n_features,)
        The bandwidth of each feature, in its own units; for a category its lambda. With an
        adaptive bandwidth, the units in which neighbours are looked for.
    n_neighbors_ : int
        The neighbour that an adaptive bandwidth reaches to.
    criterion_value_ : float
        The criterion at that bandwidth, if one was minimised: lower is better. With several
        outputs, in units of each output's variance.
    bandwidth_search_ : dict of ndarray
        All bandwidths that were tried, with ``criterion``, ``loo_error`` and
        ``degrees_of_freedom``, to be passed to :class:`pandas.DataFrame` without
        ``bandwidth``; only if one factor was searched.
    relevance_ : ndarray of shape (n_features,)
        How much each feature matters to the kernel, from 0 (differences make no
        difference) to 1; only if bandwidths were searched for each feature or category.
        See :func:`~sklearn_attention.bandwidth.select_bandwidths`.
    effective_dof_ : float
        Trace of the smoother matrix over the training rows.
    fitted_values_, residuals_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Predictions of the training rows, and targets less these.
    loo_residuals_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Targets less their leave-one-out predictions.
    loo_score_ : float
        :math:`R^2` of the leave-one-out predictions.
    aicc_ : float
        Corrected Akaike criterion, whatever the bandwidth was chosen by.
    degree_ : int
        Degree of the polynomials.
    kernel_ : Kernel
        The kernel, resolved.
    keys_ : ndarray of shape (n_samples, n_features)
        The training rows.
    values_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The training targets.
    key_weights_ : ndarray of shape (n_samples,) or None
        Their weights.
    columns_ : Columns
        What each column is, numbers or categories, and the levels of these.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if they are all strings.

    See Also
    --------
    NadarayaWatsonRegressor : Local averages; never outside the range of the targets.
    LocalPolynomialCV : Chooses kernel and degree, too.
    sklearn.neighbors.KNeighborsRegressor : Averages a fixed number of neighbours.
    sklearn.kernel_ridge.KernelRidge : Solves for the values instead of remembering them.

    Notes
    -----
    Standardise features whose units do not compare when passing a single number. A
    feature that is constant in training has spread 1 for the rules.

    Categories are compared as by :class:`NadarayaWatsonRegressor`.

    A window whose rows do not determine the polynomial (fewer rows than coefficients, a
    feature constant within) gets a ridge that shrinks its slopes and leaves the average
    alone; :meth:`local_ridge` tells where. Beyond the data lines extrapolate.

    References
    ----------
    .. [1] Fan, J. and Gijbels, I. (1996). Local Polynomial Modelling and Its Applications.
       Chapman and Hall.
    .. [2] Cleveland, W. S. and Devlin, S. J. (1988). Locally weighted regression: an approach
       to regression analysis by local fitting. Journal of the American Statistical
       Association 83, 596-610.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import LocalPolynomialRegressor
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = LocalPolynomialRegressor("epanechnikov", bandwidth=0.5).fit(X, y)
    >>> model.predict([[0.0], [1.5]]).round(3), model.predict_gradient([[0.0]]).round(2)
    (array([0.001, 0.973]), array([[0.98]]))
    """

    def __init__(
        self,
        kernel="gaussian",
        *,
        bandwidth="penalized-loo",
        degree=1,
        per_feature=False,
        categorical_features="from_dtype",
        algorithm="auto",
        empty="nearest",
        random_state=0,
        device="auto",
    ):
        super().__init__(
            kernel,
            bandwidth=bandwidth,
            per_feature=per_feature,
            categorical_features=categorical_features,
            algorithm=algorithm,
            empty=empty,
            random_state=random_state,
            device=device,
        )
        self.degree = degree

    def local_ridge(self, X):
        """What was added for a window to determine its polynomial.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        ridge : ndarray of shape (n_queries,)
            Added to the variances of the local terms, in units of the kernel's own
            variance, or of the data's where that is smaller; 0 where the rows in the window
            suffice.
        """
        check_is_fitted(self)
        X = self._check_queries(X)
        if self.degree_ == 0:
            return np.zeros(len(X), dtype=self.keys_.dtype)
        return attention.attend_local(
            X, self.keys_, self.values_, self.kernel_, degree=self.degree_,
            **self._attention_options(X),
        ).ridge  # fmt: skip
