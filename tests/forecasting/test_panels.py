"""Panels in partitions of Dask: every group is forecast as the same series in memory."""

import functools
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from forecasting_data import new
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from sklearn_attention import KernelForecaster, TransformerForecaster
from sklearn_attention.forecasting import _panels

dask = pytest.importorskip("dask")
frames = pytest.importorskip("dask.dataframe")

N_SERIES, N_STEPS, GROUP = 24, 30, 8
KEYS = ["unique_id", "ds"]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    monkeypatch.setattr(_panels, "_SERIES_PER_GROUP", GROUP)
    monkeypatch.setattr(_panels, "_SERIES_IN_SAMPLE", 5)
    with dask.config.set(scheduler="synchronous"):
        yield


def make_rows(n_steps=N_STEPS, with_price=False, n_series=N_SERIES, first=0):
    """Months of some series, one below the other."""
    rng, steps = np.random.default_rng(0), np.arange(first, first + n_steps)
    dates = pd.date_range("2020-01-01", periods=first + n_steps, freq="MS")[first:]
    parts = []
    for i in range(n_series):
        y = 50 + i + 5 * np.sin(2 * np.pi * (steps + i) / 12) + rng.normal(size=n_steps)
        price = rng.normal(size=n_steps)
        part = pd.DataFrame({"unique_id": f"shop {i}", "ds": dates, "y": y + 3 * price})
        parts.append(part.assign(price=price) if with_price else part)
    return pd.concat(parts, ignore_index=True)


def partitioned(rows, n=3, seed=None):
    rows = rows if seed is None else rows.sample(frac=1, random_state=seed)
    return frames.from_pandas(rows.reset_index(drop=True), npartitions=n, sort=False)


def indexed_by_id(rows):
    return frames.from_pandas(rows.set_index("unique_id").sort_index(), npartitions=1)


def in_order(frame):
    frame = frame.compute() if hasattr(frame, "compute") else frame
    keys = [key for key in (*KEYS, "cutoff") if key in frame]
    # Dask makes texts of its own type of ids.
    ids = frame["unique_id"].astype("str") if "unique_id" in frame else frame["series"]
    frame = frame.assign(**{ids.name: ids})
    return frame.sort_values(keys or list(frame), ignore_index=True)


def of(part, rows):
    """Rows of the series that a part has, or would have."""
    return rows[rows["unique_id"].isin(part.observed_.names)]


def groups_of(model, rows):
    """Frames of pandas with the series of each part."""
    parts = dask.compute(*model.panel_.groups)
    return [(part, rows[rows["unique_id"].isin(part.observed_.names)]) for part in parts]


@pytest.mark.parametrize("make", [new, lambda: TransformerForecaster(3)])
def test_each_group_is_forecast_as_in_memory(make):
    rows, later = make_rows(), make_rows(3, first=N_STEPS)
    model = make().fit(partitioned(rows))
    assert model.season_length_ == 12
    groups = groups_of(model, rows)
    assert sum(len(part.observed_) for part, _ in groups) == N_SERIES
    assert len(groups) == N_SERIES / GROUP
    alone = [clone(part).fit(own) for part, own in groups]
    for method, arguments in {
        "predict": {"coverage": [0.5, 0.9]},
        "predict_interval": {"X": 5},
        "predict_quantiles": {"X": "2022-08", "quantiles": [0.1, 0.7]},
        "explain": {},
    }.items():
        found = getattr(model, method)(**arguments)
        assert isinstance(found, frames.DataFrame)
        expected = pd.concat(getattr(part, method)(**arguments) for part in alone)
        pd.testing.assert_frame_equal(in_order(found), in_order(expected))
    scores = [part.score(of(part, later)) * len(part.observed_) for part in alone]
    assert model.score(partitioned(later)) == pytest.approx(sum(scores) / N_SERIES)


def test_features_are_found_by_series_and_time():
    rows, later = make_rows(with_price=True), make_rows(4, with_price=True, first=N_STEPS)
    future = later.drop(columns="y")
    model = KernelForecaster(2, lookback=6, season_length=1).fit(partitioned(rows))
    assert list(model.feature_names_in_) == ["price"]
    alone = [clone(part).fit(own) for part, own in groups_of(model, rows)]
    for method in ("predict", "predict_interval", "explain_features"):
        expected = pd.concat(getattr(part, method)(of(part, future)) for part in alone)
        for X in (partitioned(future, 2, seed=1), future):
            found = getattr(model, method)(X)
            pd.testing.assert_frame_equal(in_order(found), in_order(expected))
    # Rows of a single series are those of one group.
    one = future[future["unique_id"] == "shop 3"]
    found = model.predict(partitioned(one, 1)).compute()
    assert set(found["unique_id"]) == {"shop 3"}
    with pytest.raises(ValueError, match=r"X=None has no features, .*\['price'\]"):
        model.predict()


