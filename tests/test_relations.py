"""What must not change an answer, or must change it in a known way: a table of relations."""

import dataclasses
import functools
import re
import tempfile
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier, is_regressor

from sklearn_attention import (
    AdaptiveBandwidth,
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
    TransformerRegressor,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:bandwidth="),
    pytest.mark.filterwarnings("ignore:The validation loss was still falling"),
]

RULES = "penalized-loo", "loo", "gcv", "aicc", "scott", "silverman", "knn-loo"
KERNELS = "gaussian", "epanechnikov", "tricube", "matern32", "laplacian", "scaled_dot_product"
TINY = {"d_model": 8, "n_heads": 2, "n_layers": 1, "max_epochs": 2}
PARABOLAS = LocalPolynomialRegressor(degree=2)
AVERAGES_PER_FEATURE = NadarayaWatsonRegressor(per_feature=True)
LINES_PER_FEATURE = LocalPolynomialRegressor(per_feature=True)
BEST_POLYNOMIAL = LocalPolynomialCV(["gaussian"], criterion="gcv")
SMOOTHERS = [
    *(NadarayaWatsonRegressor(kernel, bandwidth=0.7) for kernel in KERNELS),
    *(NadarayaWatsonRegressor(bandwidth=rule) for rule in RULES),
    *(NadarayaWatsonRegressor("epanechnikov", bandwidth=rule) for rule in ("loo", "scott")),
    NadarayaWatsonRegressor("epanechnikov", bandwidth=0.3, empty="nan"),
    *(NadarayaWatsonClassifier(kernel, bandwidth=0.7) for kernel in KERNELS),
    *(NadarayaWatsonClassifier(bandwidth=rule) for rule in ("penalized-loo", "scott")),
    *(LocalPolynomialRegressor(kernel, bandwidth=1.2) for kernel in KERNELS),
    *(LocalPolynomialRegressor(bandwidth=rule) for rule in RULES[:5]),
    LocalPolynomialRegressor(bandwidth=1.2, degree=2),
    PARABOLAS,
    AVERAGES_PER_FEATURE,
    LINES_PER_FEATURE,
    *(
        kind(bandwidth=AdaptiveBandwidth(7))
        for kind in (
            NadarayaWatsonRegressor,
            NadarayaWatsonClassifier,
            LocalPolynomialRegressor,
        )
    ),
    NadarayaWatsonCV(["gaussian", "tricube"]),
    BEST_POLYNOMIAL,
]
DENSITIES = [
    *(ProductKernelDensity(kernel, bandwidth=0.7) for kernel in ("gaussian", "logistic")),
    *(ProductKernelDensity(bandwidth=h) for h in ("likelihood", "least_squares", "scott")),
    ProductKernelDensity(bandwidth="silverman", sensitivity=0.5),
    ConditionalKernelDensity(bandwidth=0.7, target_bandwidth=0.5),
    ConditionalKernelDensity(bandwidth=0.7, target_bandwidth=0.5, degree=0),
    ConditionalKernelDensity(),
    ConditionalKernelDensity(bandwidth="scott", target_bandwidth="scott"),
]
LEARNERS = [
    *(
        kind(readout, n_folds=1, max_steps=2)
        for kind in (KernelAttentionRegressor, KernelAttentionClassifier)
        for readout in ("solve", "average", "local_linear")
    ),
    *(kind(**TINY, baseline=False) for kind in (TransformerRegressor, TransformerClassifier)),
]
FEATURES = [
    RandomFourierFeatures(7, random_state=0),
    PositiveRandomFeatures(8, bandwidth=3.0, random_state=0),
]
METHODS = "predict_proba", "predict", "score_samples", "transform"


@dataclasses.dataclass(frozen=True)
class Case:
    """A model, what it is fitted to, and what it is asked."""

    model: Any
    X: Any
    y: Any
    queries: Any
    targets: Any  # of the queries
    weights: Any = None

    def answers(self):
        weights = {} if self.weights is None else {"sample_weight": self.weights}
        return ask(clone(self.model).fit(self.X, self.y, **weights), self.queries, self.targets)


