"""What users of pandas and of other libraries do, and expect."""

import datetime
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from forecasting_data import make_indexes, make_series
from sklearn.model_selection import KFold, TimeSeriesSplit, cross_val_score

from sklearn_attention import KernelForecaster

A, B = make_series(), make_series(seed=1)[:53]
WIDE = pd.DataFrame({"a": A, "b": make_series(seed=1)})
LONG = pd.concat({"a": A, "b": B}, names=["site", "month"]).rename("load")
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
        expected = fit(X[["sun"]], A).observed_["features"]
        np.testing.assert_array_equal(fit(X["sun"], A).observed_["features"], expected)
        fit(X["sun"].to_frame(), WIDE)
        fit(A.index, WIDE)


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

    def test_what_may_be_a_series(self):
        still = A.to_frame().assign(zero=0.0)  # the hour of the days, too
        counts = pd.DataFrame({"a": np.arange(60), "b": np.arange(60) + 7}, A.index)
        ends = A.to_frame().assign(b=np.where(np.arange(60) < 40, A.index.month + 0.5, np.nan))
        for frame in (still, counts, ends):
            assert fit(frame).predict(1).shape == (1, 2)
        months = pd.DataFrame({"month": A.index.month}, A.index)
        fit(months, A)
        fit(months)


def tidy_of(long):
    return long.rename_axis(["unique_id", "ds"]).rename("y").reset_index()


TIDY = tidy_of(LONG)


class TestTidy:
    @pytest.mark.parametrize("kind", ["dates", "numbers", "periods"])
    def test_a_row_for_each_observation(self, kind):
        frame = TIDY
        if kind == "numbers":
            frame = frame.assign(ds=A.index.get_indexer(frame["ds"]) + 5)
        elif kind == "periods":
            frame = frame.assign(ds=frame["ds"].dt.to_period("M"))
        shuffled = frame.sample(frac=1, random_state=0)
        model, long = fit(shuffled), fit(frame.set_index(["unique_id", "ds"])["y"])
        found, expected = model.predict(4), long.predict(4)
        assert list(found) == ["unique_id", "ds", "forecast"]
        pd.testing.assert_index_equal(found.index, pd.RangeIndex(8))
        keyed = found.set_index(["unique_id", "ds"])["forecast"]
        pd.testing.assert_series_equal(keyed, expected, check_names=False)
        intervals = model.predict_interval(4)
        assert list(intervals) == ["unique_id", "ds", "lower", "upper"]
        np.testing.assert_array_equal(intervals[["lower", "upper"]], long.predict_interval(4))
        quantiles = model.predict_quantiles(4)
        np.testing.assert_array_equal(
            quantiles[[0.1, 0.9]], long.predict_quantiles(4)[[0.1, 0.9]]
        )
        merged = shuffled.merge(found, on=["unique_id", "ds"], how="right")
        assert merged["ds"].dtype == frame["ds"].dtype

    def test_other_ids(self):
        expected = fit(TIDY).predict()["forecast"]
        for ids in ({"a": 7, "b": 9}, {"a": "x", "b": "y"}):
            found = fit(TIDY.assign(unique_id=TIDY["unique_id"].map(ids))).predict()
            np.testing.assert_array_equal(found["forecast"], expected)
            assert set(found["unique_id"]) == set(ids.values())
        category = TIDY.astype({"unique_id": "category"})
        X = category[["unique_id", "ds"]].assign(x=np.sin(np.arange(113)))
        model = fit(X.assign(y=TIDY["y"])[category["ds"] < "2019-01-01"])
        assert model.predict(X[category["ds"] >= "2019-01-01"]).shape == (17, 3)

    def test_further_columns_are_features(self):
        x = np.random.default_rng(0).normal(size=113)
        frame, features = TIDY.assign(x=x), pd.DataFrame({"x": x}, LONG.index)
        past = (TIDY["ds"] < "2019-01-01").to_numpy()
        long = fit(features[past], LONG[past])
        ahead = frame[~past].sample(frac=1, random_state=0)
        models = [
            fit(frame[past]),
            fit(frame[past].drop(columns="y"), frame["y"][past]),
            fit(frame[past].drop(columns="y"), frame["y"][past].to_numpy()),
            fit(frame.loc[past, ["x"]], TIDY[past]),
            pickle.loads(pickle.dumps(fit(frame[past].sample(frac=1, random_state=1)))),
        ]
        assert models[0].feature_names_in_ == ["x"]
        expected = long.predict(features[~past])
        for model in models:
            # Whether what happened stands beside makes no difference.
            for rows in (ahead, ahead.drop(columns="y")):
                found = model.predict(rows)
                pd.testing.assert_index_equal(found.index, ahead.index)
                pd.testing.assert_frame_equal(
                    found[["unique_id", "ds"]], ahead[["unique_id", "ds"]]
                )
                keys = pd.MultiIndex.from_frame(found[["unique_id", "ds"]])
                np.testing.assert_allclose(found["forecast"], expected.reindex(keys))
            score = long.score(features[~past], LONG[~past])
            assert model.score(ahead) == pytest.approx(score)
        later = (TIDY["ds"] == "2019-01-01").to_numpy()
        long.update(features[later], LONG[later])
        models[0].update(frame[later])
        np.testing.assert_array_equal(
            models[0].observed_["features"], long.observed_["features"]
        )

    def test_rows_without_features_are_steps(self):
        model = fit(TIDY)
        rows = pd.DataFrame({"unique_id": ["b", "a", "b"], "ds": A.index[[58, 59, 53]]})
        found = model.predict(rows.set_axis([7, 5, 3]))
        assert list(found.index) == [7, 5, 3]
        expected = fit(LONG).predict(8)
        assert found["forecast"][7] == pytest.approx(expected["b", A.index[58]])
        assert found["forecast"][3] == pytest.approx(expected["b", A.index[53]])

    def test_history_and_new_observations(self):
        model = fit(TIDY)
        recent = TIDY[TIDY["ds"] > "2017-01-01"]
        found = model.predict(2, history=recent)
        np.testing.assert_allclose(found["forecast"], model.predict(2)["forecast"])

    @pytest.mark.parametrize(
        ("frame", "message"),
        [
            (TIDY.drop(columns="y"), "'unique_id' and 'ds', but none of the values"),
            (TIDY.astype({"ds": str}), r"dtype str.*pandas.to_datetime"),
            (TIDY.drop(index=7), "X.*gaps in its index: 2015-08-01"),
            (TIDY.assign(place="here"), r"not numeric, \['place'\]"),
            (
                TIDY.assign(unique_id=TIDY["unique_id"].mask(TIDY.index == 4)),
                "without 'unique_id'",
            ),
        ],
    )
    def test_bad_frames(self, frame, message):
        with pytest.raises(ValueError, match=message):
            new().fit(frame)

    def test_bad_companions(self):
        with pytest.raises(ValueError, match=r"y has the features \['x'\] beside X"):
            new().fit(X, TIDY.assign(x=1.0))
        with pytest.raises(ValueError, match="X is of type ndarray beside a frame"):
            new().fit(X.to_numpy(), TIDY)
        model = fit(TIDY)
        with pytest.raises(ValueError, match=r"unknown series, \['c'\]"):
            model.predict(TIDY[:3].assign(unique_id="c"))
        with pytest.raises(ValueError, match=r"2 levels.*columns 'unique_id' and 'ds'"):
            model.predict(LONG.index)


