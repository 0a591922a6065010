"""Forecasts of the steps that are asked for: observed, later, and those after a gap."""

import numpy as np
import pandas as pd
from forecasting_data import make_series

from sklearn_attention.forecasting import Calibration, Forecaster, Forecasts, Origins
from sklearn_attention.forecasting._transform import Transform


class Drift(Forecaster):
    """Goes on with the mean difference of the window."""

    def _learn(self, table, report):
        self.transform_ = Transform()
        self.lookback_ = self.lookback
        origins = Origins.within(table, self.horizon_, self.lookback_)
        self.calibration_ = Calibration.fit(self._forecasts(origins))

    def _forecasts(self, origins, levels=None):
        past = origins.past(self.lookback_)
        slope = (past[:, -1:] - past[:, :1]) / (past.shape[1] - 1)
        return Forecasts(origins, past[:, -1:] + slope * np.arange(1, self.horizon_ + 1))


def slow_drift(values, n_steps, horizon, lookback=4):
    """Block after block, from a list."""
    values = list(values)
    for _ in range(-(-n_steps // horizon)):
        window = values[-lookback:]
        slope = (window[-1] - window[0]) / (lookback - 1)
        values += [window[-1] + slope * step for step in range(1, horizon + 1)]
    return values[-(-(-n_steps // horizon) * horizon) :][:n_steps]


def test_rolls_on_its_own_forecasts():
    series = make_series()
    model = Drift(3, lookback=4).fit(series)
    for n_steps in (1, 3, 4, 11):
        expected = slow_drift(series, n_steps, 3)
        np.testing.assert_allclose(model.predict(n_steps), expected)


def test_rows_after_a_gap_are_forecast_across_it():
    series = make_series()
    model = Drift(3, lookback=4).fit(series[:40])
    everything = model.predict(series.index[40:])
    pd.testing.assert_series_equal(model.predict(series.index[47:52]), everything[7:12])
    rows = series.index[[50, 43, 59]]
    found = model.predict(rows)
    pd.testing.assert_index_equal(found.index, rows)
    np.testing.assert_array_equal(found, everything.loc[rows])
    empty = pd.DataFrame(index=rows)
    pd.testing.assert_series_equal(model.predict(empty), found)


def test_rows_in_training_are_forecast_one_ahead():
    series = make_series()
    model = Drift(3, lookback=4).fit(series)
    found = model.predict(series.index[[30, 10, 45, 2, 0]])
    expected = [slow_drift(series[:n], 1, 1)[0] for n in (30, 10, 45)]
    first = series.iloc[0]
    expected.append(series.iloc[1] + (series.iloc[1] - first) / 3)
    np.testing.assert_allclose(found, [*expected, first])
    both = model.predict(series.index[-2:].union(series.index[-1:].shift(1)))
    np.testing.assert_allclose(both.iloc[-1], model.predict().iloc[0])
    np.testing.assert_allclose(both.iloc[0], slow_drift(series[:-2], 1, 1)[0])


def test_intervals_end_where_the_series_has_never_moved_to():
    series = make_series()
    model = Drift(3, lookback=4).fit(series)
    forecast, lower, upper = model.predict(6, coverage=0.999).to_numpy().T
    values = series.to_numpy()
    for step in range(6):
        spans = [np.ptp(values[i : i + step + 2]) for i in range(len(values) - step - 1)]
        assert max(upper[step] - forecast[step], forecast[step] - lower[step]) <= (
            1.75 * max(spans) * (1 + 1e-9)
        )
    assert (lower < forecast).all()
    assert (forecast < upper).all()
