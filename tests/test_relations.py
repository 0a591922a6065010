"""The contract of relations: what must not change an answer, or must change it in a known way.

Which estimators promise which relation, and how exactly, is a table of docs/promises.md.
"""

import dataclasses
import functools
import pathlib
import re
import tempfile
from typing import Any

import numpy as np
import pandas as pd
import pytest
from every_estimator import EVERY
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

# Units of the features and of the target, and where they are: 1000 deviations from 0.
UNITS, PLACES, UNIT = np.array([5.0, 0.01]), np.array([5000.0, 10.0]), 100.0
TINY = {"d_model": 8, "n_heads": 2, "n_layers": 1, "max_epochs": 2, "baseline": False}
NEIGHBORS = AdaptiveBandwidth(7)
GROUPS = {
    "smoothers at a bandwidth": [
        *(NadarayaWatsonRegressor(k, bandwidth=3 * UNITS) for k in ("gaussian", "tricube")),
        NadarayaWatsonRegressor("epanechnikov", bandwidth=UNITS, empty="nan"),
        NadarayaWatsonRegressor(bandwidth="scott"),
        NadarayaWatsonClassifier("matern32", bandwidth=UNITS),
        LocalPolynomialRegressor("laplacian", bandwidth=2 * UNITS),
        LocalPolynomialRegressor(bandwidth="silverman", degree=2),
    ],
    "smoothers": [
        *(NadarayaWatsonRegressor(bandwidth=h) for h in ("penalized-loo", "aicc", "knn-loo")),
        NadarayaWatsonRegressor("epanechnikov", bandwidth="loo"),
        NadarayaWatsonRegressor(per_feature=True),
        NadarayaWatsonClassifier(),
        LocalPolynomialRegressor("tricube", bandwidth="gcv", degree=1),
        LocalPolynomialRegressor(per_feature=False),
        LocalPolynomialRegressor(degree=2),
        LocalPolynomialRegressor(per_feature=True),
        LocalPolynomialRegressor(degree=1, robust=True),
        LocalPolynomialRegressor(bandwidth=NEIGHBORS),
        NadarayaWatsonCV(["gaussian", "tricube"]),
        LocalPolynomialCV(["gaussian"], criterion="gcv"),
    ],
    "densities": [
        ProductKernelDensity("logistic", bandwidth=UNITS),
        ProductKernelDensity(bandwidth="scott", sensitivity=0.5),
        *(ProductKernelDensity(bandwidth=h) for h in ("likelihood", "least_squares")),
    ],
    "conditional densities": [
        ConditionalKernelDensity(),
        ConditionalKernelDensity(bandwidth="scott", target_bandwidth="scott", degree=0),
    ],
    "kernel attention": [
        *(
            kind(readout, n_folds=1, max_steps=2)
            for kind in (KernelAttentionRegressor, KernelAttentionClassifier)
            for readout in ("solve", "average")
        ),
    ],
    "encoders": [
        TransformerRegressor(**TINY),
        TransformerRegressor(**TINY, loss="quantile", quantile=[0.1, 0.5]),
        TransformerClassifier(**TINY),
    ],
    "random features": [
        RandomFourierFeatures(7, random_state=0),
        PositiveRandomFeatures(8, bandwidth=3.0, random_state=0),
    ],
}
MODELS = [model for models in GROUPS.values() for model in models]
# Of tables with categories, one of each class.
READ_CATEGORIES = [
    model
    for model in MODELS
    if "categorical_features" in model.get_params()
    and model is next(other for other in MODELS if type(other) is type(model))
]
READ_CATEGORIES[READ_CATEGORIES.index(MODELS[0])] = NadarayaWatsonRegressor()


@dataclasses.dataclass(frozen=True)
class Case:
    """A model, what it is fitted to, and what it is asked."""

    model: Any
    X: Any
    y: Any
    queries: Any
    targets: Any  # of the queries
    weights: Any = None
    intervals: bool = False  # whether it is asked for these too

    def with_(self, **changes):
        return dataclasses.replace(self, **changes)

    def each(self, change, *names):
        """The case in which some parts are changed alike."""
        return self.with_(**{name: change(getattr(self, name)) for name in names})

    def features(self, change):
        return self.each(change, "X", "queries")

    def answers(self):
        weights = {} if self.weights is None else {"sample_weight": self.weights}
        model = clone(self.model).fit(self.X, self.y, **weights)
        return ask(model, self.queries, self.targets, intervals=self.intervals)


