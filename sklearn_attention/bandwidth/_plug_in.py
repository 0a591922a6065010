"""The direct plug-in bandwidth for regression in one dimension."""

import math
from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree
from sklearn.utils import check_random_state

from .._blocks import IN_CACHE, blocks
from .._partitions import is_partitioned
from ..kernels import Gaussian, SmoothingKernel
from ._search import BandwidthChoice, BandwidthRule, are_sampled, canonical_ratio, draw

# Share of the rows left out at each end of x, and share of the extent near each end where
# the second derivative is not used: local cubics are erratic there.
_TRIM, _MARGIN = 0.01, 0.05
# The first pilot: at most so many quartics, of at least so many rows each.
_MAX_BLOCKS, _BLOCK_ROWS = 5, 20
_QUARTIC_TERMS = 5
# Distinct places below which derivatives are not distinguishable from noise.
_FEWEST = 10
# More places than these are pooled, rows of neighbouring x with one another.
_MAX_PLACES = 2000
# Rows that stand for more than `MANY_ROWS`.
_MANY_SAMPLED = 1_000_000
# A pilot's window widens until two bandwidths hold so many places for each coefficient.
_PLACES_PER_TERM = 2
# Shares of the weight below this are rounding.
_SLIVER = 1e-13
_BLOCK_PAIRS = 2 * IN_CACHE
_EPS = float(np.finfo(np.float64).eps)


class _Places(NamedTuple):
    """Rows of equal x together, in ascending order."""

    x: np.ndarray
    y: np.ndarray  # mean of the rows
    weight: np.ndarray  # number of rows
    scatter: np.ndarray  # sum of the rows' squared deviations from their mean


class PlugIn(BandwidthRule):
    """The direct plug-in of Ruppert, Sheather and Wand."""

    def choose(self, rows, kernel, observe=None):
        rows.refuse_gap()
        n_features, n_outputs = rows.X.shape[1], rows.values.shape[1]
        if n_features != 1 or n_outputs != 1 or rows.columns.categorical:
            raise ValueError(
                f"bandwidth='plug-in' is for one numeric feature and one output, got "
                f"{n_features} features and {n_outputs} outputs: pass bandwidth='loo'."
            )
        if rows.degree == 2:
            raise ValueError(
                "bandwidth='plug-in' is for local lines and averages, got degree=2: pass "
                "bandwidth='loo'."
            )
        found = plug_in_bandwidth(
            rows.X[:, 0], rows.values[:, 0], kernel, rows.sample_weight,
            random_state=rows.random_state,
        )  # fmt: skip
        return BandwidthChoice(np.array([found]))


