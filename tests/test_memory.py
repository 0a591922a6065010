"""What does not fit into memory is refused before it is asked for."""

import copy
import math

import matplotlib as mpl
import numpy as np
import pytest
import torch
from every_estimator import fitted

from sklearn_attention import (
    Architecture,
    ConditionalKernelDensity,
    KernelForecaster,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
    RandomFourierFeatures,
    Training,
    TransformerRegressor,
    _blocks,
    attend,
    kernels,
    nn,
)
from sklearn_attention.datasets import make_periodic_series, make_smoothing_curve
from sklearn_attention.inspection import DensityDisplay, SmoothDisplay
from sklearn_attention.text import pad

mpl.use("Agg")
NETWORK = {
    "d_model": 8, "n_heads": 2, "n_layers": 1, "baseline": False,
    "training": Training(max_steps=1, validation_fraction=None),
}  # fmt: skip


def data(n_features=2):
    rng = np.random.default_rng(0)
    return rng.normal(size=(50, n_features)), rng.normal(size=50)


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(_blocks, "_memory_limit", lambda: 1e6)


def test_a_matrix_of_queries_and_keys(little_memory):
    X, y = data()
    model = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, y)
    many = np.broadcast_to(X[0], (10_000, 2))
    expected = (
        r"takes 4 MB of memory \(10000 x 50 numbers\), but there are 1 MB: pass some queries"
    )
    with pytest.raises(MemoryError, match=expected):
        model.smoother_matrix(many)
    lines = LocalPolynomialRegressor(bandwidth=1.0).fit(X, y)
    with pytest.raises(MemoryError, match="10000 x 50 x 4 numbers"):
        lines.smoother_matrix(many)
    assert model.predict(many).shape == lines.predict(many).shape == (10_000,)


def test_parabolas_of_many_features():
    X, y = data(n_features=300)
    model = LocalPolynomialRegressor(bandwidth=30.0, degree=2)
    with pytest.raises(MemoryError, match="degree=2 for 300 features, with 45451 coefficients"):
        model.fit(X, y)
    assert not hasattr(model, "keys_")


def test_attention_maps(little_memory):
    X, y = data(n_features=60)
    model = TransformerRegressor(**NETWORK).fit(X, y)
    with pytest.raises(MemoryError, match="50 x 1 x 2 x 60 x 60 numbers"):
        model.attention_maps(X)
    assert model.attention_maps(X[:2]).shape[0] == 2


def smoother():
    return NadarayaWatsonRegressor(bandwidth=1.0).fit(*data(1))


def encoder(**options):
    X, y = data()
    return TransformerRegressor(**NETWORK | options).fit(X, y)


# Calls with a size. Each is made with a little one, which fits, and with a large one.
SIZES = {
    "n_samples of rows": (lambda n: fitted("density").sample(n), "n_samples="),
    "n_samples of targets": (
        lambda n: fitted("conditional density").sample([[0.0, 0.0]], n), "n_samples=",
    ),
    "n_resamples of bands": (
        lambda n: smoother().confidence_band([[0.0]], simultaneous=True, n_resamples=n),
        "n_resamples=",
    ),
    "n_resamples of tests": (
        lambda n: smoother().feature_significance(n_resamples=n), "n_resamples=",
    ),
    "grid_resolution of a curve": (
        lambda n: SmoothDisplay.from_estimator(smoother(), grid_resolution=10 * n),
        "grid_resolution=",
    ),
    "grid_resolution of a density": (
        lambda n: DensityDisplay.from_estimator(
            ConditionalKernelDensity(bandwidth=1.0, target_bandwidth=1.0).fit(*data(1)),
            grid_resolution=n,
        ),
        "grid_resolution=",
    ),
    "n_components": (
        lambda n: RandomFourierFeatures(n, random_state=0).fit(data()[0]), "n_components=",
    ),
    "rows with n_components": (
        lambda n: RandomFourierFeatures(random_state=0).fit(data()[0]).transform(
            np.zeros((n, 2))
        ),
        "n_components of all rows",
    ),
    "n_features of a kernel": (
        lambda n: attend(*[[[0.0]]] * 3, kernels.PositiveFeatures(n)), "n_features=",
    ),
    "n_layers": (lambda n: encoder(n_layers=n), "n_layers="),
    "d_model": (lambda n: encoder(d_model=n), "d_model="),
    "d_feedforward": (
        lambda n: encoder(architecture=Architecture(d_feedforward=n)), "d_feedforward=",
    ),
    "n_layers of a stack": (lambda n: nn.Encoder(n, 4, 2, 4), "n_layers="),
    "d_model of a stack": (lambda n: nn.Encoder(1, n, 2, 4), "d_model="),
    "d_feedforward of a stack": (lambda n: nn.Decoder(1, 4, 2, n), "d_feedforward="),
    "n_layers of a cache": (nn.KeyValueCache, "n_layers="),
    "max_length of positions": (lambda n: nn.LearnedPositions(n, 8), "max_length="),
    "late positions": (
        lambda n: nn.SinusoidalPositions(8)(torch.zeros(1, 2, 8), first=n), "positions takes",
    ),
    "patch_length": (nn.Patches, "patch_length="),
    "length": (lambda n: pad([[1, 2]], length=n), "length="),
    "n_steps": (lambda n: make_periodic_series("sine", n), "n_steps="),
    "n_samples of a curve": (lambda n: make_smoothing_curve("blocks", n), "n_samples="),
    "max_new_tokens": (
        lambda n: fitted("language model").sample("a", n), "max_new_tokens=",
    ),
    "n_beams": (
        lambda n: copy.copy(fitted("translator")).set_params(n_beams=n).predict(["ab"]),
        "n_beams=",
    ),
    "windows of forecasters": (
        lambda n: KernelForecaster(1, lookback=n, bandwidth=1.0, validation_fraction=0.02).fit(
            np.arange(2200.0)
        ),
        "lookback at every step",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sizes_are_refused_by_name(few_trees, little_memory, name):
    call, message = SIZES[name]
    call(4)
    large = 2000 if name.startswith(("windows", "d_model", "n_layers", "grid")) else 200_000
    with pytest.raises(MemoryError, match=rf"{message}.*pass"):
        call(large)


def test_the_limit_is_known_here_and_a_container_may_have_less(monkeypatch, tmp_path):
    assert 0 < _blocks._memory_limit() < math.inf
    (tmp_path / "memory.max").write_text("1000000")
    monkeypatch.setattr(_blocks, "_CONTAINER_LIMIT", tmp_path / "memory.max")
    assert _blocks._memory_limit() == 1e6
    (tmp_path / "memory.max").write_text("max")
    assert _blocks._memory_limit() > 1e6
