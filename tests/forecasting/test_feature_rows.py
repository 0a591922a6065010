"""Rows of features against loops over series and steps."""

import pickle

import numpy as np
import pandas as pd
import pytest
from forecasting_data import fit, make_features, make_panel, new

from sklearn_attention import KernelForecaster
from sklearn_attention.forecasting import Table
from sklearn_attention.forecasting._checks import fill_features
from sklearn_attention.forecasting._feature_rows import (
    FeatureRows,
    add_future_covariates,
    with_features,
)

A, B = make_panel().values()
X = make_features()
STARTS, LENGTHS = np.array([3, 0, 6]), np.array([5, 9, 4])  # they end at 8, 9 and 10


def make_table(features=False):
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(n, 3)) for n in LENGTHS] if features else None
    values = [rng.normal(size=n) for n in LENGTHS]
    return Table.from_arrays(values, STARTS, features=parts, future_columns=[0, 2])


def make_rows(steps, seed=1):
    """Rows for some steps of each series, in any order, and a dict of them."""
    rng = np.random.default_rng(seed)
    pairs = rng.permutation([(i, step) for i, own in enumerate(steps) for step in own])
    features = rng.normal(size=(len(pairs), 3))
    rows = FeatureRows(pairs[:, 0], pairs[:, 1], np.arange(len(pairs)), features, list("uvw"))
    return rows, {tuple(map(int, pair)): own for pair, own in zip(pairs, features, strict=True)}


class TestCategories:
    cells = pd.Series(np.random.default_rng(0).choice(["mild", "cold", "hot"], 60), A.index)
    flags = pd.get_dummies(cells, dtype=float)

    @pytest.mark.parametrize("dtype", ["string", "category"])
    def test_have_a_column_for_each_level(self, dtype):
        mixed = X.assign(sky=self.cells.astype(dtype), sun=X["sun"] > 0)[["sky", "wind", "sun"]]
        model = fit(mixed[:50], A[:50])
        assert model.n_features_in_ == 3
        assert model.columns_.categories == (("cold", "hot", "mild"), None, None)
        numbers = pd.concat([self.flags, mixed[["wind", "sun"]] * 1.0], axis=1)
        expected = fit(numbers[:50], A[:50])
        np.testing.assert_array_equal(model.observed_.features, expected.observed_.features)
        pd.testing.assert_series_equal(
            model.predict(mixed[50:]), expected.predict(numbers[50:])
        )
        pd.testing.assert_frame_equal(
            model.backtest(mixed, A, cv=2), expected.backtest(numbers, A, cv=2)
        )
        model.update(mixed[50:55], A[50:55])
        expected.update(numbers[50:55], A[50:55])
        found = pickle.loads(pickle.dumps(model)).predict(mixed[45:], history=A[:55])
        pd.testing.assert_series_equal(found, expected.predict(numbers[45:], history=A[:55]))

    def test_ordered_ones_are_numbers(self):
        dtype = pd.CategoricalDtype(["cold", "mild", "hot", "torrid"], ordered=True)
        rows = self.cells.astype(dtype).to_frame("sky")
        model = fit(rows, A)
        np.testing.assert_array_equal(model.observed_.features[:, 0], rows["sky"].cat.codes)
        later = pd.DataFrame({"sky": "grey"}, [A.index[-1] + A.index.freq])
        with pytest.raises(ValueError, match=r"unknown levels \['grey'\] in the ordered"):
            model.predict(later)

    def test_only_the_most_frequent_of_many_levels_have_columns(self):
        n, rng = 150, np.random.default_rng(0)
        cells = np.array([f"l{i:02}" for i in rng.permutation(np.arange(n) % 70)])
        cells[cells == "l69"] = "l07"
        series = pd.Series(rng.normal(size=n))
        model = fit(pd.DataFrame({"many": cells}), series)
        (kept,) = model.columns_.categories
        assert len(kept) == 64
        assert list(kept) == sorted(kept)
        counts = pd.Series(cells).value_counts()
        assert counts[list(kept)].min() >= counts.drop(list(kept)).max()
        expected = (cells[:, None] == np.array(kept)) * 1.0
        np.testing.assert_array_equal(model.observed_.features, expected)

    def test_those_known_only_up_to_now_may_lack(self):
        mixed = X.assign(sky=self.cells, size=pd.Categorical(["s", "m"] * 30, ordered=True))
        past = ["sky", "size", "wind"]
        model = fit(mixed[:50], A[:50], past_features=past)
        np.testing.assert_array_equal(model.known_columns_, [1])
        found = model.predict(mixed[["sun"]][50:])
        pd.testing.assert_series_equal(found, model.predict(mixed[50:]))
        with pytest.raises(
            ValueError,
            match=r"X has missing values \(NaN\) in column 'wind', 'sky', 'size' in 'load' at",
        ):
            model.update(mixed[["sun"]][50:], A[50:])


