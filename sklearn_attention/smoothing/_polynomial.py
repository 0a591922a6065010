"""Local polynomials of one degree and one bandwidth, and averages (degree 0).

All functions take a :class:`FittedSmoother` with a single member. Where rows have little weight
in its window, the window is doubled until they have enough; the smoother says whether this is
done (`widens`), and `attention._doubled_windows` says when a window is wide enough.
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

# Step of numerical derivatives, in bandwidths: the square of the step and the rounding divided
# by it are far below 1e-6. The step is at least as many units of the last digit of a query.
_STEP, _MIN_STEP_IN_LAST_DIGITS = 1e-4, 2.0**8


def predict(smoother, X, values):
    """Predict queries from values (n_keys, ...) of the rows."""
    return local_fit(smoother, X, values)[0] if smoother.degree else smoother.average(X, values)


def local_fit(smoother, X, values):
    """Return the local polynomials of values (n_keys, ...) of the rows at queries.

    Returns their values (n_queries, ...), slopes (n_queries, ..., n_features) and the ridges
    (n_queries,) that were added where a window does not determine the polynomial.
    """
    if not smoother.widens:
        fit = _fit(smoother, X, values)
        return fit.values, fit.slopes, fit.ridge
    shape, dtype = values.shape[1:], np.result_type(X.dtype, values.dtype)
    fields = [(shape, dtype), ((*shape, X.shape[1]), dtype), ((), dtype)]
    return map_rows(_fit_in_doubled_windows, X, fields, smoother, values)


def _fit(smoother, X, values):
    """Fit polynomials at queries in windows that are not doubled; return a `LocalFit`."""
    return LocalFit(*smoother.smooth(smoother.degree, X, values))


def _fit_in_doubled_windows(smoother, values, X):
    """Fit polynomials as `local_fit`, in doubled windows, for rows and queries in memory."""
    windows, (*box, max_distance) = smoother.windows[0], smoother.box
    X = X.clip(*box).astype(X.dtype, copy=False)

    def evaluate(times, rows):
        fit, *measures = _doubled_window(smoother, times, X[rows], values)
        return [(windows.adequacy(*measures), fit.values, fit.slopes, fit.ridge)]

    return tuple(double_windows(evaluate, max_distance)[0])


def _doubled_window(smoother, times, X, values=None):
    """Fit polynomials in windows that are doubled `times` times, and measure these windows.

    Returns the `LocalFit`; the sum of the rows' weights in each window, in units of the weight
    of a row at the query; and the inverse leverage of a row at the query in a fit to the design
    points, 0 if all rows are distinct. The last two have the shape (n_queries,).
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
    """Return the effective number of rows in the window of each query, (n_queries,).

    It is the sum of the rows' weights in the local fit, divided by the weight that a row at the
    query itself would have.
    """
    # Without categories, all queries have the same weight at distance 0.
    X = X if smoother.columns.categorical else X[:1]
    X = X.astype(np.float64) / smoother.divisors
    # A level that did not occur in training (-1) is compared with a level that did.
    known_levels = X.clip(np.where(smoother.columns.is_numeric, -np.inf, 0.0))
    log_weight = at_rows(smoother.kernel.log, X, known_levels)
    log_weight = log_weight.clip(np.finfo(np.float64).min)
    return np.exp(fit.log_normalizers.astype(np.float64) - log_weight)


def local_rows(smoother, X, more=0, *, without_each=False):
    """Return the `LocalRows`: rows of the hat matrix at queries, and predictions.

    With an adaptive bandwidth, windows reach `more` neighbours further. Predictions without
    each row are computed only if `without_each`.
    """
    if not smoother.widens:
        return attention.local_rows(
            X,
            smoother.keys,
            smoother.values_2d,
            smoother.kernel,
            degree=smoother.degree,
            without_each=without_each,
            **smoother.options(X, more),
        )
    windows, points = smoother.windows
    *box, max_distance = smoother.box
    X = X.clip(*box)

    def evaluate(times, rows):
        queries = X[rows]
        hat = local_rows(smoother.doubled(times), queries, without_each=without_each)
        _, weight, inverse_leverage = _doubled_window(smoother, times, queries)
        groups = [(windows.adequacy(weight, inverse_leverage), *hat[:-2])]
        if not without_each:
            return groups
        without_point = np.zeros((1, 1))
        if points is not None:
            _, weight_of_points, _ = _doubled_window(points, times, queries)
            at_points = local_rows(points.doubled(times), queries, without_each=True)
            without_point = weight_of_points[:, None] * (1 - at_points.weights)
            without_point = without_point / (1 + at_points.left_out_distance)
            without_point = without_point[:, windows.point_of_rows]
        weight = weight[:, None] * (1 - hat.weights)
        measures = weight, inverse_leverage[:, None], without_point
        return [*groups, (windows.adequacy_without(slice(None), *measures), hat.left_out)]

    matrices, *left_out = double_windows(evaluate, max_distance)
    return attention.LocalRows(*matrices, left_out[0][0] if left_out else None, None)


