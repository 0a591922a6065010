"""The bandwidth that predicts each row best from all others."""

import warnings

import numpy as np
from scipy.spatial import KDTree
from sklearn.utils import check_random_state

from .. import attention
from ._minimize import minimize_scale
from ._rules import canonical_ratio, feature_spread

# Rows the search looks at. More are sampled, and the bandwidth found is carried over at
# the rate n^(-1/(d+4)) at which optimal bandwidths shrink, where the kernel is one of
# distance: for others a bandwidth is no size of neighbourhood.
MAX_SEARCH_ROWS = 2000
# The search starts at this share of the distance to the nearest other place: from there
# down, every row is predicted by its nearest neighbour alone.
_LOWEST = 0.2
# It ends where all rows weigh alike, at this many times the extent of the data.
_HIGHEST = 3.0


def leave_one_out_error(X, values, kernel, bandwidth, **options):
    r"""Mean squared error of predicting each row from all others.

    .. math:: \text{CV}(h) = \frac{\sum_i w_i \lVert v_i - \hat v_{-i}(x_i) \rVert^2}
                                  {p \sum_i w_i}

    Closed form: no model is fitted again.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The keys.
    values : ndarray of shape (n_samples, n_values)
        Their values.
    kernel : Kernel
        Compares rows.
    bandwidth : float or ndarray of shape (n_features,)
        In the features' own units.
    **options
        ``sample_weight``, ``algorithm``, ``empty`` and ``device`` of
        :func:`sklearn_attention.attention.attend`.

    Returns
    -------
    error : float
        Infinite where a row has no neighbours and the policy gives no answer.
    """
    if options.get("empty") == "raise":
        options["empty"] = "nan"
    averages, _ = attention.attend(
        X, X, values, kernel, bandwidth=bandwidth, leave_one_out=True, **options
    )
    squared = np.mean((np.asarray(averages, dtype=np.float64) - values) ** 2, axis=1)
    error = np.average(squared, weights=options.get("sample_weight"))
    return np.inf if np.isnan(error) else float(error)


def leave_one_out_bandwidth(
    X, values, kernel, *, sample_weight=None, random_state=None, observe=None, **options
):
    r"""One scale on every feature's spread, by leave-one-out.

    .. math:: h_j = c\, \hat\sigma_j,\quad c = \arg\min_c \text{CV}(c\, \hat\sigma)

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The keys, at least two rows of positive weight.
    values : ndarray of shape (n_samples, n_values)
        Their values.
    kernel : Kernel
        Compares rows.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of keys and of errors.
    random_state : int, numpy.random.RandomState or None, default=None
        Draws the rows to look at where there are more than `MAX_SEARCH_ROWS`.
    observe : callable, default=None
        Called in place of each evaluation as ``observe(evaluate, bandwidth)``; returns
        ``evaluate(bandwidth)`` and whether to end the search there.
    **options
        ``algorithm``, ``empty`` and ``device`` of
        :func:`sklearn_attention.attention.attend`.

    Returns
    -------
    bandwidth : ndarray of shape (n_features,)
        In the features' own units.
    error : float
        The leave-one-out error at the minimum, of the rows looked at and before the
        bandwidth is carried over to more.

    Raises
    ------
    ValueError
        If there are fewer than two rows, or no bandwidth predicts every row.

    Warns
    -----
    UserWarning
        If the search ends at its floor while rows are repeated exactly: a copy predicts
        its twin perfectly and pulls the bandwidth to 0.
    """
    if sample_weight is not None:
        kept = sample_weight > 0
        X, values, sample_weight = X[kept], values[kept], sample_weight[kept]
    n_samples, n_features = X.shape
    if n_samples < 2:
        raise ValueError(
            f"bandwidth='loo' predicts each row from the others and needs two rows of "
            f"positive weight, got n_samples={n_samples}: pass a number as bandwidth."
        )
    spread = feature_spread(X, sample_weight)
    if n_samples > MAX_SEARCH_ROWS:
        random_state = check_random_state(random_state)
        rows = random_state.choice(n_samples, MAX_SEARCH_ROWS, replace=False)
        X, values = X[rows], values[rows]
        sample_weight = None if sample_weight is None else sample_weight[rows]
    options["sample_weight"] = sample_weight
    # By a power of two, so that errors neither overflow nor vanish.
    size = 2.0 ** int(np.frexp(np.abs(values).max())[1])
    values = values / size

    def evaluate(bandwidth):
        return leave_one_out_error(X, values, kernel, bandwidth, **options)

    def criterion(scale):
        if observe is None:
            return evaluate(scale * spread), False
        return observe(evaluate, scale * spread)

    low, high = search_range(X / spread, canonical_ratio(kernel))
    scale, error = minimize_scale(criterion, low, high)
    if not np.isfinite(error):
        raise ValueError(
            f"bandwidth='loo' found no bandwidth at which empty={options.get('empty')!r} "
            "leaves every row with a prediction: use empty='nearest' or pass a number."
        )
    if scale < low * 1.05:
        _warn_of_copies(X, values)
    if kernel.decreasing:
        scale *= (n_samples / len(X)) ** (-1 / (n_features + 4))
    return scale * spread, error * size * size


def search_range(Z, ratio):
    """Smallest and largest scale worth trying.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Keys in units of each feature's spread.
    ratio : float
        Widening of the kernel against a Gaussian.

    Returns
    -------
    low, high : float
        Floor and ceiling of the search. The floor is set by the distance between
        different places, so that repeated rows cannot pull it to 0.
    """
    places = np.unique(Z, axis=0)
    extent = np.linalg.norm(np.ptp(Z, axis=0))
    if len(places) == 1:
        return 0.5 * ratio, 2.0 * ratio
    gaps = KDTree(places).query(places, k=2)[0][:, 1]
    low = _LOWEST * ratio * np.quantile(gaps, 0.25)
    return max(low, 1e-6 * extent), _HIGHEST * ratio * extent


def _warn_of_copies(X, values):
    rows = np.column_stack([X, values])
    n_copies = len(rows) - len(np.unique(rows, axis=0))
    if n_copies:
        warnings.warn(
            f"bandwidth='loo' ended at its floor while {n_copies} of {len(rows)} rows repeat "
            "another exactly; a copy predicts its twin perfectly, so the floor may be too "
            "small: drop the copies (sample_weight can count them) or pass a number.",
            stacklevel=2,
        )
