"""Likelihood cross-validation: how well a density estimate fits each row from all others.

The estimate of a row is a mixture of the kernel density of all other rows and of a wide
background; see `_background`. A criterion is the mean of its logarithms over the rows: larger
is better. Sums over pairs of rows are computed as logarithms.

For derivatives, functions return a vector-Jacobian product with their result: ``vjp(slopes)``
turns derivatives with respect to the result into those with respect to the bandwidth.
"""

import numpy as np

from .._columns import Columns
from .._sample_weight import weight_unit
from ..attention._pair_sums import PairSums
from ..attention._read import read
from ..attention._reduce import Reduction, form_along
from ..kernels import Kernel, ProductKernel, SmoothingKernel
from ..kernels._categorical import level_table
from ._background import (
    Background,
    background_mixing_weight,
    center_and_scale,
    leave_one_out_mass,
    reflections,
)


class _LogSums:
    """Logarithms of the weighted sums of a kernel between each row and all other rows.

    The sum of row i is that of :math:`w_j K(x_i, x_j)` over all rows j but i.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
    kernel : Kernel
        Compares the numeric columns.
    columns : Columns
    weights : ndarray of shape (n_samples,)
    make_level_table : callable
        ``make_level_table(kind, n_levels, lam)`` returns the values (n_levels, n_levels) of a
        category's kernel between every two levels, and their derivatives in lambda.
    bounds : ndarray of shape (n_columns, 2), default=None
        With bounds, sums are over the rows and their mirror images. Each row leaves out its own
        images as well.
    """

    def __init__(
        self, X, kernel, columns, weights, *, make_level_table=level_table, bounds=None
    ):
        self._columns, self._make_level_table = columns, make_level_table
        # The first image is X itself. The others are its mirror images in the bounds.
        images = [X] if bounds is None else list(reflections(X, bounds))
        rows, n_images = np.concatenate(images), len(images)
        # `form_along` returns None if no algorithm sums the kernel along one column in linear
        # time.
        is_single_number = columns.kinds == ("numeric",)
        self.in_linear_time = is_single_number and form_along(kernel, 1) is not None
        if self.in_linear_time:
            options = {"bandwidth": 1.0, "sample_weight": weights, "leave_one_out": True}
            # A `Problem`, which `read` makes, has the rows of an image as queries, and the rows
            # of X as keys; query i leaves out key i. A `Reduction` sums the kernel between each
            # query and the keys at any bandwidth. It is to leave sums of 0 as they are, and not
            # to replace them by sums over the nearest keys (empty="nearest").
            problems = (
                read(image, X, values=None, kernel=kernel, **options)[0] for image in images
            )
            self._reductions = [Reduction(problem, empty="nan") for problem in problems]
        # Several columns, categories and gradients need sums over all pairs of rows, which take
        # quadratic time. Of the n * n_images rows, only the first n get a sum, those of X.
        self._pairs = PairSums(
            rows[:, columns.numeric],
            rows[:, columns.categorical].astype(np.intp),
            kernel,
            np.tile(weights, n_images),
            n_images=n_images,
        )

    def __call__(self, bandwidth, eval_gradient):
        """Return the logarithm (n_samples,) of each row's sum at a bandwidth, and `vjp`.

        The sums are over the other rows, and their images; they are not divided by anything.
        The bandwidth (n_columns,) has lambdas for categories. The logarithm of a sum of 0 is
        -inf. ``vjp(slopes)`` turns derivatives with respect to the logarithms into those with
        respect to the bandwidth. Without `eval_gradient` it must not be called, and may be
        None.
        """
        if self.in_linear_time and not eval_gradient:
            return self._in_linear_time(float(bandwidth[0])), None
        numeric, categorical = self._columns.numeric, self._columns.categorical
        kinds, n_levels = self._columns.kinds, self._columns.n_levels
        # For each category, its kernel between every two levels, and the derivatives in lambda.
        level_tables = [
            self._make_level_table(kinds[j], n_levels[j], bandwidth[j]) for j in categorical
        ]
        _, log_sums, vjp_of_pairs = self._pairs(
            bandwidth[numeric], level_tables, slopes=eval_gradient
        )

        def vjp(slopes):
            gradient = np.zeros(len(bandwidth))
            gradient[[*numeric, *categorical]] = vjp_of_pairs(slopes)
            # PairSums differentiates with respect to the logarithms of numeric bandwidths.
            gradient[numeric] /= bandwidth[numeric]
            return gradient

        return log_sums, vjp

    def _in_linear_time(self, bandwidth):
        """Return the logarithms of the sums (n_samples,) for a single numeric column."""
        log_sums, rows = [], np.arange(len(self._reductions[0].problem.keys))
        for image, reduction in enumerate(self._reductions):
            # Inaccurate sums over X itself are computed again in a slower way. Those over
            # mirror images are not, and count as 0, since a sum below its error bound is small:
            # the images are far away.
            sums = reduction.sums(rows, bandwidth, max_share=0.0 if image else 1.0)
            log_sums.append(np.where(sums.is_accurate, sums.log_total, -np.inf))
        # The weights of a problem are divided by their unit, whose logarithm is added again.
        return np.logaddexp.reduce(log_sums) + self._reductions[0].problem.log_weight_unit