def gradient(smoother, X, values):
    """Return derivatives of predictions of values, with respect to the queries.

    Their shape is (n_queries, ..., n_features), with the outputs of the values between.
    """
    form = smoother.radial_form
    # The slopes of local parabolas differ from derivatives, since weights change with the
    # query; those of a boxcar do not.
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
        X,
        smoother.keys,
        values,
        smoother.kernel,
        bandwidth=smoother.divisors,
        sample_weight=smoother.key_weights,
    )


def _differences(smoother, X, values):
    """Return derivatives of predictions by central differences; 0 along categories."""
    (low, high), factors, slopes = smoother.key_limits, smoother.bandwidth_factors(X), []
    bandwidths = smoother.divisors * (1.0 if factors is None else factors[:, None])
    queries = X.astype(np.float64)
    steps = _STEP * np.minimum(bandwidths, replace_zeros(high - low))
    # A step is at least as large as several last digits of the query.
    steps = np.maximum(steps, _MIN_STEP_IN_LAST_DIGITS * np.spacing(np.abs(queries)))
    # Centred values have the same slopes, and their differences less rounding.
    dtype, values = np.result_type(X, values), values - column_stats(values).mean
    # Each axis is a unit vector, or 0 for a category, along which nothing changes.
    for axis in np.diag(smoother.columns.is_numeric.astype(np.float64)):
        before, after = queries - axis * steps, queries + axis * steps
        rise = predict(smoother, after, values) - predict(smoother, before, values)
        # This is the step as it was rounded when it was added to the queries.
        run = (after - before) @ axis
        slopes.append((rise.T / replace_zeros(run)).T)
    return np.stack(slopes, axis=-1).astype(dtype)


def predict_training_rows(smoother, window_source):
    """Return the `Predictions` of all rows, with and without themselves.

    Adaptive windows reach to the neighbours in `window_source`, a smoother of as many rows.
    """
    leave_one_out = smoother.leave_one_out()
    rows = leave_one_out.rows
    if window_source.n_neighbors is None:
        predictions = leave_one_out.predictions()
    else:
        # A row that is left out is not its own neighbour, so its window reaches one further.
        factors, next_factors = (
            window_source.bandwidth_factors(window_source.keys[rows], more=k) for k in (0, 1)
        )
        predictions = leave_one_out.predictions(factors)
        left_out = leave_one_out.predictions(next_factors).left_out
        predictions = predictions._replace(left_out=left_out)
    n_rows = len(smoother.keys)
    if len(rows) == n_rows:
        return predictions
    # Rows of weight 0 have no effect on their own predictions.
    everywhere = window_source.predict(window_source.keys).reshape(n_rows, -1)
    fields = everywhere.copy(), everywhere, np.zeros(n_rows)
    for field, predicted in zip(fields, predictions, strict=True):
        field[rows] = predicted
    return Predictions(*fields)


def predict_by_sums(smoother):
    """Return the `Predictions` of all rows by averages; rows may be in partitions of Dask."""
    if smoother.is_polynomial:
        need_all_rows(
            "predictions of own rows by local polynomials",
            smoother.keys,
            remedy="pass degree=0, or fit rows in memory",
        )
    tables = smoother.keys, smoother.keys, smoother.values_2d, smoother.key_weights
    average = smoother.attention_smoother(0)
    left_out, log_others = smooth(average, *tables, leave_one_out=True)
    fitted, log_all = smooth(average, *tables)
    # The leverage of a row is 1 - (sum of the others' weights) / (sum of all weights). It is 0
    # if both sums are 0: such a row has weight 0, and no other row has weight in its window.
    has_weights = log_all > -np.inf
    log_ratio = np.where(has_weights, log_others, 0.0) - np.where(has_weights, log_all, 0.0)
    return Predictions(left_out, fitted, -np.expm1(log_ratio))
