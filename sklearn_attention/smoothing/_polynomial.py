"""Local polynomials of one degree and one bandwidth, and averages (degree 0).

All functions take a :class:`FittedSmoother` with a single member: its **keys** are the training
rows, and its **values** their targets. The **queries** X are the rows that are predicted.

The **window** of a query is the kernel weights of the keys around it. If they do not determine
the polynomial, the window is doubled (its bandwidth is multiplied by 2, 4 and so on) until its
**adequacy**, a number for each window, is 1 or more. It is computed from the weight of the
window and from the **inverse leverage** of the query, that of a row at the query in a fit to
the **design points**, the distinct keys; `attention._doubled_windows` has the formula. Windows
are doubled only if `FittedSmoother.doubles_windows`.
"""

import numpy as np

from .. import attention
from .._column_stats import column_stats, replace_zeros
from .._partitions import map_rows, need_all_rows
from ..attention._average import LocalFit
from ..attention._doubled_windows import WindowResults, double_windows
from ..attention._leave_one_out import Predictions, at_rows
from ..attention._smoother import smooth
from ..kernels import Boxcar

# Step of numerical derivatives, in bandwidths: the square of the step and the rounding divided
# by it are far below 1e-6. The step is at least as many units of the last digit of a query.
_STEP, _MIN_STEP_IN_LAST_DIGITS = 1e-4, 2.0**8


def predict(smoother, X, values):
    """Predict queries from values (n_keys, ...) of the keys; return (n_queries, ...)."""
    return local_fit(smoother, X, values)[0] if smoother.degree else smoother.average(X, values)


def local_fit(smoother, X, values):
    """Fit a local polynomial to values (n_keys, ...) of the keys around each query.

    Returns the polynomials at the queries (n_queries, ...), their slopes there (n_queries, ...,
    n_features), and the ridges (n_queries,) that were added where a window does not determine
    the polynomial.
    """
    if not smoother.doubles_windows:
        fit = _fit(smoother, X, values)
        return fit.values, fit.slopes, fit.ridge
    # The queries may be in partitions, which need the shape of a row of each result, and its
    # type.
    shape, dtype = values.shape[1:], np.result_type(X.dtype, values.dtype)
    results = [(shape, dtype), ((*shape, X.shape[1]), dtype), ((), dtype)]
    return map_rows(_fit_in_doubled_windows, X, results, smoother, values)


def _fit(smoother, X, values):
    """Fit polynomials at queries in windows that are not doubled; return a `LocalFit`."""
    return LocalFit(*smoother.smooth(smoother.degree, X, values))


def _fit_in_doubled_windows(smoother, values, X):
    """Fit polynomials as `local_fit`, doubling the window of each query until it is adequate.

    Rows and queries are in memory. Returns values, slopes and ridges, as `local_fit`.
    """
    lower, upper, max_distance = smoother.query_limits
    X = X.clip(lower, upper).astype(X.dtype, copy=False)

    def evaluate(n_doublings, rows):
        """Return the `WindowResults` of some queries, in doubled windows, in a list."""
        # The smoother itself keeps the keys as it has read them.
        doubled = smoother.doubled(n_doublings) if n_doublings else smoother
        fit, queries = _fit(doubled, X[rows], values), X[rows]
        weight = _window_weight(doubled, queries, fit)
        inverse_leverage = _inverse_leverage(smoother, n_doublings, queries)
        adequacy = smoother.window_adequacy.of_windows(weight, inverse_leverage)
        return [WindowResults(adequacy, [fit.values, fit.slopes, fit.ridge])]

    (results,) = double_windows(evaluate, max_distance)
    return tuple(results)


def _window_weight(smoother, X, fit=None):
    """Return the weight of the window of each query, an effective number of rows, (n_queries,).

    It is the sum of the rows' weights in the window, divided by the weight that a row at the
    query itself would have. `fit` is the `LocalFit` at the queries X, if it is known.
    """
    if fit is None:
        fit = _fit(smoother, X, smoother.keys[:, :0])  # without values
    # Without categories, all queries have the same weight at distance 0.
    X = X if smoother.columns.categorical else X[:1]
    X = X.astype(np.float64) / smoother.divisors
    # A level that did not occur in training (-1) is compared with a level that did.
    known_levels = X.clip(np.where(smoother.columns.is_numeric, -np.inf, 0.0))
    log_weight = at_rows(smoother.kernel.log, X, known_levels)
    # A weight of 0 has the logarithm -inf, whose difference from another -inf would be NaN.
    log_weight = log_weight.clip(np.finfo(np.float64).min)
    return np.exp(fit.log_normalizers.astype(np.float64) - log_weight)


def _inverse_leverage(smoother, n_doublings, X):
    """Return the inverse leverage of each query in doubled windows, (n_queries,).

    It is that of a row of weight 1 at the query, in a fit to the design points; 0 if all keys
    are distinct.
    """
    if smoother.at_design_points is None:
        return np.zeros(len(X))
    points = smoother.at_design_points.doubled(n_doublings)
    fit = _fit(points, X, points.values)
    # The leverage is (1 + D) / W with the weight W of the window, and the squared Mahalanobis
    # distance D of the query from the points in it.
    return _window_weight(points, X, fit) / (1 + fit.squared_distance)


def _inverse_leverage_without_points(smoother, n_doublings, X):
    """Return the inverse leverage of each query without the design point of each key.

    The shape is (n_queries, n_keys), or (1, 1), with the number 0, if all keys are distinct.
    """
    if smoother.at_design_points is None:
        return np.zeros((1, 1))
    points = smoother.at_design_points.doubled(n_doublings)
    rows_at_points = local_rows(points, X, without_each=True)
    # It is W / (1 + D) with the weight W of the other points in the window, and the squared
    # distance D of the query from them.
    weight_without = _window_weight(points, X)[:, None] * (1 - rows_at_points.weights)
    inverse_leverage = weight_without / (1 + rows_at_points.left_out_distance)
    return inverse_leverage[:, smoother.window_adequacy.points.point_of_rows]