def test_observations_are_appended_to_the_groups():
    rows, more = make_rows(), make_rows(2, first=N_STEPS)
    new_shop = make_rows(N_STEPS + 2, n_series=1).assign(unique_id="new shop")
    model = new().fit(partitioned(rows))
    before, forecast = model.panel_, in_order(model.predict())
    assert model.update(partitioned(pd.concat([more, new_shop]))) is model
    expected = pd.concat(
        clone(part).fit(own).update(of(part, pd.concat([more, new_shop]))).predict()
        for part, own in groups_of(model, rows)
    )
    found = in_order(model.predict())
    pd.testing.assert_frame_equal(found, in_order(expected))
    assert "new shop" in set(found["unique_id"])
    # Parts that were stored before are as they were.
    model.panel_ = before
    pd.testing.assert_frame_equal(in_order(model.predict()), forecast)


def test_a_backtest_is_that_of_the_groups():
    rows = make_rows()
    model = new()
    found = model.backtest(partitioned(rows), cv=2, coverage=0.9)
    assert isinstance(found, frames.DataFrame)
    assert not hasattr(model, "panel_")
    expected = pd.concat(
        part.backtest(own, cv=2, coverage=0.9)
        for part, own in groups_of(new().fit(partitioned(rows)), rows)
    )
    pd.testing.assert_frame_equal(in_order(found), in_order(expected))


def test_each_group_is_backtested_once(monkeypatch):
    groups, called = [], _panels._call_group

    def counting(*args, **kwargs):
        groups.append(tuple(kwargs["X"]["unique_id"].unique()))
        return called(*args, **kwargs)

    monkeypatch.setattr(_panels, "_call_group", counting)
    found = new().backtest(partitioned(make_rows()), cv=2).compute()
    assert found["unique_id"].nunique() == N_SERIES
    assert len(groups) == len(set(groups)) == 3


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 9), st.integers(0, 99))
def test_groups_do_not_depend_on_the_division_into_partitions(n, seed):
    model = new().fit(partitioned(make_rows(16), n, seed=seed))
    names = [set(part.observed_.names) for part, _ in groups_of(model, make_rows(1))]
    assert names == reference()[0]
    pd.testing.assert_frame_equal(in_order(model.predict()), reference()[1])


@functools.cache
def reference():
    model = new().fit(partitioned(make_rows(16), 1))
    names = [set(part.observed_.names) for part, _ in groups_of(model, make_rows(1))]
    return names, in_order(model.predict())


def test_partitions_that_have_whole_series_are_the_groups():
    rows = make_rows()
    indexed = partitioned(rows).set_index("unique_id", divisions=["shop 0", "shop 2", "shop 9"])
    model = new().fit(indexed)
    names = [sorted(part.observed_.names) for part, _ in groups_of(model, rows)]
    assert names == [
        sorted({name for name in rows["unique_id"] if name < "shop 2"}),
        sorted({name for name in rows["unique_id"] if name >= "shop 2"}),
    ]
    # Series that lie in two partitions are brought into one.
    in_two = partitioned(rows.sort_values("unique_id"), 5).set_index("unique_id", sorted=True)
    of_groups = groups_of(new().fit(in_two), rows)
    assert sum(len(part.observed_) for part, _ in of_groups) == N_SERIES
    later = partitioned(make_rows(2, first=N_STEPS)).set_index("unique_id")
    assert len(model.update(later).predict()) == 3 * N_SERIES
    with pytest.raises(
        ValueError,
        match=r"have the index 'unique_id' with known divisions.*X.set_index\('unique_id'",
    ):
        model.update(partitioned(make_rows(2, first=N_STEPS + 2)))


def test_all_bad_series_are_named_at_once():
    rows = make_rows()
    rows.loc[(rows["unique_id"] == "shop 4") & (rows["ds"] == "2021-01-01"), "y"] = np.nan
    rows.loc[(rows["unique_id"] == "shop 7") & (rows["ds"] == "2021-02-01"), "y"] = np.inf
    rows = rows[(rows["unique_id"] != "shop 19") | (rows["ds"] != "2021-03-01")]
    # A short series is none of them.
    rows = rows[(rows["unique_id"] != "shop 11") | (rows["ds"] < "2020-03-01")]
    model = new().fit(partitioned(make_rows()))
    panel = model.panel_
    with pytest.raises(ValueError, match="Series cannot be read, with 3 errors") as caught:
        model.fit(partitioned(rows))
    message = str(caught.value)
    assert "'shop 4': X has missing values (NaN) in 'shop 4' at 2021-01-01" in message
    assert "'shop 7': X has infinite values" in message
    assert "'shop 19': X['shop 19'] has gaps" in message
    assert model.panel_ is panel
    good = rows[~rows["unique_id"].isin(["shop 4", "shop 7", "shop 19"])]
    assert len(model.fit(partitioned(good)).predict()) == 3 * (N_SERIES - 3)


