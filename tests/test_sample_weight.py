"""Sample weights as they are read, and those that are refused."""

import dask.array as da
import numpy as np
import pytest

from sklearn_attention import NadarayaWatsonClassifier, NadarayaWatsonRegressor
from sklearn_attention._sample_weight import check_key_weights


@pytest.mark.parametrize("lazy", [False, True])
class TestKeyWeights:
    def weights(self, given, lazy, *options):
        X = np.zeros((len(given), 1))
        if not lazy:
            return check_key_weights(given, X, *options)
        X, given = da.from_array(X, chunks=2), da.from_array(np.array(given), chunks=2)
        return check_key_weights(given, X, *options).compute()

    def test_are_as_passed_but_for_those_next_to_nothing(self, lazy):
        given = [1e200, 1e47, 1e45, 1e-200, 0.0]
        np.testing.assert_array_equal(self.weights(given, lazy), [1e200, 1e47, 0, 0, 0])
        if not lazy:
            found = self.weights([1e200, 1e182, 1e180], lazy, np.float32)
            np.testing.assert_array_equal(found, [1e200, 1e182, 0])

    @pytest.mark.parametrize("size", [1e308, 1e-310])
    def test_sizes_that_are_not_computed_with(self, lazy, size):
        message = "too large or too small to compute with: divide it by its largest value"
        with pytest.raises(ValueError, match=message):
            self.weights(np.full(5, size), lazy)


@pytest.mark.parametrize("y", [np.arange(6.0), np.arange(6) % 2, np.ones((6, 2), dtype=int)])
@pytest.mark.parametrize(
    ("weight", "message"),
    [([1, -1] * 3, "negative values, such as -1"), (6 * [0], "zero for every row")],
)
def test_scores_refuse_weights_that_are_none(y, weight, message):
    X = np.arange(6.0)[:, None]
    kind = NadarayaWatsonClassifier if y.dtype == int else NadarayaWatsonRegressor
    model = kind(bandwidth=1.0).fit(X, y)
    with pytest.raises(ValueError, match=f"sample_weight (has|is) {message}"):
        model.score(X, y, sample_weight=weight)
