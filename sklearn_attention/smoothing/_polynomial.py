"""The local polynomial of one degree and one bandwidth, in the rows of a smoother.

Functions take a :class:`FittedSmoother` that has a single member; degree 0 is an average.
"""

import numpy as np

from .. import attention
from .._column_stats import column_stats, replace_zeros
from .._partitions import map_rows, need_all_rows
from ..attention._average import LocalFit
from ..attention._doubled_windows import double_windows
from ..attention._leave_one_out import Predictions, at_rows
from ..attention._smoother import smooth
from ..kernels import Boxcar

# Step of differences in bandwidths, whose square and the rounding divided by it are far below
# 1e-6, and its least size in units of the last digit of a query.
_STEP, _ULPS = 1e-4, 2.0**8


def predict(smoother, X, values):
    """Predict values of the rows at queries."""
    return local_fit(smoother, X, values)[0] if smoother.degree else smoother.average(X, values)


def local_fit(smoother, X, values):
    """Return the polynomials at queries: values, slopes and ridges."""
    if not smoother.widens:
        fit = _fit(smoother, X, values)
        return fit.values, fit.slopes, fit.ridge
    shape, dtype = values.shape[1:], np.result_type(X.dtype, values.dtype)
    fields = [(shape, dtype), ((*shape, X.shape[1]), dtype), ((), dtype)]
    return map_rows(_fit_in_wide_windows, X, fields, smoother, values)


def _fit(smoother, X, values):
    """Fit polynomials in windows that are not widened."""
    return LocalFit(*smoother.smooth(smoother.degree, X, values))


def _fit_in_wide_windows(smoother, values, X):
    """Fit polynomials in windows that are widened, for rows and queries in memory."""
    windows, (*box, max_distance) = smoother.windows[0], smoother.box
    X = X.clip(*box).astype(X.dtype, copy=False)

    def evaluate(times, rows):
        fit, *measures = _doubled_window(smoother, times, X[rows], values)
        return [(windows.adequacy(*measures), fit.values, fit.slopes, fit.ridge)]

    return tuple(double_windows(evaluate, max_distance)[0])


def _doubled_window(smoother, times, X, values=None):
    """Fit polynomials in windows that are doubled `times` times, and measure these windows.

    Returns the fits, the weight of the rows in each window in units of that of a row at the
    query, and the inverse leverage of a row at the query in a fit to the design points.
    """
    doubled = smoother.doubled(times) if times else smoother
    _, points = smoother.windows
    fit = _fit(doubled, X, smoother.keys[:, :0] if values is None else values)
    weight, inverse_leverage = _weight_in_rows(doubled, X, fit), np.zeros(len(X))
    if points is not None:
        at_points, weight_of_points, _ = _doubled_window(points, times, X)
        inverse_leverage = weight_of_points / (1 + at_points.squared_distance)
    return fit, weight, inverse_leverage


def _weight_in_rows(smoother, X, fit):
    """Return the sums of weights of local fits in units of the weight of a row at the query."""
    X = X if smoother.columns.categorical else X[:1]
    X = X.astype(np.float64) / smoother.divisors
    # Levels that did not occur are as far from all that did.
    known = X.clip(np.where(smoother.columns.is_numeric, -np.inf, 0.0))
    log_own = at_rows(smoother.kernel.log, X, known).clip(np.finfo(np.float64).min)
    return np.exp(fit.log_normalizers.astype(np.float64) - log_own)


def hat_rows(smoother, X, more=0, *, without_each=False):
    """Return the rows of the hat matrix at queries, with windows of `more` more neighbours.

    Predictions without each row are computed only if `without_each`.
    """
    if not smoother.widens:
        return attention.local_rows(
            X, smoother.keys, smoother.table, smoother.kernel, degree=smoother.degree,
            without_each=without_each, **smoother.options(X, more),
        )  # fmt: skip
    windows, points = smoother.windows
    *box, max_distance = smoother.box
    X = X.clip(*box)

    def evaluate(times, rows):
        queries = X[rows]
        hat = hat_rows(smoother.doubled(times), queries, without_each=without_each)
        _, weight, inverse_leverage = _doubled_window(smoother, times, queries)
        groups = [(windows.adequacy(weight, inverse_leverage), *hat[:-2])]
        if not without_each:
            return groups
        without_point = np.zeros((1, 1))
        if points is not None:
            _, weight_of_points, _ = _doubled_window(points, times, queries)
            at_points = hat_rows(points.doubled(times), queries, without_each=True)
            without_point = weight_of_points[:, None] * (1 - at_points.weights)
            without_point = without_point / (1 + at_points.left_out_distance)
            without_point = without_point[:, windows.point_of_rows]
        weight = weight[:, None] * (1 - hat.weights)
        measures = weight, inverse_leverage[:, None], without_point
        return [*groups, (windows.adequacy_without(slice(None), *measures), hat.left_out)]

    matrices, *left_out = double_windows(evaluate, max_distance)
    return attention.LocalRows(*matrices, left_out[0][0] if left_out else None, None)