def test_later_rows_that_cannot_be_read_are_named():
    model = new().fit(partitioned(make_rows()))
    late = make_rows(2, first=N_STEPS + 1)
    with pytest.raises(
        ValueError, match=r"Series cannot be read, with 3 errors.*\n.*without gap"
    ):
        model.update(partitioned(late))


def test_a_group_has_no_logarithms_of_negative_values():
    rows = make_rows(48)
    rows["y"] = np.exp(rows["y"] / 5)
    rows.loc[5, "y"] = np.nan
    # A shop that is not in the sample, which decides for the others.
    shop = rows["unique_id"].iloc[_panels._hashes(rows).argmax()]
    rows["y"] = rows["y"].where(rows["unique_id"] != shop, -rows["y"])
    model = TransformerForecaster(2, missing="interpolate").fit(partitioned(rows))
    logs = {
        name: part.log for part, _ in groups_of(model, rows) for name in part.observed_.names
    }
    assert not logs[shop]
    assert sorted(part.log for part, _ in groups_of(model, rows)) == [False, True, True]
    with pytest.raises(ValueError, match=r"log=True is for series that are not negative"):
        TransformerForecaster(2, log=True, missing="interpolate").fit(partitioned(rows))


def test_groups_have_one_frequency():
    rows = make_rows()
    model = new().fit(partitioned(rows))
    days = rows.copy()
    days["ds"] = np.tile(pd.date_range("2020-01-01", periods=N_STEPS), N_SERIES)
    names = set(groups_of(model, rows)[0][1]["unique_id"])
    mixed = pd.concat(
        [rows[rows["unique_id"].isin(names)], days[~days["unique_id"].isin(names)]]
    )
    with pytest.raises(ValueError, match=r"has frequency '.*', but a sample of series '"):
        new().fit(partitioned(mixed))


def test_a_pickle_has_the_forecasters():
    rows = make_rows()
    model = new().fit(partitioned(rows))
    stored = pickle.dumps(model)
    del rows
    found = pickle.loads(stored)
    pd.testing.assert_frame_equal(in_order(found.predict()), in_order(model.predict()))
    assert not hasattr(clone(model), "panel_")
    skops = pytest.importorskip("skops.io")
    stored = skops.dumps(model)
    found = skops.loads(stored, trusted=skops.get_untrusted_types(data=stored))
    pd.testing.assert_frame_equal(in_order(found.predict()), in_order(model.predict()))


@pytest.mark.parametrize("name", ["candidate_weights_", "lookback_", "scale_"])
def test_attributes_of_groups_are_not_those_of_the_panel(name):
    model = TransformerForecaster(horizon=2, candidates=["classical"])
    model.fit(partitioned(make_rows(n_series=3)))
    with pytest.raises(AttributeError, match=f"has no {name}: it was fitted to partitions"):
        getattr(model, name)
    assert not hasattr(clone(model), name)
    model.fit(make_rows(n_series=3))
    assert getattr(model, name) is not None
    # Without a panel errors are those of Python and of properties.
    with pytest.raises(AttributeError, match="object has no attribute 'widths_'"):
        model.widths_  # noqa: B018


def test_a_forecaster_is_fitted_in_memory_or_in_partitions():
    rows = make_rows()
    model = new().fit(partitioned(rows))
    assert not hasattr(model, "observed_")
    found = model.fit(rows).predict()
    assert not hasattr(model, "panel_")
    assert isinstance(found, pd.DataFrame)
    # What is no panel comes into memory.
    one = rows[rows["unique_id"] == "shop 3"].drop(columns="unique_id")
    expected = new().fit(one).predict()
    pd.testing.assert_frame_equal(new().fit(partitioned(one)).predict(), expected)
    history = make_rows(N_STEPS)
    pd.testing.assert_frame_equal(
        in_order(model.predict(history=partitioned(history))),
        in_order(model.predict(history=history)),
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda rows: (rows.drop(columns="ds"),), r"Where each row .* 'ds' the date"),
        (lambda rows: (rows.drop(columns="y"),), r"column of the values to 'y'\."),
        (lambda rows: (rows[["unique_id", "ds"]], rows["y"]), "as its column 'y'"),
    ],
)
def test_what_is_no_panel_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        new().fit(*data(partitioned(make_rows())))


def test_rows_for_a_panel_have_ids():
    model = new().fit(partitioned(make_rows()))
    later = make_rows(3, first=N_STEPS)
    for X in (later.drop(columns="unique_id"), partitioned(later)["y"]):
        with pytest.raises(ValueError, match=r"X of type .* is not a frame with the column"):
            model.update(X)