class _Likelihood:
    """Base class: the mean log-density of each row in a mixture of other rows and a background.

    A subclass defines ``_log_density(bandwidth, eval_gradient)``, which returns the logarithms
    (n_samples,) of the kernel density of each row by all others, and their `vjp`. Its
    constructor calls `_set_background`.
    """

    def _set_background(self, X, columns, weights, bounds=None):
        """Compute both terms' weights in the mixture, and the background's density at X.

        `weights` (n_samples,) are those of the rows, with any sum.
        """
        mixing_weight = background_mixing_weight(len(X), weights)
        background = Background(*center_and_scale(X, columns, weights), columns, bounds)
        self._row_weights = weights / weights.sum()
        self._log_kernel_weight = np.log1p(-mixing_weight)
        self._log_background = np.log(mixing_weight) + background.log_density(X)

    def __call__(self, bandwidth, eval_gradient: bool = False) -> float:
        """Compute the criterion at a bandwidth.

        Parameters
        ----------
        bandwidth : array-like of shape (n_features,)
            The bandwidth of each numeric column, and the lambda of each category.
        eval_gradient : bool, default=False
            Whether to return the gradient too.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_features,)
            With respect to `bandwidth`; only with `eval_gradient`.
        """
        log_kernels, vjp = self._log_kernels(bandwidth, eval_gradient)
        log_mixture = np.logaddexp(log_kernels, self._log_background)
        value = float(self._row_weights @ log_mixture)
        if not eval_gradient:
            return value
        # The derivative of log(a + b) with respect to log(a) is a / (a + b).
        return value, vjp(self._row_weights * np.exp(log_kernels - log_mixture))

    def background_weight(self, bandwidth):
        """Compute the fraction of the rows, by weight, that the background describes better."""
        log_kernels, _ = self._log_kernels(bandwidth, eval_gradient=False)
        return float(self._row_weights @ ~(log_kernels > self._log_background))

    def _log_kernels(self, bandwidth, eval_gradient):
        """Compute the logarithm of the kernel density's term in the mixture, and its vjp."""
        bandwidth = np.asarray(bandwidth, dtype=np.float64)
        log_density, vjp = self._log_density(bandwidth, eval_gradient)
        # A conditional density is NaN if no other row has similar features. It counts as 0.
        log_density = np.where(np.isnan(log_density), -np.inf, log_density)
        return log_density + self._log_kernel_weight, vjp


