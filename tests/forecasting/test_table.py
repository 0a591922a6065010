"""Tables of series against lists of arrays."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import skops.io
from forecasting_data import make_series

from sklearn_attention import KernelForecaster
from sklearn_attention.forecasting import Origins, Table

LENGTHS, FURTHER = np.array([9, 4, 6]), np.array([3, 0, 2])
STARTS = np.array([2, 7, 0])


def make_parts(seed=0):
    """Values of three series, and features that two of them have for later steps too."""
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=n) for n in LENGTHS]
    return values, [rng.normal(size=(n, 2)) for n in LENGTHS + FURTHER]


def make(**options):
    values, features = make_parts()
    return Table.of(values, STARTS, features=features, known=[1], **options)


def assert_lists(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_rows_are_in_order_of_series_and_step():
    table, (values, features) = make(), make_parts()
    steps = [start + np.arange(len(own)) for start, own in zip(STARTS, features, strict=True)]
    np.testing.assert_array_equal(table.step, np.concatenate(steps))
    np.testing.assert_array_equal(table.series, np.repeat(range(3), LENGTHS + FURTHER))
    np.testing.assert_array_equal(table.features, np.concatenate(features))
    np.testing.assert_array_equal(table.starts, STARTS)
    np.testing.assert_array_equal(table.lengths, LENGTHS)
    np.testing.assert_array_equal(table.ends, STARTS + LENGTHS)
    np.testing.assert_array_equal(table.identity, range(3))
    assert (len(table), table.n_features, len(table.time)) == (3, 2, 14)
    assert_lists(table.values, values)
    assert np.isnan(table.value).sum() == FURTHER.sum()


@pytest.mark.parametrize(("n", "forecast"), [(1, np.nan), (5, 7.0)])
def test_forecasts_are_appended(n, forecast):
    table, forecasts = make(), np.full((3, n), forecast)
    longer = table.extended(forecasts)
    pairs = zip(table.values, forecasts, strict=True)
    assert_lists(longer.values, [np.concatenate(pair) for pair in pairs])
    np.testing.assert_array_equal(longer.lengths, LENGTHS + n)
    np.testing.assert_array_equal(Origins.at_ends(longer, 1).known, LENGTHS + n)
    np.testing.assert_array_equal(longer.starts, STARTS)
    _, features = make_parts()
    for i, own in enumerate(features):
        more = np.repeat(own[-1:], max(0, n - FURTHER[i]), axis=0)
        expected = np.concatenate([own, more])
        np.testing.assert_array_equal(longer.features[longer.series == i], expected)
    np.testing.assert_array_equal(table.lengths, LENGTHS)


@pytest.mark.parametrize(("first", "last"), [(0, 20), (3, 8), (14, 20)])
def test_stretches_reach_from_the_first_to_the_last_observation(first, last):
    values, _ = make_parts()
    values[0][[0, 3, 8]] = np.nan
    values[2][4:] = np.nan
    table = Table.of(values, STARTS)
    found = table.between(first, last)
    expected = []
    for i, (own, start) in enumerate(zip(values, STARTS, strict=True)):
        steps = start + np.flatnonzero(~np.isnan(own))
        steps = steps[(steps >= first) & (steps < last)]
        if len(steps):
            whole = range(steps[0], steps[-1] + 1)
            expected += [(i, step, own[step - start]) for step in whole]
    np.testing.assert_array_equal(
        np.column_stack([found.series, found.step, found.value]),
        np.array(expected).reshape(-1, 3),
    )
    assert len(found) == 3


def test_later_rows_and_series_are_appended():
    values, features = make_parts()
    parts = [features[i][: LENGTHS[i]] for i in range(3)]
    whole = Table.of(values, STARTS, features=parts)
    early = whole.of_rows(np.flatnonzero((whole.step < 8) & (whole.series < 2)))
    later = whole.of_rows(np.flatnonzero((whole.step >= 8) | (whole.series == 2)))
    early = replace(early, names=["a", "b"], identity=np.arange(2))
    early = replace(early, time=early.time.of_positions(8))
    found = early.append(replace(later, names=["a", "b", "c"]))
    for name in ("series", "step", "value", "features"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    assert found.names == ["a", "b", "c"]
    np.testing.assert_array_equal(found.identity, [0, 1, -1])
    assert len(found.time) == 11


def test_what_is_observed_is_stored_as_plain_values(tmp_path):
    series = make_series("10min")
    model = KernelForecaster(3, lookback=6, bandwidth=1.0).fit(
        series.index.hour.to_frame(index=False).set_axis(series.index), series
    )
    file = tmp_path / "model.skops"
    skops.io.dump(model, file)
    trusted = skops.io.get_untrusted_types(file=file)
    assert not any(name.endswith(("Table", "Form", "TimeIndex")) for name in trusted)
    expected = model.observed_
    for found in (
        pickle.loads(pickle.dumps(model)).observed_,
        copy.deepcopy(model).observed_,
        skops.io.load(file, trusted=trusted).observed_,
    ):
        assert isinstance(found, Table)
        assert found.names == ["load"]
        assert vars(found.form) == vars(expected.form)
        np.testing.assert_array_equal(found.value, series)
        np.testing.assert_array_equal(found.features, expected.features)
        np.testing.assert_array_equal(found.known, [0])
        assert found.time.between(0, 70).equals(expected.time.between(0, 70))