def plug_in_bandwidth(x, y, kernel, sample_weight=None, *, random_state=0):
    r"""Direct plug-in bandwidth for local linear regression on a single feature.

    .. math:: h = \left(\frac{R(K)}{\mu_2(K)^2}\,
              \frac{\hat\sigma^2\,(b - a)}{\hat\theta_{22}\, n}\right)^{1/5}

    minimises the asymptotic mean integrated squared error, with estimates of the noise's
    variance :math:`\sigma^2` and of the curvature
    :math:`\theta_{22} = \int m''(x)^2 f(x)\,dx`, the mean over the rows of the squared
    second derivative. It is fast, since there is no search, and varies less from sample to
    sample than leave-one-out.

    Parameters
    ----------
    x : array-like of shape (n_samples,) or (n_samples, 1)
        The feature.
    y : array-like of shape (n_samples,) or (n_samples, 1)
        The target.
    kernel : SmoothingKernel
        With a positive second moment.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row; :math:`n` is their sum.
    random_state : int, numpy.random.RandomState or None, default=0
        Draws a million rows where there are more than ten million.

    Returns
    -------
    bandwidth : float
        In the feature's own units.

    Raises
    ------
    ValueError
        If there are fewer than 10 distinct places or rows, several features or targets,
        values that are not finite, or the kernel is no smoothing kernel of second order.

    Notes
    -----
    Follows Ruppert, Sheather and Wand [1]_, with the constants and the defaults of the R
    package KernSmooth [2]_. After 1 % of the rows is trimmed at each end, which leaves n
    rows on [a, b]:

    1. Quartics are fitted to blocks of equally many rows, 1 to 5 blocks, their number by
       Mallows' :math:`C_p`. They give pilots of :math:`\sigma^2` and of
       :math:`\theta_{24} = \int m'' m'''' f`, and with these the bandwidth of step 2.
    2. A local cubic fit gives :math:`\hat\theta_{22}`, 5 % of [a, b] at either end left
       out, and with it the bandwidth of step 3.
    3. A local linear fit with smoother matrix S gives :math:`\hat\sigma^2`, its residual
       sum of squares over :math:`n - 2\operatorname{tr} S + \operatorname{tr} S S^\top`.

    The pilots are Gaussian. The asymptotic error is that of a random design with density
    f: :math:`m''^2` is averaged over the rows, while the variance's part,
    :math:`\sigma^2 R(K) / (n h) \int dx`, brings in the length of the support.

    In these ways it differs from KernSmooth's ``dpill``: equal rows and weights are counted
    rather than binned, exactly for up to 2000 distinct places, and in 2000 places of
    equally many rows beyond; trimming and blocks may divide a row; where rows are sparse, a
    pilot's window widens until it holds two places for each coefficient.

    If the rows lie on a straight line the best bandwidth is infinite, and if they have no
    noise it is 0. The result stays between half the median gap between places and the
    extent of x, both widened by the kernel's canonical bandwidth over the Gaussian's.

    References
    ----------
    .. [1] Ruppert, D., Sheather, S. J. and Wand, M. P. (1995). An effective bandwidth
       selector for local least squares regression. Journal of the American Statistical
       Association 90, 1257-1270.
    .. [2] Wand, M. P. and Ripley, B. D. KernSmooth: Functions for Kernel Smoothing.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_attention.bandwidth import plug_in_bandwidth
    >>> from sklearn_attention.kernels import Gaussian
    >>> x = np.linspace(0, 1, 200)
    >>> y = np.sin(6 * x) + 0.2 * np.random.default_rng(0).normal(size=200)
    >>> round(plug_in_bandwidth(x, y, Gaussian()), 3)
    0.033
    """
    _check_kernel(kernel)
    if not is_partitioned(x) and np.ndim(x) == 0:
        raise ValueError(f"x={x!r} has no rows: pass an array of shape (n_samples,).")
    if are_sampled(x):
        n_samples, tables = len(x), (x, y, sample_weight)
        if not is_partitioned(*tables):
            tables = (None if z is None else np.asarray(z) for z in tables)
        x, y, sample_weight = draw(_MANY_SAMPLED, check_random_state(random_state), *tables)
        found = plug_in_bandwidth(x, y, kernel, sample_weight)
        return found * (n_samples / len(x)) ** -0.2
    rows = _check_rows(x, y, sample_weight)
    places = _trimmed(_places(*rows))
    _check_places(places)
    extent = float(np.ptp(rows[0]))
    if extent < np.finfo(np.float64).tiny:
        raise ValueError(
            f"X has an extent of {extent:.3g}, too small for a bandwidth: multiply it by a "
            "large number."
        )
    rounding = 16 * _EPS * np.abs(rows[1]).max()
    if _distance_from_line(places) <= rounding:
        return canonical_ratio(kernel) * extent
    places, unit = _standardised(places)
    gap = float(np.median(np.diff(places.x)))
    shape = _noise_over_curvature(_pooled(places, _MAX_PLACES)) ** 0.2
    gaussian = Gaussian().canonical_bandwidth * shape
    return float(canonical_ratio(kernel) * min(max(gaussian, gap / 2) * unit, extent))


def _noise_over_curvature(places):
    """Estimate of sigma^2 / (theta_22 n), for x on [0, 1]."""
    n = places.weight.sum()
    pilot_variance, theta24 = _quartic_pilot(places)
    theta22 = _curvature(places, _width_for_curvature(pilot_variance, theta24, n))
    variance = _variance(places, _width_for_variance(pilot_variance, theta22, n))
    variance = pilot_variance if variance is None else variance
    return variance / (theta22 * n) if theta22 > 0 else math.inf


def _check_kernel(kernel):
    if not isinstance(kernel, SmoothingKernel) or not kernel.second_moment > 0:
        raise ValueError(
            f"bandwidth='plug-in' needs a smoothing kernel with a positive second moment, and "
            f"kernel={kernel!r} is none: pass 'gaussian' or 'epanechnikov', or bandwidth='loo'."
        )


