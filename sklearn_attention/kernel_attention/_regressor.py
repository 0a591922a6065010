"""Kernel attention for numbers."""

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from .._base import keeps_state_on_failure
from .._blocks import blocks
from .._validation import check_in_open_interval, check_quantiles
from ._blend import blend
from ._distribution import calibrate, error_deviation, error_quantiles, error_weights
from ._estimator import KernelAttention
from ._ways import WAYS

_QUERY_BLOCK = 4096


class KernelAttentionRegressor(RegressorMixin, KernelAttention):
    r"""Regression by attention over the training rows, with a learned kernel.

    The rows are remembered; a prediction is read from those that a kernel finds near. What
    near means is learned: every feature has a length-scale, in each of several views of the
    rows, by gradient descent on exact leave-one-out errors. Works out of the box on mixed
    data frames, with missing values, without preprocessing.

    Parameters
    ----------
    readout : {"blend", "solve", "local_linear", "average"}, default="blend"
        How the memory is read; see Notes. ``"average"``: the weighted average of the
        targets. ``"local_linear"``: the same of local lines. ``"solve"``: kernel ridge
        regression. ``"blend"``: solve and local_linear, and up to 2000 rows a second, more
        firmly held solve, mixed with the non-negative weights that fit their leave-one-out
        predictions best.
    kernel : str or RadialKernel, default="gaussian"
        A positive kernel of the distance, see :mod:`sklearn_attention.kernels`; for "solve"
        and "blend" one that is positive definite, such as "matern52".
    views : str or sequence of str, default=("standard", "quantile", "piecewise_linear")
        How the kernel sees the features: ``"standard"`` in standard deviations,
        ``"quantile"`` as normal scores, ``"piecewise_linear"`` by how far they reach into
        each of 12 to 48 bins between quantiles, which lets a smooth kernel take steps.
        Categories have a column for each level in every view, missing cells one that says
        so.
    n_heads : int or "auto", default="auto"
        Kernels in each view, each with length-scales of its own. "auto" is 2 from 2000 to
        20 000 rows, and 1 for fewer and more, and where the bandwidth is given.
    n_estimators : int or "auto", default="auto"
        Members of each kind. Each is learned without one of as many folds, whose leave-one-
        out predictions judge it, and they are averaged; a single member is judged by a
        quarter of the rows. "auto" is 4 up to 2000 rows and 1 beyond.
    max_steps : int, default=80
        Gradient steps for each member. Time falls with it, accuracy slowly: 20 to 40 do for
        searches. 0 leaves the length-scales where they start, all features alike.
    bandwidth : "learned", float or array-like of shape (n_features,), default="learned"
        Given, it is the length-scales, in the features' own units, and nothing is learned
        but the ridge; only with ``views="standard"``.
    ridge : "learned" or float, default="learned"
        Of "solve" the noise variance, in units of the targets' variance (in the targets' own
        where the bandwidth is given); of "local_linear" what holds the slopes to 0.
    clip : float or None, default=6.0
        Standard deviations from the mean beyond which a number, or its normal score, counts
        as that far away.
    n_landmarks : int or "auto", default="auto"
        Rows, drawn at random, that carry what "solve" solves: fewer make it faster, and
        less exact. "auto" is all up to 20 000, and 2000 to 6000 beyond.
    random_state : int, RandomState instance or None, default=0
        Draws folds, starting points and batches.
    device : str, default="auto"
        Where to compute; "auto" prefers CUDA.

    Attributes
    ----------
    n_heads_ : int
        Number of kernels in each view.
    length_scales_ : ndarray of shape (n_views * n_heads, n_features)
        Geometric mean over the members; infinite where a feature has no part. In the
        features' own units for the standard view, in the view's coordinates for others.
    feature_relevance_ : ndarray of shape (n_features,)
        Share of each feature in the mean squared distance that the kernels compare; sums
        to 1.
    blend_weights_ : dict of str to float or ndarray of shape (n_outputs,)
        Weight of each way to read; ways of weight 0 are forgotten.
    bandwidth_ : ndarray of shape (n_features,)
        Length-scales of the first standard head, or of the first if there is none.
    loo_residuals_ : ndarray of shape (n_judged,) or (n_judged, n_outputs)
        Targets less leave-one-out predictions, of rows that no kernel was learned from.
    judged_rows_ : ndarray of shape (n_judged,)
        Positions of these rows among the rows remembered.
    members_ : list of dict
        What was learned, as arrays.
    keys_, values_ : ndarray
        The rows remembered, without those of weight 0 and copies, and their targets.
    columns_
        As for :class:`NadarayaWatsonRegressor`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if they are all strings.

    See Also
    --------
    NadarayaWatsonRegressor : The average with a bandwidth that is not learned feature by
        feature in views; has intervals with guarantees.
    sklearn.gaussian_process.GaussianProcessRegressor : "solve" with a likelihood.

    Notes
    -----
    With views :math:`\phi_v` and length-scales :math:`\ell_v` the kernel is

    .. math:: K(x, x') = \sum_v s_v\,
              k\bigl(\lVert (\phi_v(x) - \phi_v(x')) / \ell_v \rVert\bigr)

    and the three ways to read the memory are

    .. math::
       \hat y &= \sum_i w_i y_i, \quad w_i = K(x, x_i) / \textstyle\sum_j K(x, x_j)
           &&\text{(average)}\\
       \hat y &= \sum_i w_i \bigl(y_i + \beta(x)^\top (x - x_i)\bigr)
           &&\text{(local linear)}\\
       \hat y &= \sum_i K(x, x_i) \alpha_i, \quad \alpha = (K + \sigma^2 I)^{-1} y
           &&\text{(solve)}

    The slope :math:`\beta(x)` is that of weighted least squares with a small ridge, in
    closed form; [1]_ learns a network in its place. Solving learns from
    :math:`[K^{-1} y]_i / [K^{-1}]_{ii}`, the exact leave-one-out errors [2]_, on 512 rows a
    step. The averages learn from theirs on 2048 keys a step, and then have the temperature of
    every head fitted to all keys. Members are judged, and blended [3]_, by leave-one-out
    predictions of rows they have not learned from: the leave-one-out error of rows that
    length-scales were learned from is too good to be true.

    Up to 20 000 rows systems are solved as they are, by Cholesky factors, in single
    precision beyond 12 000. Beyond 20 000, solving goes through 2000 to 6000 rows drawn at
    random (subset of regressors [4]_), kernels are learned from 20 000 rows, and averages are
    taken over 50 000 rows at most. Results are the same for the same `random_state` and
    number of threads.

    Copies would predict one another without error. So rows that agree in all features and
    targets are remembered as one row of their joint weight, where one of the columns is a
    number that hardly ever repeats; elsewhere equal rows may be observations like any others.
    Rows that are only alike do tell one another: where those of one group must not, keep groups
    together when you validate.

    References
    ----------
    .. [1] Gorishniy, Y. et al. (2024). TabR: tabular deep learning meets nearest neighbors.
       ICLR.
    .. [2] Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian processes for machine
       learning, section 5.4.2. MIT Press.
    .. [3] Breiman, L. (1996). Stacked regressions. Machine Learning 24, 49-64.
    .. [4] Quinonero-Candela, J. and Rasmussen, C. E. (2005). A unifying view of sparse
       approximate Gaussian process regression. JMLR 6, 1939-1959.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import KernelAttentionRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 3))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1]  # the third feature does not matter
    >>> model = KernelAttentionRegressor(max_steps=20).fit(X[:150], y[:150])
    >>> bool(model.score(X[150:], y[150:]) > 0.99)
    True
    >>> int(model.feature_relevance_.argmin())
    2
    """

    @keeps_state_on_failure
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Remember the training data and learn the kernel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows; data frames may have categorical columns, numbers may be missing.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights: a row of weight 2 has half the noise variance and twice the
            weight in averages; a row of weight 0 is absent.

        Returns
        -------
        self : KernelAttentionRegressor
            The fitted estimator.

        Raises
        ------
        ValueError
            If data or parameters are not valid. The estimator then is as it was before.
        """
        X, y = self._check_training(X, y, y_numeric=True)
        y = y.astype(np.float64)
        task_data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        left_out, context = self._remember(
            X, y, sample_weight, attending="local_linear", loss="squared", centered=True,
            task_data=task_data,
        )  # fmt: skip
        table = self.values_.reshape(len(self.keys_), -1)[self.judged_rows_]
        targets = (table - self.center_) / self.scale_
        weights = self.key_weights_[self.judged_rows_]
        if len(self.ways_) == 1:
            shares = np.ones((1, targets.shape[1]))
        else:
            shares = blend(left_out, targets, weights)
            left_out = self._drop_unused(shares.any(axis=1), left_out)
            shares = shares[shares.any(axis=1)]
        self._shares = shares
        self.blend_weights_ = {
            way: float(share[0]) if y.ndim == 1 else share
            for way, share in zip(self.ways_, shares, strict=True)
        }
        errors = targets - np.einsum("wno,wo->no", left_out, shares)
        self.loo_residuals_ = (errors * self.scale_).reshape(-1, *y.shape[1:])
        likeness = self._likeness(self.keys_[self.judged_rows_])
        self.sharpness_, self.everywhere_ = calibrate(likeness, errors, weights)
        context.call_on_fit_task_end(estimator=self, **task_data, reconstruction_attributes={})
        return self

    def predict(self, X, return_std=False):
        """Predict the targets of queries.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.
        return_std : bool, default=False
            Whether to return the standard deviation of the predictive distribution too.

        Returns
        -------
        y : ndarray of shape (n_queries,) or (n_queries, n_outputs)
            Predictions.
        std : ndarray of the same shape
            Only returned if `return_std` is True.
        """
        check_is_fitted(self)
        X = self._check_queries(X)
        predictions = self._predict(X)
        shape = len(X), *self.values_.shape[1:]
        dtype = self.keys_.dtype
        if not return_std:
            return predictions.reshape(shape).astype(dtype)
        std = self._of_errors(X, error_deviation)
        return predictions.reshape(shape).astype(dtype), std.reshape(shape).astype(dtype)

    def predict_quantiles(self, X, quantiles=(0.1, 0.5, 0.9)):
        r"""Quantiles of the predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.
        quantiles : array-like of shape (n_quantiles,), default=(0.1, 0.5, 0.9)
            Probabilities, between 0 and 1.

        Returns
        -------
        y : ndarray of shape (n_queries, n_quantiles) or (n_queries, n_quantiles, n_outputs)
            The quantiles.

        Notes
        -----
        The distribution is that of the leave-one-out errors of the rows that judge the
        members, weighted by the learned kernel between them and the query, moved so that its
        mean is the prediction:

        .. math:: F(t \mid x) = \sum_i w_i(x)\,
                  \bigl[\hat y(x) + e_i - \textstyle\sum_j w_j(x) e_j \le t\bigr],\quad
                  w_i(x) = (1 - \lambda) \frac{K(x, x_i)^\tau}{\sum_j K(x, x_j)^\tau}
                  + \frac{\lambda}{n}

        The sharpness :math:`\tau` and the share :math:`\lambda` are those of the least
        continuous ranked probability score, every row scored by the errors of the others.
        Levels allow for the new error itself, which counts as one more, so that intervals from
        few errors are not too narrow.
        """
        check_is_fitted(self)
        quantiles = check_quantiles(quantiles)
        X = self._check_queries(X)
        found = self._of_errors(X, lambda *errors: error_quantiles(*errors, quantiles))
        found = self._predict(X)[:, None, :] + found
        shape = len(X), len(quantiles), *self.values_.shape[1:]
        return found.reshape(shape).astype(self.keys_.dtype)

    def predict_interval(self, X, coverage=0.9):
        """Intervals that contain a new target with a given probability.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.
        coverage : float, default=0.9
            Probability, between 0 and 1.

        Returns
        -------
        intervals : ndarray of shape (n_queries, 2) or (n_queries, 2, n_outputs)
            Lower and upper ends, quantiles of the predictive distribution that leave as much
            below as above; see :meth:`predict_quantiles`.
        """
        check_is_fitted(self)
        coverage = check_in_open_interval("coverage", coverage, 0, 1)
        return self.predict_quantiles(X, [(1 - coverage) / 2, (1 + coverage) / 2])

    def _predict(self, X):
        answers = np.einsum("wno,wo->no", self._answers(X), self._shares)
        return answers * self.scale_ + self.center_

    def _drop_unused(self, used, left_out):
        """Forget the members of ways that the blend does without."""
        self.ways_ = [way for way, kept in zip(self.ways_, used, strict=True) if kept]
        self.members_ = [member for member in self.members_ if member["way"] in self.ways_]
        return left_out[used]

    def _way_shares(self):
        return self._shares.mean(axis=1)

    @property
    def _judged_errors(self):
        return self.loo_residuals_.reshape(len(self.judged_rows_), -1)

    def _of_errors(self, X, describe):
        """What ``describe(shares, errors)`` says of the errors at queries, block by block."""
        parts = [
            describe(self._error_shares(X[rows]), self._judged_errors)
            for rows in blocks(len(X), _QUERY_BLOCK)
        ]
        return np.concatenate(parts)

    def _error_shares(self, X):
        weights = self.key_weights_[self.judged_rows_]
        return error_weights(self._likeness(X), weights, self.sharpness_, self.everywhere_)

    def _likeness(self, X):
        """Kernel between queries and the rows that judge, of a member that averages if any."""
        attending = [m for m in self.members_ if WAYS[m["way"]].reads != "solve"]
        member = (attending or self.members_)[0]
        return self._reader(member).likeness(X, self.judged_rows_)

    def _targets(self, rows):
        return self.values_[rows]
