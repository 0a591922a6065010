"""Kernel density estimation for numbers and categories."""

import functools
import math
import numbers

import numpy as np
from sklearn.base import DensityMixin, clone
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._base import FitReport, keeps_state_on_failure
from .._blocks import own_copy
from .._columns import MixedRows
from .._partitions import need_all_rows
from .._spread import ends
from .._validation import check_in_interval, check_key_weights, check_size
from ..attention._average import attend
from ..bandwidth._background import Background, background_share, fold, reflections
from ..bandwidth._convolution import kernel_reach
from ..bandwidth._rules import DENSITY_RULES
from ..bandwidth._search import Rows, bandwidth_rule
from ..kernels import ProductKernel, SmoothingKernel
from ..kernels._base import Kernel, as_kernel
from ..kernels._categorical import level_table
from ..kernels._product_kernel import mixed_kernel
from ._kernel_distribution import KernelDistribution

# Where the criterion of each search is kept.
_ATTRIBUTES = {"likelihood": "likelihood_score_", "least_squares": "least_squares_error_"}


class ProductKernelDensity(DensityMixin, MixedRows):
    r"""Density estimate with one kernel, and one bandwidth, for each column.

    .. math:: \hat f(x) = \frac{1}{\sum_i w_i} \sum_i w_i
              \prod_k \frac{1}{h_k s_i} K\Big(\frac{x_k - x_{ik}}{h_k s_i}\Big)

    Columns of a data frame may be categories; theirs is a kernel over the levels. Every
    column has its own bandwidth, chosen by leave-one-out. The local factors :math:`s_i` may
    widen the kernel where data are sparse.

    Parameters
    ----------
    kernel : str or SmoothingKernel, default="gaussian"
        Compares each numeric column; a positive one.
    bandwidth : str, float or array-like, default="likelihood"
        One number for all numeric columns, or one for each column in its own units, where
        a categorical column has its lambda (see Notes). Or a rule:

        - "likelihood" chooses all of them by leave-one-out likelihood, see
          :class:`sklearn_attention.bandwidth.DensityLikelihood`, and adds a wide background
          to the estimate, which stands for rows unlike all others (see Notes);
        - "least_squares" chooses all of them by the integrated squared error, see
          :class:`sklearn_attention.bandwidth.DensityLeastSquares`;
        - "scott" and "silverman" use only the number of rows and the spreads, see
          :func:`sklearn_attention.bandwidth.rule_bandwidth`.

        With more than 2000 rows the two searches use a sample and rescale at the rate
        :math:`n^{-1/(d+4)}`; with one feature, and most kernels, not below 100 000 rows.
    sensitivity : float, default=0.0
        Exponent :math:`\alpha` of the local factors, from 0, a fixed bandwidth, to 1.
        Abramson's choice is 0.5.
    categorical_features : "from_dtype" or list of (str, int or bool), default="from_dtype"
        Columns of numbers that are unordered categories: their names or positions, or one
        bool for each column. In data frames, columns of a categorical dtype and of strings
        are categories in any case.
    bounds : None, pair or list of (pair or None), default=None
        Lowest and highest value of numbers, None or infinite where there is none, such as
        ``(0, None)`` for non-negative ones: of all numeric columns, or for each column.
        Outside the density is 0; inside, kernels are reflected at the bounds, so that it
        integrates to 1 and is not biased towards 0 at them.
    random_state : int, RandomState instance or None, default=0
        Draws the sample that a search uses in large data.

    Attributes
    ----------
    bandwidth_ : ndarray of shape (n_features,)
        The bandwidth of each numeric column, in its own units, and the lambda of each
        categorical one.
    local_factors_ : ndarray of shape (n_samples,)
        Factor on the bandwidth at each training row; 1 if `sensitivity` is 0.
    likelihood_score_ : float
        Mean leave-one-out log-density at that bandwidth; only with "likelihood". In large
        data that of the sample, before the bandwidth is rescaled.
    least_squares_error_ : float
        The criterion of "least_squares", likewise.
    background_ : ndarray of shape (2, n_features)
        Center and scale of the background in each column; only with "likelihood".
    bounds_ : ndarray of shape (n_features, 2) or None
        The bounds of each column, infinite where there is none; None without any.
    kernel_ : SmoothingKernel
        The kernel, resolved.
    keys_ : ndarray of shape (n_samples, n_features)
        The training rows; of categories the positions of their levels.
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
    training, ordered ones the Li-Racine kernel divided by its sum over all levels of the
    dtype, so the estimate sums to 1 over
    all levels and numbers. A query with an unordered level that did not occur in training has
    density 0, since no probability was left for it.

    With "likelihood" the estimate is

    .. math:: \frac{n}{n + 1} \hat f(x) + \frac{1}{n + 1} g(x),

    for which leave-one-out chooses the bandwidth. The background :math:`g` of
    :class:`sklearn_attention.bandwidth.DensityLikelihood`, as wide as the bulk of the rows and
    with heavy tails, has the mass of one further row. So one outlier does not decide the
    bandwidth, and rows far from all others have a small density rather than nearly 0.
    Of weighted rows :math:`n` is :math:`(\sum_i w_i)^2 / \sum_i w_i^2`.

    Within bounds :math:`a \le x \le b` the estimate is :math:`\hat f(x) + \hat f(2a - x) +
    \hat f(2b - x)`, and so on for images of images, whose slope at the bounds is 0; the
    criteria choose the bandwidth for this estimate.

    The local factors [1]_ [2]_ are

    .. math:: s_i = \Big(\frac{\tilde f(x_i)}{g}\Big)^{-\alpha}, \qquad
              \log g = \frac{1}{\sum_i w_i} \sum_i w_i \log \tilde f(x_i),

    with the sensitivity :math:`\alpha` and the estimate :math:`\tilde f` of a fixed
    bandwidth. Every row's kernel still has mass 1. Lambdas are not multiplied.

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
    array([ -6.7, -15.1])
    """

    _keeps_partitions = True

    def __init__(
        self,
        kernel="gaussian",
        *,
        bandwidth="likelihood",
        sensitivity=0.0,
        categorical_features="from_dtype",
        bounds=None,
        random_state=0,
    ):
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.sensitivity = sensitivity
        self.categorical_features = categorical_features
        self.bounds = bounds
        self.random_state = random_state

    @keeps_state_on_failure
    @with_callbacks
    def fit(self, X, y=None, sample_weight=None):
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
        for name in ("background_", *_ATTRIBUTES.values()):
            vars(self).pop(name, None)
        self.kernel_ = check_density_kernel("kernel", self.kernel)
        sensitivity = check_in_interval("sensitivity", self.sensitivity, 0, 1)
        self.keys_ = own_copy(self._learn_rows(X, np.float64))
        self.key_weights_ = check_key_weights(sample_weight, self.keys_)
        names = getattr(self, "feature_names_in_", range(self.n_features_in_))
        self.bounds_ = _check_bounds(self.bounds, self.columns_, self.keys_, list(names))
        # Samples come back as what was passed.
        self._from_pandas = hasattr(X, "iloc")
        # Takes no room as long as all are the same.
        self.local_factors_ = np.broadcast_to(1.0, len(self.keys_))
        if sensitivity > 0:
            need_all_rows(
                f"local factors of sensitivity={sensitivity:g}", self.keys_,
                remedy="pass 0, or X.compute() if it fits",
            )  # fmt: skip
        self._choose_bandwidth(X)
        if sensitivity > 0:
            self.local_factors_ = self._factors(sensitivity)
        return self

    def score_samples(self, X):
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
        low, high = self._ends.T
        inside = self._knows(X) & ((low <= X) & (X <= high)).all(axis=1)
        return np.where(inside, self._log_density(X.clip(low, high)), -np.inf)

    def cdf(self, X):
        r"""Probability of a row that is at most each of some rows, in every column.

        .. math:: \hat F(x) = \frac{1}{\sum_i w_i} \sum_i w_i
                  \prod_k \int_{-\infty}^{x_k} \frac{1}{h_k s_i}
                  K\Big(\frac{t - x_{ik}}{h_k s_i}\Big)\,dt

        At most in numbers and ordered categories; unordered ones have the level of the query.

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
        array([0.  , 0.53, 1.  ])
        """
        X = self._read_rows(X, np.float64)
        queries, keys = self._with_factors(X)
        options = {"sample_weight": self.key_weights_, "empty": "nan"}
        _, log_sums = attend(queries, keys, keys[:, :0], self._masses, **options)
        probability = np.exp(log_sums - np.log(self._mass))
        if hasattr(self, "background_"):
            share = self._share
            probability = (1 - share) * probability + share * self._background.cdf(X)
        return np.where(self._knows(X), probability.clip(0, 1), 0.0)

    def score(self, X, y=None):
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

    def sample(self, n_samples=1, random_state=None):
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
        weights = self.key_weights_
        shares = None if weights is None else np.asarray(weights) / self._mass
        rows = random_state.choice(len(self.keys_), n_samples, p=shares)
        sample = np.asarray(self.keys_[rows])
        numeric = self.columns_.numeric
        noise = KernelDistribution(self.kernel_).draw(random_state, (n_samples, len(numeric)))
        widths = self.local_factors_[rows, None] * self.bandwidth_[numeric]
        sample[:, numeric] += noise * widths
        for j in numeric:
            sample[:, j] = fold(sample[:, j], *self._ends[j])
        for j, table in self._tables.items():
            cumulated = np.cumsum(table, axis=0)[:, sample[:, j].astype(np.intp)]
            places = random_state.uniform(size=n_samples) * cumulated[-1]
            sample[:, j] = (cumulated <= places).sum(axis=0)
        if hasattr(self, "background_"):
            others = np.flatnonzero(random_state.uniform(size=n_samples) < self._share)
            sample[others] = self._background.draw(random_state, len(others))
        decoded = self.columns_.decode(sample, as_frame=self._from_pandas)
        if not self._from_pandas:
            return decoded
        return decoded.set_axis(getattr(self, "feature_names_in_", decoded.columns), axis=1)

    def _choose_bandwidth(self, X):
        rule = bandwidth_rule("bandwidth", self.bandwidth, DENSITY_RULES)
        rows = Rows(
            X=self.keys_, columns=self.columns_, sample_weight=self.key_weights_,
            bounds=self.bounds_, random_state=self.random_state,
        )  # fmt: skip
        report = FitReport(self, X, None, self.key_weights_, "bandwidth")
        report.begin(None if rule.searches else 0)

        def observe(value, bandwidth):
            return report.done(bandwidth_=bandwidth)

        choice = rule.choose(rows, self.kernel_, observe).warn()
        self.bandwidth_ = choice.bandwidth
        if rule.searches:
            setattr(self, _ATTRIBUTES[self.bandwidth], float(choice.value))
        if choice.background is not None:
            self.background_ = choice.background
        report.end()

    def _factors(self, sensitivity):
        pilot = self._log_density(self.keys_)
        # A row of weight 0 may lie where no other reaches; its factor does not matter.
        weights = np.isfinite(pilot) * (1.0 if self.key_weights_ is None else self.key_weights_)
        pilot[weights == 0] = 0
        return np.exp(-sensitivity * (pilot - np.average(pilot, weights=weights)))

    @property
    def _background(self):
        return Background(*self.background_, self.columns_, self.bounds_)

    @property
    def _share(self):
        return background_share(len(self.keys_), self.key_weights_)

    @property
    def _mass(self):
        weights = self.key_weights_
        return len(self.keys_) if weights is None else float(weights.sum())

    def _masses(self, X, keys):
        """Mass of the kernel of each key that is at most each query, (n_queries, n_keys)."""
        columns, distribution, masses = self.columns_, KernelDistribution(self.kernel_), 1.0
        factors, bounds = keys[:, len(columns.kinds) :].prod(axis=1), self._ends
        for j in columns.numeric:
            widths, (low, high) = self.bandwidth_[j] * factors, bounds[j]
            ends, mass = np.append(X[:, j].clip(low, high), low)[:, None], 0.0
            # Between the lower bound and a query, and between their images.
            for image in reflections(ends, bounds[[j]], distribution.reach * widths.max()):
                with np.errstate(over="ignore"):
                    below = distribution.cdf((image - keys[:, j]) / widths)
                mass = mass + np.abs(below[:-1] - below[-1])
            masses = masses * mass
        for j, table in self._tables.items():
            table = table.cumsum(axis=0) if columns.kinds[j] == "ordered" else table
            levels, own = (x[:, j].astype(np.intp) for x in (X, keys))
            masses = masses * table[levels][:, own]
        return masses

    def _knows(self, X):
        """True for rows whose levels have occurred, (n,)."""
        return (X[:, self.columns_.categorical] >= 0).all(axis=1)

    @property
    def _ends(self):
        """Bounds of each column, (n_features, 2)."""
        everything = np.tile([-np.inf, np.inf], (len(self.columns_.kinds), 1))
        return everything if self.bounds_ is None else self.bounds_

    def _log_density(self, X):
        """Logarithms of the density of rows within bounds, whose levels are known."""
        widths = self.bandwidth_ * self.local_factors_.max()
        log_volume = np.log(self.bandwidth_[self.columns_.is_numeric]).sum()
        images = [X]
        if self.bounds_ is not None:
            images = reflections(X, self.bounds_, kernel_reach(self.kernel_) * widths)
        log_sums = functools.reduce(np.logaddexp, map(self._log_sums, images))
        log_density = log_sums - np.log(self._mass) - log_volume
        if not hasattr(self, "background_"):
            return log_density
        share, log_background = self._share, self._background.log_density(X)
        return np.logaddexp(log_density + np.log1p(-share), log_background + np.log(share))

    def _log_sums(self, X):
        """Logarithms of the sums of the kernels."""
        columns, weights = self.columns_, self.key_weights_
        kernel, divisors = _AdaptiveKernel(self), 1.0
        if self.local_factors_.min() == self.local_factors_.max() == 1:
            kernel = mixed_kernel(ProductKernel(self.kernel_), columns, self.bandwidth_)
            divisors = columns.divisors(self.bandwidth_)
            for j, table in self._tables.items():
                if columns.kinds[j] == "ordered":  # over all levels each row has mass 1
                    own = table.diagonal()[self.keys_[:, j].astype(np.intp)]
                    weights = own if weights is None else weights * own
        X, keys = self._with_factors(X)
        options = {"bandwidth": divisors, "sample_weight": weights, "empty": "nan"}
        return attend(X, keys, keys[:, :0], kernel, **options)[1]

    def _with_factors(self, X):
        """Queries and keys, with the local factors as one more column if they differ."""
        factors = self.local_factors_
        if factors.min() == factors.max() == 1:
            return X, self.keys_
        return np.column_stack([X, X[:, 0]]), np.column_stack([self.keys_, factors])

    @property
    def _tables(self):
        """Kernels of categories at every level and key, by their columns."""
        columns = self.columns_
        return {
            j: level_table(columns.kinds[j], columns.n_levels[j], self.bandwidth_[j])[0]
            for j in columns.categorical
        }