def test_rows_are_frames_wherever_they_are_passed():
    rows = make_rows()
    model = new().fit(partitioned(rows))
    one = rows[rows["unique_id"] == "shop 3"]
    series = one.set_index("ds")["y"]
    for call in (
        lambda: model.predict(history=series),
        lambda: model.predict(history={"shop 3": series}),
        lambda: model.predict(history=series.to_numpy()),
        lambda: model.update({"shop 3": series}),
        lambda: model.update(None),
        lambda: model.score(series),
        lambda: model.predict(rows.set_index(["unique_id", "ds"])[["y"]]),
    ):
        with pytest.raises(ValueError, match=r"is not a frame with the column 'unique_id'"):
            call()
    expected = in_order(model.predict(history=partitioned(one, 2)))
    for frame in (one, pl.from_pandas(one)):
        pd.testing.assert_frame_equal(in_order(model.predict(history=frame)), expected)
    for call in (model.update, model.score):
        with pytest.raises(ValueError, match="not valid beside a Dask frame"):
            call(one.drop(columns="y"), one["y"])
    # An index of time is for all series.
    later = pd.date_range("2022-07-01", periods=2, freq="MS")
    assert len(model.predict(later)) == 2 * N_SERIES
    with pytest.raises(ValueError, match="column '_partitions', which Dask uses: rename it"):
        new().fit(partitioned(rows.assign(_partitions=1.0)))


def test_a_panel_of_y_is_no_panel():
    rows = make_rows()
    with pytest.raises(ValueError, match="pass the values as its column 'y'"):
        new().fit(None, partitioned(rows))


def test_series_of_groups_without_any_are_refused():
    rows = make_rows()
    indexed = partitioned(rows, 1).set_index("unique_id", divisions=["a", "b", "s", "t"])
    model = new().fit(indexed)
    later = make_rows(2, first=N_STEPS)
    assert len(model.predict()) == 3 * N_SERIES
    further = later.assign(unique_id=later["unique_id"].where(later.index > 1, "a1"))
    further = indexed_by_id(further)
    for call in (model.update, model.score):
        with pytest.raises(
            ValueError, match=r"X has the series \['a1'\], whose group has none"
        ):
            call(further)
    beyond = indexed_by_id(later.assign(unique_id="zebra"))
    with pytest.raises(ValueError, match=r"outside of its divisions .*fit again with all"):
        model.update(beyond)


def test_a_backtest_needs_the_features_of_the_fit():
    rows = make_rows(with_price=True)
    model = KernelForecaster(2, lookback=6, season_length=1).fit(partitioned(rows))
    with pytest.raises(ValueError, match=r"X has no columns \['price'\], but Kernel.* fitted"):
        model.backtest(partitioned(rows.drop(columns="price")))


def test_explanations_of_single_series_name_them():
    rows = make_rows(n_series=2)
    indexed = partitioned(rows, 1).set_index(
        "unique_id", divisions=["shop 0", "shop 1", "shop 2"]
    )
    for model in (new(), TransformerForecaster(2)):
        found = model.fit(indexed).explain().compute()
        assert set(found["series"]) == {"shop 0", "shop 1"}


def test_rows_of_no_series_are_refused():
    rows = make_rows()
    with pytest.raises(ValueError, match=r"X has no rows: pass at least one series"):
        new().fit(partitioned(rows[:0], 1))
    model = new().fit(partitioned(rows))
    with pytest.raises(ValueError, match="X has no values of the series that were fitted"):
        model.score(partitioned(rows[:0], 1))
    with pytest.raises(ValueError, match="X has no rows of the series that were fitted"):
        model.predict(partitioned(rows[["unique_id", "ds"]][:0], 1))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the cluster, as it loses workers
@pytest.mark.parametrize("dies", ["never", "as it fits", "before it predicts"])
def test_a_worker_that_dies_changes_nothing(cluster, dies):
    def late(rows):  # here, so that workers need not import this module
        time.sleep(1.0)
        return rows

    cluster, client = cluster
    rows = make_rows()
    expected = in_order(new().fit(partitioned(rows)).predict(coverage=0.9))
    X = partitioned(rows, 4)
    model = new()
    with dask.config.set(scheduler=client), ThreadPoolExecutor() as pool:
        pending = pool.submit(model.fit, X.map_partitions(late, meta=X._meta))
        if dies == "as it fits":
            time.sleep(4.0)
            assert not pending.done()
            cluster.workers[0].process.process.kill()
        pending.result(timeout=120)
        forecasts = model.predict(coverage=0.9)
        if dies == "before it predicts":
            cluster.workers[0].process.process.kill()
        found = in_order(forecasts)
    pd.testing.assert_frame_equal(found, expected)
