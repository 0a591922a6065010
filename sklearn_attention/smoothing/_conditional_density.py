"""The density of a target given the features.

The density at a query is a mixture of kernels around the keys, which here are numbers: the
targets of the training rows (degree 0), or their residuals from a local line (degree 1). The
features of query and rows decide the weight of each key. With degree 1, the height of the line
at the query, its center, is added to all keys. `_mixtures` computes such densities.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin, clone
from sklearn.utils import check_random_state

from .._base import keeps_state_on_failure, with_callbacks
from .._blocks import own_copy
from .._column_stats import checked_std, column_stats
from .._columns import Columns, MixedRows
from .._report import Report
from .._sample_weight import check_key_weights, clip_weightless_rows
from .._validation import (
    check_choice,
    check_numeric_target,
    check_positive,
    check_probabilities,
    check_size,
    check_thresholds,
    is_one_of,
)
from ..attention._sums import EMPTY_POLICIES
from ..bandwidth import rule_bandwidth
from ..bandwidth._density_search import ConditionalSearch
from ..bandwidth._rules import SMOOTHER_RULES
from ..bandwidth._samples import point_masses
from ..bandwidth._search import Rows
from ..kernels import Kernel, SmoothingKernel
from ..kernels._base import as_kernel
from ..kernels._product_kernel import mixed_kernel
from ._density import check_bounds, check_density_kernel
from ._density_level_effects import DensityLevelEffects
from ._fitted_smoother import FittedSmoother, refuse_negative, single_member
from ._mixtures import KernelMixture, draw_positions
from ._scale import Scale

# Attributes that belong to the fit of one degree.
_OF_DEGREE = (
    "likelihood_score_",
    "line_bandwidth_",
    "line_kernel_",
    "residuals_",
    "background_",
    "bandwidth_",
    "target_bandwidth_",
    "kernel_",
)
_RULES = "likelihood", "scott", "silverman"
# The rule of `LocalPolynomialRegressor`.
_RULE_OF_LINE = SMOOTHER_RULES["penalized-loo"]


class ConditionalKernelDensity(RegressorMixin, MixedRows):
    r"""Estimate the distribution of a target given the features.

    Take it if the noise is skewed, has several modes, or changes with the features. If only
    intervals or quantiles matter, `predict_interval` of :class:`NadarayaWatsonRegressor` or
    :class:`LocalPolynomialRegressor` is faster.

    .. math:: \hat f(y \mid x) = \sum_i w_i(x)\, \frac{1}{g}
              K_g\Big(\frac{y - \hat m(x) - e_i}{g}\Big), \qquad
              w_i(x) = \frac{K((x - x_i) / h)}{\sum_j K((x - x_j) / h)}

    It makes no assumption on the shape of the noise. The weights are those of Nadaraya-Watson
    regression. The kernel :math:`K_g` of the target is around the residuals :math:`e_i = y_i -
    \hat m_{-i}(x_i)` of a local line :math:`\hat m` through all other rows [3]_ [4]_. So the
    width of the density is that of the noise, without the slope of the line within a window.
    With `degree` 0 the kernels are around the targets themselves, and there is no line.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        Similarity of rows: a name or a kernel of :mod:`sklearn_attention.kernels`, a function
        ``f(X, Y) -> (n, m)``, or a kernel of
        :mod:`sklearn.gaussian_process.kernels`; a positive one. In a data frame with
        categories it compares the numeric columns.
    bandwidth : {"likelihood", "scott", "silverman"}, float or array-like, default="likelihood"
        One number for all numeric columns, or one for each column in its own units, where
        a categorical column has its lambda. Or a rule:

        - "likelihood" chooses all of them by the leave-one-out likelihood of the targets
          given the features, jointly with the target's if that is "likelihood" too. It
          smooths away features that do not matter. See
          :class:`sklearn_attention.bandwidth.ConditionalLikelihood`;
        - "scott" and "silverman" use only the number of rows and the standard deviations.

        If there are more than 2000 rows, the search uses a sample, whose bandwidths are
        rescaled at the rate :math:`n^{-1/(d+5)}`.
    target_kernel : str or SmoothingKernel, default="gaussian"
        Spreads the targets, :math:`K_g`; a positive one.
    target_bandwidth : {"likelihood", "scott", "silverman"} or float, default="likelihood"
        Bandwidth :math:`g` of the target's kernel, in the target's units; or a rule, as for
        `bandwidth`.
    degree : {"auto", 0, 1}, default="auto"
        1 is a density around a local line, unless all columns are categories. 0 is a density
        around the targets, which is better near a jump, but wider where the mean has a slope.
        "auto" takes the one with the larger leave-one-out likelihood. It is 1 if no bandwidth
        is searched, and 0 if the target has point masses (see :class:`ProductKernelDensity`).
    bounds : None or pair, default=None
        Lowest and highest target, such as ``(0, None)``; None or infinite if there is none.
        Outside the bounds the density is 0. Inside, kernels are reflected at the bounds.
    categorical_features : "from_dtype" or list of (str, int or bool), default="from_dtype"
        As for :class:`ProductKernelDensity`.
    empty : {"nearest", "nan"}, default="nearest"
        Prediction where no training row has weight: by the nearest row, or NaN.
    random_state : int, RandomState instance or None, default=0
        Draws the sample that "likelihood" uses in large data.

    Attributes
    ----------
    bandwidth_ : ndarray of shape (n_features,)
        The bandwidth of each numeric column, in its own units, and the lambda of each
        categorical one.
    target_bandwidth_ : float
        The bandwidth of the target.
    likelihood_score_ : float
        :class:`sklearn_attention.bandwidth.ConditionalLikelihood` of targets or residuals at
        these bandwidths; only with "likelihood". In large data that of the sample, before the
        bandwidths are rescaled.
    background_ : ndarray of shape (2,)
        Center, from the line, and scale of the background; only with "likelihood".
    bounds_ : ndarray of shape (2,) or None
        The bounds of the target, infinite where there is none; None without any.
    degree_ : int
        The degree.
    line_bandwidth_, line_kernel_ : ndarray of shape (n_features,), Kernel
        The bandwidths and lambdas of the local line, and its kernel; only with degree 1.
    residuals_ : ndarray of shape (n_samples,)
        Targets less the line through all other rows; only with degree 1.
    kernel_ : Kernel
        The kernel, resolved; with categories the product of all columns' kernels.
    target_kernel_ : SmoothingKernel
        The target's kernel, resolved.
    keys_ : ndarray of shape (n_samples, n_features)
        The training rows; a level of a category is its position among all levels.
    values_ : ndarray of shape (n_samples,)
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
    NadarayaWatsonRegressor : Only the mean.
    ProductKernelDensity : The density of the features.

    Notes
    -----
    A kernel that is symmetric about 0 has mean 0, so that the mean of the estimated density is

    .. math:: \int y\, \hat f(y \mid x)\,dy = \hat m(x) + \sum_i w_i(x)\, e_i,

    the local line, corrected by the average of the residuals around the query. With degree 0 it
    is exactly Nadaraya-Watson regression. :meth:`predict` returns this mean, clipped to the
    bounds; the background and reflections do not count in it.

    With "likelihood" the density is the one that the criterion evaluates,

    .. math:: \frac{n}{n + 1} \hat f(y \mid x) + \frac{1}{n + 1} g(y - \hat m(x)),

    with a background :math:`g` as for :class:`ProductKernelDensity`: Student's t with 2 degrees
    of freedom, around the median of the residuals and as wide as their bulk. So targets unlike
    all others have a small density rather than nearly 0. The criterion ignores the bounds.

    The line is that of :class:`LocalPolynomialRegressor` of degree 1, with "likelihood" by its
    default bandwidths, else with `bandwidth`: its windows are widened where rows are sparse,
    and off the rows it is bounded by the targets within them.

    Unordered categories have the Aitchison-Aitken kernel, ordered ones the Li-Racine kernel.
    An unordered level that did not occur in training weighs all levels alike. The target's
    kernel is wider there by the effect of such a level, as far as the density does not allow
    for it: see :meth:`NadarayaWatsonRegressor.predict_interval`, but here the weights
    :math:`v_i` are equal, and :math:`r_i` the standard deviation that the density would state.

    Rules of thumb take features and residuals as one density of :math:`d + 1` dimensions.

    References
    ----------
    .. [1] Rosenblatt, M. (1969). Conditional probability density and regression
       estimators. In: Multivariate Analysis II, Academic Press, 25-31.
    .. [2] Hall, P., Racine, J. and Li, Q. (2004). Cross-validation and the estimation of
       conditional probability densities. Journal of the American Statistical Association
       99, 1015-1026.
    .. [3] Hyndman, R. J., Bashtannyk, D. M. and Grunwald, G. K. (1996). Estimating and
       visualizing conditional densities. Journal of Computational and Graphical Statistics
       5, 315-336.
    .. [4] Hansen, B. E. (2004). Nonparametric conditional density estimation. Working paper,
       University of Wisconsin.

    Examples
    --------
    The noise grows with x, and so does the width of the density:

    >>> import numpy as np
    >>> from sklearn_attention import ConditionalKernelDensity
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 3, size=(400, 1))
    >>> y = X[:, 0] + 0.3 * X[:, 0] * rng.normal(size=400)
    >>> model = ConditionalKernelDensity().fit(X, y)
    >>> model.predict_quantiles([[1.0], [2.5]], [0.1, 0.5, 0.9]).round(1)
    array([[0.6, 1. , 1.4],
           [1.4, 2.5, 3.5]])
    >>> model.predict_cdf([[1.0], [2.5]], [1.0, 2.0]).round(2)
    array([[0.47, 1.  ],
           [0.03, 0.26]])
    """

    def __init__(
        self,
        kernel: str | Kernel | Callable[..., Any] = "gaussian",
        *,
        bandwidth: str | ArrayLike = "likelihood",
        target_kernel: str | SmoothingKernel = "gaussian",
        target_bandwidth: str | float = "likelihood",
        degree: str | int = "auto",
        bounds: Any = None,
        categorical_features: Any = "from_dtype",
        empty: str = "nearest",
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.target_kernel = target_kernel
        self.target_bandwidth = target_bandwidth
        self.degree = degree
        self.bounds = bounds
        self.categorical_features = categorical_features
        self.empty = empty
        self.random_state = random_state

    @keeps_state_on_failure
    @with_callbacks
    def fit(self, X, y, sample_weight=None) -> Self:
        """Store the training data and choose the bandwidths.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Training rows. They are copied, but a memory map of float64 stays where it is.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights; rows of weight 0 are absent. With degree 0, at given
            bandwidths, a row of weight 2 counts as two rows. With degree 1 it does not: its
            residual is predicted without both copies, that of one of two rows with the other.

        Returns
        -------
        self : ConditionalKernelDensity
            The fitted estimator.

        Raises
        ------
        ValueError
            If data or parameters are not valid. The estimator then is as it was before.
        """
        if not is_one_of(self.degree, "auto", 0, 1) or isinstance(self.degree, bool):
            raise ValueError(f"degree={self.degree!r} is not valid: pass 'auto', 0 or 1.")
        check_choice("empty", self.empty, EMPTY_POLICIES)
        self.target_kernel_ = check_density_kernel("target_kernel", self.target_kernel)
        kernel = as_kernel(clone(self.kernel, safe=False))
        refuse_negative(self.kernel, kernel.signed, "a density")
        y = check_numeric_target(y)
        keys, y = map(own_copy, self._learn_rows(X, np.float64, y=y, y_numeric=True))
        self.key_weights_ = check_key_weights(sample_weight, keys)
        self.keys_ = clip_weightless_rows(keys, self.key_weights_)
        self.values_ = clip_weightless_rows(y.astype(np.float64, copy=False), self.key_weights_)
        bounds = check_bounds(self.bounds, Columns.numbers(1), self.values_[:, None], ["y"])
        self.bounds_ = None if bounds is None else bounds[0]
        self._keep("empty")
        self._choose_bandwidths(X, y, kernel)
        # A kernel that cannot weigh the first row is refused here rather than in predict.
        self._weights(self.keys_[:1])
        return self

    def predict(self, X) -> np.ndarray:
        """Mean of the target for each query: that of the kernels, within the bounds.

        Parameters
        ----------
        X : array-like or data frame of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        y : ndarray of shape (n_queries,)
            Means.
        """
        X = self._read_rows(X, np.float64)
        means = self._averages.predict(X) + self._centers(X)
        return means if self.bounds_ is None else means.clip(*self.bounds_)

    def score_samples(self, X, y) -> np.ndarray:
        """Log-density of each target given its row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_queries, n_features)
            Queries.
        y : array-like of shape (n_queries,)
            Targets.

        Returns
        -------
        log_density : ndarray of shape (n_queries,)
            -inf where the density is 0.
        """
        y = check_numeric_target(y)
        X, y = self._read_rows(X, np.float64, y=y, y_numeric=True)
        log_density, centers = np.empty(len(X)), self._centers(X)
        # Queries with a new level have a mixture with a wider kernel of the target.
        for mixture, rows in self._mixtures(X):
            log_density[rows] = mixture.log_density(y[rows, None], X[rows], centers[rows])
        return log_density

    def score(self, X, y, sample_weight=None) -> float:
        """Mean log-density of targets given their rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_queries, n_features)
            Queries.
        y : array-like of shape (n_queries,)
            Targets.
        sample_weight : array-like of shape (n_queries,), default=None
            Weights of the rows.

        Returns
        -------
        log_likelihood : float
            The mean of :meth:`score_samples`.
        """
        log_density = self.score_samples(X, y)
        sample_weight = check_key_weights(sample_weight, log_density)
        return float(np.average(log_density, weights=sample_weight))

    def predict_cdf(self, X, y) -> np.ndarray:
        """Probability that the target is at most some thresholds.

        Parameters
        ----------
        X : array-like or data frame of shape (n_queries, n_features)
            Queries.
        y : array-like of shape (n_thresholds,) or (n_queries, n_thresholds)
            Thresholds, the same for all queries, or those of each.

        Returns
        -------
        probability : ndarray of shape (n_queries, n_thresholds)
            Of every query at all of its thresholds.
        """
        X = self._read_rows(X, np.float64)
        thresholds, centers = check_thresholds("y", y, len(X)), self._centers(X)
        probability, n_thresholds = np.empty(thresholds.shape), thresholds.shape[1]
        for mixture, rows, weights in self._weighted_mixtures(X, n_values=n_thresholds):
            # Every threshold becomes a row, with the weights and the center of its query.
            row_weights = weights.repeat(n_thresholds, axis=0)
            row_centers = centers[rows].repeat(n_thresholds)
            below = mixture.cdf(thresholds[rows].reshape(-1, 1), row_weights, row_centers)
            probability[rows] = below.reshape(-1, n_thresholds)
        return probability

    def predict_quantiles(self, X, quantiles: ArrayLike = (0.1, 0.5, 0.9)) -> np.ndarray:
        """Quantiles of the target for each query.

        Parameters
        ----------
        X : array-like or data frame of shape (n_queries, n_features)
            Queries.
        quantiles : float or array-like of shape (n_quantiles,), default=(0.1, 0.5, 0.9)
            Probabilities between 0 and 1, both excluded.

        Returns
        -------
        y : ndarray of shape (n_queries, n_quantiles)
            Targets at which :meth:`predict_cdf` has these values.
        """
        X = self._read_rows(X, np.float64)
        probabilities = check_probabilities("quantiles", quantiles)
        y, centers = np.empty((len(X), len(probabilities))), self._centers(X)
        for mixture, rows, weights in self._weighted_mixtures(X, n_values=len(probabilities)):
            y[rows] = mixture.quantiles(weights, probabilities, centers[rows])
        return y

    def sample(self, X, n_samples: int = 1, random_state=None) -> np.ndarray:
        """Draw targets from the estimated density of each query.

        Parameters
        ----------
        X : array-like or data frame of shape (n_queries, n_features)
            Queries.
        n_samples : int, default=1
            Number of targets for each query.
        random_state : int, RandomState instance or None, default=None
            Draws them.

        Returns
        -------
        y : ndarray of shape (n_queries, n_samples)
        """
        X = self._read_rows(X, np.float64)
        n_samples = check_size("n_samples", n_samples, 3, len(X))
        random_state = check_random_state(random_state)
        uniform = random_state.uniform(size=(len(X), n_samples))
        y, centers = np.empty(uniform.shape), self._centers(X)
        for mixture, rows, weights in self._weighted_mixtures(X):
            # A key is drawn by the weights for each target, and then noise from its kernel.
            positions = draw_positions(weights, uniform[rows]).ravel()
            drawn = mixture.draw(random_state, positions, centers[rows].repeat(n_samples))
            y[rows] = drawn.reshape(-1, n_samples)
        return y

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # The score is a log-density and has no scale on which 0.5 is good.
        tags.regressor_tags.poor_score = True
        return tags

    def _choose_bandwidths(self, X, y, kernel):
        """Set the degree, and all that is chosen for it: see `_OF_DEGREE`.

        `X` and `y` are as the user passed them, for callbacks. The kernel is that of the
        features.
        """
        # Rules and searches take the target for one more column. If its values are too small,
        # the message is to name "y", so this is checked before.
        checked_std(column_stats(self.values_[:, None], self.key_weights_), "y")
        searches = "likelihood" in map(str, (self.bandwidth, self.target_bandwidth))
        report = Report(self, X=X, y=y, metadata={"sample_weight": self.key_weights_})
        report.begin(None if searches else 0)
        rows = (
            Rows(
                X=self.keys_,
                values=self.values_[:, None],
                columns=self.columns_,
                sample_weight=self.key_weights_,
                empty=self.empty,
                random_state=self.random_state,
            )
            .without_outliers()
            .compared_by(kernel)
        )
        # Columns that the kernel does not compare are missing from these.
        self._compared = rows.columns
        # Categories alone have no line. Without a search there is no criterion for the degree.
        # `fits` has the attributes and the `BandwidthChoice` of each degree.
        degrees, fits = [1 if self.degree == "auto" else self.degree], {}
        if not self._compared.numeric:
            degrees = [0]
        elif self.degree == "auto" and searches:
            # If many targets are equal, they are a point mass, which residuals would hide.
            _, masses = point_masses(self.values_[:, None], Columns.numbers(1))
            degrees = [0] if masses else [0, 1]
        for degree in degrees:
            self._remove_fit_of_degree()
            choice, has_ended = self._fit_degree(degree, rows, kernel, report)
            fits[degree] = {k: v for k, v in vars(self).items() if k in _OF_DEGREE}, choice
            if has_ended:
                break
        self.degree_ = max(fits, key=lambda k: fits[k][0].get("likelihood_score_", 0.0))
        self._remove_fit_of_degree()
        attributes, choice = fits[self.degree_]
        vars(self).update(attributes)
        if choice is not None:
            choice.warn()
        report.end()

    def _remove_fit_of_degree(self):
        """Remove the attributes that the fit of a degree sets."""
        for name in _OF_DEGREE:
            vars(self).pop(name, None)

    def _fit_degree(self, degree, rows, kernel, report):
        """Set the bandwidths of a degree, and the line of degree 1.

        Returns the `BandwidthChoice` of the search (None if nothing was searched), and True if
        a callback ended the search. `rows` are the `Rows` that bandwidths are chosen for,
        `kernel` is that of the features, and `report` tells callbacks of each bandwidth.
        """
        # 1. The bandwidths of the features are numbers or those of a rule of thumb; None if
        # they are searched.
        choice, has_ended = None, False
        bandwidth = self._by_rule("bandwidth", kernel)
        if not isinstance(self.bandwidth, str):
            bandwidth = self._compared.check_bandwidth(self.bandwidth, bandwidth)
        # 2. A line has its own bandwidths, which are the best ones for predicting targets.
        if degree:
            self.line_bandwidth_ = bandwidth
            if bandwidth is None:
                rows_of_line = rows.with_options(degree=1, empty="nearest", per_feature="auto")
                self.line_bandwidth_ = _RULE_OF_LINE.choose(rows_of_line, kernel).bandwidth
            self.line_kernel_ = mixed_kernel(kernel, self._compared, self.line_bandwidth_)
            self.residuals_ = _line_residuals(self._line)
        # 3. The bandwidth of the target is that of the line's residuals, if there is a line.
        if isinstance(self.target_bandwidth, str):
            target_bandwidth = self._by_rule("target_bandwidth", self.target_kernel_)
        else:
            target_bandwidth = check_positive("target_bandwidth", self.target_bandwidth)

        def observe(value, bandwidths):
            """Report bandwidths of features and target; return True if a callback ends it."""
            nonlocal has_ended
            of_features, of_target = bandwidths[:-1], float(bandwidths[-1])
            kernel_ = mixed_kernel(kernel, self._compared, of_features)
            attributes = {"bandwidth_": of_features, "target_bandwidth_": of_target}
            has_ended = bool(report.done("bandwidth", kernel_=kernel_, **attributes))
            return has_ended

        # 4. All bandwidths that are left are searched together. The last column of what a
        # search returns is the target.
        if bandwidth is None or target_bandwidth is None:
            rows = replace(rows, values=self._mixture_values[:, None])
            search = ConditionalSearch(
                self.target_kernel_, bandwidth, target_bandwidth, find_masses=not degree
            )
            choice = search.choose(rows, kernel, observe)
            self.likelihood_score_, self.background_ = choice.value, choice.background[:, -1]
            bandwidth, target_bandwidth = choice.bandwidth[:-1], float(choice.bandwidth[-1])
        self.bandwidth_, self.target_bandwidth_ = bandwidth, target_bandwidth
        self.kernel_ = mixed_kernel(kernel, self._compared, bandwidth)
        return choice, has_ended

    def _by_rule(self, name, kernel):
        """Return the bandwidths that a rule of thumb gives, or None if they are searched.

        `name` is that of the parameter: "bandwidth" for those of the features, an array,
        "target_bandwidth" for that of the target, a number. The kernel is that of the features
        or of the target.
        """
        rule = getattr(self, name)
        # If bandwidths are given as numbers, categories still need the lambdas of a rule.
        rule = check_choice(name, rule, _RULES) if isinstance(rule, str) else "scott"
        if rule == "likelihood":
            return None
        # The rule is that of a density of features and target together.
        joint = np.column_stack([self.keys_, self._mixture_values])
        columns = self._compared + Columns.numbers(1)
        bandwidth = rule_bandwidth(joint, kernel, rule, self.key_weights_, columns=columns)
        return bandwidth[:-1] if name == "bandwidth" else float(bandwidth[-1])

    def _centers(self, X):
        """Return the heights of the local line at queries, or 0 without a line, (n,)."""
        return self._line.predict(X) if hasattr(self, "line_bandwidth_") else np.zeros(len(X))

    @property
    def _mixture_values(self):
        """The numbers (n_samples,) that are the keys of mixtures: residuals, or targets."""
        return getattr(self, "residuals_", self.values_)

    @property
    def _averages(self):
        """The smoother that averages the keys of mixtures by their features."""
        # `_kept` has the parameter `empty` of the fit.
        member = single_member(degree=0, bandwidth=self.bandwidth_)
        return self._smoother(self._mixture_values, self.kernel_, member, **self._kept)

    @property
    def _line(self):
        """The local linear regression of the targets, around which mixtures are centred."""
        member = single_member(degree=1, bandwidth=self.line_bandwidth_)
        return self._smoother(self.values_, self.line_kernel_, member, empty="nearest")

    def _smoother(self, values, kernel, member_fields, empty):
        """Return the smoother of values (n_samples,) of the training rows with one member."""
        return FittedSmoother(
            keys=self.keys_,
            values=values,
            key_weights=self.key_weights_,
            kernel=kernel,
            columns=self._compared,
            member_fields=member_fields,
            n_neighbors=None,
            empty=empty,
            algorithm="auto",
        )

    @property
    def _mixture(self):
        """The `KernelMixture` of a target whose query has no new level."""
        background, bounds = getattr(self, "background_", None), self.bounds_
        return KernelMixture(
            keys=self._mixture_values[:, None],
            weights=self.key_weights_,
            kernel=self.target_kernel_,
            columns=Columns.numbers(1),
            bandwidth=np.array([self.target_bandwidth_]),
            scale=Scale(None if bounds is None else bounds[None]),
            background=None if background is None else background[:, None],
            feature_smoother=self._averages,
            weights_given=self._weights,
        )

    def _mixtures(self, X):
        """Yield each mixture that queries need, and the positions of these queries.

        All queries without a new level share one mixture. If a query has a level that did not
        occur in training, the effect of this level on the target is unknown. The kernel of the
        target is then wider, by the standard deviation of such effects.
        """
        effects = self._cached("level effects", lambda: DensityLevelEffects(self))
        # The standard deviations (n_queries,) of the effects, as if they were normal; 0 for
        # queries whose levels all occurred. The only output is the target.
        effect_stds, mixture = effects.distribution(X).normal_std[:, 0], self._mixture
        # The target's kernel has a standard deviation of `spread` bandwidths.
        bandwidths = np.hypot(self.target_bandwidth_, effect_stds / self.target_kernel_.spread)
        for bandwidth in np.unique(bandwidths):
            rows = np.flatnonzero(bandwidths == bandwidth)
            yield replace(mixture, bandwidth=np.array([bandwidth])), rows

    def _weighted_mixtures(self, X, n_values=1):
        """Yield mixture, positions (n,) and weights (n, n_keys) for each block of queries.

        The weights are those of the keys at the n queries, and sum to 1. Blocks are as small as
        memory needs if there are `n_values` numbers for each pair of a query and a key.
        """
        for mixture, queries in self._mixtures(X):
            for block, weights in mixture.blocks_of_weights(X[queries], n_values):
                yield mixture, queries[block], weights

    def _weights(self, X):
        """Return the weights (n_queries, n_keys) of the keys; refuse negative ones."""
        weights = self._averages.weights(X)
        refuse_negative(self.kernel, (weights < 0).any(), "a density")
        return weights


def _line_residuals(line):
    """Return the leave-one-out residuals of the line, (n_keys,); 0 for a single row."""
    if np.count_nonzero(line.row_weights) < 2:
        return np.zeros(len(line.keys))
    return line.errors.loo_residuals[:, 0]
