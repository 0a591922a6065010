"""Criteria of a density estimate: its fit to each row from all others."""

import numpy as np

from .._columns import Columns
from .._validation import weight_unit
from ..attention._algorithms._line import Line, serves
from ..attention._pair_sums import PairSums
from ..attention._read import key_ranges
from ..kernels import Gaussian, Kernel, ProductKernel, SmoothingKernel
from ..kernels._categorical import level_table
from ._background import Background, background_share, bulk, reflections


class _LogSums:
    """Logarithms of weighted sums about each row, with one kernel per column."""

    # A kernel compares the numbers, and ``table(kind, n_levels, lam)`` has values and slopes
    # for categories. One column of numbers takes linear time where there is an algorithm.
    # Within bounds (n_features, 2) sums are over the rows and their mirror images.

    def __init__(
        self, X, kernel, columns, weights, *, table=level_table, leave_out=True, bounds=None
    ):
        self._columns, self._table, self._leave_out = columns, table, leave_out
        images = [X] if bounds is None else list(reflections(X, bounds))
        self._line, self._with_slopes = self._lines(X, kernel, weights, images[1:])
        self.in_linear_time = self._line is not None
        if self._with_slopes is None:
            rows = np.concatenate(images)
            self._pairs = PairSums(
                rows[:, columns.numeric], rows[:, columns.categorical].astype(np.intp), kernel,
                np.tile(weights, len(images)), leave_out=leave_out, images=len(images),
            )  # fmt: skip

    def __call__(self, bandwidth, eval_gradient):
        """The logarithms, -inf of 0, and ``pull``, from slopes along them to a gradient."""
        line = self._with_slopes if eval_gradient else self._line
        if line is not None:
            return self._along(line, float(bandwidth[0]))
        numeric, categorical = self._columns.numeric, self._columns.categorical
        kinds, n_levels = self._columns.kinds, self._columns.n_levels
        tables = [self._table(kinds[j], n_levels[j], bandwidth[j]) for j in categorical]
        _, log_sums, pull_pairs = self._pairs(bandwidth[numeric], tables, slopes=eval_gradient)

        def pull(slopes):
            gradient = np.zeros(len(bandwidth))
            gradient[[*numeric, *categorical]] = pull_pairs(slopes)
            gradient[numeric] /= bandwidth[numeric]
            return gradient

        return log_sums, pull

    def _lines(self, X, kernel, weights, images):
        """The rows along a line, without slopes and with them, or None."""
        if self._columns.kinds != ("numeric",):
            return None, None
        factors, rest = kernel.radial_factors(1)
        if rest is not None:
            return None, None
        ((kernel, _),) = factors
        center, no_values = np.median(X), np.empty((len(X), 0))
        x = X[:, 0] - center
        line = Line(x, weights, no_values, kernel) if serves(kernel) else None
        if line is not None:
            self._images = [image[line.order, 0] - center for image in images]
        # The Gaussian's derivative is its second moment.
        with_slopes = isinstance(kernel, Gaussian) and not images
        return line, Line(x, weights, no_values, kernel, 1) if with_slopes else None

    def _along(self, line, scale):
        left_out = key_ranges(line.order) if self._leave_out else None
        found = line.sums(line.points, scale, left_out)
        log_sums, some = np.empty(len(line.order)), np.isfinite(found.shift)
        log_total = found.log_total
        for image in self._images:
            # A row leaves out its own mirror image as well.
            order = np.argsort(image)
            of_others = None if left_out is None else left_out[order]
            of_image = line.sums(image[order, None], scale, of_others).log_total
            log_total[order] = np.logaddexp(log_total[order], of_image)
        log_sums[line.order] = log_total
        moments, rows = found.sums[:, 0, some], line.order[some]

        def pull(slopes):
            return slopes[rows] @ (moments[2] / moments[0])[:, None] / scale

        return log_sums, pull


class _Likelihood:
    """Mean of log-densities that a subclass has for each row by all others.

    It sets `_weights`, and `_background` to what :func:`_background` returns.
    """

    def __call__(self, bandwidth, eval_gradient: bool = False) -> float:
        """The criterion at a bandwidth.

        Parameters
        ----------
        bandwidth : array-like of shape (n_features,)
            Of each numeric column the bandwidth, of each categorical one the lambda.
        eval_gradient : bool, default=False
            Whether to return the gradient too.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_features,)
            With respect to `bandwidth`; only with `eval_gradient`.
        """
        bandwidth = np.asarray(bandwidth, dtype=np.float64)
        log_density, pull = self._log_density(bandwidth, eval_gradient)
        log_share, log_background = self._background
        shares = self._weights / self._weights.sum()
        # NaN, of no density at all, where no other row is like the features of this one.
        others = np.where(np.isnan(log_density), -np.inf, log_density) + log_share
        mixed = np.logaddexp(others, log_background)
        value = float(shares @ mixed)
        return (value, pull(shares * np.exp(others - mixed))) if eval_gradient else value

    def alone(self, bandwidth):
        """Share of the weight whose rows the background describes better than all others."""
        log_density, _ = self._log_density(np.asarray(bandwidth), False)
        log_share, log_background = self._background
        is_alone = ~(log_density + log_share > log_background)
        return float(np.average(is_alone, weights=self._weights))