def test_gaps_are_filled_in_each_series():
    rows, found = make_rows([range(12)] * 3)
    for i, step in [(0, 5), (0, 6), (2, 8)]:
        rows.features[(rows.series == i) & (rows.step == step), 1] = np.nan
    with pytest.raises(
        ValueError, match=r"^X has missing values \(NaN\) in column 'v' in 0 at 5, 6: pass"
    ):
        fill_features(with_features(make_table(), rows), "raise", rows.columns)
    joined = fill_features(with_features(make_table(), rows), "interpolate", rows.columns)
    column = {pair: own[1] for pair, own in found.items()}
    column[0, 5] = (2 * column[0, 4] + column[0, 7]) / 3
    column[0, 6] = (column[0, 4] + 2 * column[0, 7]) / 3
    column[2, 8] = (column[2, 7] + column[2, 9]) / 2
    expected = [column[pair] for pair in zip(joined.series, joined.step, strict=True)]
    np.testing.assert_allclose(joined.features[:, 1], expected)


class TestFeaturesThatEndEarly:
    # Every third month is known; the last is 57 of 0 to 59.
    monthly = X[::3].reindex(X.index)
    filled = monthly.interpolate()  # the last value goes on

    @staticmethod
    def fit(X, y=A):
        return fit(X, y, missing="interpolate", past_features=["wind", "sun"])

    def test_only_steps_outside_of_the_known_ones_are_named(self):
        message = "'wind', 'sun' in 'load' at 2019-11-01, 2019-12-01: drop the rows"
        with pytest.raises(ValueError, match=message):
            fit(self.monthly, A, missing="interpolate")
        late = self.monthly[3:].reindex(X.index)
        with pytest.raises(ValueError, match="at 2015-01-01, 2015-02-01, 2015-03-01: drop"):
            self.fit(late)
        with pytest.raises(ValueError, match="at 2015-02-01, 2015-03-01, 2015-05-01, "):
            fit(self.monthly, A, past_features=["wind", "sun"])

    def test_past_features_keep_their_last_value(self):
        model, expected = self.fit(self.monthly), self.fit(self.filled)
        pd.testing.assert_series_equal(model.predict(), expected.predict())
        np.testing.assert_array_equal(model.observed_.features, expected.observed_.features)
        found = model.predict(self.monthly[:51], history=A[:51])
        short = self.monthly[:51].interpolate()
        pd.testing.assert_series_equal(found, model.predict(short, history=A[:51]))
        grown = self.fit(self.monthly[:51], A[:51]).update(self.monthly[51:], A[51:])
        np.testing.assert_array_equal(grown.observed_.features[-3:], self.filled[-3:])

    def test_a_backtest_does_not_look_ahead(self):
        model = new(missing="interpolate", past_features=["wind", "sun"])
        changed = self.monthly + 9.0 * (np.arange(60) >= 54)[:, None]
        found, again = (model.backtest(rows, A, cv=2) for rows in (self.monthly, changed))
        pd.testing.assert_frame_equal(found[:3], again[:3])


@pytest.mark.parametrize(
    ("last", "n_later"), [([9, 8, 11], [2, 0, 4]), ([8, 12, 11], [2, 4, 4])]
)
def test_later_rows_are_those_of_a_loop(last, n_later):
    table = make_table(features=True)
    # Rows go on for two steps after the first series, and for more after the others.
    rows, found = make_rows([range(4, 10), range(6, 16), range(7, 20)])
    joined = add_future_covariates(table, rows, np.array(last), 4, "raise")
    np.testing.assert_array_equal(joined.lengths, LENGTHS)
    np.testing.assert_array_equal(joined.row_counts, LENGTHS + n_later)
    end = table.features[[4, 13, 17]]
    for i, step, own in zip(joined.series, joined.step, joined.features, strict=True):
        expected = end[i].copy()  # what is not known beforehand stays as it was
        if step < table.ends[i]:
            expected = table.features[table.first_rows[i] + step - STARTS[i]].copy()
        if (i, step) in found:
            expected[[0, 2]] = found[i, step][[0, 2]]
        np.testing.assert_array_equal(own, expected)


def test_rows_of_another_order_than_numbered_series_are_refused():
    whole = pd.concat([X, X]).reset_index(drop=True)
    index = pd.MultiIndex.from_arrays([np.repeat(["a", "b"], 60), [*range(60)] * 2])
    with pytest.raises(ValueError, match="different indexes"):
        new().fit(whole, pd.concat([A, A]).set_axis(index))


def test_the_interval_at_a_level_that_is_not_known_allows_for_its_effect():
    days = pd.date_range("2024-01-01", periods=127)
    rng = np.random.default_rng(0)
    event = pd.Series(rng.choice(["none", "sale"], 127, p=[0.85, 0.15]), days, name="event")
    y = 50 + 12.0 * (event == "sale") + rng.normal(size=127)
    model = KernelForecaster(7).fit(event[:120].to_frame(), y[:120])
    ahead = event[120:].to_frame()
    expected = model.predict(ahead.assign(event="none"), coverage=0.9)
    found = model.predict(ahead.assign(event=["strike", *6 * ["none"]]), coverage=0.9)
    np.testing.assert_allclose(found[1:], expected[1:], atol=1e-6)
    share = (event[:120] == "sale").mean()
    effect = 12 * share
    assert found["forecast"].iloc[0] - expected["forecast"].iloc[0] == pytest.approx(
        effect, abs=0.3
    )
    # Two levels that differ by 12, by Student's t with two degrees of freedom.
    half_width = np.ptp(found[["lower_90", "upper_90"]].iloc[0]) / 2
    assert half_width == pytest.approx(12 / np.sqrt(2) * 2.92, rel=0.15)
