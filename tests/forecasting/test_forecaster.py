"""What is asked of a forecaster."""

import copy

import numpy as np
import pandas as pd
import pytest
from forecasting_data import make_series, make_values

from sklearn_attention import KernelForecaster
from sklearn_attention.forecasting import Calibration, Forecaster, Forecasts, Origins
from sklearn_attention.forecasting._transform import Transform


class Drift(Forecaster):
    """Goes on with the mean difference of the window, and with the features: easy to follow."""

    def _learn(self, table, report):
        self.transform_ = Transform()  # features lead far below 0
        self.lookback_ = self.lookback
        origins = Origins.within(table, self.horizon_, self.lookback_)
        self.n_learned_ = len(origins)
        self.calibration_ = Calibration.fit(self._forecasts(origins))

    def _forecasts(self, origins, levels=None):
        past = origins.past(self.lookback_)
        slope = (past[:, -1:] - past[:, :1]) / (past.shape[1] - 1)
        found = past[:, -1:] + slope * np.arange(1, self.horizon_ + 1)
        past_features = origins.past_features(self.lookback_)
        if past_features is not None:
            found = found + 100 * past_features.sum(axis=(1, 2))[:, None]
        future_features = origins.future_features()
        if future_features is not None:
            found = found + future_features.sum(axis=2)
        return Forecasts(origins, found)


class Falling(Drift):
    """The same within bounds."""

    def _learn(self, table, report):
        transform = self.transform_
        super()._learn(table, report)
        self.transform_ = transform


def make_features(series, seed=5):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.normal(size=(len(series), 2)), series.index, ["wind", "sun"])


