"""Kernel attention for numbers.

Members predict standardised targets. Predictions of boosted trees are stacked with theirs where
that helps, and errors of the rows held out make intervals and quantiles (`_distribution`).
"""

from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._base import keeps_state_on_failure, with_callbacks
from .._blocks import blocks_of_queries
from .._labels import NumericTargets
from .._report import Report
from .._sample_weight import check_key_weights
from .._thread_pools import one_blas_thread
from .._validation import check_in_open_interval, check_numeric_target, check_probabilities
from ._boosting import MIN_ROWS, predict_trees, stack_regressor
from ._distribution import ErrorDistribution
from ._estimator import KernelAttention, Options
from ._fitted import ReadRows, Task, fit_kernel_attention
from ._leave_level_out import LeaveLevelOut
from ._members import MAX_RANDOM_ROWS, RidgeLearner, squared_loss


def _ridge(n_rows):
    """Return the RidgeLearner for a number of rows."""
    if n_rows > MAX_RANDOM_ROWS:
        return RidgeLearner(rate=0.12, noise=0.03, n_steps=80, linear=True)
    return RidgeLearner(linear=True)


REGRESSION = Task(
    loss=lambda readout, center, outputs: squared_loss,
    ridge=_ridge,
    folds=MappingProxyType({600: 4, 30_000: 2, np.inf: 1}),
    scales_targets=True,
    min_bins=20,
    min_additive_rows=MIN_ROWS,
)