class _AdaptiveKernel(Kernel):
    """The kernel of a density, on whose bandwidth the last column of keys is a factor."""

    signed = False

    def __init__(self, density):
        self.density = density

    @property
    def support(self):
        return self.density.kernel_.support

    def _values(self, queries, keys):
        return math.prod(self._factors(queries, keys, self.density.kernel_.profile, np.asarray))

    def _log_values(self, queries, keys):
        return sum(self._factors(queries, keys, self.density.kernel_.log_profile, np.log))

    def _factors(self, queries, keys, profile, scale):
        """Factors of the product, or their logarithms."""
        density, factors, numeric = self.density, keys[:, -1], self.density.columns_.numeric
        with np.errstate(over="ignore", divide="ignore"):
            yield scale(factors ** -len(numeric))
            for j in numeric:
                queries_j, keys_j = (x[:, j] / density.bandwidth_[j] for x in (queries, keys))
                steps = np.subtract.outer(queries_j, keys_j)
                steps /= factors
                yield profile(np.square(steps, out=steps))
            for j, table in density._tables.items():
                levels, own = (x[:, j].astype(np.intp) for x in (queries, keys))
                yield scale(table)[levels][:, own]


def check_density_kernel(name, kernel):
    """A positive smoothing kernel for what the user passed as a parameter, else an error."""
    # A copy: changing the parameter later must not change a fitted estimator.
    resolved = as_kernel(clone(kernel, safe=False))
    if not isinstance(resolved, SmoothingKernel) or resolved.signed:
        why = "takes negative values" if resolved.signed else "is no smoothing kernel"
        raise ValueError(
            f"{name}={kernel!r} {why} and so no density: choose a positive smoothing kernel, "
            "such as 'gaussian' or 'epanechnikov'."
        )
    return resolved


