"""Every estimator on a small problem, for tests of what holds for all of them."""

import copy
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

_SMALL = {"d_model": 8, "n_heads": 2, "n_layers": 1, "max_epochs": 2, "random_state": 0}
_DRAWING = _SMALL | {"dropout": 0.1}
_METHODS = "predict_proba", "predict", "score_samples", "transform"

# Those that train networks; all but one with dropout, which draws in every step.
NETWORKS = {
    "language model": TransformerLanguageModel(**_DRAWING),
    "translator": TransformerSeq2Seq(tokenizer="characters", **_DRAWING),
    "regressor": TransformerRegressor(**_DRAWING),
    "regressor without dropout": TransformerRegressor(**_SMALL),
    "classifier": TransformerClassifier(**_DRAWING),
    "forecaster's transformer": TransformerForecaster(3, candidates=None, **_DRAWING),
}
OTHERS = {
    "forecaster": TransformerForecaster(3),
    "analogs": KernelForecaster(3),
    "average": NadarayaWatsonRegressor(),
    "votes": NadarayaWatsonClassifier(),
    "lines": LocalPolynomialRegressor(),
    "best average": NadarayaWatsonCV(),
    "best line": LocalPolynomialCV(),
    "density": ProductKernelDensity(),
    "conditional density": ConditionalKernelDensity(),
    "kernel attention": KernelAttentionRegressor(n_folds=1, max_steps=2, random_state=0),
    "kernel attention and trees": KernelAttentionRegressor(
        n_folds=1, max_steps=2, boosting="auto", random_state=0
    ),
    "classes by kernel attention": KernelAttentionClassifier(
        n_folds=1, max_steps=2, random_state=0
    ),
    "waves": RandomFourierFeatures(n_components=10, random_state=0),
    "positive features": PositiveRandomFeatures(n_components=10, random_state=0),
}  # fmt: skip
EVERY = NETWORKS | OTHERS


def data_for(estimator, dtype=np.float64):
    """Arguments of a fit: 60 rows, steps or short texts; numbers of some precision."""
    rng = np.random.default_rng(0)
    name = type(estimator).__name__
    if name.endswith("Forecaster"):
        n_steps = 60 if isinstance(estimator, KernelForecaster) else 200
        series = 10 + np.sin(np.arange(n_steps)) + 0.1 * rng.normal(size=n_steps)
        return (series.astype(dtype),)
    if name in ("TransformerLanguageModel", "TransformerSeq2Seq"):
        texts = ["".join(rng.choice(list("abcde "), size=12)).strip() for _ in range(60)]
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
