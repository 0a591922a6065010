"""Nadaraya-Watson regression."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..bandwidth._neighbors import AdaptiveBandwidth
from ..kernels import Kernel
from ._regression import SmootherRegressor


class NadarayaWatsonRegressor(SmootherRegressor):
    r"""Regression by kernel-weighted averages of the training targets.

    Take it for one to about ten features if predictions have to stay in the range of the
    targets, or if you want to see the weight of every training row.
    :class:`LocalPolynomialRegressor` has less bias on slopes and at the ends of the range.
    :class:`KernelAttentionRegressor` mostly has smaller errors if there are many features, but
    is slower.

    .. math:: \hat m(x) = \frac{\sum_i w_i K((x - x_i) / h)\, y_i}
                               {\sum_j w_j K((x - x_j) / h)}

    This is attention to the training data: its rows are the keys, and its targets the values.
    Only the bandwidth :math:`h` is learned.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        Similarity of rows: a name or a kernel of :mod:`sklearn_attention.kernels`, a function
        ``f(X, Y) -> (n, m)``, or a kernel of
        :mod:`sklearn.gaussian_process.kernels`.
    bandwidth : str, float, array-like or AdaptiveBandwidth, default="penalized-loo"
        Divides the features before rows are compared: one number, or one for each feature, in
        the features' own units, or a rule that chooses it:

        - "penalized-loo": one factor on each feature's standard deviation, at which the
          leave-one-out squared error, penalised for degrees of freedom, is smallest (see
          :func:`~sklearn_attention.bandwidth.penalized_leave_one_out`);
        - "loo", "gcv", "aicc": the same for the plain leave-one-out squared error,
          generalised cross-validation, or the corrected Akaike criterion. See
          :func:`~sklearn_attention.bandwidth.select_bandwidth` for the number of rows used;
        - "scott" and "silverman": standard deviations times :math:`n^{-1/(d+4)}` or
          :math:`(n (d + 2) / 4)^{-1/(d+4)}`, times the ratio of the kernel's canonical
          bandwidth to the Gaussian's. :math:`n` is the sum of the weights;
        - an :class:`~sklearn_attention.AdaptiveBandwidth`: the distance to a
          nearest neighbour, so that it differs from place to place; "knn-loo" chooses the
          number of neighbours by leave-one-out.
    robust : bool, default=False
        Whether outliers among the targets count less, or not at all: rows are weighted by
        their errors, and the bandwidth is chosen with these weights. See Notes. Not for
        counts, flags and other targets whose rare values are no errors: the fit warns of
        few different values, and of one that most rows have.
    per_feature : bool or "auto", default="auto"
        Whether the searches by a criterion choose a separate bandwidth for each feature, by
        gradients. Irrelevant features then get bandwidths so large that they have no effect;
        see `relevance_`. "auto" does so if it is clearly better than one factor on all
        bandwidths: if the criterion and the leave-one-out error both fall at least by a factor
        of :math:`e^{4 (d - 1) / n}`, for :math:`d` numeric features and :math:`n` rows. "auto"
        takes one factor if there is a `gap`, if there are more than 50 features or as many
        coefficients as rows, or if the kernel is no product of positive kernels of the
        distance. The parameter has no effect on bandwidths that are numbers, or rules without a
        search, which have a bandwidth for each feature already. True is an error with
        bandwidths that are the distance to a neighbour, which is one for all features.
    categorical_features : "from_dtype" or list of (str, int or bool), default="from_dtype"
        Columns of numbers that are unordered categories: their names or positions, or one
        bool for each column. In data frames, columns of a categorical dtype and of strings
        are categories in any case.
    algorithm : {"auto", "dense"}, default="auto"
        Algorithm of the averages; see :func:`sklearn_attention.attend`. The attribute
        `algorithm_` is the one that "auto" takes.
    empty : {"nearest", "nan"}, default="nearest"
        Prediction where no training row has weight: the nearest row's target, or NaN.
    gap : int, default=0
        Number of rows before and after each that leave-one-out leaves out with it, in searches
        for one factor on all bandwidths. If the rows are in order, as in time, and their noise
        is autocorrelated, set it to the length of the autocorrelation. About :math:`n^{1/3}` is
        a safe start with "penalized-loo". Intervals and bands then allow for autocorrelation
        over this many rows.
    bounds : "auto", (float, float) or None, default="auto"
        Bounds to which predictions, quantiles, and the ends of intervals and bands are clipped;
        None is an open end, or no bounds. "auto" is 0 from below for an output of whole numbers
        without a negative one, such as counts, and 0 and 1 for one of zeros and ones. Slopes,
        `smoother_matrix` and `explain` describe the curve before it is clipped.
    random_state : int, RandomState instance or None, default=0
        Draws the sample that bandwidths are searched on in large data.

    Attributes
    ----------
    bandwidth_ : ndarray of shape (n_features,)
        The bandwidth of each feature, in its own units; for a category its lambda. With an
        adaptive bandwidth, the units in which distances to neighbours are measured.
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
        Relevance of each feature to the kernel, from 0 (it does not matter) to 1; only if
        bandwidths were searched for each feature or category. See
        :func:`~sklearn_attention.bandwidth.select_bandwidth`.
    robustness_weights_ : ndarray of shape (n_samples,)
        Weights of rows by their errors, from 0 to 1; only if `robust` is True.
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
    kernel_ : Kernel
        The kernel, resolved.
    bounds_ : ndarray of shape (2,) or (2, n_outputs), or None
        Lower and upper bound of predictions, infinite where there is none; None without any.
    keys_ : ndarray of shape (n_samples, n_features)
        The training rows.
    values_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The training targets.
    key_weights_ : ndarray of shape (n_samples,) or None
        Their weights, 0 where they are below 1e-154 of the largest.
    columns_ : Columns
        Kind of each column, and the levels of categories.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if they are all strings.

    See Also
    --------
    NadarayaWatsonClassifier : The same for classes.
    LocalPolynomialRegressor : Local lines and parabolas, without bias at the edges.
    NadarayaWatsonCV : Chooses the kernel, too.
    sklearn.neighbors.KNeighborsRegressor : Averages a fixed number of neighbours.
    sklearn.kernel_ridge.KernelRidge : Solves for the values of the training rows.

    Notes
    -----
    If you pass a single number as the bandwidth, standardise features whose units do not
    compare. Rules count the standard deviation of a constant feature as 1.

    Unordered categories are compared by :class:`~sklearn_attention.kernels.AitchisonAitken`,
    ordered ones (of an ordered dtype) by :class:`~sklearn_attention.kernels.LiRacine`. Their
    lambdas are chosen along with the bandwidth. A missing cell of an unordered category is a
    level of its own. Missing cells of ordered categories and of numbers are an error: impute
    them first. An unordered level that did not occur in training differs equally from all
    others, so it is ignored, unless lambda is 0, at which no row has weight. An ordered level
    that did not occur is an error.

    With ``robust=True`` the weight of a row is multiplied by Tukey's bisquare of its
    leave-one-out error [3]_,

    .. math:: b_i = \Bigl(1 - \frac{r_i^2}{(5 s_i)^2}\Bigr)_+^2,

    where :math:`s_i` is the standard deviation of the errors around the row, in a window of at
    least :math:`3 \sqrt n` rows, so that the noise may differ from place to place. It is
    estimated so that up to half of the errors may be outliers [4]_. With several outputs, the
    error that is largest in units of its standard deviation counts. The bandwidth is chosen
    four times: first with equal robust weights, then with weights from the errors at the
    bandwidth before. For normal targets an average keeps 96 % of its efficiency. Predictions,
    effective weights, leave-one-out errors and statistics of the fit are those with the robust
    weights; `key_weights_` does not contain them. New targets may be outliers too, and
    intervals and quantiles contain outliers at their rate. A peak of few rows is taken for
    outliers, and many outliers next to each other are taken for a peak.

    References
    ----------
    .. [1] Nadaraya, E. A. (1964). On estimating regression. Theory of Probability and its
       Applications 9, 141-142.
    .. [2] Watson, G. S. (1964). Smooth regression analysis. Sankhya A 26, 359-372.

    .. [3] Cleveland, W. S. (1979). Robust locally weighted regression and smoothing
       scatterplots. Journal of the American Statistical Association 74, 829-836.
    .. [4] Rousseeuw, P. and Yohai, V. (1984). Robust regression by means of S-estimators. In
       Robust and Nonlinear Time Series Analysis, Springer, 256-272.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import NadarayaWatsonRegressor
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = NadarayaWatsonRegressor("epanechnikov", bandwidth=0.5).fit(X, y)
    >>> model.predict([[1.5], [3.0]]).round(3)
    array([0.973, 0.138])
    >>> model.explain([[1.5]], k=2).indices
    array([[12, 13]])

    One target is wrong by 100:

    >>> y[12] += 100
    >>> model.fit(X, y).predict([[1.5]]).round(1)
    array([19.2])
    >>> robust = NadarayaWatsonRegressor("epanechnikov", bandwidth=0.5, robust=True)
    >>> robust.fit(X, y).predict([[1.5]]).round(1)
    array([1.])
    """

    def __init__(
        self,
        kernel: str | Kernel | Callable[..., Any] = "gaussian",
        *,
        bandwidth: str | ArrayLike | AdaptiveBandwidth = "penalized-loo",
        robust: bool = False,
        per_feature: bool | str = "auto",
        categorical_features: Any = "from_dtype",
        algorithm: str = "auto",
        empty: str = "nearest",
        gap: int = 0,
        bounds: Any = "auto",
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        super().__init__(
            kernel,
            bandwidth=bandwidth,
            per_feature=per_feature,
            categorical_features=categorical_features,
            algorithm=algorithm,
            empty=empty,
            gap=gap,
            random_state=random_state,
        )
        self.robust = robust
        self.bounds = bounds