def _check_rows(x, y, sample_weight):
    """x, y and weights as vectors of floats, rows of weight 0 dropped."""
    columns = {"X": np.asarray(x, dtype=np.float64), "y": np.asarray(y, dtype=np.float64)}
    for name, column in columns.items():
        if column.ndim not in (1, 2) or (column.ndim == 2 and column.shape[1] != 1):
            raise ValueError(
                f"bandwidth='plug-in' is for one feature and one target, but {name} has shape "
                f"{column.shape}: pass bandwidth='loo'."
            )
        if not np.isfinite(column).all():
            raise ValueError(f"{name} contains NaN or infinity: impute or drop those rows.")
    x, y = (column.ravel() for column in columns.values())
    weight = np.ones(len(x)) if sample_weight is None else np.asarray(sample_weight, float)
    if not len(x) == len(y) == len(weight) or weight.ndim != 1:
        raise ValueError(
            f"X, y and sample_weight must have one entry for each row, got {len(x)}, {len(y)} "
            f"and shape {weight.shape}."
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError(
            "sample_weight is not valid: pass finite numbers that are 0 or greater."
        )
    kept = weight > 0
    return x[kept], y[kept], weight[kept]


def _check_places(places):
    n = places.weight.sum()
    if len(places.x) < _FEWEST or n < 0.98 * _FEWEST:
        raise ValueError(
            f"bandwidth='plug-in' needs at least {_FEWEST} rows and as many distinct values of "
            f"X, got {n:g} and {len(places.x)} after trimming {_TRIM:.0%} at each end (weights "
            "count rows): pass a number, or bandwidth='loo'."
        )


def _places(x, y, weight):
    """Rows of equal x put together, so that neither their order nor copies matter."""
    distinct, place = np.unique(x, return_inverse=True)
    return _together(x, y, weight, np.zeros(len(x)), place, len(distinct))


def _together(x, y, weight, scatter, group, n_groups):
    total = np.bincount(group, weight, n_groups)
    mean_x, mean_y = (np.bincount(group, weight * z, n_groups) / total for z in (x, y))
    # Twice, because the mean of equal numbers is not always that number.
    mean_x = mean_x + np.bincount(group, weight * (x - mean_x[group]), n_groups) / total
    mean_y = mean_y + np.bincount(group, weight * (y - mean_y[group]), n_groups) / total
    spread = np.bincount(group, weight * (y - mean_y[group]) ** 2 + scatter, n_groups)
    return _Places(mean_x, mean_y, total, spread)


def _trimmed(places):
    """Without the outermost rows; the weight of a place may be cut in two."""
    stop = np.cumsum(places.weight)
    total = stop[-1] if len(stop) else 0.0
    inside = np.minimum(stop, (1 - _TRIM) * total)
    inside -= np.maximum(stop - places.weight, _TRIM * total)
    kept = inside > _SLIVER * total
    share = inside[kept] / places.weight[kept]
    x, y, weight, scatter = (field[kept] for field in places)
    return _Places(x, y, weight * share, scatter * share)


def _pieces(weight, n_blocks):
    """Blocks of equal weight, from left to right; places on a border are divided.

    Returns the place and the block of every piece, and its weight.
    """
    stop = np.cumsum(weight)
    borders = stop[-1] * np.arange(1, n_blocks) / n_blocks
    ends = np.sort(np.concatenate([stop, borders]))
    lengths = np.diff(ends, prepend=0.0)
    real = lengths > _SLIVER * stop[-1]
    middle = (ends - lengths / 2)[real]
    return np.searchsorted(stop, middle), np.searchsorted(borders, middle), lengths[real]


def _pooled(places, n_places):
    """At most ``n_places`` places, of equally many rows if there were more."""
    if len(places.x) <= n_places:
        return places
    place, group, weight = _pieces(places.weight, n_places)
    scatter = places.scatter[place] * (weight / places.weight[place])
    # One place can outweigh a whole pool, and then some pools have no other.
    _, group = np.unique(group, return_inverse=True)
    return _together(places.x[place], places.y[place], weight, scatter, group, group[-1] + 1)


def _distance_from_line(places):
    """Root mean squared distance of the rows from their best straight line."""
    x, y = places.x - places.x.mean(), places.y - places.y.mean()
    residuals, _ = _polynomial(x, y, places.weight, 1)
    squares = places.weight @ residuals**2 + places.scatter.sum()
    return math.sqrt(squares / places.weight.sum())


def _standardised(places):
    """With x on [0, 1] and y of mean 0 and variance 1; and the unit of x."""
    x, y, weight, scatter = places
    unit = float(x[-1] - x[0])
    n = weight.sum()
    y = y - weight @ y / n
    variance = (weight @ y**2 + scatter.sum()) / n
    return _Places((x - x[0]) / unit, y / math.sqrt(variance), weight, scatter / variance), unit


def _polynomial(x, y, weight, degree):
    """Residuals of a weighted least-squares polynomial, and the polynomial."""
    root = np.sqrt(weight)
    # On [-1, 1], where powers are far from parallel.
    fit = np.polynomial.Polynomial.fit(x, y, degree, w=root)
    return y - fit(x), fit


def _quartic_pilot(places):
    """Pilots of sigma^2 and theta_24 from quartics on blocks of equally many rows."""
    n = places.weight.sum()
    most = int(max(1, min(n // _BLOCK_ROWS, _MAX_BLOCKS)))
    squares, theta24 = [], []
    for n_blocks in range(1, most + 1):
        place, block, weight = _pieces(places.weight, n_blocks)
        if np.bincount(block).min() <= _QUARTIC_TERMS:
            break  # ties have left a block too few places for a quartic
        squares.append(places.scatter.sum())
        theta24.append(0.0)
        for j in range(n_blocks):
            own, w = place[block == j], weight[block == j]
            x = places.x[own]
            residuals, fit = _polynomial(x, places.y[own], w, _QUARTIC_TERMS - 1)
            squares[-1] += w @ residuals**2
            theta24[-1] += (w / n) @ (fit.deriv(2)(x) * fit.deriv(4)(x))
    n_terms = _QUARTIC_TERMS * np.arange(1, len(squares) + 1)
    # Mallows' Cp. Relative to y's variance of 1, less than this is rounding.
    smallest = max(squares[-1], n * _EPS**2)
    chosen = np.argmin((n - n_terms[-1]) * (squares / smallest) + 2 * n_terms - n)
    return squares[chosen] / (n - n_terms[chosen]), theta24[chosen]


def _width_for_curvature(variance, theta24, n):
    """Bandwidth of the local cubic fit that estimates theta_22, at most 1."""
    constant = 3 / (8 * math.sqrt(math.pi)) if theta24 < 0 else 15 / (16 * math.sqrt(math.pi))
    ratio = constant * variance / n
    return (ratio / abs(theta24)) ** (1 / 7) if ratio < abs(theta24) else 1.0


def _width_for_variance(variance, theta22, n):
    """Bandwidth of the local linear fit that estimates sigma^2, at most 1."""
    # R(K * K - 2 K) of the Gaussian, where * is convolution.
    roughness = (0.5 + 2 * math.sqrt(2) - 4 / math.sqrt(3)) / math.sqrt(2 * math.pi)
    ratio = math.sqrt(4 * roughness) * variance / n
    return (ratio / theta22) ** (2 / 9) if ratio < theta22 else 1.0


def _curvature(places, width):
    """theta_22: mean over the rows of the squared second derivative of local cubics."""
    inner = (places.x >= _MARGIN) & (places.x <= 1 - _MARGIN)
    squares = 0.0
    for rows, widths, smoother in _local_fits(places, width, degree=3, order=2):
        second = 2 * smoother @ (places.weight * places.y) / widths**2
        squares += places.weight[rows] @ (inner[rows] * second**2)
    return squares / places.weight.sum()


def _variance(places, width):
    """sigma^2 from a local linear fit; None where the fit leaves it no freedom."""
    n = places.weight.sum()
    squares, freedom = places.scatter.sum(), n
    for rows, _, smoother in _local_fits(places, width, degree=1, order=0):
        own, fitted = places.weight[rows], smoother @ (places.weight * places.y)
        squares += own @ (places.y[rows] - fitted) ** 2
        freedom += own @ (smoother**2 @ places.weight - 2 * np.diag(smoother, rows.start))
    # Never with whole rows; fractions of rows can sum to less than one in a window.
    return squares / freedom if freedom > 0.1 * n else None


def _local_fits(places, width, degree, order):
    """Local polynomials with a Gaussian window at some places after the other."""
    # Yields the places, a slice; the width of each window, (n_rows,); and the effect of a row
    # at each place on the coefficient of an order, in units of the width, (n_rows, n_places).
    # The distance to the nearest so many places.
    n_nearest = _PLACES_PER_TERM * (degree + 1)
    nearest, _ = KDTree(places.x[:, None]).query(places.x[:, None], n_nearest, p=1)
    widths = np.maximum(width, nearest[:, -1] / 2)
    for rows in blocks(len(widths), max(1, _BLOCK_PAIRS // len(widths))):
        u = (places.x - places.x[rows, None]) / widths[rows, None]
        kernel = np.exp(-0.5 * u**2)
        powers = np.cumprod([np.ones_like(u)] + [u] * degree, axis=0)
        gram = np.einsum("jrn,krn->rjk", powers * (kernel * places.weight), powers)
        # Places of very small weight may leave fewer than the fit needs.
        inverse = np.linalg.pinv(gram, rcond=1e-12, hermitian=True)[:, order]
        yield rows, widths[rows], kernel * np.einsum("rj,jrn->rn", inverse, powers)