def slow_drift(values, n_steps, horizon, lookback=4):
    """Block after block, from a list."""
    values = list(values)
    for _ in range(-(-n_steps // horizon)):
        window = values[-lookback:]
        slope = (window[-1] - window[0]) / (lookback - 1)
        values += [window[-1] + slope * step for step in range(1, horizon + 1)]
    return values[-(-(-n_steps // horizon) * horizon) :][:n_steps]


class TestPredict:
    def test_known_features_are_those_of_the_steps(self):
        series = make_series()
        X = make_features(series)
        model = Drift(3, lookback=4, past_features=[]).fit(X[:50], series[:50])
        past = 100 * X.to_numpy()[46:50].sum()
        drift = np.array(slow_drift(series[:50], 3, 3))
        ahead = X.to_numpy()[50:53].sum(axis=1)
        np.testing.assert_allclose(model.predict(X[50:53]), drift + past + ahead)
        # The last row stands for those that a block lacks.
        np.testing.assert_allclose(model.predict(X[50:52]), (drift + past + ahead)[:2])

    def test_past_features_are_not_looked_at_beforehand(self):
        series = make_series()
        X = make_features(series)
        model = Drift(2, lookback=4, past_features=["wind"]).fit(X[:50], series[:50])
        expected = (
            np.array(slow_drift(series[:50], 2, 2))
            + 100 * X.to_numpy()[46:50].sum()
            + X["sun"].to_numpy()[50:52]
        )
        ahead = X[50:52]
        for future in (ahead, ahead[["sun"]], ahead.assign(wind=np.nan)):
            np.testing.assert_allclose(model.predict(future), expected)
        array = Drift(2, lookback=4, past_features=[0]).fit(X[:50].to_numpy(), series[:50])
        np.testing.assert_allclose(array.predict(ahead.to_numpy()), expected)
        only = Drift(2, lookback=4, past_features=["wind", "sun"]).fit(X[:50], series[:50])
        assert only.predict().shape == (2,)
        # Rolling on, the last known row is repeated.
        window = np.concatenate([X.to_numpy()[48:50], X.to_numpy()[[49, 49]]])
        values = [*series[:50], *only.predict()]
        expected = slow_drift(values, 2, 2) + 100 * window.sum()
        np.testing.assert_allclose(only.predict(4)[2:], expected)


class TestHistory:
    def test_of_one_series(self):
        series = make_series()
        model = KernelForecaster(3, lookback=12, bandwidth=1.0).fit(series[:50])
        fresh = model.predict(history=series[20:56].rename("other"))
        assert fresh.name == "other"
        pd.testing.assert_index_equal(fresh.index, series.index[56:59], exact=True)
        updated = copy.deepcopy(model).update(series[50:56])
        np.testing.assert_allclose(fresh, updated.predict())
        rows = model.predict(series.index[57:60], history=series[20:56])
        np.testing.assert_allclose(rows, updated.predict(series.index[57:60]))
        # Less than a horizon does not tell how large errors are since the fit.
        updated = copy.deepcopy(model).update(series[50:52])
        np.testing.assert_allclose(
            model.predict_interval(history=series[20:52]), updated.predict_interval()
        )

    def test_many_windows_are_answered_in_one_call(self, monkeypatch):
        values, calls = make_values(100), []
        model = KernelForecaster(4, lookback=12, bandwidth=1.0).fit(values[:70])
        windows = np.lib.stride_tricks.sliding_window_view(values, 12)[50:]
        answer = KernelForecaster._forecasts

        def counted(self, origins, levels=None):
            calls.append(len(origins))
            return answer(self, origins, levels)

        monkeypatch.setattr(KernelForecaster, "_forecasts", counted)
        found = model.predict(9, history=windows)
        assert calls == [len(windows)] * 3  # horizons
        intervals = model.predict_interval(history=windows)
        assert found.shape == (len(windows), 9)
        np.testing.assert_allclose(found[7], model.predict(9, history=windows[7]))
        np.testing.assert_allclose(intervals[7], model.predict_interval(history=windows[7]))

    def test_features_are_rows_of_X(self):
        series = make_series()
        X = make_features(series)
        model = Drift(2, lookback=4, past_features=["wind"]).fit(X[:40], series[:40])
        updated = copy.deepcopy(model).update(X[40:50], series[40:50])
        expected = updated.predict(X[50:54])
        found = model.predict(X[46:54], history=series[30:50])
        pd.testing.assert_series_equal(found, expected)
        with pytest.raises(ValueError, match="it has no rows for 2018-11-01"):
            model.predict(X[47:54], history=series[30:50])
        with pytest.raises(ValueError, match="passed without features"):
            model.predict(history=series[30:50])
        with pytest.raises(ValueError, match="does not cover the steps to forecast"):
            model.predict(X[46:50], history=series[30:50])


@pytest.mark.parametrize("kind", ["10min", "range"])
def test_an_update_is_as_if_observed_before(kind):
    series = make_series(kind)
    model = Drift(3, lookback=4).fit(series[:40])
    calibration = model.calibration_
    assert model.update(series[40:41]).update(series[41:50]) is model
    expected = Drift(3, lookback=4).fit(series[:50]).predict()
    pd.testing.assert_series_equal(model.predict(), expected)
    assert model.calibration_ is calibration
    assert model.n_learned_ == Drift(3, lookback=4).fit(series[:40]).n_learned_


class TestBounds:
    """Of series that lead below 0, one of them without having been there."""

    @pytest.fixture
    def series(self):
        falling = np.array([9.0, 8.5, 7.0, 6.5, 5.0, 4.5, 3.0, 2.5, 0.5])
        return {"falling": falling, "below": falling - 4}

    def test_series_without_negative_values_have_none_in_forecasts(self, series):
        free = Falling(3, lookback=3, bounds=None).fit(series)
        model = Falling(3, lookback=3).fit(series)
        for method, arguments in [
            ("predict", {"X": 5}), ("predict_interval", {"X": 5}),
            ("predict_quantiles", {"X": 5}), ("predict", {"coverage": [0.5, 0.9]}),
        ]:  # fmt: skip
            found, expected = (getattr(one, method)(**arguments) for one in (model, free))
            assert expected["falling"].min() < 0
            np.testing.assert_array_equal(found["falling"], expected["falling"].clip(0))
            np.testing.assert_array_equal(found["below"], expected["below"])


class TestScore:
    def test_is_minus_the_scaled_error(self):
        series = make_series()
        model = Drift(3, lookback=4).fit(series[:50])
        forecasts = slow_drift(series[:50], 10, 3)
        scale = np.abs(np.diff(series[:50])).mean()
        expected = -np.abs(series[50:] - forecasts).mean() / scale
        assert model.score(series[50:]) == pytest.approx(expected)
        assert model.score(series.index[50:], series[50:]) == pytest.approx(expected)
        assert model.score(series.index[50:], series[50:].to_numpy()) == pytest.approx(expected)
        plain = Drift(3, lookback=4).fit(series[:50].to_numpy())
        assert plain.score(series[50:].to_numpy()) == pytest.approx(expected)
        gap = -np.abs(series[55:] - forecasts[5:]).mean() / scale
        assert model.score(series[55:]) == pytest.approx(gap)

    def test_of_several_series_of_unequal_length(self):
        frame = pd.DataFrame({name: make_series(seed=i) for i, name in enumerate("ab")})
        frame["b"] *= 1000
        model = Drift(3, lookback=4).fit(frame[:50])
        test = frame[50:].copy()
        test.iloc[-3:, 0] = np.nan
        parts = [
            Drift(3, lookback=4).fit(frame[name][:50]).score(test[name].dropna())
            for name in "ab"
        ]
        assert model.score(test) == pytest.approx(np.mean(parts))