class DensityLikelihood(_Likelihood):
    r"""Mean log-density of the rows, each under the density estimated from all other rows.

    This is the criterion of likelihood cross-validation, by which
    :class:`~sklearn_attention.ProductKernelDensity` chooses bandwidths by default.

    .. math:: \frac{1}{\sum_i w_i} \sum_i w_i \log\Big(
              \frac{n}{n + 1} \hat f_{-i}(x_i) + \frac{1}{n + 1} g(x_i)\Big), \qquad
              \hat f_{-i}(x) = \frac{1}{\sum_{j \ne i} w_j} \sum_{j \ne i} w_j
              \prod_k \frac{1}{h_k} K\Big(\frac{x_k - x_{jk}}{h_k}\Big)

    Its maximum is likelihood cross-validation [1]_ [2]_, with a wide background :math:`g` that
    counts as one row more. See Notes.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows; categories as codes from 0.
    kernel : SmoothingKernel
        Compares each numeric column. Categories have the Aitchison-Aitken or Li-Racine
        kernel, normalised over their levels.
    columns : sklearn_attention.Columns, default=None
        Kind of each column; None for numbers throughout.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights :math:`w`, all positive.
    bounds : ndarray of shape (n_features, 2), default=None
        Lowest and highest value of each column, infinite where there is none. Kernels are
        reflected there; those wider than the whole range only once.

    Attributes
    ----------
    in_linear_time : bool
        Whether a call without gradient takes linear time: one column of numbers, and most
        kernels.

    Notes
    -----
    Without a background one row that is far from all others decides the bandwidth: the
    Gaussian kernel's logarithm falls with the square of the distance, so the kernel has to
    be wide, and kernels of bounded support have to reach every row. Where
    tails are as heavy as those of an exponential distribution, bandwidths do not even shrink
    as rows become more [3]_ [4]_. Here a row that no other reaches counts with about the
    logarithm of :math:`g(x) / n`, at any bandwidth. The background is a product over
    the columns: Student's t with 2 degrees of freedom for numbers, about their median and
    with half the distance between their quantiles .1 and .9 as scale, truncated to bounds;
    of categories one over the number of levels. Of weighted rows,
    :math:`n = (\sum_i w_i)^2 / \sum_i w_i^2`.

    References
    ----------
    .. [1] Habbema, J. D. F., Hermans, J. and van den Broek, K. (1974). A stepwise
       discrimination analysis program using density estimation. Compstat 1974, 101-110.
    .. [2] Duin, R. P. W. (1976). On the choice of smoothing parameters for Parzen
       estimators of probability density functions. IEEE Transactions on Computers 25,
       1175-1179.
    .. [3] Schuster, E. F. and Gregory, G. G. (1981). On the nonconsistency of maximum
       likelihood nonparametric density estimators. In: Computer Science and Statistics:
       Proceedings of the 13th Symposium on the Interface, 295-298.
    .. [4] Hall, P. (1987). On Kullback-Leibler loss and density estimation. Annals of
       Statistics 15, 1491-1519.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.bandwidth import DensityLikelihood
    >>> from sklearn_attention.kernels import Gaussian
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> likelihood, gradient = DensityLikelihood(X, Gaussian())([1.0], eval_gradient=True)
    >>> round(likelihood, 4), gradient.round(4)
    (-2.2925, array([0.705]))
    """

    def __init__(
        self,
        X: np.ndarray,
        kernel: SmoothingKernel,
        *,
        columns: Columns | None = None,
        sample_weight: np.ndarray | None = None,
        bounds: np.ndarray | None = None,
    ) -> None:
        columns = columns or Columns.numbers(X.shape[1])
        self._weights, self._numeric = _weights(X, sample_weight), columns.is_numeric
        self._background = _background(X, columns, self._weights, bounds)
        self._sums = _LogSums(X, ProductKernel(kernel), columns, self._weights, bounds=bounds)
        self.in_linear_time = self._sums.in_linear_time

    def _log_density(self, bandwidth, eval_gradient):
        log_density, pull_sums = self._sums(bandwidth, eval_gradient)
        log_density -= np.log(_of_others(self._weights))
        log_density -= np.log(bandwidth[self._numeric]).sum()

        def pull(slopes):
            return pull_sums(slopes) - slopes.sum() * _volume_slopes(self._numeric, bandwidth)

        return log_density, pull