def local_rows(smoother, X, more=0, *, without_each=False):
    """Return the `LocalRows`: rows of the hat matrix at queries, and predictions.

    With an adaptive bandwidth, windows reach `more` neighbours further. If `without_each`, also
    compute the predictions of the queries without each of the keys.
    """
    if not smoother.doubles_windows:
        return attention.local_rows(
            X,
            smoother.keys,
            smoother.values_2d,
            smoother.kernel,
            degree=smoother.degree,
            without_each=without_each,
            **smoother.attention_options(X, more),
        )
    lower, upper, max_distance = smoother.query_limits
    X, window_adequacy = X.clip(lower, upper), smoother.window_adequacy

    def evaluate(n_doublings, rows):
        """Return the `WindowResults` of some queries, in doubled windows.

        The first are those with all keys. If `without_each`, the second are those without each
        key, whose windows are doubled one by one.
        """
        doubled, queries = smoother.doubled(n_doublings), X[rows]
        hat = local_rows(doubled, queries, without_each=without_each)
        weight = _window_weight(doubled, queries)
        inverse_leverage = _inverse_leverage(smoother, n_doublings, queries)
        adequacy = window_adequacy.of_windows(weight, inverse_leverage)
        with_all_keys = WindowResults(adequacy, list(hat[:4]))
        if not without_each:
            return [with_all_keys]
        adequacy_without = window_adequacy.without_rows(
            slice(None),
            weight[:, None] * (1 - hat.weights),
            inverse_leverage[:, None],
            _inverse_leverage_without_points(smoother, n_doublings, queries),
        )
        return [with_all_keys, WindowResults(adequacy_without, [hat.left_out])]

    with_all_keys, *without_keys = double_windows(evaluate, max_distance)
    left_out = without_keys[0][0] if without_each else None
    return attention.LocalRows(*with_all_keys, left_out, None)


def gradient(smoother, X, values):
    """Return derivatives of predictions from values (n_keys, ...), with respect to the queries.

    Their shape is (n_queries, ..., n_features), with the outputs of the values between.
    """
    form = smoother.radial_form
    # The slopes of local polynomials differ from derivatives, since weights change with the
    # query; those of a boxcar do not. For parabolas, derivatives have smaller errors, for lines
    # and cubics slopes: see `SmootherRegressor.predict_gradient`.
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
    """Return derivatives of predictions by central differences; 0 along categories.

    Arguments and result are those of `gradient`.
    """
    (low, high), factors, slopes = smoother.key_limits, smoother.bandwidth_factors(X), []
    bandwidths = smoother.divisors * (1.0 if factors is None else factors[:, None])
    queries = X.astype(np.float64)
    # A step is a small fraction of the bandwidth, or of the range of the keys if that is less.
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
    """Return the `Predictions` of all training rows, with and without themselves.

    The windows of an adaptive bandwidth reach to the neighbours among the keys of
    `window_source`. This is the smoother itself, or, if the smoother ignores a feature to test
    it, the smoother that does not, so that both have the same windows.
    """
    leave_one_out = smoother.leave_one_out()
    rows = leave_one_out.rows
    if window_source.n_neighbors is None:
        predictions = leave_one_out.predictions()
    else:
        # A row that is left out is not its own neighbour, so its window reaches to the next
        # one. The predictions with the row are those of the first factors, and those without it
        # those of the second.
        factors, next_factors = (
            window_source.bandwidth_factors(window_source.keys[rows], more=k) for k in (0, 1)
        )
        predictions = leave_one_out.predictions(factors)
        left_out = leave_one_out.predictions(next_factors).left_out
        predictions = predictions._replace(left_out=left_out)
    n_rows = len(smoother.keys)
    if len(rows) == n_rows:
        return predictions
    # `rows` are those of positive weight. A row of weight 0 has no effect on its own
    # prediction, so its leave-one-out prediction is the same, and its leverage is 0.
    fitted = window_source.predict(window_source.keys).reshape(n_rows, -1)
    all_rows = Predictions(left_out=fitted.copy(), fitted=fitted, leverage=np.zeros(n_rows))
    for field, field_of_rows in zip(all_rows, predictions, strict=True):
        field[rows] = field_of_rows
    return all_rows


def predict_by_sums(smoother):
    """Return the `Predictions` of all training rows, with and without themselves, by averages.

    The rows may be in partitions of Dask. Local polynomials, which need all rows in memory,
    raise ValueError there.
    """
    if smoother.is_polynomial:
        need_all_rows(
            "predictions of own rows by local polynomials",
            smoother.keys,
            remedy="pass degree=0, or fit rows in memory",
        )
    settings, keys = smoother.attention_smoother(degree=0), smoother.keys
    # The queries are the keys. `smooth` returns averages, and the logarithm of the sum of the
    # weights in each window.
    arguments = settings, keys, keys, smoother.values_2d, smoother.key_weights
    left_out, log_sum_of_others = smooth(*arguments, leave_one_out=True)
    fitted, log_sum_of_all = smooth(*arguments)
    # The leverage of a row is 1 - (sum of the others' weights) / (sum of all weights). It is 0
    # if both sums are 0: such a row has weight 0, and no other row has weight in its window.
    has_weights = log_sum_of_all > -np.inf
    log_sum_of_others = np.where(has_weights, log_sum_of_others, 0.0)
    log_sum_of_all = np.where(has_weights, log_sum_of_all, 0.0)
    return Predictions(left_out, fitted, -np.expm1(log_sum_of_others - log_sum_of_all))
