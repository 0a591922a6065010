"""Regressors of scikit-learn as candidates, against windows cut by a loop."""

import numpy as np
import pytest
from forecasting_validation import make_validation_of, make_walks, overlapping_rows
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression
from sklearn.multioutput import MultiOutputRegressor

from sklearn_attention import TransformerForecaster
from sklearn_attention.forecasting import Origins
from sklearn_attention.forecasting._table import naive_scales
from sklearn_attention.forecasting._window_regressor import window_regressors

LOOKBACK, HORIZON = 6, 3


def slow_fit(regressor, series, left_out=()):
    """A regressor from all windows to what follows, for each step if it has one output."""
    x, y = [], []
    for i, (values, unit) in enumerate(zip(series, naive_scales(series), strict=True)):
        for t in range(LOOKBACK, len(values) - HORIZON + 1):
            if (i, t) not in left_out:
                x.append((values[t - LOOKBACK : t] - values[t - 1]) / unit)
                y.append((values[t : t + HORIZON] - values[t - 1]) / unit)
    return MultiOutputRegressor(regressor).fit(x, y)


def slow_forecast(model, past, unit):
    return past[-1] + unit * model.predict([(past - past[-1]) / unit])[0]


def fitted(regressor, lengths=(60, 50)):
    series = make_walks(lengths)
    validation = make_validation_of(series, HORIZON, LOOKBACK)
    (candidate,) = window_regressors([regressor], LOOKBACK)
    return series, validation, *candidate.fit(validation)


@pytest.mark.parametrize("regressor", [LinearRegression(), BayesianRidge()])
def test_forecasts_are_those_of_the_regressor_on_windows(regressor):
    series, validation, candidate, held_out = fitted(regressor)
    unit, model = naive_scales(series), slow_fit(regressor, series)
    found = candidate.forecast(Origins.at_ends(validation.origins.table, HORIZON))
    for i, values in enumerate(series):
        expected = slow_forecast(model, values[-LOOKBACK:], unit[i])
        np.testing.assert_allclose(found[i, 0], expected)
    tests = validation.tests
    for block in range(validation.n_blocks):
        left_out = {
            (i, t) for i in range(2) for t in overlapping_rows(validation, i, block)
        }  # fmt: skip
        model = slow_fit(regressor, series, left_out)
        for row in np.flatnonzero(validation.block == block)[::5]:
            i, t = tests.series[row], tests.n_known[row]
            expected = slow_forecast(model, series[i][t - LOOKBACK : t], unit[i])
            np.testing.assert_allclose(held_out[row, 0], expected)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [(LinearRegression, "candidates"), (3, "candidates"), (LogisticRegression(), "not a reg")],
)
def test_others_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        TransformerForecaster(candidates=[wrong]).fit(np.arange(30.0))
