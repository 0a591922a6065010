"""Nadaraya-Watson regression as a user meets it."""

import numpy as np
import pytest
from recorder import Recorder

from sklearn_attention import (
    ConditionalKernelDensity,
    LocalPolynomialCV,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
)
from sklearn_attention.kernels import Gaussian, Periodic


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=80)


class TestPrediction:
    @pytest.mark.parametrize(
        ("estimator", "gone", "use"),
        [
            (NadarayaWatsonRegressor, "mean", "'nan'"),
            (NadarayaWatsonClassifier, "raise", "'nan'"),
            (LocalPolynomialCV, "mean", "'nan'"),
            (ConditionalKernelDensity, "widen", "'nearest'"),
        ],
    )
    def test_empty_policies_that_are_gone(self, data, estimator, gone, use):
        X, y = data
        y = y > 0 if estimator is NadarayaWatsonClassifier else y
        with pytest.raises(ValueError, match=rf"^empty='{gone}' is gone in 0\.2: use {use}"):
            estimator(empty=gone).fit(X, y)


class TestMemory:
    def test_partial_fit_with_and_without_weights(self, data):
        X, y = data
        weight = np.full(40, 2.0)
        grown = NadarayaWatsonRegressor(bandwidth=0.5).partial_fit(X[:40], y[:40])
        grown.partial_fit(X[40:], y[40:], sample_weight=weight)
        whole = NadarayaWatsonRegressor(bandwidth=0.5)
        whole.fit(X, y, np.concatenate([np.ones(40), weight]))
        np.testing.assert_array_equal(grown.predict(X), whole.predict(X))

    def test_partial_fit_refuses_other_shapes(self, data):
        X, y = data
        model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y)
        with pytest.raises(
            ValueError, match=r"y has shape .*\(80, 2\), but the training targets have"
        ):
            model.partial_fit(X, np.column_stack([y, y]))
        with pytest.raises(ValueError, match="X has 2 features"):
            model.partial_fit(X[:, :2], y)
        assert len(model.keys_) == len(X)


class TestCallbacks:
    @pytest.mark.parametrize("kind", [NadarayaWatsonRegressor, LocalPolynomialRegressor])
    def test_a_callback_can_end_the_search(self, data, kind):
        recorder = Recorder(stop_after=3)
        model = kind().set_callbacks(recorder).fit(*data)
        assert recorder.begun.count("bandwidth") == 3
        assert np.isfinite(model.predict(data[0])).all()

    def test_teardown_also_after_a_failure(self, data):
        recorder = Recorder()
        model = NadarayaWatsonRegressor(bandwidth="scott", gap=2).set_callbacks(recorder)
        with pytest.raises(ValueError, match="is supported only if all features are"):
            model.fit(*data)
        assert recorder.teardowns == 1


class TestBadInput:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"bandwidth": [1.0, 2.0]}, r"shape \(2,\), but there are 3 features"),
            ({"bandwidth": "lool"}, r"'lool' is unknown: did you mean 'loo'\? choose from"),
            ({"bandwidth": 0}, "must be finite and greater than 0|bandwidth=0 is not valid"),
            ({"kernel": "gauss"}, r"kernel='gauss' is unknown: did you mean 'gaussian'"),
            ({"kernel": Gaussian}, r"create it, as in Gaussian\(\)"),
            ({"kernel": Periodic(period=-1)}, "period=-1 is not valid"),
            ({"kernel": lambda A, B: np.ones(3)}, "returned shape"),
            ({"empty": None}, "empty=None is unknown: choose from"),
            ({"algorithm": "fft"}, "algorithm='fft' is unknown"),
        ],
    )
    def test_parameters(self, data, parameters, message):
        with pytest.raises((ValueError, TypeError), match=message):
            NadarayaWatsonRegressor(**({"bandwidth": 0.5} | parameters)).fit(*data)

    def test_targets_too_large_for_the_precision(self, data):
        X, y = data
        with pytest.raises(ValueError, match=r"too large for float32.*float64"):
            NadarayaWatsonRegressor(bandwidth=1.0).fit(X.astype("float32"), y * 1e300)

    @pytest.mark.parametrize("dtype", [np.int8, np.int64])
    def test_the_smallest_integer_is_a_target(self, data, dtype):
        X, y = data[0], np.arange(80).astype(dtype)
        y[0] = np.iinfo(dtype).min
        model = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, y)
        assert model.values_[0] == float(y[0])

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (np.zeros(80), "sample_weight is zero for every row"),
            (-np.ones(80), "[Nn]egative"),
            (np.full(80, 1e308), "sample_weight sums to inf, too large"),
        ],
    )
    def test_weights(self, data, weight, message):
        with pytest.raises(ValueError, match=message):
            NadarayaWatsonRegressor().fit(*data, sample_weight=weight)
