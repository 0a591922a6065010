"""What users of pandas and of other libraries do, and expect."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest
from forecasting_data import make_indexes, make_long, make_panel, make_series, tidy_of
from sklearn.model_selection import KFold, TimeSeriesSplit, cross_val_score

from sklearn_attention import KernelForecaster

A, B = make_panel().values()
TIDY = tidy_of(make_long())
WIDE = pd.DataFrame({"a": A, "b": make_series(seed=1)})
X = pd.DataFrame(
    np.random.default_rng(0).normal(size=(60, 2)), A.index, columns=["wind", "sun"]
)


def new(horizon=3, **parameters):
    return KernelForecaster(horizon, **({"lookback": 6, "bandwidth": 1.0} | parameters))


def fit(*data, **parameters):
    return new(**parameters).fit(*data)


class TestOrder:
    @pytest.mark.parametrize("first", [A, A.to_numpy(), A.tolist()])
    @pytest.mark.parametrize("second", [X, X[["sun"]]])
    def test_series_before_features_are_refused(self, first, second):
        message = r"X is one-dimensional .* the order is fit\(X, y\)"
        for method in (new().fit, new().backtest, fit(X, A).update, fit(X, A).score):
            with pytest.raises(ValueError, match=message):
                method(first, second)

    def test_one_feature_may_be_a_series_or_a_frame(self):
        expected = fit(X[["sun"]], A).observed_.features
        np.testing.assert_array_equal(fit(X["sun"], A).observed_.features, expected)
        fit(X["sun"].to_frame(), WIDE)
        fit(A.index, WIDE)

    def test_tables_of_series_before_features_are_refused_too(self):
        with pytest.raises(ValueError, match=r"y a table, as if .* the order is fit\(X, y\)"):
            fit(A.to_numpy(), X.to_numpy())
        with pytest.raises(ValueError, match=r"y is an index .* order is fit\(index, series\)"):
            fit(A.to_numpy(), A.index)

    @pytest.mark.parametrize("kind", [list, pd.Series, np.asarray, lambda i: list(map(str, i))])
    def test_dates_that_are_no_index_are_refused(self, kind):
        with pytest.raises(ValueError, match=r"X is a .* with dates, .* fit\(pandas.Datetime"):
            fit(kind(A.index), A.to_numpy())

    def test_an_index_beside_arrays_is_kept(self):
        pd.testing.assert_series_equal(
            fit(A.index, A.to_numpy()).predict(), fit(A).predict().rename(None)
        )
        frame = pd.DataFrame({0: A, 1: A[::-1].to_numpy()})
        pd.testing.assert_frame_equal(
            fit(A.index, frame.to_numpy()).predict(), fit(frame).predict()
        )
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            fit(A.index, A.to_numpy()[1:])


class TestTimeAmongSeries:
    @pytest.mark.parametrize(
        ("name", "what"),
        [
            ("year", "the year"), ("month", "the month"), ("quarter", "the quarter"),
            ("day_of_year", "the day_of_year"),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("period", [False, True])
    def test_of_the_index(self, name, what, period):
        frame = A.to_frame().assign(when=getattr(A.index, name))
        frame = frame.to_period("M") if period else frame
        message = f"X has the column 'when' beside series, which has {what} of its index"
        with pytest.raises(ValueError, match=message):
            new().fit(frame)
        with pytest.raises(ValueError, match="'when'"):
            new().backtest(frame)

    def test_of_days_and_hours(self):
        days = make_series("B")
        index = pd.date_range("2024", periods=60, freq="h")
        for series, when in [
            (days, days.index.day_of_week), (days, days.index.day_of_week + 1.0),
            (days.asfreq("D", fill_value=0.0), None), (days.set_axis(index), index.hour),
        ]:  # fmt: skip
            when = series.index.day_of_week >= 5 if when is None else when
            with pytest.raises(ValueError, match="column 'when' beside series"):
                new().fit(series.to_frame().assign(when=np.asarray(when, dtype=float)))

    def test_running_counts(self):
        for start in (0, 1, 1949):
            frame = A.to_frame().assign(t=np.arange(start, start + 60))
            with pytest.raises(ValueError, match="'t' beside series, which has a running"):
                new().fit(frame)
            # It is among series of y too, whatever X has.
            with pytest.raises(ValueError, match="y has the column 't'"):
                new().fit(X, frame)

    @pytest.mark.parametrize("name", ["year", "Month", "day_of_week"])
    def test_by_name_where_the_index_has_no_dates(self, name):
        values = {"year": 2000 + np.arange(60) // 12}.get(name, np.arange(60) % 7 + 1)
        frame = A.reset_index(drop=True).to_frame().assign(**{name: values})
        with pytest.raises(ValueError, match=f"'{name}'.*make it the index.*or rename it"):
            new().fit(frame)
        fit(frame.assign(**{name: values * 0.37}))

    @pytest.mark.parametrize("as_text", [False, True])
    def test_columns_of_dates(self, as_text):
        frame = A.rename_axis("date").reset_index()
        frame = frame.astype({"date": str}) if as_text else frame
        message = r"'date' beside series, which has dates: make it the index.*set_index\('date'"
        with pytest.raises(ValueError, match=message):
            new().fit(frame)

    def test_dates_of_several_series(self):
        with pytest.raises(ValueError, match=r"name their column 'ds', that of .* 'unique_id'"):
            new().fit(TIDY.rename(columns={"unique_id": "shop", "ds": "day"}))

    def test_what_may_be_a_series(self):
        still = A.to_frame().assign(zero=0.0)  # the hour of the days, too
        counts = pd.DataFrame({"a": np.arange(60), "b": np.arange(60) + 7}, A.index)
        ends = A.to_frame().assign(b=np.where(np.arange(60) < 40, A.index.month + 0.5, np.nan))
        for frame in (still, counts, ends):
            assert fit(frame).predict(1).shape == (1, 2)
        months = pd.DataFrame({"month": A.index.month}, A.index)
        fit(months, A)
        fit(months)


class TestDates:
    @pytest.mark.parametrize("form", ["dict", "long", "tidy"])
    def test_steps_of_a_plain_index_in_any_order(self, form):
        long = pd.concat({"a": A, "b": A + 1})
        panel = {"dict": {"a": A, "b": A + 1}, "long": long, "tidy": tidy_of(long)}
        model = fit(panel[form])
        steps = pd.date_range("2020-01-01", periods=4, freq="MS")
        found, expected = model.predict(steps[::-1]), model.predict(4)
        if form == "dict":
            found, expected = found["b"], expected["b"]
        elif form == "tidy":
            found, expected = (
                part.set_index(["unique_id", "ds"]).loc["b"] for part in (found, expected)
            )
        else:
            found, expected = found["b"], expected["b"]
        assert list(found.index) == list(steps[::-1])
        np.testing.assert_array_equal(found[::-1], expected)

    @pytest.mark.parametrize(
        ("date", "steps"),
        [
            ("2020-06", 6), ("2020", 12), ("2020Q2", 6), ("2020-06-01", 6), ("2020-05-31", 5),
            (pd.Timestamp("2020-06-01"), 6), (pd.Timestamp("2020-06-15"), 6),
            (pd.Timestamp("2020-05-31 23:59"), 5), (np.datetime64("2020-06-01"), 6),
            (datetime.date(2020, 6, 1), 6), (datetime.datetime(2020, 6, 1), 6),
            (pd.Period("2020-06"), 6), (pd.Period("2020", "Y"), 12),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("period", [False, True])
    def test_are_the_last_step(self, date, steps, period):
        model = fit(A.to_period("M") if period else A)
        pd.testing.assert_series_equal(model.predict(date), model.predict(steps))
        pd.testing.assert_frame_equal(
            model.predict_interval(date), model.predict_interval(steps)
        )

    @pytest.mark.parametrize("kind", make_indexes())
    def test_at_all_frequencies(self, kind):
        series = make_series(kind)
        model = fit(series[:45])
        found = model.predict(series.index[-1])
        pd.testing.assert_index_equal(found.index, series.index[45:])
        if kind != "period":
            text = str(series.index[-1].tz_localize(None))
            pd.testing.assert_series_equal(model.predict(text), found)

    def test_time_zones(self):
        series = make_series("10min")
        model = fit(series[:45])
        for date in (series.index[50].tz_convert("UTC"), str(series.index[50])):
            assert model.predict(date).index[-1] == series.index[50]
        for known, date in [
            (A, "2020-06-01T00:00+02:00"),
            (A.to_period("M"), series.index[50]),
        ]:
            with pytest.raises(ValueError, match="time zone"):
                fit(known).predict(date)

    def test_each_series_from_its_own_end(self):
        found = fit({"a": A, "b": B}).predict("2020-02")
        assert [len(found[name]) for name in "ab"] == [2, 9]
        early = fit(TIDY).predict("2019-08")
        assert list(early["unique_id"]) == ["b"] * 3

    def test_history(self):
        model = fit(A)
        found = model.predict("2018-12", history=A[:40])
        pd.testing.assert_series_equal(found, model.predict(8, history=A[:40]))

    @pytest.mark.parametrize(
        ("date", "message"),
        [
            ("soon", "X='soon' is no date"),
            (pd.NaT, "X=NaT is no date"),
            ("2019-12", "X='2019-12' is not after the end of the series, 2019-12-01"),
            ("1999", "X='1999' is not after the end"),
        ],
    )
    def test_bad_dates(self, date, message):
        with pytest.raises(ValueError, match=message):
            fit(A).predict(date)

    def test_series_without_dates(self):
        for series in (A.to_numpy(), A.reset_index(drop=True)):
            with pytest.raises(
                ValueError, match="X='2020' is a date, but the series have none"
            ):
                fit(series).predict("2020")


class TestIntervalsBesideForecasts:
    def test_columns(self):
        model = fit(A)
        found = model.predict(4, coverage=[0.8, 0.975])
        ends = ["lower_80", "upper_80", "lower_97.5", "upper_97.5"]
        assert list(found) == ["forecast", *ends]
        pd.testing.assert_series_equal(found["forecast"], model.predict(4), check_names=False)
        for level, own in [(0.8, ends[:2]), (0.975, ends[2:])]:
            np.testing.assert_array_equal(found[own], model.predict_interval(4, level))
        assert list(model.predict(coverage=0.5)) == ["forecast", "lower_50", "upper_50"]

    def test_forms(self):
        for y, shape in [(A.to_numpy(), (4, 3)), (WIDE.to_numpy(), (4, 3, 2))]:
            assert fit(y).predict(4, coverage=0.8).shape == shape
        wide = fit(WIDE).predict(4, coverage=0.8)
        assert list(wide["b"]) == ["forecast", "lower_80", "upper_80"]
        tidy = fit(TIDY).predict(4, coverage=0.8)
        assert list(tidy) == ["unique_id", "ds", "forecast", "lower_80", "upper_80"]

    @pytest.mark.parametrize("coverage", [90, [0.5, 1.0], [], "most", 0.0])
    def test_bad_values(self, coverage):
        with pytest.raises(ValueError, match="coverage="):
            fit(A).predict(coverage=coverage)


class TestCrossValidation:
    @pytest.mark.parametrize("data", [(A,), (X, A), (WIDE,)])
    def test_folds_that_are_not_in_time(self, data):
        message = r"cv=TimeSeriesSplit\(...\)"
        shuffled = KFold(5, shuffle=True, random_state=0)
        for cv, error_score in [(5, "raise"), (shuffled, "raise"), (shuffled, np.nan)]:
            with pytest.raises(ValueError, match=message):
                cross_val_score(new(), *data, cv=cv, error_score=error_score)
        # Folds are nan that cannot be, and the warnings say why: of the first fold it is the
        # score that fails, of others the fit.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scores = cross_val_score(new(), *data, cv=5)
        texts = [str(warning.message) for warning in caught]
        assert len(texts) == 2
        assert all("cv=TimeSeriesSplit(...)" in text for text in texts)
        assert np.isnan(scores).tolist() == [True, True, True, True, False]

    def test_rows_sorted_in_time(self):
        rows = TIDY.sort_values("ds")
        scores = cross_val_score(new(), rows, cv=TimeSeriesSplit(3, test_size=10))
        assert np.isfinite(scores).all()

    def test_rows_before_the_series(self):
        with pytest.raises(ValueError, match=r"y begins at 2015-01-01.*begin at 2016-01-01"):
            fit(A[12:]).score(A[:12])
        assert np.isfinite(cross_val_score(new(), A, cv=TimeSeriesSplit(3))).all()