class ConditionalLikelihood(_Likelihood):
    r"""Mean log-density of the targets given the features, each estimated from all other rows.

    This is the criterion by which :class:`~sklearn_attention.ConditionalKernelDensity` chooses
    bandwidths.

    .. math:: \frac{1}{\sum_i w_i} \sum_i w_i \log\Big( \frac{n}{n + 1}
              \frac{\sum_{j \ne i} w_j K(x_i, x_j)\, K_g(y_i - y_j)}
                   {\sum_{j \ne i} w_j K(x_i, x_j)} + \frac{1}{n + 1} g(y_i)\Big)

    With the background :math:`g` of :class:`DensityLikelihood` for the targets, whatever the
    features, so that no single row with a target unlike its neighbours' decides.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows; categories as codes from 0.
    y : ndarray of shape (n_samples,)
        Targets.
    kernel : Kernel
        Compares the numeric columns of rows, all at once; positive, and with gradients.
    target_kernel : SmoothingKernel
        Spreads the targets.
    columns, sample_weight
        As for :class:`DensityLikelihood`.

    Notes
    -----
    Features on which the target does not depend are smoothed out: their best bandwidth is
    infinite [1]_.

    References
    ----------
    .. [1] Hall, P., Racine, J. and Li, Q. (2004). Cross-validation and the estimation of
       conditional probability densities. Journal of the American Statistical Association
       99, 1015-1026.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.bandwidth import ConditionalLikelihood
    >>> from sklearn_attention.kernels import Gaussian
    >>> X, y = np.array([[0.0], [1.0], [3.0]]), np.array([0.0, 1.0, 1.0])
    >>> round(ConditionalLikelihood(X, y, Gaussian(), Gaussian())([1.0, 1.0]), 4)
    -1.0881
    """

    in_linear_time = False

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        kernel: Kernel,
        target_kernel: SmoothingKernel,
        *,
        columns: Columns | None = None,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        columns = columns or Columns.numbers(X.shape[1])
        self._weights = weights = _weights(X, sample_weight)
        self._background = _background(y[:, None], Columns.numbers(1), weights)
        self._given = _LogSums(X, kernel, columns, weights, table=_plain_table)
        numeric = len(columns.numeric)
        parts = [("features", kernel, list(range(numeric)))] if numeric else []
        joint = ProductKernel([*parts, ("target", target_kernel, [numeric])])
        rows, columns = np.column_stack([X, y]), columns + Columns.numbers(1)
        self._joint = _LogSums(rows, joint, columns, weights, table=_plain_table)

    def _log_density(self, bandwidth, eval_gradient):
        log_joint, pull_joint = self._joint(bandwidth, eval_gradient)
        log_given, pull_given = self._given(bandwidth[:-1], eval_gradient)
        with np.errstate(invalid="ignore"):  # rows that no other reaches
            log_density = log_joint - log_given - np.log(bandwidth[-1])

        def pull(slopes):
            given = np.append(pull_given(slopes), slopes.sum() / bandwidth[-1])
            return pull_joint(slopes) - given

        return log_density, pull


def _weights(X, sample_weight):
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight)
    return weights / weight_unit(weights)


def _of_others(weights):
    """Sum of the weights of all other rows, for each row."""
    others, heaviest = weights.sum() - weights, weights.argmax()
    if others[heaviest] < weights[heaviest]:  # a difference that has lost digits
        others[heaviest] = np.delete(weights, heaviest).sum()
    return others


def _background(X, columns, weights, bounds=None):
    """Logarithms: of the share of the kernels, and of the background at each row."""
    share = background_share(len(X), weights)
    background = Background(*bulk(X, columns, weights), columns, bounds)
    return np.log1p(-share), np.log(share) + background.log_density(X)


def _volume_slopes(is_numeric, bandwidth):
    """Derivatives of the logarithm of the kernel's volume along bandwidths."""
    return np.divide(1.0, bandwidth, out=np.zeros(len(bandwidth)), where=is_numeric)


def _plain_table(kind, n_levels, lam):
    return level_table(kind, n_levels, lam, normalized=False)