class TestSharedFeatures:
    @pytest.mark.parametrize("form", ["long", "long_frame", "tidy", "dict"])
    def test_of_plain_time_are_those_of_every_series(self, form):
        y = {"long_frame": LONG.to_frame(), "tidy": TIDY, "dict": {"a": A, "b": B}}.get(
            form, LONG
        )
        before = LONG.index.get_level_values(1) < "2019-01-01"
        past = y[before] if form != "dict" else {"a": A[:48], "b": B[:48]}
        model = fit(X[:48], past)
        ahead = model.predict(X[48:54])
        score = model.score(
            X[48:], y[~before] if form != "dict" else {"a": A[48:], "b": B[48:]}
        )
        parts = []
        for name, own in {"a": A, "b": B}.items():
            one = fit(X[:48], {name: own[:48], "other": (B if name == "a" else A)[:48]})
            parts.append(one.score(X[48:], {name: own[48:]}))
            expected = one.predict(X[48:54])[name]
            if form == "tidy":
                found = ahead[ahead["unique_id"] == name].set_index("ds")["forecast"]
            else:
                found = ahead[name] if form != "long_frame" else ahead["load"][name]
            np.testing.assert_allclose(found, expected)
        assert score == pytest.approx(np.mean(parts))

    def test_longer_calendars(self):
        later = X.reindex(
            A.index[:50].union(pd.date_range("2019-03-01", periods=30, freq="MS"))
        )
        later = later.fillna(0.0)
        model = fit(later, LONG)
        np.testing.assert_array_equal(model.observed_["features"][:50], X[:50])
        assert len(model.predict(later[53:])) == 7 + 20 + 27

    def test_one_series(self):
        one = LONG[["a"]]
        np.testing.assert_allclose(fit(X, one).predict(X[50:]), fit(X, A).predict(X[50:]))

    def test_updates(self):
        before = LONG.index.get_level_values(1) < "2019-01-01"
        model = fit(X[:48], LONG[before]).update(X[48:], LONG[~before])
        expected = fit(X, LONG)
        np.testing.assert_array_equal(
            model.observed_["features"], expected.observed_["features"]
        )

    def test_rows_of_another_order_are_refused(self):
        whole = pd.concat([X, X]).reset_index(drop=True)
        numbers = pd.concat({"a": A, "b": A}).droplevel(1)
        numbers.index = pd.MultiIndex.from_arrays([numbers.index, [*range(60)] * 2])
        with pytest.raises(ValueError, match="different indexes"):
            new().fit(whole, numbers)