def first_answer(model, X, y):
    if isinstance(model, ConditionalKernelDensity):
        return model.score_samples(X, y)
    names = "predict_proba", "predict", "score_samples", "transform"
    return np.asarray(next(getattr(model, name) for name in names if hasattr(model, name))(X))


def knows_errors(model):
    """Whether all rows have errors, or the network learns quantiles."""
    return getattr(model, "empty", "") != "nan" and getattr(model, "quantile", []) is not None


def ask(model, X, y, *, intervals=False):
    """What a model says of queries, by what it is that changes with units and places."""
    found = {"value" if is_regressor(model) else "number": first_answer(model, X, y)}
    if hasattr(model, "score_samples"):
        found = {"log-density": first_answer(model, X, y)}
    elif hasattr(model, "predict_quantiles") and knows_errors(model):
        found["value of quantiles"] = model.predict_quantiles(X)
    if hasattr(model, "predict_gradient") and not hasattr(model, "n_neighbors_"):
        found["slope"] = model.predict_gradient(X)
    if hasattr(model, "explain"):
        explained = model.explain(X, k=3)
        framed = not isinstance(explained, tuple)
        found["number of weights"] = explained["weight"] if framed else explained.weights
    if intervals:
        for name in "predict_interval", "confidence_band":
            found[f"value of {name}"] = getattr(model, name)(X)
        found["size"] = model.predict(X, return_std=True)[1]
    return found


def case_of(model, n=40, n_queries=9):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n + n_queries, 2))
    X = PLACES + UNITS * Z
    y = np.sin(2 * Z[:, 0]) + 0.6 * Z[:, 1] + 0.2 * rng.normal(size=len(Z))
    y = np.where(y > 0, "b", "a") if is_classifier(model) else UNIT * (1000 + y)
    return Case(model, X[:n], y[:n], X[n:], y[n:])


def case_of_table(model):
    """A number, a category, and numbers that are codes of one."""
    case, rng = case_of(model), np.random.default_rng(1)
    kinds, codes = rng.integers(3, size=49), rng.integers(3, size=49)
    table = pd.DataFrame(
        {
            "number": np.r_[case.X, case.queries][:, 0],
            "kind": pd.Categorical.from_codes(kinds, ["u", "v", "w"]),
            "code": pd.Series(10 * codes).astype("category"),
        }
    )
    if not is_classifier(model):
        case = case.with_(y=case.y + UNIT * (kinds + codes)[:40])
    if isinstance(getattr(model, "bandwidth", None), np.ndarray):
        model = clone(model).set_params(bandwidth="scott")
    return case.with_(model=model, X=table[:40], queries=table[40:])


@functools.cache
def expected_of(name, make=case_of, intervals=False):
    """The answers of the model of that name: the same for all relations."""
    models = READ_CATEGORIES if make is case_of_table else MODELS
    model = next(model for model in models if repr(model) == name)
    return make(model).with_(intervals=intervals).answers()


# Ways to change a case, each with what then becomes of the answers if these change too.


def backwards(array):
    return array[::-1].copy()[::-1]


def every_second(array):
    twice = np.repeat(array, 2, axis=-1)
    return twice[..., ::2]


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


FORMS = {
    "layout": np.asfortranarray,
    "negative strides": backwards,
    "strides": every_second,
    "read-only": read_only,
    "memory map": mapped,
    "frame": frame,
    "lists": lambda array: array.tolist(),
}


def form(name):
    def changed(case):
        return case.each(FORMS[name], "X", "y", "queries", "targets").answers()

    return changed


def single(array):
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def single_precision(case):
    answers = case.each(single, "X", "y", "queries", "targets").answers()
    # Quantiles step where sums of weights pass a level.
    return {name: answers[name] for name in answers if name != "value of quantiles"}


def back(answers, **ways):
    """Answers as of the case that was not changed: `value`, `size` ... by their names."""
    return {
        name: ways.get(name.split()[0].replace("-", "_"), lambda x: x)(value)
        for name, value in answers.items()
    }


def with_bandwidth(model, factors):
    """The model with bandwidths that are given as numbers multiplied."""
    given = getattr(model, "bandwidth", None)
    return (
        clone(model).set_params(bandwidth=factors * given)
        if isinstance(given, np.ndarray)
        else model
    )


def features_shifted(case):
    return case.features(lambda X: X - PLACES).answers()


def features_in_other_units(case):
    factors = np.array([1e3, 1 / 7])
    model = with_bandwidth(case.model, factors)
    answers = case.with_(model=model).features(lambda X: X * factors).answers()
    log_volume = np.log(factors).sum() if isinstance(model, ProductKernelDensity) else 0.0
    return back(answers, log_density=lambda x: x + log_volume, slope=lambda x: x * factors)