def ask(model, queries, targets):
    if isinstance(model, ConditionalKernelDensity):
        return model.score_samples(queries, targets)
    return next(getattr(model, name) for name in METHODS if hasattr(model, name))(queries)


def case_of(model, n=40, n_queries=9):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + n_queries, 2)) * [1.0, 2.0]
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=len(X))
    y = np.where(y > 0, "b", "a") if is_classifier(model) else y
    return Case(model, X[:n], y[:n], X[n:], y[n:])


@functools.cache
def fitted(name):
    """The model of that name, and its answers: the same for all relations."""
    case = case_of(next(model for model in MODELS if repr(model) == name))
    model = clone(case.model).fit(case.X, case.y)
    return model, ask(model, case.queries, case.targets)


MODELS = [*SMOOTHERS, *DENSITIES, *LEARNERS, *FEATURES]


def of_arrays(change):
    """The relation that changes every array of a case, and no number in it."""

    def changed(case):
        fields = {
            name: change(getattr(case, name)) for name in ("X", "y", "queries", "targets")
        }
        return dataclasses.replace(case, **fields).answers()

    return changed


def backwards(array):
    return array[::-1].copy()[::-1]


def every_second(array):
    return (
        np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim == 2 else np.repeat(array, 2)[::2]
    )


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def mapped(array):
    if array.dtype.kind == "U":
        return array
    with tempfile.TemporaryFile() as file:
        found = np.memmap(file, array.dtype, "w+", shape=array.shape)
    found[:] = array
    return found


def frame(array):
    return pd.Series(array) if array.ndim == 1 else pd.DataFrame(array, columns=["a", "b"])


def single(array):
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def with_bandwidth(case, factor):
    """The model with a bandwidth that is given as a number multiplied."""
    given = getattr(case.model, "bandwidth", None)
    return clone(case.model).set_params(bandwidth=factor * given) if np.isscalar(
        given
    ) and not isinstance(given, str) else case.model  # fmt: skip


def scaled(case):
    model = with_bandwidth(case, 8.0)
    found = dataclasses.replace(case, model=model, X=8 * case.X, queries=8 * case.queries)
    log_volume = 2 * np.log(8.0) if isinstance(case.model, ProductKernelDensity) else 0.0
    return found.answers() + log_volume


def shifted(case):
    return dataclasses.replace(case, X=case.X + 4.0, queries=case.queries + 4.0).answers()


def targets_scaled(case):
    return dataclasses.replace(case, y=8 * case.y).answers() / 8


def targets_shifted(case):
    return dataclasses.replace(case, y=case.y + 16).answers() - 16


def rows_permuted(case):
    rows = np.random.default_rng(1).permutation(len(case.X))
    return dataclasses.replace(case, X=case.X[rows], y=case.y[rows]).answers()


def columns_permuted(case):
    swapped = {"X": case.X[:, ::-1], "queries": case.queries[:, ::-1]}
    return dataclasses.replace(case, **swapped).answers()


def rows_repeated(case):
    """Rows twice against rows of weight two: the difference, beside the answers."""
    twice = dataclasses.replace(case, X=np.repeat(case.X, 2, 0), y=np.repeat(case.y, 2))
    heavy = dataclasses.replace(case, weights=np.full(len(case.X), 2.0))
    return fitted(repr(case.model))[1] + twice.answers() - heavy.answers()


def rows_of_no_weight(case):
    rows = np.r_[0:40, 0:9]
    weights = np.r_[np.ones(40), np.zeros(9)]
    X, y = case.X[rows], case.y[rows]
    X[40:] += 0.5
    return dataclasses.replace(case, X=X, y=y, weights=weights).answers()


def equal_weights(size):
    """The relation that gives all rows a weight of some size."""

    def weighed(case):
        return dataclasses.replace(case, weights=np.full(len(case.X), size)).answers()

    return weighed


def one_by_one(case):
    model, _ = fitted(repr(case.model))
    rows = (slice(i, i + 1) for i in range(len(case.queries)))
    return np.concatenate([ask(model, case.queries[i], case.targets[i]) for i in rows])