class KernelAttentionRegressor(NumericTargets, KernelAttention):
    r"""Predict numbers in tables by weighting the training rows with a learned kernel.

    Take it for tables of about 100 to 100 000 rows if accuracy matters more than computing
    time. Boosted trees are faster to fit and to predict with, and
    :class:`NadarayaWatsonRegressor` is easier to interpret with a few features.

    Predictions combine the targets of training rows near the query by a kernel. Its
    length-scales, one for every feature in each of several encodings of the rows, are learned
    by gradient descent on exact leave-one-out errors. Where it helps, a sum of smooth functions
    of single features is mixed in. Mixed data frames and missing values need no preprocessing.

    Parameters
    ----------
    readout : {"solve", "average"}, default="solve"
        Form of the predictions; see Notes. ``"solve"``: kernel ridge regression.
        ``"average"``: the weighted average of the targets.
    kernel : str or RadialKernel, default="gaussian"
        A positive kernel of the distance, see :mod:`sklearn_attention.kernels`; for "solve"
        one that is positive definite, such as "matern52".
    encodings : str or sequence of str, default=("standard", "quantile", "piecewise_linear")
        Coordinates that the kernel compares: ``"standard"`` in standard deviations,
        ``"quantile"`` as normal scores, ``"piecewise_linear"`` by the covered share of each of
        20 to 48 bins between quantiles, with which a smooth kernel can fit steps.
        Categories have a column for each level, and one for all other levels, in every
        encoding, those of more than 64 levels in the first one. Missing numbers have a column
        that marks them.
    n_folds : int or "auto", default="auto"
        Number of members, which are averaged. Each is learned without the rows of
        its own fold, a quarter of all or fewer, and evaluated by its leave-one-out predictions
        of them. "auto" is 4 up to 600 rows, 2 up to 30 000 and 1 beyond; 1 is fastest.
    max_steps : int or "auto", default="auto"
        Gradient steps for each member. "auto" is 20 up to 2500 rows, and 80 beyond and
        for averages. With 0 length-scales keep their starting values, equal for all features.
    bandwidth : "learned", float or array-like of shape (n_features,), default="learned"
        Numbers are the length-scales, in the features' own units, so that only the ridge is
        learned; only with ``encodings="standard"``.
    ridge : "learned" or float, default="learned"
        For "solve" the noise variance, in units of the targets' variance (in the targets' own
        where the bandwidth is given).
    categorical_features : "from_dtype" or list of (str, int or bool), default="from_dtype"
        Columns of numbers that are unordered categories: their names or positions, or one
        bool for each column. In data frames, columns of a categorical dtype and of strings
        are categories in any case.
    boosting : None or "auto", default="auto"
        Whether boosted trees are stacked with kernel attention. "auto": where a few trees
        lower the squared error of the first fold by 1 % or more, scikit-learn's
        `HistGradientBoosting` is fitted for each fold without the rows held out, and stacked
        if these are then predicted better by at least 0.3 %. Never with a given bandwidth, or
        fewer than 50 rows.
    random_state : int, RandomState instance or None, default=0
        Draws folds, starting points and batches.
    max_rows : int, default=100_000
        Maximum number of rows that `fit` draws from partitions of Dask; rows in memory are all
        used. A hash of their cells, target and weight chooses the rows, so that neither the
        partitions nor their order change the sample. A warning says how many of how many rows
        are drawn.

    Attributes
    ----------
    length_scales_ : ndarray of shape (n_encodings, n_features)
        Geometric mean over the members; infinite where a feature has no effect. In the
        features' own units for the standard encoding, in its coordinates for others.
    feature_relevance_ : Series of shape (n_features,)
        Share of each feature, by its name, in the mean squared distance that the kernels
        compare; sums to 1. It is not an importance: a feature that the target follows on a line
        has little, and the additive part has no share in it. :meth:`explain_features` says how
        much each feature moves predictions.
    additive_share_ : float
        Weight of the additive part beside the kernel, the mean over the members; 0 where it is
        not used. Not in files of version 0.2.0.
    boosting_share_ : float or ndarray of shape (n_outputs,)
        Weight of the boosted trees in predictions; 0 where they are not used.
    boosters_ : list of list of HistGradientBoostingRegressor
        For each output the boosters of the folds, none where they are not used. They predict in
        standard deviations of the targets from the mean.
    bandwidth_ : ndarray of shape (n_features,)
        Length-scales in the standard encoding, or in the first if it is not there.
    loo_residuals_ : ndarray of shape (n_held_out,) or (n_held_out, n_outputs)
        Targets less leave-one-out predictions, of rows that no kernel was learned from, nor
        trees, where these are stacked.
    held_out_rows_ : ndarray of shape (n_held_out,)
        Positions of these rows among the rows of `keys_`.
    encodings_, members_ : list
        The learned encodings and members.
    keys_, values_ : ndarray
        The training rows, without those of weight 0 and copies, and their targets.
    columns_
        As for :class:`NadarayaWatsonRegressor`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if they are all strings.

    See Also
    --------
    NadarayaWatsonRegressor : The average with one kernel and a bandwidth; its intervals have
        guarantees.
    sklearn.gaussian_process.GaussianProcessRegressor : "solve" with a likelihood.
    sklearn.ensemble.HistGradientBoostingRegressor : Trees, faster to fit and to predict with.

    Notes
    -----
    With encodings :math:`\phi_e`, length-scales :math:`\ell_e` and distances
    :math:`D_e = \lVert (\phi_e(x) - \phi_e(x')) / \ell_e \rVert^2` the kernel is

    .. math:: K(x, x') = \sum_e s_e^2\, k(D_e) + 1 + r^2 \exp\Bigl(-\tau
              \sqrt{\textstyle\sum_e D_e}\Bigr) + \frac{b^2}{d}\, \phi_1(x)^\top \phi_1(x')

    a smooth part for each encoding, a rough one of them all, which follows jumps, and a
    linear one of the d columns of the first encoding, which extrapolates beyond the rows.
    Averages have only the smooth parts. Predictions are

    .. math::
       \hat y &= \sum_i K(x, x_i) \alpha_i, \quad \alpha = (K + \sigma^2 I)^{-1} y
           &&\text{(solve)}\\
       \hat y &= \sum_i w_i y_i, \quad w_i = K(x, x_i) / \textstyle\sum_j K(x, x_j)
           &&\text{(average)}

    Solving learns from
    :math:`[K^{-1} y]_i / [K^{-1}]_{ii}`, the exact leave-one-out errors [1]_, with their
    gradient in closed form, on batches of about 500 rows; beyond 2500 rows these are patches
    of neighbours. The averages learn from theirs on 2048 keys a step. Members are
    judged by leave-one-out predictions of rows they have not learned from: the leave-one-out
    error of rows that length-scales were learned from is biased downwards.

    With ``readout="solve"``, a learned bandwidth and ridge, and 50 rows or more, each member m
    also has an additive part [3]_,

    .. math:: \hat y_m(x) = (1 - b_m)\, \hat k_m(x) + b_m \Bigl(\beta_0
              + \textstyle\sum_j f_j(x_j)\Bigr), \quad
              \beta = (Z^\top W Z + \Lambda_m)^{-1} Z^\top W y

    where :math:`\hat k_m` is the prediction by the kernel. The :math:`f_j` of numbers are a
    line and a smooth curve, piecewise linear between up to 40 quantiles; those of categories
    are effects of levels; a missing cell has an effect of its own. Z has their columns, and
    :math:`\Lambda_m` a penalty for each line, curve and category, by restricted maximum
    likelihood [4]_ on the rows that member m does not hold out. The weight :math:`b_m` has the
    least error on rows that other members hold out (on its own rows if it is the only one), and
    is 0 unless the error falls by 0.3 % and by more than chance. A table that needs more than
    480 columns has no additive part.

    With ``boosting="auto"`` trees are stacked [2]_ on top: the prediction is
    :math:`a \hat y + b \hat t`, where :math:`\hat t` is the mean over the folds' boosters, and
    :math:`a, b \ge 0` are of least squares on the rows held out, with large errors weighted
    down.

    Up to 3000 rows there is one linear system. Beyond, the learned space is split at
    medians into overlapping blocks, each is solved, and predictions pass smoothly from one
    block to the next. Where there are more than 500 rows and there is enough noise, systems
    are solved and kernels evaluated in single precision, which sums are not. Beyond 20 000
    rows kernels are learned from a sample, and averages are taken over 50 000 rows at most.
    Results are the same for the same `random_state`. Linear algebra in fits and predictions
    uses one thread.

    Copies would predict one another without error. So rows that agree in all features and
    targets are stored as one row of their joint weight, where one of the columns is a number
    that hardly ever repeats; elsewhere equal rows count as separate observations. Rows that
    are nearly equal do predict one another: where those of one group must not, keep groups
    together in validation.

    References
    ----------
    .. [1] Rasmussen, C. E. and Williams, C. K. I. (2006). Gaussian processes for machine
       learning, section 5.4.2. MIT Press.
    .. [2] Breiman, L. (1996). Stacked regressions. Machine Learning 24, 49-64.
    .. [3] Wahba, G. (1990). Spline models for observational data. SIAM.
    .. [4] Wood, S. N. (2011). Fast stable restricted maximum likelihood and marginal
       likelihood estimation of semiparametric generalized linear models. Journal of the Royal
       Statistical Society, Series B 73, 3-36.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import KernelAttentionRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 3))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1]  # the third feature does not matter
    >>> model = KernelAttentionRegressor().fit(X[:150], y[:150])
    >>> bool(model.score(X[150:], y[150:]) > 0.99)
    True
    >>> int(model.feature_relevance_.argmin())
    2
    """

    @keeps_state_on_failure
    @one_blas_thread()
    @with_callbacks
    def fit(self, X, y, sample_weight=None) -> Self:
        """Store the training data and learn the kernel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows; data frames may have categorical columns, numbers may be missing.
            From partitions of Dask at most `max_rows` rows are drawn.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights: a row of weight 2 has half the noise variance and twice the
            weight in averages; a row of weight 0, or below 1e-19 of the largest, is absent.

        Returns
        -------
        self : KernelAttentionRegressor
            The fitted estimator.

        Raises
        ------
        ValueError
            If data or parameters are not valid. The estimator then is as it was before.

        Warns
        -----
        UserWarning
            If partitions of Dask have more than `max_rows` rows.
        """
        X, y, sample_weight = self._draw_rows(X, y, sample_weight)
        y = check_numeric_target(y)
        X, y = self._learn_rows(X, y=y, multi_output=True, y_numeric=True)
        y, weights = y.astype(np.float64), check_key_weights(sample_weight, X, np.float32)
        options = Options.from_estimator(self)
        report = Report(self, X=X, y=y, metadata={"sample_weight": sample_weight})
        rows = ReadRows(X, y, weights, self.columns_, outputs=[])
        fitted, left_out = fit_kernel_attention(rows, REGRESSION, options, report)
        self._fitted = fitted
        vars(self).update(fitted.attributes())
        # Stack boosted trees with the members, output by output.
        held_out = fitted.held_out
        boosts = options.boosting and len(self.keys_) >= MIN_ROWS
        stacks = _stacks(fitted, left_out, self.columns_, boosts)
        self.boosters_ = [boosters for boosters, *_ in stacks]
        # Weights of members and of trees for each output, (2, n_outputs).
        self._stacking = np.column_stack([w for _, w, _ in stacks])
        stacked = np.column_stack([predictions for *_, predictions in stacks])
        tree_weights = self._stacking[1]
        self.boosting_share_ = float(tree_weights[0]) if y.ndim == 1 else tree_weights
        # Errors of the rows held out, in units of the standardised targets.
        errors = fitted.training.targets[held_out] - stacked
        self.loo_residuals_ = (errors * fitted.training.scale).reshape(-1, *y.shape[1:])
        in_sample_gain = (fitted.predict_held_out() - left_out) * self._stacking[0]
        self._distribution = ErrorDistribution.calibrate(
            fitted.held_out_rows, errors, in_sample_gain, fitted.training.weights[held_out]
        )
        report.end()
        return self

    def predict(self, X, return_std: bool = False) -> Any:
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
        X = self._read_rows(X)
        predictions = self._predict_rows(X)
        if not return_std:
            return predictions
        std = self._describe_errors(X, self._distribution.deviation)
        std = np.hypot(std, self._level_effects.distribution(X).normal_std)
        return predictions, std.reshape(predictions.shape).astype(predictions.dtype)

    def _predict_rows(self, X, member_predictions=None):
        """Return what `predict` returns, for rows of numbers and codes of levels.

        If `member_predictions` (n, n_outputs) are passed, only trees need X.
        """
        shape = -1, *self.values_.shape[1:]
        return self._predict(X, member_predictions).reshape(shape).astype(self.keys_.dtype)

    def predict_quantiles(self, X, quantiles: ArrayLike = (0.1, 0.5, 0.9)) -> np.ndarray:
        r"""Predict quantiles of the target.

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
        The predictive distribution is made of the leave-one-out errors :math:`e_i` of the n
        rows held out, weighted by the learned kernel K between them and the query:

        .. math:: F(t \mid x) &= \sum_i w_i(x)\, \Bigl[\hat y(x) + s(x) \bigl(
                  \tfrac{e_i}{s_i} - \textstyle\sum_j w_j(x) \tfrac{e_j - r_j}{s_j}
                  \bigr) \le t\Bigr] \\
                  w_i(x) &= (1 - \lambda) \frac{K(x, x_i)^\tau}{\sum_j K(x, x_j)^\tau}
                  + \frac{\lambda}{n}

        The :math:`r_j` are the residuals of these rows if they are in the fit. What a row's own
        target takes from its error, :math:`e_j - r_j`, it also takes from errors near the row,
        while the remaining residual is a bias. So the mean of the distribution is the
        prediction plus the weighted mean of such residuals, and a few huge errors move no
        quantile far.

        The standard deviation :math:`s(x)` is that of a new target by the Gaussian process of
        the kernel, and :math:`s_i` that of row i when the row is left out. Only their ratio
        matters: the distribution is wider where rows are rare, and the wider the further away
        they are. Averages, whose kernel has no noise, have :math:`s = 1`. The K of the weights
        has no linear part.

        The exponent :math:`\tau` minimises the continuous ranked probability score of every row
        by the errors of all others; :math:`\lambda` is 0.1. Quantiles count the new error
        itself as one more, so that intervals from a few errors are not too narrow.

        Where a category has a level that no training row has, quantiles are further from the
        median by the effect of such a level, as for
        :meth:`NadarayaWatsonRegressor.predict_interval`; :math:`s(x)` is then that of a known
        level. Boosted trees predict rows as if their level were missing, but they were fitted
        with the level's rows.
        """
        check_is_fitted(self)
        quantiles = check_probabilities("quantiles", quantiles)
        return self._quantiles(X, quantiles)

    def predict_interval(self, X, coverage: float = 0.9) -> np.ndarray:
        """Predict intervals that contain a new target with a given probability.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.
        coverage : float, default=0.9
            Probability, between 0 and 1.

        Returns
        -------
        intervals : ndarray of shape (n_queries, 2) or (n_queries, 2, n_outputs)
            Lower and upper ends. They are the quantiles of the predictive distribution with
            equal probabilities below and above, see :meth:`predict_quantiles`. An end that
            would exclude the prediction is moved there.
        """
        check_is_fitted(self)
        coverage = check_in_open_interval("coverage", coverage, 0, 1)
        quantiles = np.array([(1 - coverage) / 2, (1 + coverage) / 2])
        return self._quantiles(X, quantiles, contains_prediction=True)

    def _predict(self, X, member_predictions=None):
        """Stack predictions of members and trees, in the targets' units, (n, n_outputs).

        If `member_predictions` (n, n_outputs) are passed, only trees need X.
        """
        fitted = self._fitted
        if member_predictions is None:
            member_predictions = fitted.predict(X)
        stacked = member_predictions * self._stacking[0]
        for output, boosters in enumerate(self.boosters_):
            if boosters:
                trees = predict_trees(boosters, X, self.columns_)
                stacked[:, output] += self._stacking[1, output] * trees
        return stacked * fitted.training.scale + fitted.training.center

    _response = _predict

    def _quantiles(self, X, probabilities, contains_prediction=False):
        """Return quantiles of the targets at queries, (n, n_quantiles) or with n_outputs.

        If `contains_prediction`, there are two, which are moved to contain the prediction.
        """
        X, with_median = self._read_rows(X), np.append(probabilities, 0.5)

        def quantiles_of_errors(log_kernel, deviations):
            return self._distribution.quantiles(log_kernel, deviations, with_median)

        errors = self._describe_errors(X, quantiles_of_errors)
        effects = self._level_effects.distribution(X)
        quantiles = effects.inflate(errors[:, :-1], errors[:, -1], probabilities)
        if contains_prediction:
            # A few huge errors can pull the mean outside the interval.
            lower, upper = quantiles[:, 0].clip(max=0), quantiles[:, 1].clip(min=0)
            quantiles = np.stack([lower, upper], axis=1)
        quantiles += self._predict(X)[:, None, :]
        shape = len(X), len(probabilities), *self.values_.shape[1:]
        return quantiles.reshape(shape).astype(self.keys_.dtype)

    def _describe_errors(self, X, describe):
        """Return ``describe(log_kernel, deviations)`` for all queries, in the targets' units.

        `describe` is a method of ErrorDistribution, and called for blocks of queries.
        """
        fitted, descriptions = self._fitted, []
        for rows in blocks_of_queries(len(X), len(fitted.held_out)):
            queries = fitted.training.encode(X[rows], np.float64)
            deviations = self._level_effects.deviations(X[rows], queries)
            log_kernel = fitted.held_out_rows.log_kernel(queries)
            descriptions.append(describe(log_kernel, deviations))
        return np.concatenate(descriptions) * fitted.training.scale

    @property
    def _level_effects(self):
        """Effects of levels that no training row has."""
        fit = self._fitted, self._distribution, self._stacking, self.boosters_, self.columns_
        return self._cached("level effects", lambda: LeaveLevelOut(*fit))


def _stacks(fitted, left_out, columns, boosts):
    """Stack boosted trees with the members, output by output.

    `left_out` (n_held_out, n_outputs) are the members' leave-one-out predictions. `boosts` says
    whether trees are tried. Returns the results of `stack_regressor` for each output.
    """
    training = fitted.training
    if not boosts:
        return [([], np.array([1.0, 0.0]), kernel) for kernel in left_out.T]
    return [
        stack_regressor(training.X, columns, targets, training.weights, fitted.folds, kernel)
        for targets, kernel in zip(training.targets.T, left_out.T, strict=True)
    ]