def gradient(smoother, X, values):
    """Return derivatives of predictions with respect to queries."""
    form = smoother.radial_form
    # The weights of a boxcar are steps, so the local slope is the derivative.
    if smoother.degree == 2 and not (form and isinstance(form.kernel, Boxcar)):
        return _differences(smoother, X, values)
    if smoother.degree:
        return local_fit(smoother, X, values)[1]
    if smoother.n_neighbors is not None:
        raise ValueError(
            f"n_neighbors={smoother.n_neighbors!r} makes the bandwidth differ from place to "
            "place, for which the derivative of an average is not implemented: pass a "
            "fixed bandwidth, or take the slope of a LocalPolynomialRegressor."
        )
    need_all_rows("derivatives of averages", smoother.keys)
    return attention.attend_gradient(
        X, smoother.keys, values, smoother.kernel, bandwidth=smoother.divisors,
        sample_weight=smoother.key_weights,
    )  # fmt: skip


def _differences(smoother, X, values):
    """Return slopes of predictions by central differences; 0 along categories."""
    (low, high), scale, slopes = smoother.ends, smoother.scale(X), []
    widths = smoother.divisors * (1.0 if scale is None else scale[:, None])
    steps, queries = _STEP * np.minimum(widths, replace_zeros(high - low)), X.astype(np.float64)
    # Neither a large number in X nor one common to all values leaves only rounding.
    steps = np.maximum(steps, _ULPS * np.spacing(np.abs(queries)))
    dtype, values = np.result_type(X, values), values - column_stats(values).mean
    for axis in np.diag(smoother.columns.is_numeric.astype(np.float64)):
        before, after = queries - axis * steps, queries + axis * steps
        rise = predict(smoother, after, values) - predict(smoother, before, values)
        # This is what remains of the step when it is added to large numbers.
        run = (after - before) @ axis
        slopes.append((rise.T / replace_zeros(run)).T)
    return np.stack(slopes, axis=-1).astype(dtype)


def predict_rows(smoother, measured):
    """Predict all rows, with and without themselves, in windows that `measured` has."""
    leave_one_out = smoother.leave_one_out()
    rows = leave_one_out.rows
    if measured.n_neighbors is None:
        predictions = leave_one_out.predictions()
    else:
        # If a row is left out, it is no neighbour of itself, and the bandwidth is larger.
        scale, next_scale = (measured.scale(measured.keys[rows], more=k) for k in (0, 1))
        predictions = leave_one_out.predictions(scale)
        left_out = leave_one_out.predictions(next_scale).left_out
        predictions = predictions._replace(left_out=left_out)
    n_rows = len(smoother.keys)
    if len(rows) == n_rows:
        return predictions
    # Rows of weight 0 are left out anyway.
    everywhere = measured.predict(measured.keys).reshape(n_rows, -1)
    fields = everywhere.copy(), everywhere, np.zeros(n_rows)
    for field, predicted in zip(fields, predictions, strict=True):
        field[rows] = predicted
    return Predictions(*fields)


def predict_by_sums(smoother):
    """Predict all rows by averages, with and without themselves, wherever the rows are."""
    if smoother.local:
        need_all_rows(
            "predictions of own rows by local polynomials", smoother.keys,
            remedy="pass degree=0, or fit rows in memory",
        )  # fmt: skip
    tables = smoother.keys, smoother.keys, smoother.table, smoother.key_weights
    average = smoother.configured(0)
    left_out, log_others = smooth(average, *tables, leave_one_out=True)
    fitted, log_all = smooth(average, *tables)
    # A row of weight 0 that no other reaches has no share in nothing.
    reached = log_all > -np.inf
    log_rest = np.where(reached, log_others, 0.0) - np.where(reached, log_all, 0.0)
    return Predictions(left_out, fitted, -np.expm1(log_rest))
