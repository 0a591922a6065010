"""Tables of series against lists of arrays."""

import numpy as np
import pytest

from sklearn_attention.forecasting import Table

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
