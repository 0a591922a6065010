"""Kernel density estimation for numbers and categories."""

import functools

import numpy as np
from sklearn.base import DensityMixin, clone
from sklearn.callback import with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._base import keeps_state_on_failure
from .._blocks import IN_CACHE, blocks, own_copy
from .._columns import MixedRows
from .._partitions import in_memory, is_partitioned
from .._validation import check_in_interval, check_key_weights, check_size
from ..attention._average import attend
from ..bandwidth._background import Background, background_share, fold, reflections
from ..bandwidth._convolution import kernel_reach
from ..bandwidth._rules import DENSITY_RULES
from ..bandwidth._search import Rows, bandwidth_rule
from ..kernels import ProductKernel, SmoothingKernel
from ..kernels._base import as_kernel
from ..kernels._categorical import level_table
from ..kernels._product_kernel import mixed_kernel
from ._bounds import check_bounds
from ._kernel_distribution import KernelDistribution

# Pairs at a time where every row has a bandwidth of its own.
_BLOCK_PAIRS = IN_CACHE // 4
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
        self.bounds_ = check_bounds(self.bounds, self.columns_, self.keys_, list(names))
        # Samples come back as what was passed.
        self._from_pandas = hasattr(X, "iloc")
        # Takes no room as long as all are the same.
        self.local_factors_ = np.broadcast_to(1.0, len(self.keys_))
        if sensitivity > 0 and is_partitioned(self.keys_):
            raise ValueError(
                f"sensitivity={sensitivity:g} needs the density at all rows, which are in "
                "partitions of Dask: pass 0, or X.compute() if it fits into memory."
            )
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
        if self.bounds_ is None:
            return self._log_density(X)
        low, high = self.bounds_.T
        inside = ((low <= X) & (X <= high)).all(axis=1)
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
        known = (X[:, self.columns_.categorical] >= 0).all(axis=1)
        # The local factors are one more column of the keys.
        fixed, queries, keys = self.local_factors_.max() == 1, X, self.keys_
        if not fixed:
            keys = np.column_stack([keys, self.local_factors_])
            queries = np.concatenate([X, X[:, :1]], axis=1)
        _, log_sums = attend(
            queries,
            keys,
            keys[:, :0],
            self._masses,
            sample_weight=self.key_weights_,
            empty="nan",
        )
        probability = np.exp(log_sums - np.log(self._mass))
        if hasattr(self, "background_"):
            share = self._share
            probability = (1 - share) * probability + share * self._background.cdf(X)
        return np.where(known, probability.clip(0, 1), 0.0)

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
        (weights,) = in_memory(self.key_weights_)
        shares = None if weights is None else weights / weights.sum()
        rows = random_state.choice(len(self.keys_), n_samples, p=shares)
        (sample,) = in_memory(self.keys_[rows])
        numeric = self.columns_.numeric
        noise = KernelDistribution(self.kernel_).draw(random_state, (n_samples, len(numeric)))
        widths = self.local_factors_[rows, None] * self.bandwidth_[numeric]
        sample[:, numeric] += noise * widths
        if self.bounds_ is not None:
            for j in numeric:
                sample[:, j] = fold(sample[:, j], *self.bounds_[j])
        for j in self.columns_.categorical:
            kind, n_levels = self.columns_.kinds[j], self.columns_.n_levels[j]
            table, _ = level_table(kind, n_levels, self.bandwidth_[j])
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
        data = {"X": X, "y": None, "metadata": {"sample_weight": self.key_weights_}}
        context = self._init_callback_context(max_subtasks=None if rule.searches else 0)
        context.call_on_fit_task_begin(estimator=self, **data)

        def observe(value, bandwidth):
            return self._report_trial(context, data, {"bandwidth_": bandwidth})

        choice = rule.choose(rows, self.kernel_, observe).warned()
        self.bandwidth_ = choice.bandwidth
        if rule.searches:
            setattr(self, _ATTRIBUTES[self.bandwidth], float(choice.value))
        if choice.background is not None:
            self.background_ = choice.background
        context.call_on_fit_task_end(estimator=self, **data, reconstruction_attributes={})

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
        (weights,) = in_memory(self.key_weights_)
        return background_share(len(self.keys_), weights)

    @property
    def _mass(self):
        weights = self.key_weights_
        return len(self.keys_) if weights is None else in_memory(weights.sum())[0]

    def _masses(self, X, keys):
        """Mass of the kernel of each key that is at most each query, (n_queries, n_keys)."""
        columns, distribution, masses = self.columns_, KernelDistribution(self.kernel_), 1.0
        n_features = len(columns.kinds)
        factors = keys[:, n_features:].prod(axis=1)
        bounds = np.tile([-np.inf, np.inf], (n_features, 1))
        bounds = bounds if self.bounds_ is None else self.bounds_
        for j in columns.numeric:
            widths, (low, high) = self.bandwidth_[j] * factors, bounds[j]
            ends, mass = np.append(X[:, j].clip(low, high), low)[:, None], 0.0
            # Between the lower bound and a query, and between their images.
            for image in reflections(ends, bounds[[j]], distribution.reach * widths.max()):
                with np.errstate(over="ignore"):
                    below = distribution.cdf((image - keys[:, j]) / widths)
                mass = mass + np.abs(below[:-1] - below[-1])
            masses = masses * mass
        for j in columns.categorical:
            kind, n_levels = columns.kinds[j], columns.n_levels[j]
            table, _ = level_table(kind, n_levels, self.bandwidth_[j])
            table = table.cumsum(axis=0) if kind == "ordered" else table
            levels, own = (x[:, j].astype(np.intp) for x in (X, keys))
            masses = masses * table[levels][:, own]
        return masses

    def _log_density(self, X):
        """Logarithms of the density of rows within bounds."""
        log_density = self._log_density_of_kernels(X)
        if not hasattr(self, "background_"):
            return log_density
        log_background = self._background.log_density(X)
        for j in self.columns_.categorical:
            # No probability is left for levels that did not occur.
            log_background = np.where(X[:, j] < 0, -np.inf, log_background)
        share = self._share
        return np.logaddexp(log_density + np.log1p(-share), log_background + np.log(share))

    def _log_density_of_kernels(self, X):
        widths = self.bandwidth_ * self.local_factors_.max()
        log_volume = np.log(self.bandwidth_[self.columns_.is_numeric]).sum()
        if self.bounds_ is None:
            log_sums = self._log_sums(X)
        else:
            images = reflections(X, self.bounds_, kernel_reach(self.kernel_) * widths)
            log_sums = functools.reduce(np.logaddexp, map(self._log_sums, images))
        return log_sums - np.log(self._mass) - log_volume

    def _log_sums(self, X):
        if self.local_factors_.min() == self.local_factors_.max() == 1:
            return self._fixed_log_sums(X)
        log_sums = np.full(len(X), -np.inf)
        for rows in blocks(len(self.keys_)):
            log_sums = np.logaddexp(log_sums, self._adaptive_log_sums(X, rows))
        return log_sums

    def _fixed_log_sums(self, X):
        """Logarithms of the sums of the kernels of one bandwidth."""
        columns, weights, known = self.columns_, self.key_weights_, True
        for j in columns.categorical:
            known &= X[:, j] >= 0
            if columns.kinds[j] == "ordered":  # over all levels each row has mass 1
                table, _ = level_table(
                    "ordered", columns.n_levels[j], self.bandwidth_[j], normalized=False
                )
                mass = table.sum(axis=0)[self.keys_[:, j].astype(np.intp)]
                weights = (1.0 if weights is None else weights) / mass
        kernel = mixed_kernel(ProductKernel(self.kernel_), columns, self.bandwidth_)
        _, log_sums = attend(
            X, self.keys_, self.keys_[:, :0], kernel, sample_weight=weights, empty="nan",
            bandwidth=columns.divisors(self.bandwidth_),
        )  # fmt: skip
        return np.where(known, log_sums, -np.inf)

    def _adaptive_log_sums(self, X, rows):
        """Logarithms of the sums over some of the training rows, with their local factors."""
        keys, weights, factors = self.keys_[rows], self.key_weights_, self.local_factors_[rows]
        if weights is not None:
            weights = weights[rows]
            kept = weights > 0
            keys, weights, factors = keys[kept], weights[kept], factors[kept]
        if not len(keys):
            return np.full(len(X), -np.inf)
        numeric, categorical = self.columns_.numeric, self.columns_.categorical
        log_terms = -len(numeric) * np.log(factors)
        log_terms += 0.0 if weights is None else np.log(weights)
        numbers = [(x[:, numeric] / self.bandwidth_[numeric]).T for x in (X, keys)]
        levels = [x[:, categorical].astype(np.intp).T for x in (X, keys)]
        tables = []
        for j in categorical:
            kind, n_levels = self.columns_.kinds[j], self.columns_.n_levels[j]
            table, _ = level_table(kind, n_levels, self.bandwidth_[j])
            # The last row is that of unknown levels, whose codes are -1.
            tables.append(np.pad(table, ((0, 1), (0, 0))))
        # Kernels of bounded support, which are often 0, have no use for logarithms.
        in_logs, log_sums = np.isinf(self.kernel_.support), np.zeros(len(X))
        profile = self.kernel_.log_profile if in_logs else self.kernel_.profile
        join = np.add if in_logs else np.multiply
        with np.errstate(over="ignore", divide="ignore"):
            first = log_terms if in_logs else np.exp(log_terms)
            tables = [np.log(table) for table in tables] if in_logs else tables
            for some in blocks(len(X), max(1, _BLOCK_PAIRS // len(keys))):
                found = np.tile(first, (len(log_sums[some]), 1))
                for queries, x in zip(*numbers, strict=True):
                    squared = np.subtract.outer(queries[some], x)
                    squared /= factors
                    join(found, profile(np.square(squared, out=squared)), out=found)
                for table, queries, x in zip(tables, *levels, strict=True):
                    join(found, table[queries[some]].take(x, axis=1), out=found)
                if in_logs:
                    shift = found.max(axis=1)
                    shift[np.isinf(shift)] = 0
                    np.exp(np.subtract(found, shift[:, None], out=found), out=found)
                    log_sums[some] = shift
                log_sums[some] += np.log(found.sum(axis=1))
        return log_sums


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