def formed(series, form):
    """A dict of Series in another form."""
    if form in ("dict", "frame"):
        return series if form == "dict" else pd.DataFrame(series)
    if form == "arrays":
        return {name: own.to_numpy() for name, own in series.items()}
    long = pd.concat(series, names=["site", "month"]).rename("load")
    return {"long": long, "long_frame": long.to_frame(), "tidy": tidy_of(long)}[form]


class TestNewSeries:
    C = make_series(seed=2)[50:58]

    @pytest.mark.parametrize("form", ["dict", "arrays", "long", "long_frame", "tidy"])
    def test_are_forecast_from_then_on(self, form):
        model = fit(formed({"a": A[:50], "b": B[:50]}, form))
        learned = model.calibration_
        model.update(formed({"a": A[50:58], "c": self.C}, form))
        assert model.calibration_ is learned
        fresh = {"a": A[:58], "b": B[:50], "c": self.C}
        found = model.predict()
        # With all that has been observed as the history forecasts are the same.
        expected = model.predict(history=formed(fresh, form))
        if form == "tidy":
            pd.testing.assert_frame_equal(found, expected)
        elif form == "arrays":
            assert list(found) == list("abc")
            for name in "abc":
                np.testing.assert_array_equal(found[name], expected[name])
        else:
            found, expected = (
                formed(part, "long") if form == "dict" else part for part in (found, expected)
            )
            np.testing.assert_array_equal(found, expected)
            assert found.index.equals(expected.index)
        loaded = pickle.loads(pickle.dumps(model)).update(
            formed({"c": make_series()[58:]}, form)
        )
        assert loaded.observed_["lengths"].tolist() == [58, 50, 10]

    def test_of_a_frame_begin_after_its_last_row(self):
        model = fit(WIDE[:50]).update(WIDE[50:55].assign(c=np.arange(5) % 2))
        found = model.predict()
        assert list(found) == ["a", "b", "c"]
        np.testing.assert_array_equal(
            found[["a", "b"]], fit(WIDE[:50]).update(WIDE[50:55]).predict()
        )
        assert found.index[0] == A.index[55]

    def test_have_units_of_their_own(self):
        model = fit({"a": A[:50], "b": B[:50]}).update({"c": 1000 * self.C[:2]})
        model.update({"c": 1000 * self.C[2:]})
        scale = 1000 * np.abs(np.diff(self.C)).mean()
        error = np.abs(1000 * A[58:] - model.predict("2019-12")["c"]).mean() / scale
        assert model.score({"c": 1000 * A[58:]}) == pytest.approx(-error)
        same = {"a": A[:50], "c": 1000 * self.C}
        intervals, expected = model.predict_interval(), model.predict_interval(history=same)
        pd.testing.assert_frame_equal(intervals["c"], expected["c"])
        assert (np.diff(intervals["c"], axis=1) > 50 * np.diff(intervals["a"], axis=1)).all()

    def test_with_features(self):
        model = fit(X[:50], {"a": A[:50], "b": B[:50]})
        model.update(X[45:58], {"a": A[50:58], "c": make_series(seed=2)[45:58]})
        assert list(model.observed_["names"]) == ["a", "b", "c"]
        expected = np.concatenate([X[:58], X[:50], X[45:58]])
        np.testing.assert_array_equal(model.observed_["features"], expected)
        assert list(model.predict(X[50:])["c"].index) == list(A.index[50:])

    def test_one_among_named_ones_is_new(self):
        model = fit({"a": A[:50]}).update({"c": self.C})
        assert list(model.predict()) == ["a", "c"]
        assert model.predict()["a"].index[0] == A.index[50]

    def test_a_single_series_has_no_others(self):
        model = fit(A[:50])
        with pytest.raises(ValueError, match=r"y has the series \['c'\], but"):
            model.update({"load": A[50:], "c": self.C})
        table = fit(WIDE[:50].to_numpy())
        with pytest.raises(ValueError, match=r"y has the series \[2\], but"):
            table.update(np.ones((3, 3)))
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match="begins at"):
            fit({"a": A[10:50]}).update({"c": A[:40]})
        assert pickle.dumps(model) == before


class TestDates:
    @pytest.mark.parametrize("form", ["dict", "long", "tidy"])
    def test_steps_of_a_plain_index_in_any_order(self, form):
        model = fit(formed({"a": A, "b": A + 1}, form))
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

    def test_rows_before_the_series(self):
        with pytest.raises(ValueError, match=r"y begins at 2015-01-01.*begin at 2016-01-01"):
            fit(A[12:]).score(A[:12])
        assert np.isfinite(cross_val_score(new(), A, cv=TimeSeriesSplit(3))).all()
