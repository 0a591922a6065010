"""Backtests of series in every form."""

import numpy as np
import pandas as pd
import pytest
from forecasting_data import make_long, make_panel, tidy_of
from sklearn.base import clone
from sklearn.model_selection import TimeSeriesSplit

from sklearn_attention import KernelForecaster

MODEL = KernelForecaster(4, lookback=8, bandwidth=1.0)
A, B = make_panel().values()
WIDE = pd.DataFrame({"a": A, "b": B}).rename_axis("site", axis=1)
LONG = make_long()
FORMS = {
    "frame": WIDE,
    "dict": {"a": A, "b": B},
    "tidy": tidy_of(LONG).sample(frac=1, random_state=0),
}
NAMES = {"unique_id": "series", "ds": "time", "y": "actual"}
COLUMNS = ["series", "fold", "cutoff", "time", "actual", "forecast"]


def features_of(index):
    """A feature of time, for rows of one series or of several."""
    steps = A.index.get_indexer(index.get_level_values(-1))
    return pd.DataFrame({"x": np.sin(steps)}, index)


@pytest.mark.parametrize(("form", "refit"), [("frame", False), ("dict", True), ("tidy", False)])
def test_all_forms_are_a_loop(form, refit):
    found = MODEL.backtest(FORMS[form], cv=3, refit=refit, coverage=[0.5, 0.8])
    found = found.rename(columns=NAMES if form == "tidy" else {})
    assert list(found) == [*COLUMNS, "lower_50", "upper_50", "lower_80", "upper_80"]
    model = None
    for fold, start in enumerate((48, 52, 56)):
        known = {"a": A[:start], "b": B[:start]}
        if refit or model is None:
            model = clone(MODEL).fit(known)
        else:
            later = {name: own[start - 4 :] for name, own in known.items()}
            model.update({name: own for name, own in later.items() if len(own)})
        rows = found[found["fold"] == fold]
        assert (rows["cutoff"] == A.index[start - 1]).all()
        assert list(rows["series"].unique()) == (["a", "b"] if fold < 2 else ["a"])
        expected = model.predict(A.index[start : start + 4], coverage=0.8)
        for name, own in rows.groupby("series"):
            actual = known[name].index.union(A.index)[start : start + 4]
            actual = LONG[name].reindex(actual).dropna()
            np.testing.assert_array_equal(own["time"], actual.index)
            np.testing.assert_array_equal(own["actual"], actual)
            parts = own[["forecast", "lower_80", "upper_80"]]
            np.testing.assert_allclose(parts, expected[name][: len(own)])


def test_a_series_that_begins_later_joins():
    late = {"a": A, "late": B[49:], "later": B[52:]}
    found = MODEL.backtest(late, cv=TimeSeriesSplit(3, test_size=4))
    assert found.groupby("fold")["series"].unique().map(list).to_list() == [
        ["a"], ["a", "late"], ["a"],
    ]  # fmt: skip
    joined = found[(found["fold"] == 1) & (found["series"] == "late")]
    model = clone(MODEL).fit({"a": A[:48]}).update({"a": A[48:52], "late": B[49:52]})
    assert joined["forecast"].item() == pytest.approx(model.predict(1)["late"].item())


@pytest.mark.parametrize("refit", [False, True])
def test_features_are_known_up_to_the_end_of_each_fold(refit):
    features, step = features_of(LONG.index), LONG.index.get_level_values(1)
    found = MODEL.backtest(features, LONG, cv=3, refit=refit)
    of_time = MODEL.backtest(features_of(A.index), LONG, cv=3, refit=refit)
    pd.testing.assert_frame_equal(*(own[own["series"] == "a"] for own in (found, of_time)))
    for fold, start in enumerate((48, 52, 56)):
        past = step < A.index[start]
        if refit or fold == 0:
            model = clone(MODEL).fit(features[past], LONG[past])
        else:
            new = past & (step >= A.index[start - 4])
            model.update(features[new], LONG[new])
        rows = found[found["fold"] == fold].set_index(["series", "time"])["forecast"]
        expected = model.predict(features[~past])
        expected = expected.reindex(rows.index.set_names(LONG.index.names))
        np.testing.assert_allclose(rows, expected)


@pytest.mark.parametrize("missing", ["interpolate", "seasonal"])
def test_gaps_are_filled_from_the_past_alone(missing):
    holes = WIDE.copy()
    holes.iloc[[30, 47, 48, 51], 0] = np.nan
    model = clone(MODEL).set_params(missing=missing, season_length=12)
    found = model.backtest(holes, cv=3)
    assert not found.isna().any(axis=None)
    known = {"a": holes["a"][:47], "b": B[:48]}
    expected = clone(model).fit(known).predict(A.index[48:52])
    rows = found[(found["fold"] == 0) & (found["series"] == "a")]
    np.testing.assert_array_equal(rows["time"], A.index[[49, 50]])
    np.testing.assert_allclose(rows["forecast"], expected["a"].loc[A.index[[49, 50]]])
    # What happens later says nothing about earlier forecasts.
    changed = holes.copy()
    changed.iloc[52:] += 100.0
    again = model.backtest(changed, cv=3)
    early = found["fold"] < 1
    pd.testing.assert_frame_equal(again[early], found[early])


def test_a_series_has_no_column_for_its_name():
    assert list(MODEL.backtest(A, cv=2)) == COLUMNS[1:]
    unnamed = MODEL.backtest(A.rename(None), cv=2)
    pd.testing.assert_frame_equal(unnamed, MODEL.backtest(A, cv=2))
    assert list(MODEL.backtest(A.to_frame(), cv=2)) == COLUMNS
    single = MODEL.backtest(A.astype("float32"), cv=2)
    assert single["forecast"].dtype == np.float32


def test_what_cannot_be_compared():
    cv = [(np.arange(40), np.arange(54, 58))]
    with pytest.raises(ValueError, match="has no test rows of a series with earlier"):
        MODEL.backtest({"b": B, "late": A[50:]}, cv=cv)
    cv = [(np.arange(22, 30), np.arange(40, 44))]
    with pytest.raises(ValueError, match=r"rows, from 2016-11-01 00.* to 2017-06-01"):
        MODEL.backtest({"a": A[:20], "b": B[40:]}, cv=cv)
    rows = features_of(A.index)
    lacking = pd.concat({"a": rows[:-1], "b": rows[:53]}, names=["site", "month"])
    with pytest.raises(ValueError, match=r"X has no rows for .*2019-12-01"):
        MODEL.backtest(lacking, {"a": A, "b": B}, cv=3)
    with pytest.raises(ValueError, match="coverage=2"):
        MODEL.backtest(A, cv=2, coverage=2)


def test_features_count_from_the_end_of_each_series():
    """One series has no observation in the last steps before a fold."""
    values = {"a": A, "b": B.drop(B.index[44:49])}
    features = features_of(LONG.index)
    model = clone(MODEL).set_params(missing="interpolate")
    table = model.backtest(features, values, cv=3)
    past = {"a": A[:48], "b": B[:44]}
    later = {"a": A.index[48:52], "b": A.index[44:52]}
    before = pd.concat({name: features_of(series.index) for name, series in past.items()})
    after = pd.concat({name: features_of(index) for name, index in later.items()})
    expected = model.fit(before, past).predict(after)
    for name in "ab":
        rows = table[(table["fold"] == 0) & (table["series"] == name)]
        np.testing.assert_allclose(rows["forecast"], expected[name].loc[rows["time"]])