def targets_shifted(case):
    move = 1000 * UNIT
    answers = case.each(lambda y: y - move, "y", "targets").answers()
    return back(answers, value=lambda x: x + move)


def targets_in_other_units(case):
    answers = case.each(lambda y: y * 3e-5, "y", "targets").answers()
    ways = dict.fromkeys(("value", "size", "slope"), lambda x: x / 3e-5)
    return back(answers, log_density=lambda x: x + np.log(3e-5), **ways)


def beside_other_units(case):
    """The difference that the unit of a second output makes to the first, and to itself."""
    other = UNIT * np.cos(case.X[:, 0] / UNITS[0])
    parts = []
    for unit in (1.0, 1e6):
        answers = case.with_(y=np.column_stack([case.y, unit * other])).answers()
        units = np.array([1.0, unit])
        # Of slopes, and of weights of each output, outputs are not the last axis.
        ways = dict.fromkeys(("value", "size"), lambda x, units=units: x / units)
        parts.append(back(answers, slope=lambda x, units=units: x / units[:, None], **ways))
    # Of one output only shapes are others: the difference is added to what is expected.
    before = expected_of(repr(case.model), intervals=case.intervals)
    return {
        name: value + np.nanmax(np.abs(parts[1][name] - parts[0][name]))
        for name, value in before.items()
    }


def rows_permuted(case):
    rows = np.random.default_rng(1).permutation(len(case.X))
    return case.each(lambda x: x[rows], "X", "y").answers()


def columns_permuted(case):
    model = case.model
    if isinstance(getattr(model, "bandwidth", None), np.ndarray):
        model = clone(model).set_params(bandwidth=model.bandwidth[::-1])
    answers = case.with_(model=model).features(lambda X: X[:, ::-1]).answers()
    return back(answers, slope=lambda x: x[..., ::-1])


def beside_a_constant(case):
    model = case.model
    if isinstance(getattr(model, "bandwidth", None), np.ndarray):
        model = clone(model).set_params(bandwidth=np.r_[0.1, model.bandwidth])
    case = case.with_(model=model).features(lambda X: np.c_[np.full(len(X), 7.3), X])
    return back(case.answers(), slope=lambda x: x[..., 1:])


def copies_as_weights(case):
    """The difference between rows twice and rows of weight two."""
    twice = case.each(lambda x: np.repeat(x, 2, axis=0), "X", "y").answers()
    heavy = case.with_(weights=np.full(len(case.X), 2.0)).answers()
    same = [name for name in heavy if name in ("value", "number", "log-density", "slope")]
    before = expected_of(repr(case.model), intervals=case.intervals)
    return {name: before[name] + twice[name] - heavy[name] for name in same}


def rows_of_no_weight(case):
    weights = np.r_[np.ones(40), np.zeros(9)]
    X, y = case.X[np.r_[:40, :9]], case.y[np.r_[:40, :9]]
    X[40:] += UNITS / 2
    return case.with_(X=X, y=y, weights=weights).answers()


def weights_in(unit):
    def weighed(case):
        return case.with_(weights=np.full(len(case.X), unit)).answers()

    return weighed


