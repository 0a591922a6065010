"""Kernel density estimation for numbers and categories.

The keys are the training rows. A local factor multiplies the bandwidths of one key: with a
sensitivity above 0, kernels are wide where keys are sparse. Beside a bound, a column may be
compared by the logarithm of its distance from the bound plus an offset. `_mixtures` defines
these terms, and computes densities.
"""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import DensityMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._base import keeps_state_on_failure, with_callbacks
from .._blocks import append_rows, own_copy
from .._column_stats import min_max_sum
from .._columns import Columns, MixedRows
from .._partitions import is_partitioned, need_all_rows
from .._report import Report
from .._sample_weight import check_key_weights, clip_weightless_rows, zero_tiny_weights
from .._validation import check_in_interval, check_size, is_interval, is_one_of
from ..bandwidth._background import center_and_scale
from ..bandwidth._rules import DENSITY_RULES
from ..bandwidth._samples import point_masses
from ..bandwidth._search import MAX_KEYS, MAX_SEARCH_ROWS, Rows, bandwidth_rule
from ..kernels import SmoothingKernel
from ..kernels._base import as_kernel
from ._mixtures import KernelMixture
from ._scale import Scale

# Sensitivities that "auto" tries beside 0. The best one is taken if it raises the leave-one-out
# log-likelihood, summed over all rows, by more than the second number, in nats. Without a
# minimum, uniform rows lose 9 % of accuracy, and rows with peaks gain as much.
_SENSITIVITIES, _MIN_GAIN = (0.25, 0.5), 2.0
# Local factors come from a pilot density of at most this many rows.
_MAX_PILOT_ROWS = 10_000