class DensityLikelihood(_Likelihood):
    r"""Mean log-density of the rows, each under the density estimated from all other rows.

    This is the criterion of likelihood cross-validation, with which
    :class:`~sklearn_attention.ProductKernelDensity` chooses bandwidths by default.

    .. math:: \frac{1}{\sum_i w_i} \sum_i w_i \log\Big(
              \frac{n}{n + 1} \hat f_{-i}(x_i) + \frac{1}{n + 1} g(x_i)\Big), \qquad
              \hat f_{-i}(x) = \frac{1}{\sum_{j \ne i} w_j} \sum_{j \ne i} w_j
              \prod_k \frac{1}{h_k} K\Big(\frac{x_k - x_{jk}}{h_k}\Big)

    Without the wide background :math:`g`, which counts as one row more, this is likelihood
    cross-validation [1]_ [2]_; see Notes.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows; categories as codes from 0.
    kernel : SmoothingKernel
        Compares each numeric column. Categories have the Aitchison-Aitken or Li-Racine
        kernel, whose values sum to 1 over their levels.
    columns : sklearn_attention.Columns, default=None
        Kind of each column; None for numbers throughout.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights :math:`w`, all positive.
    bounds : ndarray of shape (n_features, 2), default=None
        Lowest and highest value of each column, infinite if there is none. Kernels are
        reflected there. Between two bounds they are reflected only once, also if they are wider
        than this range.

    Attributes
    ----------
    in_linear_time : bool
        Whether a call without gradient takes linear time: that is so for most kernels if the
        rows are one column of numbers.

    Notes
    -----
    Without a background one row that is far from all others decides the bandwidth: the
    logarithm of the Gaussian kernel falls with the square of the distance, so that the kernel
    has to be wide, and kernels of bounded support have to reach every row. If tails are as
    heavy as those of an exponential distribution, bandwidths do not even shrink as rows become
    more [3]_ [4]_. With the background a row that no other reaches counts with about the
    logarithm of :math:`g(x) / n`, at any bandwidth. The background is a product over the
    columns. For numbers it is Student's t with 2 degrees of freedom, with their median as
    center and half the distance between their quantiles 0.1 and 0.9 as scale, truncated to
    bounds; levels of a category are equally likely. If rows are weighted,
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
        weights = _scaled_weights(X, sample_weight)
        self._is_numeric = columns.is_numeric
        # For each row i, the logarithm of the sum of w_j over j != i.
        self._log_mass = np.log(leave_one_out_mass(weights))
        self._set_background(X, columns, weights, bounds)
        self._sums = _LogSums(X, ProductKernel(kernel), columns, weights, bounds=bounds)
        self.in_linear_time = self._sums.in_linear_time

    def _log_density(self, bandwidth, eval_gradient):
        """Return the log-densities (n_samples,) of rows by all others, and their vjp."""
        log_sums, vjp_of_sums = self._sums(bandwidth, eval_gradient)
        # The kernel of a numeric column is divided by its bandwidth, so that its integral is 1.
        divisors = np.where(self._is_numeric, bandwidth, 1.0)

        def vjp(slopes):
            return vjp_of_sums(slopes) - slopes.sum() * self._is_numeric / divisors

        return log_sums - self._log_mass - np.log(divisors).sum(), vjp


class ConditionalLikelihood(_Likelihood):
    r"""Mean log-density of the targets given the features, each estimated from all other rows.

    This is the criterion with which :class:`~sklearn_attention.ConditionalKernelDensity`
    chooses bandwidths.

    .. math:: \frac{1}{\sum_i w_i} \sum_i w_i \log\Big( \frac{n}{n + 1}
              \frac{\sum_{j \ne i} w_j K(x_i, x_j)\, K_g(y_i - y_j)}
                   {\sum_{j \ne i} w_j K(x_i, x_j)} + \frac{1}{n + 1} g(y_i)\Big)

    The background :math:`g` is that of :class:`DensityLikelihood` for the targets. It does not
    depend on the features. It keeps a single row from deciding the bandwidths whose target is
    far from those of its neighbours.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows; categories as codes from 0.
    y : ndarray of shape (n_samples,)
        Targets.
    kernel : Kernel
        Compares the numeric columns of rows, all at once; positive, and with gradients.
    target_kernel : SmoothingKernel
        :math:`K_g`, which compares the targets.
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
        weights = _scaled_weights(X, sample_weight)  # the largest is from 1 to 2
        # The background is a density of the targets.
        self._set_background(y[:, None], Columns.numbers(1), weights)
        # Sums of K(x_i, x_j), the denominator. Features only weight the rows, so that their
        # kernels need not be normalized.
        self._feature_sums = _LogSums(
            X, kernel, columns, weights, make_level_table=_unnormalized_level_table
        )
        # Sums of K(x_i, x_j) K_g(y_i - y_j), the numerator. The target is the last column. Each
        # factor is a tuple of its name, kernel, and columns among the numeric ones.
        n_numeric = len(columns.numeric)
        factors = [("features", kernel, list(range(n_numeric)))] if n_numeric else []
        joint_kernel = ProductKernel([*factors, ("target", target_kernel, [n_numeric])])
        self._joint_sums = _LogSums(
            np.column_stack([X, y]),
            joint_kernel,
            columns + Columns.numbers(1),
            weights,
            make_level_table=_unnormalized_level_table,
        )

    def _log_density(self, bandwidth, eval_gradient):
        """Return the log-densities (n_samples,) of targets given features, and their vjp.

        The last entry of the bandwidth is that of the target.
        """
        log_joint, vjp_of_joint = self._joint_sums(bandwidth, eval_gradient)
        log_features, vjp_of_features = self._feature_sums(bandwidth[:-1], eval_gradient)
        # If no other row has similar features, both logarithms are -inf, and their difference
        # is NaN. The division by the target's bandwidth makes the integral of its kernel 1.
        with np.errstate(invalid="ignore"):
            log_density = log_joint - log_features - np.log(bandwidth[-1])

        def vjp(slopes):
            denominator_gradient = np.append(
                vjp_of_features(slopes), slopes.sum() / bandwidth[-1]
            )
            return vjp_of_joint(slopes) - denominator_gradient

        return log_density, vjp


def _scaled_weights(X, sample_weight):
    """Return the weights of rows, 1 by default, divided so that the largest is from 1 to 2."""
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight)
    return weights / weight_unit(weights)


def _unnormalized_level_table(kind, n_levels, lam):
    """Return the `level_table` of a kernel whose values at a level need not sum to 1."""
    return level_table(kind, n_levels, lam, normalized=False)