def asked(case, *rows):
    """What a fitted model says of some rows after others, joined."""
    model = clone(case.model).fit(case.X, case.y)
    parts = [
        ask(model, case.queries[part], case.targets[part], intervals=case.intervals)
        for part in rows
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def one_by_one(case):
    return asked(case, *np.arange(9)[:, None])


def among_copies(case):
    return {name: x[9:18] for name, x in asked(case, np.tile(np.arange(9), 7)).items()}


def in_another_order(case):
    return {name: x[::-1] for name, x in asked(case, np.arange(9)[::-1]).items()}


def levels_renamed(case):
    names = {"u": "blue", "v": "green", "w": "red"}

    def rename(X):
        return X.assign(kind=X["kind"].cat.rename_categories(names))

    return case.features(rename).answers()


def levels_of_other_types(case):
    """What was fitted to numbers is asked with texts, as a file brings them back."""
    return case.each(lambda X: X.assign(code=X["code"].astype(str)), "queries").answers()


def table_columns_permuted(case):
    answers = case.features(lambda X: X[["code", "kind", "number"]]).answers()
    return back(answers, slope=lambda x: x[..., ::-1])


def rule_of_weights(model):
    """Rules of thumb have a number of rows, which is the sum of their weights."""
    return str(getattr(model, "bandwidth", "")) in ("scott", "silverman")


def searches_nothing(model):
    return rule_of_weights(model) or not isinstance(model.bandwidth, str)


def all_models(model):
    return True


def of_numbers(model):
    return is_regressor(model)


def of_several_outputs(model):
    return is_regressor(model) and not isinstance(
        model, ConditionalKernelDensity | TransformerRegressor
    )


def first_of_its_class(model):
    """The classes read data; what their parameters are does not matter to it."""
    return model is next(other for other in MODELS if type(other) is type(model))


# The rows of the table in docs/promises.md: how a case is changed, and for which models there
# is such a change.
RELATIONS = {
    "form of the data": {name: (form(name), first_of_its_class) for name in FORMS},
    "single precision": {"single": (single_precision, all_models)},
    "where features are": {"shifted": (features_shifted, all_models)},
    "units of the features": {"units": (features_in_other_units, all_models)},
    "where the target is": {"targets shifted": (targets_shifted, of_numbers)},
    "unit of the target": {"targets scaled": (targets_in_other_units, of_numbers)},
    "units of other outputs": {"outputs": (beside_other_units, of_several_outputs)},
    "order of the rows": {"rows": (rows_permuted, all_models)},
    "order of the columns": {"columns": (columns_permuted, all_models)},
    "constant columns": {"constant": (beside_a_constant, all_models)},
    "copies are weights": {
        "copies": (copies_as_weights, lambda model: searches_nothing(model)),
        "weight 0": (rows_of_no_weight, all_models),
    },
    "unit of the weights": {
        "weights 1": (weights_in(1.0), all_models),
        **{
            f"weights {unit}": (weights_in(unit), lambda model: not rule_of_weights(model))
            for unit in (1e48, 1e-150)
        },
    },
    "other queries": {
        "one by one": (one_by_one, all_models),
        "copies of queries": (among_copies, all_models),
        "order of queries": (in_another_order, all_models),
    },
}
TABLE_RELATIONS = {
    "names of levels": (levels_renamed, all_models),
    "types of levels": (levels_of_other_types, all_models),
    "order of the columns": (table_columns_permuted, all_models),
    "where the target is": (targets_shifted, of_numbers),
}


def promised():
    """Group -> relation -> how exactly it is promised, as docs/promises.md says."""
    page = pathlib.Path(__file__).parents[1] / "docs" / "promises.md"
    lines = page.read_text(encoding="utf-8").split("## Relations\n")[1].split("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines.splitlines()
        if line.startswith("|")
    ]
    groups = rows[0][1:]
    return {
        (group, row[0]): float(cell)
        for row in rows[2:]
        for group, cell in zip(groups, row[1:], strict=True)
        if re.fullmatch(r"[\d.e-]+", cell)
    }


PROMISED = promised()
SLOW = [pytest.mark.slow]
# What takes long, a fit or an interval.
LONG = [
    model
    for model in MODELS
    if getattr(model, "per_feature", False)
    or getattr(model, "degree", 0) in (2, "auto")
    or getattr(model, "robust", False)
    or repr(model) == "ConditionalKernelDensity()"
    or repr(model).startswith("LocalPolynomialRegressor(bandwidth='gcv', degree=1")
    or isinstance(model, LocalPolynomialCV)
]
FEW = "targets shifted", "columns", "outputs", "constant", "one by one"


def is_line(model):
    return isinstance(model, LocalPolynomialRegressor)


def cases(models, is_slow):
    """Every promised relation of some models, by name."""
    return [
        pytest.param(
            model,
            change,
            PROMISED[group, relation],
            id=f"{name}-{model!r}".replace("\n", ""),
            marks=SLOW if is_slow(model, name) else [],
        )
        for group, members in GROUPS.items()
        for model in members
        for relation, ways in RELATIONS.items()
        for name, (change, holds) in ways.items()
        if model in models and (group, relation) in PROMISED and holds(model)
    ]


def test_the_page_has_these_relations_and_estimators():
    assert {relation for _, relation in PROMISED} == RELATIONS.keys() | TABLE_RELATIONS.keys()
    assert {group for group, _ in PROMISED} == GROUPS.keys()
    tested = {type(model) for model in MODELS}
    others = {type(model) for model in EVERY.values()} - tested
    names = "Forecaster", "Model", "Seq2Seq"
    assert all(kind.__name__.endswith(names) for kind in others)


def assert_same(model, found, expected, tolerance):
    for name, value in found.items():
        value = np.asarray(value)
        size = 1.0
        if name.split()[0] in ("value", "size"):
            size = UNIT
        elif name == "slope":
            size = UNIT / (UNITS if value.shape[-1] == 2 else UNITS[:1])
        np.testing.assert_allclose(
            value / size, expected[name] / size, rtol=0, atol=tolerance, err_msg=name
        )


@pytest.mark.parametrize(
    ("model", "change", "tolerance"),
    cases(MODELS, lambda model, name: model in LONG or (is_line(model) and name not in FEW)),
)
def test_relation(model, change, tolerance):
    assert_same(model, change(case_of(model)), expected_of(repr(model)), tolerance)


@pytest.mark.parametrize(
    ("model", "change", "tolerance"),
    cases(
        [m for m in MODELS if hasattr(m, "confidence_band") and m.empty != "nan"],
        lambda model, name: model is not MODELS[0] or name not in FEW,
    ),
)
def test_relation_of_intervals(model, change, tolerance):
    expected = expected_of(repr(model), intervals=True)
    found = change(case_of(model).with_(intervals=True))
    assert_same(model, found, expected, max(tolerance, 1e-9))


def group_of(model):
    return next(group for group, models in GROUPS.items() if type(model) in map(type, models))


@pytest.mark.parametrize(
    ("model", "change", "tolerance"),
    [
        pytest.param(
            model,
            change,
            PROMISED[group_of(model), relation],
            id=f"{relation}-{model!r}",
            marks=SLOW if is_line(model) or model in LONG else [],
        )
        for model in READ_CATEGORIES
        for relation, (change, holds) in TABLE_RELATIONS.items()
        if (group_of(model), relation) in PROMISED and holds(model)
    ],
)
def test_relation_of_a_table(model, change, tolerance):
    expected = expected_of(repr(model), case_of_table)
    assert_same(model, change(case_of_table(model)), expected, tolerance)


WEIGHTS = {
    "of every size": 10.0 ** np.random.default_rng(1).uniform(-200, 200, 40),
    "few heavy ones": np.where(np.arange(40) % 10, 1.0, 1e48),
}


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(
            model,
            id=repr(model),
            marks=SLOW if model in LONG or not first_of_its_class(model) else [],
        )
        for model in MODELS
        if not hasattr(model, "transform")
    ],
)
def test_weights_of_any_size(model, name):
    """Rows count by the ratios of their weights, and not where these are next to nothing."""
    weights = WEIGHTS[name] / (WEIGHTS[name].max() if rule_of_weights(model) else 1.0)
    answers = case_of(model).with_(weights=weights).answers()
    if getattr(model, "empty", "nearest") != "nan":
        assert all(np.isfinite(value).all() for value in answers.values())


