"""Criteria of a density estimate: its fit to each row from all others."""

import numpy as np

from .._columns import Columns
from .._validation import weight_unit
from ..attention._pair_sums import PairSums
from ..attention._read import read
from ..attention._reduce import Reduction, form_along
from ..kernels import Kernel, ProductKernel, SmoothingKernel
from ..kernels._categorical import level_table
from ._background import (
    Background,
    background_share,
    bulk,
    mass_of_others,
    reflections,
)


class _LogSums:
    """Logarithms of the sums of a kernel between each row and all other rows.

    ``table(kind, n_levels, lam)`` returns the values of a category's kernel between every two
    levels, and their slopes. Within bounds (n_features, 2) sums are over the rows and their
    mirror images; each row leaves out its own images as well.
    """

    def __init__(self, X, kernel, columns, weights, *, table=level_table, bounds=None):
        self._columns, self._table = columns, table
        images = [X] if bounds is None else list(reflections(X, bounds))
        rows, n_images = np.concatenate(images), len(images)
        is_line = columns.kinds == ("numeric",)
        self.in_linear_time = is_line and form_along(kernel, 1) is not None
        if self.in_linear_time:
            options = {"bandwidth": 1.0, "sample_weight": weights, "leave_one_out": True}
            problems = (read(image, X, None, kernel, **options)[0] for image in images)
            self._reductions = [Reduction(problem, empty="nan") for problem in problems]
        self._pairs = PairSums(
            rows[:, columns.numeric],
            rows[:, columns.categorical].astype(np.intp),
            kernel,
            np.tile(weights, n_images),
            n_images=n_images,
        )

    def __call__(self, bandwidth, eval_gradient):
        """Return the logarithms, -inf of 0, and their `vjp` with respect to bandwidths."""
        if self.in_linear_time and not eval_gradient:
            return self._along_line(float(bandwidth[0])), None
        numeric, categorical = self._columns.numeric, self._columns.categorical
        kinds, n_levels = self._columns.kinds, self._columns.n_levels
        tables = [self._table(kinds[j], n_levels[j], bandwidth[j]) for j in categorical]
        _, log_sums, vjp_of_pairs = self._pairs(
            bandwidth[numeric], tables, slopes=eval_gradient
        )

        def vjp(slopes):
            gradient = np.zeros(len(bandwidth))
            gradient[[*numeric, *categorical]] = vjp_of_pairs(slopes)
            gradient[numeric] /= bandwidth[numeric]
            return gradient

        return log_sums, vjp

    def _along_line(self, bandwidth):
        """Compute the logarithms of one column of numbers in linear time."""
        log_sums, rows = [], np.arange(len(self._reductions[0].problem.keys))
        for image, reduction in enumerate(self._reductions):
            # Images out of reach add less than the rounding error, and are not summed again.
            sums = reduction.sums(rows, bandwidth, max_share=0.0 if image else 1.0)
            log_sums.append(np.where(sums.is_accurate, sums.log_total, -np.inf))
        return np.logaddexp.reduce(log_sums) + self._reductions[0].problem.log_weight_scale


class _Likelihood:
    """Mean of the log-densities of each row in the mixture of all other rows and a background.

    A subclass has the density by other rows in `_log_density`, and sets the background by
    `_mix_with`.
    """

    def _mix_with(self, X, columns, weights, bounds=None):
        """Set the shares of the rows, and the background that the columns of X have."""
        share = background_share(len(X), weights)
        background = Background(*bulk(X, columns, weights), columns, bounds)
        self._shares, self._log_share = weights / weights.sum(), np.log1p(-share)
        self._log_background = np.log(share) + background.log_density(X)

    def __call__(self, bandwidth, eval_gradient: bool = False) -> float:
        """Compute the criterion at a bandwidth.

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
        log_kernels, vjp = self._log_kernels(bandwidth, eval_gradient)
        mixed = np.logaddexp(log_kernels, self._log_background)
        value = float(self._shares @ mixed)
        if not eval_gradient:
            return value
        return value, vjp(self._shares * np.exp(log_kernels - mixed))

    def background_weight(self, bandwidth):
        """Compute the share of the weight of rows that the background describes best."""
        log_kernels, _ = self._log_kernels(bandwidth, eval_gradient=False)
        return float(self._shares @ ~(log_kernels > self._log_background))

    def _log_kernels(self, bandwidth, eval_gradient):
        """Compute the part of the other rows in the log-density of each row, and its vjp."""
        bandwidth = np.asarray(bandwidth, dtype=np.float64)
        log_density, vjp = self._log_density(bandwidth, eval_gradient)
        # It is NaN, of no density at all, if no other row is like the features of this one.
        return np.where(np.isnan(log_density), -np.inf, log_density) + self._log_share, vjp


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
        weights = _in_units(X, sample_weight)
        self._numeric, self._log_mass = columns.is_numeric, np.log(mass_of_others(weights))
        self._mix_with(X, columns, weights, bounds)
        self._sums = _LogSums(X, ProductKernel(kernel), columns, weights, bounds=bounds)
        self.in_linear_time = self._sums.in_linear_time

    def _log_density(self, bandwidth, eval_gradient):
        log_sums, vjp_of_sums = self._sums(bandwidth, eval_gradient)
        widths = np.where(self._numeric, bandwidth, 1.0)

        def vjp(slopes):
            return vjp_of_sums(slopes) - slopes.sum() * self._numeric / widths

        return log_sums - self._log_mass - np.log(widths).sum(), vjp


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
        weights = _in_units(X, sample_weight)
        self._mix_with(y[:, None], Columns.numbers(1), weights)
        self._given = _LogSums(X, kernel, columns, weights, table=_plain_table)
        numeric = len(columns.numeric)
        features = [("features", kernel, list(range(numeric)))] if numeric else []
        joint = ProductKernel([*features, ("target", target_kernel, [numeric])])
        rows, columns = np.column_stack([X, y]), columns + Columns.numbers(1)
        self._joint = _LogSums(rows, joint, columns, weights, table=_plain_table)

    def _log_density(self, bandwidth, eval_gradient):
        log_joint, vjp_of_joint = self._joint(bandwidth, eval_gradient)
        log_given, vjp_of_given = self._given(bandwidth[:-1], eval_gradient)
        with np.errstate(invalid="ignore"):  # rows that no other reaches
            log_density = log_joint - log_given - np.log(bandwidth[-1])

        def vjp(slopes):
            of_divisor = np.append(vjp_of_given(slopes), slopes.sum() / bandwidth[-1])
            return vjp_of_joint(slopes) - of_divisor

        return log_density, vjp


def _in_units(X, sample_weight):
    """Return the weights of rows, 1 by default, in units of about the largest."""
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight)
    return weights / weight_unit(weights)


def _plain_table(kind, n_levels, lam):
    return level_table(kind, n_levels, lam, normalized=False)