def among_copies(case):
    model, _ = fitted(repr(case.model))
    many = np.tile(case.queries, (7, 1)), np.tile(case.targets, 7)
    return ask(model, *many)[9:18]


def in_another_order(case):
    model, _ = fitted(repr(case.model))
    return ask(model, case.queries[::-1], case.targets[::-1])[::-1]


def stationary(model):
    return model not in FEATURES and getattr(model, "kernel", "") != "scaled_dot_product"


def deterministic(model):
    """Whether no row is drawn: answers are a function of the set of rows and columns."""
    return model in SMOOTHERS + DENSITIES


def of_one_minimum(model):
    """Whether a search does not start from drawn points, which differ for each column."""
    return deterministic(model) and getattr(model, "target_bandwidth", "") != "likelihood"


def at_given_bandwidth(model):
    """Where a row of weight two is the row twice: residuals of lines leave out both."""
    if isinstance(model, ConditionalKernelDensity) and model.degree:
        return False
    given = getattr(model, "bandwidth", None), getattr(model, "target_bandwidth", 0.5)
    rules = "scott", "silverman"
    return deterministic(model) and all(isinstance(h, float) or h in rules for h in given)


def counts_rows_by_weights(model):
    """Rules of thumb have a number of rows, which is the sum of their weights."""
    return getattr(model, "bandwidth", None) in ("scott", "silverman")


def ratios_of_weights(model):
    return model not in FEATURES and not counts_rows_by_weights(model)


def numeric_targets(model):
    return is_regressor(model) and not isinstance(model, ConditionalKernelDensity)


def anything(model):
    return True


def first_of_its_class(model):
    """The classes read data; what their parameters are does not matter to it."""
    return model is next(other for other in MODELS if type(other) is type(model))


# Relation, for which models it holds, and up to which difference: in units of the answers'
# spread, and ten thousand times that where numbers are single precision.
RELATIONS = [
    (of_arrays(np.asfortranarray), first_of_its_class, 0.0, "layout"),
    (of_arrays(backwards), first_of_its_class, 0.0, "negative strides"),
    (of_arrays(every_second), first_of_its_class, 0.0, "strides"),
    (of_arrays(read_only), first_of_its_class, 0.0, "read-only"),
    (of_arrays(mapped), first_of_its_class, 0.0, "memory-mapped"),
    (of_arrays(frame), first_of_its_class, 0.0, "frame"),
    (of_arrays(lambda array: array.tolist()), first_of_its_class, 0.0, "lists"),
    (of_arrays(single), anything, 2e-3, "single precision"),
    (scaled, lambda m: m not in FEATURES, 1e-6, "scale"),
    (shifted, stationary, 1e-6, "shift"),
    (targets_scaled, numeric_targets, 1e-6, "targets scaled"),
    (targets_shifted, numeric_targets, 1e-5, "targets shifted"),
    (rows_permuted, deterministic, 1e-6, "rows permuted"),
    (columns_permuted, of_one_minimum, 1e-6, "columns permuted"),
    (rows_repeated, at_given_bandwidth, 1e-9, "rows twice"),
    (rows_of_no_weight, at_given_bandwidth, 1e-9, "weight 0"),
    (equal_weights(1.0), counts_rows_by_weights, 1e-9, "equal weights"),
    (equal_weights(1e48), ratios_of_weights, 1e-9, "large weights"),
    (equal_weights(1e-150), ratios_of_weights, 1e-9, "small weights"),
    (one_by_one, anything, 1e-9, "one by one"),
    (among_copies, anything, 1e-9, "among copies"),
    (in_another_order, anything, 1e-9, "another order"),
]
# What takes long is changed in few ways, and in all of them by slow tests.
LONG = LINES_PER_FEATURE, AVERAGES_PER_FEATURE, PARABOLAS
FEW = "scale", "rows permuted", "one by one"
# Relations that others are much like.
LIKE_OTHERS = ("small weights",)
CASES = [
    pytest.param(
        model,
        change,
        tolerance,
        id=f"{name}-{model!r}".replace("\n", ""),
        marks=[pytest.mark.slow]
        if (model in LONG and name not in FEW) or name in LIKE_OTHERS
        else [],
    )
    for model in MODELS
    for change, holds, tolerance, name in RELATIONS
    if holds(model)
]


