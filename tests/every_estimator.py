"""Every estimator on a small problem, for tests of what holds for all of them."""

import copy
import functools
import random
import warnings

import numpy as np
import torch

from sklearn_attention import (
    ConditionalKernelDensity,
    KernelAttentionClassifier,
    KernelAttentionRegressor,
    KernelForecaster,
    LocalPolynomialCV,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonCV,
    NadarayaWatsonRegressor,
    PositiveRandomFeatures,
    ProductKernelDensity,
    RandomFourierFeatures,
    TransformerClassifier,
    TransformerForecaster,
    TransformerLanguageModel,
    TransformerRegressor,
    TransformerSeq2Seq,
)

# Loads sympy, which adds to the filters of warnings, once for all.
torch.optim.Adam([torch.ones(1, requires_grad=True)])

_DRAWING = {
    "d_model": 8, "n_heads": 2, "n_layers": 1, "max_epochs": 2, "batch_size": 30,
    "dropout": 0.1, "random_state": 0,
}  # fmt: skip
_FEW_STEPS = {"n_folds": 1, "max_steps": 2, "random_state": 0}
_METHODS = "predict_proba", "predict", "score_samples", "transform"

# Those that train networks, with dropout, which draws in every step.
NETWORKS = {
    "language model": TransformerLanguageModel(**_DRAWING),
    "translator": TransformerSeq2Seq(tokenizer="characters", **_DRAWING),
    "regressor": TransformerRegressor(**_DRAWING),
    "classifier": TransformerClassifier(**_DRAWING),
    "forecaster's transformer": TransformerForecaster(3, candidates=None, **_DRAWING),
}
# At given bandwidths: searches have tests of their own.
OTHERS = {
    "forecaster": TransformerForecaster(3, candidates=["classical", "ridge"]),
    "analogs": KernelForecaster(3, lookback=6, bandwidth=1.0),
    "average": NadarayaWatsonRegressor(bandwidth=0.3),
    "votes": NadarayaWatsonClassifier(bandwidth=0.3),
    "lines": LocalPolynomialRegressor(bandwidth=0.3, degree=1),
    "sum of functions": LocalPolynomialRegressor(structure="additive"),
    "best average": NadarayaWatsonCV(["gaussian"], [0.2, 0.5]),
    "best line": LocalPolynomialCV(["gaussian"], [0.3, 0.6], degrees=[0, 1]),
    "density": ProductKernelDensity(bandwidth=0.3),
    "conditional density": ConditionalKernelDensity(bandwidth=0.3, target_bandwidth=0.3),
    "kernel attention": KernelAttentionRegressor(**_FEW_STEPS),
    "kernel attention and trees": KernelAttentionRegressor(boosting="auto", **_FEW_STEPS),
    "classes by kernel attention": KernelAttentionClassifier(**_FEW_STEPS),
    "waves": RandomFourierFeatures(n_components=10, random_state=0),
    "positive features": PositiveRandomFeatures(n_components=10, random_state=0),
}
EVERY = NETWORKS | OTHERS


def data_for(estimator, dtype=np.float64):
    """Arguments of a fit: 60 rows, 60 or 100 steps, or 30 short texts."""
    rng = np.random.default_rng(0)
    name = type(estimator).__name__
    if name.endswith("Forecaster"):
        n_steps = 60 if isinstance(estimator, KernelForecaster) else 100
        series = 10 + np.sin(np.arange(n_steps)) + 0.1 * rng.normal(size=n_steps)
        return (series.astype(dtype),)
    if name in ("TransformerLanguageModel", "TransformerSeq2Seq"):
        texts = ["".join(rng.choice(list("abcde "), size=12)).strip() for _ in range(30)]
        return (texts,) if name.endswith("Model") else (texts, [text[::-1] for text in texts])
    X = rng.uniform(-1, 1, size=(60, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    targets = np.where(y > 0, "b", "a") if name.endswith("Classifier") else y.astype(dtype)
    return X.astype(dtype), targets


def answer(model, data):
    """What a fitted estimator says of the data."""
    if isinstance(model, TransformerSeq2Seq):
        return model.score(*data)
    if type(model).__name__.endswith("Forecaster"):
        return model.predict()
    if isinstance(model, ConditionalKernelDensity):
        return model.score_samples(*data)
    return next(getattr(model, name) for name in _METHODS if hasattr(model, name))(data[0])


@functools.cache
def fitted(name):
    """The fitted estimator of that name, for tests that do not change it, or change a copy.

    It is fitted once in each process. Fits that are compared with it take `few_rates` and
    `few_trees`, so that tests that ask for it do, too.
    """
    return copy.deepcopy(EVERY[name]).fit(*data_for(EVERY[name]))


def fit_and_answer(estimator, data):
    """The answer of a fresh copy."""
    model = copy.deepcopy(estimator).fit(*data)
    return answer(model, data)


def global_state():
    """What belongs to the user: random numbers, threads, warnings and settings of torch."""
    return {
        "torch": torch.get_rng_state().tolist(),
        "numpy": repr(np.random.get_state()),  # noqa: NPY002
        "python": random.getstate(),
        "threads": torch.get_num_threads(),
        "type": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "warnings": list(warnings.filters),
        "errors": np.geterr(),
    }
