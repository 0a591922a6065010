"""The heaviest keys of queries, in blocks of queries."""

import numpy as np
import pytest

from sklearn_attention import _blocks
from sklearn_attention.attention._tables import heaviest


@pytest.mark.parametrize("k", [1, 3, 7])
@pytest.mark.parametrize("pairs", [10, 2**24])
def test_they_are_those_of_a_sort(k, pairs, monkeypatch):
    monkeypatch.setattr(_blocks, "ROWS_AT_ONCE", pairs)
    weights = np.random.default_rng(0).normal(size=(5, 7))
    indices, found = heaviest(lambda rows: weights[rows], np.arange(5), 7, k)
    np.testing.assert_array_equal(indices, np.argsort(-np.abs(weights), axis=1)[:, :k])
    np.testing.assert_array_equal(found, np.take_along_axis(weights, indices, axis=1))
