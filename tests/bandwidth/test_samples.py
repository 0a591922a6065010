"""Samples of the rows of a search, and how bandwidths go from there to all rows."""

import numpy as np
import pytest

from sklearn_attention import Columns
from sklearn_attention.bandwidth import _samples
from sklearn_attention.bandwidth._samples import Sample, ValueSample, point_masses
from sklearn_attention.bandwidth._search import Rows


def make_rows(n=50, **options):
    X = np.random.default_rng(0).normal(size=(n, 2)) * [1.0, 9.0]
    values = np.arange(n)[:, None] * 100.0
    return Rows(**{"X": X, "values": values, "columns": Columns.numbers(2)} | options)


class TestSample:
    def test_rows_without_weight_are_left_out_before_some_are_drawn(self):
        weight = np.repeat([1.0, 0.0], [40, 10])
        sample = Sample("loo", make_rows(sample_weight=weight, random_state=0), 100)
        assert len(sample) == 40
        std = sample.std
        sample.limit(20)
        assert len(sample) == len(sample.values) == len(sample.sample_weight) == 20
        np.testing.assert_array_equal(sample.std, std)
        sample.limit(30)
        assert len(sample) == 20

    def test_of_very_many_rows_the_spread_is_of_all(self, monkeypatch):
        rows = make_rows(random_state=0)
        monkeypatch.setattr(_samples, "MANY_ROWS", 49)
        sample = Sample("loo", rows, 10)
        assert len(sample) == 10
        np.testing.assert_allclose(sample.std, rows.X.std(axis=0))

    def test_rows_in_order_are_a_stretch(self):
        sample = ValueSample("loo", make_rows(gap=2, random_state=0), 20)
        steps = np.diff(sample.restore_criterion(1.0, "loo") ** 0.5 * sample.values[:, 0])
        np.testing.assert_allclose(steps, 100)
        assert len(sample) == 20

    def test_numbers_are_carried_over_at_the_rate_and_lambdas_at_its_square(self):
        columns = Columns(("numeric", "unordered"), (None, range(3)))
        sample = Sample("loo", make_rows(columns=columns, random_state=0), 100)
        np.testing.assert_array_equal(sample.rescale_to_all_rows(np.ones(2)), 1)
        sample.limit(10)
        rate = 5 ** (-1 / 5)
        np.testing.assert_allclose(sample.rescale_to_all_rows(np.ones(2)), [rate, rate**2])
        found = sample.rescale_to_all_rows(np.ones(2), decreasing=False)
        np.testing.assert_allclose(found, [1, rate**2])

    def test_copies_are_joined_but_classes_are_not(self):
        X = np.random.default_rng(0).integers(0, 5, size=(60, 1)).astype(float)
        columns = Columns.numbers(1)
        classes = Rows(X=X, values=(X > 2).astype(float), columns=columns)
        assert len(ValueSample("loo", classes, 100)) == 60
        X = np.tile(np.arange(20.0)[:, None], (2, 1))
        sample = ValueSample("loo", Rows(X=X, values=X**2 + 1, columns=columns), 100)
        assert len(sample) == 20
        np.testing.assert_array_equal(sample.sample_weight, 2)


@pytest.mark.parametrize("decimals", [0, 1])
def test_rounded_numbers_and_counts_are_no_point_masses(decimals):
    rng = np.random.default_rng(0)
    waits = np.floor(rng.exponential(3, size=400))
    normal, skewed = rng.normal(20, 5, size=400), rng.lognormal(3, 0.6, size=900)
    for x in (normal, skewed, rng.poisson(3, size=200), waits, -waits):
        kept, found = point_masses(np.round(x, decimals)[:, None], Columns.numbers(1))
        assert kept.all()
        assert found == []


def test_point_masses_are_numbers_that_many_share():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(60, 2))
    X[:10, 0], X[40:, 1] = 0.0, 0.25
    kept, found = point_masses(X, Columns.numbers(2))
    np.testing.assert_array_equal(kept, (np.arange(60) >= 10) & (np.arange(60) < 40))
    assert found == [(0, 0.0, pytest.approx(1 / 6)), (1, 0.25, pytest.approx(1 / 3))]
    # Nine are too few, and so are nine others.
    assert not point_masses(np.append(np.zeros(9), X[:40, 1])[:, None], Columns.numbers(1))[1]
    few = np.append(np.zeros(50), np.arange(1.0, 10.0))[:, None]
    kept, found = point_masses(few, Columns.numbers(1))
    assert kept.all()
    assert len(found) == 1
    # Only columns in which a density has a volume.
    assert point_masses(X, Columns.numbers(2), np.array([False, False]))[0].all()
