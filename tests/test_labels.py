"""Classes as indicators, and back, of one output and of several."""

import numpy as np
import pytest

from sklearn_attention._labels import (
    check_labels,
    distinct,
    indicators,
    known_classes,
    split_classes,
    winners,
)

LABELS = [
    np.array(["b", "a", "c", "a"]),
    np.array([[1, 7], [0, 7], [1, 9], [1, 8]]),
    np.array([[3], [4], [3], [3]]),
]


@pytest.mark.parametrize("y", LABELS, ids=["one", "two", "column"])
def test_winners_of_indicators_are_the_labels(y):
    classes = known_classes(y)
    assert isinstance(classes, list) == (y.ndim == 2)
    found = indicators(y, classes, np.float32)
    assert found.dtype == np.float32
    assert found.shape == (4, sum(len(np.unique(column)) for column in np.atleast_2d(y.T)))
    np.testing.assert_array_equal(winners(split_classes(found, classes), classes), y)


def test_of_equal_scores_the_first_class_wins():
    scores = np.array([[0.4, 0.2, 0.4], [0.0, 0.5, 0.5]])
    assert winners([scores], np.array(["x", "y", "z"])).tolist() == ["x", "y"]


def test_classes_may_be_given():
    classes = known_classes(LABELS[0], ["c", "b", "a", "d"])
    assert classes.tolist() == ["a", "b", "c", "d"]
    assert indicators(LABELS[0], classes, bool).sum(axis=0).tolist() == [2, 1, 1, 0]


def test_a_column_of_labels_is_one_output():
    with pytest.warns(UserWarning, match="column-vector"):
        assert check_labels(LABELS[2]).shape == (4,)
    with pytest.raises(ValueError, match="Unknown label type"):
        check_labels(np.array([0.5, 1.5]))


def test_labels_in_partitions_are_found():
    da = pytest.importorskip("dask.array")
    y = da.from_array(np.array([2, 1, 2, 5]), chunks=2)
    assert distinct(y).tolist() == [1, 2, 5]