@pytest.mark.parametrize(("model", "change", "tolerance"), CASES)
def test_relation(model, change, tolerance):
    expected = fitted(repr(model))[1]
    found = change(case_of(model))
    if isinstance(found, pd.DataFrame | pd.Series):
        found = found.to_numpy()
    networks = isinstance(model, TransformerRegressor | TransformerClassifier)
    if isinstance(model, ConditionalKernelDensity):
        tolerance = max(tolerance, 1e-5)  # of searches for the line and for the density
    size = np.nanmax(np.abs(expected)) * (1e4 if networks and tolerance < 1e-3 else 1.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * size)


WEIGHTS = {
    "of every size": 10.0 ** np.random.default_rng(1).uniform(-200, 200, 40),
    "few heavy ones": np.where(np.arange(40) % 10, 1.0, 1e48),
}
SLOWLY_ASKED = LocalPolynomialRegressor, LocalPolynomialCV, NadarayaWatsonCV
QUICK = [
    model
    for model in MODELS
    if first_of_its_class(model) and not isinstance(model, SLOWLY_ASKED)
]
WEIGHED = [
    pytest.param(model, id=repr(model), marks=[] if model in QUICK else pytest.mark.slow)
    for model in MODELS
    if model not in FEATURES
]


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("model", WEIGHED)
def test_weights_of_any_size(model, name):
    """Rows count by the ratios of their weights, and not where these are next to nothing."""
    case, weights = case_of(model), WEIGHTS[name]
    if counts_rows_by_weights(model):
        weights = weights / weights.max()
    fitted = clone(model).fit(case.X, case.y, sample_weight=weights)
    found = [ask(fitted, case.queries, case.targets)]
    if hasattr(model, "predict_interval"):
        found.append(fitted.predict_interval(case.queries))
    if getattr(model, "empty", "nearest") != "nan":
        assert all(np.isfinite(part).all() for part in found)


# Forecasters: what is done to the series, and the way back.
WAVE = 20 + 3 * np.sin(np.arange(70) * np.pi / 6) + np.random.default_rng(0).normal(size=70)
SERIES = pd.DataFrame({"a": WAVE, "b": np.roll(WAVE, 3) + np.linspace(0, 5, 70)})
QUICK_FORECASTER = TransformerForecaster(4, candidates=["seasonal", "analogs", "ridge"])
FORECASTERS = [
    *(KernelForecaster(4, bandwidth=bandwidth) for bandwidth in ("loo", 1.0)),
    KernelForecaster(4, kernel="epanechnikov"),
    KernelForecaster(4, season_length=12, lookback=6),
    QUICK_FORECASTER,
    TransformerForecaster(4),
    TransformerForecaster(4, log=False, season_length=12),
]
SERIES_RELATIONS = {
    "layout": (lambda y: np.asfortranarray(y), lambda f: f, 0.0),
    "negative strides": (lambda y: backwards(y.to_numpy()), lambda f: f, 0.0),
    "read-only": (lambda y: read_only(y.to_numpy()), lambda f: f, 0.0),
    "memory-mapped": (lambda y: mapped(y.to_numpy()), lambda f: f, 0.0),
    "lists": (lambda y: y.to_numpy().tolist(), lambda f: f, 0.0),
    "dict": (lambda y: {name: y[name] for name in y}, pd.DataFrame, 0.0),
    "index": (lambda y: y.set_index(pd.RangeIndex(5, 75)), lambda f: f, 0.0),
    "single precision": (lambda y: y.astype(np.float32), lambda f: f, 1e-5),
    "scale": (lambda y: 8 * y, lambda f: f / 8, 1e-6),
    "order of series": (lambda y: y[["b", "a"]], lambda f: f[["a", "b"]], 1e-9),
}