def _check_bounds(bounds, columns, keys, names):
    """Bounds of each column, (n_features, 2), or None where no column has any."""
    n_features = len(columns.kinds)
    pairs = [None] * n_features if bounds is None else bounds
    if _is_pair(bounds):
        pairs = [bounds if is_numeric else None for is_numeric in columns.is_numeric]
    valid = isinstance(pairs, (tuple, list)) and len(pairs) == n_features
    if not valid or not all(own is None or _is_pair(own) for own in pairs):
        raise ValueError(
            f"bounds={bounds!r} is not valid: pass None, a pair such as (0, None) for all "
            "numeric columns, whose first number is the smaller, or a list with a pair or None "
            f"for each of the {n_features} columns."
        )
    # None becomes NaN.
    found = np.array([own or (None, None) for own in pairs], dtype=np.float64)
    found = np.where(np.isnan(found), [-np.inf, np.inf], found)
    bounded = np.isfinite(found).any(axis=1)
    for j in np.flatnonzero(bounded).tolist():
        if not columns.is_numeric[j]:
            raise ValueError(
                f"bounds={bounds!r} are for numbers and column {names[j]!r} is a category: "
                "pass None for it."
            )
        column, (low, high) = keys[:, j], found[j]
        least, largest, _ = ends(column)
        if least < low or largest > high:
            *_, n_outside = ends((column < low) | (column > high))
            raise ValueError(
                f"bounds={bounds!r} leave out {n_outside} of the values of column "
                f"{names[j]!r}, which are from {least:g} to {largest:g}: remove these rows, or "
                "pass wider bounds."
            )
    return found if bounded.any() else None


def _is_pair(given):
    """True for (low, high), either of them None or the lower one less."""
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        return False
    if not all(x is None or isinstance(x, numbers.Real) for x in given):
        return False
    low, high = given
    return (-np.inf if low is None else low) < (np.inf if high is None else high)