# Forecasters: what is done to the series, and the way back.
WAVE = 20 + 3 * np.sin(np.arange(70) * np.pi / 6) + np.random.default_rng(0).normal(size=70)
SERIES = pd.DataFrame({"a": WAVE, "b": np.roll(WAVE, 3) + np.linspace(0, 5, 70)})
QUICK_FORECASTER = TransformerForecaster(4, candidates=["ridge", "analogs"])
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
            marks=SLOW if extreme in LESS_EXTREME or model in LONG else [],
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
    X = size * rng.normal(size=(30, min(n_features, 4) if model in LONG else n_features))
    y = np.sin(X[:, 0] / size) + 0.1 * rng.normal(size=30)
    y = np.where(y > 0, "b", "a") if is_classifier(model) else target_size * y
    if isinstance(getattr(model, "bandwidth", None), np.ndarray):
        model = clone(model).set_params(bandwidth=0.7)
    answers, refusal = np.zeros(1), ""
    try:
        answers = first_answer(clone(model).fit(X, y), X[:9], y[:9])
    except ValueError as error:
        refusal = str(error)
    assert not refusal or any(re.search(words, refusal) for words in REFUSED), refusal
    if getattr(model, "empty", None) != "nan":
        least = -np.inf if hasattr(model, "score_samples") else -np.finfo(float).max
        assert ((least <= answers) & (answers < np.inf)).all()


@pytest.mark.slow
def test_many_features_of_any_size():
    X = np.random.default_rng(0).normal(size=(40, 300)) * 10.0 ** np.linspace(-100, 100, 300)
    y = X[:, 150]
    for kind in NadarayaWatsonRegressor, LocalPolynomialRegressor, ProductKernelDensity:
        assert np.isfinite(first_answer(kind().fit(X, y), X, y)).all()