@functools.cache
def forecasts(name):
    model = next(model for model in FORECASTERS if repr(model) == name)
    return clone(model).fit(SERIES).predict().to_numpy()


# Series are read before a forecaster's options matter: exact relations for the first of each.
@pytest.mark.usefixtures("few_rates")
@pytest.mark.parametrize(
    ("model", "name"),
    [
        pytest.param(model, name, id=f"{model!r}-{name}")
        for model in FORECASTERS
        for name, (_, _, tolerance) in SERIES_RELATIONS.items()
        if tolerance or model in (FORECASTERS[0], QUICK_FORECASTER)
    ],
)
def test_relation_of_series(model, name):
    change, back, tolerance = SERIES_RELATIONS[name]
    expected = forecasts(repr(model))
    found = np.asarray(back(clone(model).fit(change(SERIES)).predict()))
    if name == "order of series" and isinstance(model, TransformerForecaster):
        tolerance = 2e-2  # of several series that are combined alike
    np.testing.assert_allclose(found, expected, rtol=tolerance)


# Numbers of features, and sizes of numbers in X and in the targets: where the numbers are at
# their ends, where ten squares of them are, and more of both.
EXTREMES = [(1, 1e-300, 1.0), (1, 1e300, 1.0), (10, 1e-160, 1.0), (10, 1e160, 1.0)]
EXTREMES += [(2, 1.0, 1e-300), (2, 1.0, 1e300), (1, 1e-310, 1.0)]
FAR = 1e-160, 1e-10, 1e10, 1e100, 1e160
LESS_EXTREME = [(1, size, 1.0) for size in FAR] + [(2, 1.0, size) for size in FAR]
LESS_EXTREME += [(10, size, 1.0) for size in (1e-300, 1e300)]
# What may be refused at these sizes, by an error that says so.
REFUSED = (
    "features overflow at bandwidth",
    "y has values as large as",
    r"(?s)features divided by bandwidth.* overflow",
    "have squares that are infinite",
    "too small for a bandwidth",
)


@pytest.mark.parametrize(
    ("model", "n_features", "size", "target_size"),
    [
        pytest.param(
            model,
            *extreme,
            marks=[pytest.mark.slow] if extreme in LESS_EXTREME or model in LONG[:2] else [],
            id=f"{model!r}-{'-'.join(map(str, extreme))}".replace("\n", ""),
        )
        for model in MODELS
        for extreme in EXTREMES + LESS_EXTREME
        if extreme[2] == 1.0 or is_regressor(model)
    ],
)
def test_finite_in_finite_out(model, n_features, size, target_size):
    """Warnings are errors here; a square, a sum or a quotient out of range is one."""
    rng = np.random.default_rng(0)
    # A bandwidth for each, or for 66 coefficients of a parabola, takes long to search.
    wide = getattr(model, "per_feature", False) or model in (PARABOLAS, BEST_POLYNOMIAL)
    X = rng.normal(size=(30, min(n_features, 4) if wide else n_features))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=30)
    y = np.where(y > 0, "b", "a") if is_classifier(model) else target_size * y
    answers, refusal = np.zeros(1), ""
    try:
        answers = Case(model, size * X, y, size * X[:9], y[:9]).answers()
    except ValueError as error:
        refusal = str(error)
    assert not refusal or any(re.search(words, refusal) for words in REFUSED), refusal
    if getattr(model, "empty", None) != "nan":
        least = -np.inf if model in DENSITIES else -np.finfo(float).max
        assert ((least <= answers) & (answers < np.inf)).all()


@pytest.mark.slow
def test_many_features_of_any_size():
    X = np.random.default_rng(0).normal(size=(40, 300)) * 10.0 ** np.linspace(-100, 100, 300)
    y = X[:, 150]
    for model in (
        NadarayaWatsonRegressor(),
        LocalPolynomialRegressor(),
        ProductKernelDensity(),
    ):
        assert np.isfinite(ask(clone(model).fit(X, y), X, y)).all()