class ProductKernelDensity(DensityMixin, MixedRows):
    r"""Estimate a density with a kernel and a bandwidth for each column.

    Take it to find unusual rows, to draw new rows, or to look at a distribution, for up to
    about five columns with numbers and categories. For the distribution of a target given
    features take :class:`ConditionalKernelDensity`.

    .. math:: \hat f(x) = \frac{1}{\sum_i w_i} \sum_i w_i
              \prod_k \frac{1}{h_k s_i} K\Big(\frac{x_k - x_{ik}}{h_k s_i}\Big)

    Columns of a data frame may be categories; theirs is a kernel over the levels. Every
    column has its own bandwidth, chosen by leave-one-out. The local factors :math:`s_i` may
    widen the kernel where data are sparse.

    Parameters
    ----------
    kernel : str or SmoothingKernel, default="gaussian"
        Compares each numeric column. It must be positive.
    bandwidth : str, float or array-like, default="likelihood"
        One number for all numeric columns, or one for each column in its own units, where
        a categorical column has its lambda (see Notes). Or a rule:

        - "likelihood" chooses all of them by leave-one-out likelihood, see
          :class:`sklearn_attention.bandwidth.DensityLikelihood`, and adds a wide background
          to the estimate, which stands for rows unlike all others (see Notes);
        - "scott" and "silverman" use only the number of rows and the standard deviations, see
          :func:`sklearn_attention.bandwidth.rule_bandwidth`.

        If there are more than 2000 rows, the search uses a sample, whose bandwidths are
        rescaled at the rate :math:`n^{-1/(d+4)}`. With one feature, and most kernels, it does
        so only from 100 000 rows on.
    sensitivity : "auto" or float, default="auto"
        Exponent :math:`\alpha` of the local factors, from 0, which is a fixed bandwidth, to 1.
        Abramson's choice is 0.5. With ``bandwidth="likelihood"``, "auto" takes the one of 0,
        0.25 and 0.5 with the largest leave-one-out likelihood of up to 2000 rows; it takes 0
        unless another gains 2 nats. With other bandwidths, more than 20 000 rows, or partitions
        of Dask, "auto" is 0.
    categorical_features : "from_dtype" or list of (str, int or bool), default="from_dtype"
        Columns of numbers that are unordered categories: their names or positions, or one
        bool for each column. In data frames, columns of a categorical dtype and of strings
        are categories in any case.
    bounds : None, pair or list of (pair or None), default=None
        Lowest and highest value, such as ``(0, None)`` for numbers that are not negative; None
        or infinite if there is none. One pair is for all numeric columns, a list has a pair for
        each column. Outside the bounds the density is 0. Inside, kernels are reflected at the
        bounds, so that the density integrates to 1 and is not biased towards 0 there. With
        ``bandwidth="likelihood"``, a column with one bound is compared by logarithms of its
        distance from the bound if that describes it better (see Notes).
    random_state : int, RandomState instance or None, default=0
        Draws the sample that a search uses in large data.

    Attributes
    ----------
    bandwidth_ : ndarray of shape (n_features,)
        The bandwidth of each numeric column, in its own units, and the lambda of each
        categorical one. If `log_offsets_` has a number for a column, the bandwidth is a width
        of logarithms: 0.2 is about 20 % of the distance from the bound.
    local_factors_ : ndarray of shape (n_samples,)
        Factor on the bandwidth at each training row: a power of :math:`2^{1/8}`, or of 2 if it
        is above 4 or below 1/4. All are 1 if the sensitivity is 0.
    likelihood_score_ : float
        Mean leave-one-out log-density at that bandwidth, without local factors; only with
        "likelihood". If a sample was drawn, it is that of the sample, before the bandwidth is
        rescaled.
    background_ : ndarray of shape (2, n_features)
        Center and scale of the background in each column, in its own units; only with
        "likelihood".
    bounds_ : ndarray of shape (n_features, 2) or None
        The bounds of each column, infinite where there is none; None without any.
    log_offsets_ : ndarray of shape (n_features,)
        For columns that are compared by logarithms of the distance from their bound: what is
        added to the distance before its logarithm is taken, in the column's own units. NaN for
        all other columns. Only with bounds and "likelihood".
    kernel_ : SmoothingKernel
        The kernel, resolved.
    keys_ : ndarray of shape (n_samples, n_features)
        The training rows; a level of a category is its position among all levels.
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
    ConditionalKernelDensity : The density of a target, given the features.
    sklearn.neighbors.KernelDensity : One bandwidth for all features; fast in large data.

    Notes
    -----
    Unordered categories have the Aitchison-Aitken kernel over the levels that occur in
    training. Ordered categories have the Li-Racine kernel divided by its sum over all levels of
    the dtype. So the estimate sums to 1 over all levels and numbers. A query with an unordered
    level that did not occur in training has density 0, since no probability was left for it.

    With "likelihood" the estimate is

    .. math:: \frac{n}{n + 1} \hat f(x) + \frac{1}{n + 1} g(x),

    for which leave-one-out chooses the bandwidth. The background :math:`g` of
    :class:`sklearn_attention.bandwidth.DensityLikelihood`, as wide as the bulk of the rows and
    with heavy tails, has the mass of one further row. So one outlier does not decide the
    bandwidth, and rows far from all others have a small density rather than nearly 0.
    If rows are weighted, :math:`n = (\sum_i w_i)^2 / \sum_i w_i^2`.

    Within bounds :math:`a \le x \le b` the estimate is :math:`\hat f(x) + \hat f(2a - x) +
    \hat f(2b - x)`, and so on for images of images. Its slope at the bounds is 0. The criteria
    choose the bandwidth for this estimate. A column with one bound may have a peak next to the
    bound and a long tail, for which no single bandwidth is good. With "likelihood", a column
    with a lower bound is compared as :math:`\log(x - a + o)`, reflected at :math:`\log o`, if
    its leave-one-out likelihood, without the other columns, is then larger. The offset
    :math:`o` is half the median of :math:`x - a`. Columns with an upper bound are treated
    alike. The density is that of :math:`x` in any case.

    The local factors [1]_ [2]_ are

    .. math:: s_i = \Big(\frac{\tilde f(x_i)}{g}\Big)^{-\alpha}, \qquad
              \log g = \frac{1}{\sum_i w_i} \sum_i w_i \log \tilde f(x_i),

    with the sensitivity :math:`\alpha`, and the estimate :math:`\tilde f` with a fixed
    bandwidth, from up to 10 000 rows. They are rounded to powers of :math:`2^{1/8}`, or to
    powers of 2 if they are above 4 or below 1/4. Every row's kernel still has mass 1. Lambdas
    are not multiplied. For peaks of different width and for heavy tails, the error is half that
    of a fixed bandwidth; for normal rows it is about the same.

    A number is a point mass if at least ten rows share it, and five times as many as share the
    next smaller and the next larger number, such as 0 in rainfall or spending. Leave-one-out
    would describe each copy by the others, with a bandwidth near 0. A search leaves such rows
    out, with a warning, if ten other rows remain.

    References
    ----------
    .. [1] Abramson, I. S. (1982). On bandwidth variation in kernel estimates - a square
       root law. Annals of Statistics 10, 1217-1223.
    .. [2] Silverman, B. W. (1986). Density Estimation for Statistics and Data Analysis.
       Chapman and Hall, section 5.3.
    .. [3] Li, Q. and Racine, J. (2003). Nonparametric estimation of distributions with
       categorical and continuous data. Journal of Multivariate Analysis 86, 266-292.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention import ProductKernelDensity
    >>> X = np.random.default_rng(0).normal(size=(300, 2)) * [1.0, 100.0]
    >>> model = ProductKernelDensity().fit(X)
    >>> model.bandwidth_.round(1)
    array([ 0.5, 50.7])
    >>> model.score_samples([[0.0, 0.0], [3.0, 300.0]]).round(1)
    array([ -6.6, -12.8])
    """

    _keeps_partitions = True

    def __init__(
        self,
        kernel: str | SmoothingKernel = "gaussian",
        *,
        bandwidth: str | ArrayLike = "likelihood",
        sensitivity: str | float = "auto",
        categorical_features: Any = "from_dtype",
        bounds: Any = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.sensitivity = sensitivity
        self.categorical_features = categorical_features
        self.bounds = bounds
        self.random_state = random_state

    @keeps_state_on_failure
    @with_callbacks
    def fit(self, X, y=None, sample_weight=None) -> Self:
        """Store the training rows and choose the bandwidths.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Training rows. They are copied, but a memory map of float64 stays where it is, and
            so do arrays and data frames of Dask.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights: at given bandwidths, weight 2 is the row twice and
            weight 0 its absence.

        Returns
        -------
        self : ProductKernelDensity
            The fitted estimator.

        Raises
        ------
        ValueError
            If data or parameters are not valid. The estimator then is as it was before.
        """
        return self._store(own_copy(self._learn_rows(X, np.float64)), X, sample_weight)

    @keeps_state_on_failure
    @with_callbacks
    def partial_fit(self, X, y=None, sample_weight=None) -> Self:
        """Append training rows, and choose the bandwidths again.

        The result equals `fit` on all rows so far.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Further rows.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights; 1 where not given.

        Returns
        -------
        self : ProductKernelDensity
            The fitted estimator.
        """
        if not hasattr(self, "keys_"):
            return self.fit(X, y, sample_weight)
        self._extend_rows(X)
        return self._store(self._read_rows(X, np.float64), X, sample_weight, append=True)

    def score_samples(self, X) -> np.ndarray:
        """Log-density of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        log_density : ndarray of shape (n_queries,)
            -inf where the density is 0.
        """
        X = self._read_rows(X, np.float64)
        return self._mixture.log_density(X)

    def cdf(self, X) -> np.ndarray:
        r"""Probability of a row that is at most each of some rows, in every column.

        .. math:: \hat F(x) = \frac{1}{\sum_i w_i} \sum_i w_i
                  \prod_k \int_{-\infty}^{x_k} \frac{1}{h_k s_i}
                  K\Big(\frac{t - x_{ik}}{h_k s_i}\Big)\,dt

        The row is at most the query in numbers and ordered categories, and has the same levels
        in unordered categories.

        Parameters
        ----------
        X : array-like or data frame of shape (n_queries, n_features)
            Queries.

        Returns
        -------
        probability : ndarray of shape (n_queries,)
            From 0 to 1, the integral and sum of the density of :meth:`score_samples`.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_attention import ProductKernelDensity
        >>> waits = np.random.default_rng(0).exponential(size=(400, 1))
        >>> model = ProductKernelDensity(bounds=(0, None)).fit(waits)
        >>> model.cdf([[0.0], [1.0], [9.0]]).round(2)
        array([0.  , 0.58, 1.  ])
        """
        X = self._read_rows(X, np.float64)
        return self._mixture.cdf(X)

    def score(self, X, y=None) -> float:
        """Total log-likelihood of rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_queries, n_features)
            Queries.
        y : None
            Ignored.

        Returns
        -------
        log_likelihood : float
            The sum of :meth:`score_samples`.
        """
        return float(self.score_samples(X).sum())

    def sample(self, n_samples: int = 1, random_state=None) -> Any:
        """Draw rows from the estimated density.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        random_state : int, RandomState instance or None, default=None
            Draws them.

        Returns
        -------
        X : ndarray or pandas.DataFrame of shape (n_samples, n_features)
            A frame if the training data were a pandas frame, with the original levels in
            columns of a categorical dtype. Otherwise an array, of objects if there are
            levels that are not numbers.
        """
        check_is_fitted(self)
        n_samples = check_size("n_samples", n_samples, 3 * self.n_features_in_ + 1)
        random_state = check_random_state(random_state)
        mixture, weights = self._mixture, self.key_weights_
        probabilities = None
        if weights is not None:
            probabilities = np.asarray(weights) / mixture.total_weight
        positions = random_state.choice(len(self.keys_), n_samples, p=probabilities)
        drawn = mixture.draw(random_state, positions)
        decoded = self.columns_.decode(drawn, as_frame=self._from_pandas)
        if not self._from_pandas:
            return decoded
        return decoded.set_axis(getattr(self, "feature_names_in_", decoded.columns), axis=1)

    def _store(self, keys, X, sample_weight, *, append=False):
        """Store rows, and choose the bandwidths and local factors for them; return `self`.

        Parameters
        ----------
        keys : array of shape (n, n_features)
            The rows as numbers, and as codes of levels.
        X : array-like or data frame
            The rows as the user passed them.
        sample_weight : array-like of shape (n,) or None
            Their weights; None for 1.
        append : bool, default=False
            Whether the rows are added to those that are stored.
        """
        sensitivity = self.sensitivity
        if not is_one_of(sensitivity, "auto"):
            if isinstance(sensitivity, str):
                raise ValueError(
                    f"sensitivity={sensitivity!r} is not valid: pass 'auto' or a number in "
                    "[0, 1]."
                )
            sensitivity = check_in_interval("sensitivity", sensitivity, 0, 1)
        weights = check_key_weights(sample_weight, keys)
        if append:
            if weights is not None or self.key_weights_ is not None:
                stored_weights = self.key_weights_
                if stored_weights is None:
                    stored_weights = np.ones(len(self.keys_))
                new_weights = np.ones(len(keys)) if weights is None else weights
                weights = zero_tiny_weights(append_rows(stored_weights, new_weights))
            keys = append_rows(self.keys_, keys)
        # Only some fits set these attributes, which must not remain from a fit before.
        for name in ("background_", "log_offsets_", "likelihood_score_"):
            vars(self).pop(name, None)
        self.kernel_ = check_density_kernel("kernel", self.kernel)
        self.key_weights_, self.keys_ = weights, clip_weightless_rows(keys, weights)
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        self.bounds_ = check_bounds(self.bounds, self.columns_, self.keys_, list(names))
        # `sample` returns a frame if a frame was passed.
        self._from_pandas = hasattr(X, "iloc")
        if sensitivity not in (0, "auto"):
            need_all_rows(
                f"local factors of sensitivity={sensitivity:g}",
                self.keys_,
                remedy="pass 0, or X.compute() if it fits",
            )
        # This view of a single 1 takes no memory.
        self.local_factors_ = np.broadcast_to(1.0, len(self.keys_))
        self._choose_bandwidth(X, sensitivity)
        return self

    def _choose_bandwidth(self, X, sensitivity):
        """Set the bandwidths, the background and the local factors for the stored rows.

        `X` are these rows as the user passed them, for callbacks. `sensitivity` is "auto" or a
        number from 0 to 1.
        """
        # 1. A search for bandwidths begins with the columns that become logarithms.
        rule = bandwidth_rule("bandwidth", self.bandwidth, DENSITY_RULES)
        rows = Rows(
            X=self.keys_,
            columns=self.columns_,
            sample_weight=self.key_weights_,
            bounds=self.bounds_,
            random_state=self.random_state,
            describe=self._describe,
        )
        report = Report(self, X=X, y=None, metadata={"sample_weight": self.key_weights_})
        report.begin(None if rule.searches else 0)

        def observe(value, bandwidth):
            """Report a bandwidth to callbacks; return True if one of them ends the search."""
            return report.done("bandwidth", bandwidth_=bandwidth)

        if is_one_of(self.bandwidth, "likelihood") and self.bounds_ is not None:
            self.log_offsets_ = self._offsets(rows, rule)
            scale = self._scale
            rows = replace(rows, X=scale.apply(self.keys_), bounds=scale.scaled_bounds)
        # 2. The rule chooses the bandwidths, and the search its background.
        choice = rule.choose(rows, self.kernel_, observe).warn()
        self.bandwidth_ = choice.bandwidth
        if rule.searches:
            self.likelihood_score_ = float(choice.value)
            self.background_ = choice.background
        if self._scale.log_columns:
            # The search had logarithms, but the background and the likelihood that users see
            # are in the units of the rows.
            background = center_and_scale(self.keys_, self.columns_, self.key_weights_)
            self.background_ = np.array(background)
            self.likelihood_score_ = self._mixture_of_searched_rows().score()
        # 3. The local factors follow from a density without any, the pilot.
        if is_one_of(sensitivity, "auto"):
            is_searched = rule.searches and not is_partitioned(self.keys_)
            is_searched &= len(self.keys_) <= MAX_KEYS
            sensitivity = self._best_sensitivity() if is_searched else 0
        if sensitivity > 0:
            mixture = self._mixture
            pilot = mixture.subsample(_MAX_PILOT_ROWS, self.random_state)
            log_density = pilot.log_density_on_scale(mixture.keys)
            self.local_factors_ = mixture.compute_local_factors(sensitivity, log_density)
        report.end()

    def _offsets(self, rows, rule):
        """Choose the columns that are compared by logarithms of the distance from their bound.

        These are the columns with one bound whose likelihood is larger with logarithms. Returns
        the offset of each of these columns, and NaN for all others, (n_features,). `rows` (a
        `Rows`) are all columns of the training rows, and `rule` searches by the likelihood.
        """
        offsets = np.full(len(self.columns_.kinds), np.nan)
        if is_partitioned(self.keys_):
            return offsets
        for j in np.flatnonzero(np.isfinite(self.bounds_).sum(axis=1) == 1):
            # Values that many rows share, such as 0, have no density, and are left out.
            bounds = self.bounds_[[j]]
            is_regular, _ = point_masses(self.keys_[:, [j]], Columns.numbers(1))
            column, weights = self.keys_[is_regular][:, [j]], self.key_weights_
            weights = None if weights is None else weights[is_regular]
            distance = np.abs(column[:, 0] - bounds[np.isfinite(bounds)])
            median = np.quantile(distance, 0.5, method="inverted_cdf", weights=weights)
            if not median > 0:
                continue
            # Scores are mean log-densities in the units of the column, so they compare.
            scores = []
            plain_scale, log_scale = Scale(bounds), Scale(bounds, np.array([median / 2]))
            for scale in (plain_scale, log_scale):
                rows_of_column = replace(
                    rows,
                    X=scale.apply(column),
                    columns=Columns.numbers(1),
                    sample_weight=weights,
                    bounds=scale.scaled_bounds,
                )
                log_slope = np.average(scale.log_slopes(column), weights=weights)
                scores.append(rule.choose(rows_of_column, self.kernel_).value + log_slope)
            plain_score, log_score = scores
            if log_score > plain_score:
                offsets[j] = median / 2
        return offsets

    def _describe(self, column, value):
        """Return the name of a column, and one of its values, for the message of a search.

        `column` is its position. The value may be a logarithm, and is returned in the units of
        the column.
        """
        names = getattr(self, "feature_names_in_", None)
        name = f"column {column}" if names is None else f"column {names[column]!r}"
        if column in [j for j, *_ in self._scale.log_columns]:
            # The key with this logarithm has the value without rounding.
            scaled = self._scale.apply(self.keys_)[:, column]
            value = self.keys_[np.abs(scaled - value).argmin(), column]
        return name, value

    @property
    def _scale(self):
        """The `Scale` on which kernels compare rows: some columns become logarithms."""
        return Scale(self.bounds_, getattr(self, "log_offsets_", None))

    def _mixture_of_searched_rows(self):
        """Return the mixture of the rows that a search uses.

        They are a sample, without the values that many rows share, which have no density.
        """
        sample = self._mixture.subsample(MAX_SEARCH_ROWS, self.random_state)
        is_regular, _ = point_masses(sample.keys, self.columns_)
        return sample.take(is_regular)

    def _best_sensitivity(self):
        """Return the sensitivity with the largest likelihood: 0, or one of `_SENSITIVITIES`.

        A sensitivity above 0 has to raise the log-likelihood of all rows by `_MIN_GAIN`.
        """
        mixture, best = self._mixture_of_searched_rows(), 0.0
        # A score is the mean log-density of n rows, so it has to rise by `_MIN_GAIN` / n. The
        # weight of the background is about 1 / n.
        score_to_beat = mixture.score() + _MIN_GAIN * mixture.background_weight
        log_density = mixture.log_density_on_scale(mixture.keys)
        for sensitivity in _SENSITIVITIES:
            factors = mixture.compute_local_factors(sensitivity, log_density)
            score = replace(mixture, local_factors=factors).score()
            if score > score_to_beat:
                best, score_to_beat = sensitivity, score
        return best

    @property
    def _mixture(self):
        """The `KernelMixture` that computes the fitted density."""
        scale, factors = self._scale, self.local_factors_
        return KernelMixture(
            keys=scale.apply(self.keys_),
            weights=self.key_weights_,
            kernel=self.kernel_,
            columns=self.columns_,
            bandwidth=self.bandwidth_,
            scale=scale,
            background=getattr(self, "background_", None),
            local_factors=None if factors.min() == factors.max() == 1 else factors,
        )


def check_density_kernel(name, kernel):
    """Return the kernel of the parameter `name`; raise ValueError unless it is positive."""
    # It is a copy, since changing the parameter later must not change a fitted estimator.
    resolved = as_kernel(clone(kernel, safe=False))
    if not isinstance(resolved, SmoothingKernel) or resolved.signed:
        why = "takes negative values" if resolved.signed else "is no smoothing kernel"
        raise ValueError(
            f"{name}={kernel!r} {why} and so no density: choose a positive smoothing kernel, "
            "such as 'gaussian' or 'epanechnikov'."
        )
    return resolved


def check_bounds(bounds, columns, keys, names):
    """Return the bounds of each column, (n_features, 2), or None if no column has any.

    Raises ValueError if the bounds are not valid, or if any of the rows is outside.

    Parameters
    ----------
    bounds : None, pair, or list of pairs and None
        The parameter as the user passed it.
    columns : Columns
        Which columns are numbers, and which are categories.
    keys : array of shape (n_rows, n_features)
        The rows.
    names : list
        Names of the columns, for messages.
    """
    n_features = len(columns.kinds)
    pairs = [None] * n_features if bounds is None else bounds
    if is_interval(bounds):
        pairs = [bounds if is_numeric else None for is_numeric in columns.is_numeric]
    is_valid = isinstance(pairs, (tuple, list)) and len(pairs) == n_features
    if not is_valid or not all(pair is None or is_interval(pair) for pair in pairs):
        raise ValueError(
            f"bounds={bounds!r} is not valid: pass None, a pair (lower, upper) with lower < "
            "upper for all numeric columns, such as (0, None), or a list with such a pair or "
            f"None for each of the {n_features} columns."
        )
    # None becomes NaN in an array of floats, and then an infinite bound.
    array = np.array([pair or (None, None) for pair in pairs], dtype=np.float64)
    array = np.where(np.isnan(array), [-np.inf, np.inf], array)
    is_bounded = np.isfinite(array).any(axis=1)
    for j in np.flatnonzero(is_bounded).tolist():
        if not columns.is_numeric[j]:
            raise ValueError(
                f"bounds={bounds!r} are for numbers and column {names[j]!r} is a category: "
                "pass None for it."
            )
        column, (low, high) = keys[:, j], array[j]
        smallest, largest, _ = min_max_sum(column)
        if smallest < low or largest > high:
            # The sum of a mask is the number of rows. The rows may be in partitions.
            *_, n_outside = min_max_sum((column < low) | (column > high))
            raise ValueError(
                f"bounds={bounds!r} leave out {n_outside} of the values of column "
                f"{names[j]!r}, which are from {smallest:g} to {largest:g}: remove these rows, "
                "or pass wider bounds."
            )
    return array if is_bounded.any() else None
