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
from slow_cases import slow_but

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
TINY = {
    "d_model": 8, "n_heads": 2, "n_layers": 1, "max_epochs": 1, "batch_size": 20,
    "baseline": False,
}  # fmt: skip
FEW_STEPS = {"n_folds": 1, "max_steps": 2}
# Models that every run asks about every relation; then those that search, which it asks
# about units alone; then those of which each takes long.
GROUPS = {
    "smoothers at a bandwidth": [
        NadarayaWatsonRegressor(bandwidth=3 * UNITS),
        NadarayaWatsonClassifier("matern32", bandwidth=UNITS),
        LocalPolynomialRegressor("laplacian", bandwidth=2 * UNITS, degree=1),
    ],
    "densities": [ProductKernelDensity("logistic", bandwidth=UNITS)],
    "conditional densities": [
        ConditionalKernelDensity(bandwidth="scott", target_bandwidth="scott", degree=0),
    ],
    "kernel attention": [
        KernelAttentionRegressor("solve", **FEW_STEPS),
        KernelAttentionClassifier("average", **FEW_STEPS),
    ],
    "encoders": [
        TransformerRegressor(**TINY, loss="quantile", quantile=[0.1, 0.5]),
        TransformerClassifier(**TINY),
    ],
    "random features": [
        RandomFourierFeatures(7, random_state=0),
        PositiveRandomFeatures(8, bandwidth=3.0, random_state=0),
    ],
}
SEARCHING = {
    "smoothers at a bandwidth": [
        NadarayaWatsonRegressor("epanechnikov", bandwidth=UNITS, empty="nan"),
        NadarayaWatsonRegressor(bandwidth="scott"),
    ],
    "smoothers": [
        NadarayaWatsonRegressor(bandwidth="penalized-loo"),
        NadarayaWatsonRegressor(bandwidth="knn-loo"),
        NadarayaWatsonClassifier(),
        LocalPolynomialRegressor(bandwidth=AdaptiveBandwidth(7), degree=1),
        LocalPolynomialRegressor(structure="additive"),
    ],
    "densities": [
        ProductKernelDensity(bandwidth="scott", sensitivity=0.5),
        ProductKernelDensity(bandwidth="likelihood"),
    ],
    "kernel attention": [KernelAttentionRegressor("average", **FEW_STEPS)],
}
LONG = {
    "smoothers": [
        NadarayaWatsonRegressor(per_feature=True),
        LocalPolynomialRegressor(degree=1, robust=True),
        LocalPolynomialRegressor(),
        NadarayaWatsonCV(["gaussian", "tricube"]),
        LocalPolynomialCV(["gaussian"], criterion="gcv"),
    ],
    "conditional densities": [ConditionalKernelDensity()],
    "encoders": [TransformerRegressor(**TINY)],
}
GROUP_OF = {
    repr(model): group
    for groups in (GROUPS, SEARCHING, LONG)
    for group, models in groups.items()
    for model in models
}
QUICK, SEARCH, SLOW = (
    [model for models in groups.values() for model in models]
    for groups in (GROUPS, SEARCHING, LONG)
)
MODELS = QUICK + SEARCH + SLOW


def name_of(model):
    return repr(model).replace("\n", "")


def of(models, quick=QUICK):
    """What to parametrize a test by models with."""
    return [
        pytest.param(m, id=name_of(m), marks=[] if m in quick else [pytest.mark.slow])
        for m in models
    ]


# Of tables with categories, one of each class.
READ_CATEGORIES = [m for m in QUICK if "categorical_features" in m.get_params()]


@dataclasses.dataclass(frozen=True)
class Case:
    """A model, what it is fitted to, and what it is asked."""

    model: Any
    X: Any
    y: Any
    queries: Any
    targets: Any  # of the queries
    weights: Any = None

    def with_(self, **changes):
        return dataclasses.replace(self, **changes)

    def each(self, change, *names):
        """The case in which some parts are changed alike."""
        return self.with_(**{name: change(getattr(self, name)) for name in names})

    def features(self, change):
        return self.each(change, "X", "queries")

    def fitted(self):
        weights = {} if self.weights is None else {"sample_weight": self.weights}
        return clone(self.model).fit(self.X, self.y, **weights)

    def answers(self):
        return ask(self.fitted(), self.queries, self.targets)


def first_answer(model, X, y):
    if isinstance(model, ConditionalKernelDensity):
        return model.score_samples(X, y)
    names = "predict_proba", "predict", "score_samples", "transform"
    return np.asarray(next(getattr(model, name) for name in names if hasattr(model, name))(X))


def knows_errors(model):
    """Whether all rows have errors, or the network learns quantiles."""
    return getattr(model, "empty", "") != "nan" and getattr(model, "quantile", []) is not None


def ask(model, X, y):
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
        weights = np.asarray(explained["weight" if framed else 1])
        found["number of weights"] = weights.reshape(-1, 3)
    if hasattr(model, "confidence_band") and knows_errors(model):
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
    """A number, a category, and numbers that are codes of one.

    The last queries have a new level and no level; a density has no place for these.
    """
    case, rng = case_of(model), np.random.default_rng(1)
    kinds, codes = rng.integers(3, size=49), rng.integers(3, size=49)
    if not isinstance(model, ProductKernelDensity):
        kinds[47:] = 3, -1
    table = pd.DataFrame(
        {
            "number": np.r_[case.X, case.queries][:, 0],
            "kind": pd.Categorical.from_codes(kinds, ["u", "v", "w", "new"]),
            "code": pd.Series(10 * codes).astype("category"),
        }
    )
    if not is_classifier(model):
        case = case.with_(y=case.y + UNIT * (kinds + codes)[:40])
    if given(model) is not None:
        model = clone(model).set_params(bandwidth="scott")
    return case.with_(model=model, X=table[:40], queries=table[40:])


@functools.cache
def expected_of(name, make=case_of):
    """The answers of the model of that name: the same for all relations."""
    return make(next(model for model in MODELS if repr(model) == name)).answers()


def given(model):
    """Bandwidths that are given for each feature; None where there are none."""
    bandwidth = getattr(model, "bandwidth", None)
    return bandwidth if isinstance(bandwidth, np.ndarray) else None


def with_bandwidth(model, change):
    """The model with such bandwidths changed as its features are."""
    if given(model) is None:
        return model
    return clone(model).set_params(bandwidth=change(given(model)))


# Ways to change a case, each with what then becomes of the answers if these change too.


def odd(array):
    """The same numbers read-only, at negative strides with gaps between."""
    array = np.repeat(array[::-1], 2, axis=-1)
    array.flags.writeable = False
    return array[::-1, ..., ::2] if array.ndim > 1 else array[::-2]


def mapped(array):
    if array.dtype.kind == "U":
        return array
    with tempfile.TemporaryFile() as file:
        found = np.memmap(file, array.dtype, "w+", shape=array.shape)
    found[:] = array
    return found


def frame(array):
    return pd.Series(array) if array.ndim == 1 else pd.DataFrame(array, columns=["a", "b"])


def form(convert):
    def changed(case):
        return case.each(convert, "X", "y", "queries", "targets").answers()

    return changed


def single_precision(case):
    def single(array):
        return array.astype(np.float32) if array.dtype.kind == "f" else array

    answers = case.each(single, "X", "y", "queries", "targets").answers()
    # Quantiles step where sums of weights pass a level.
    return {name: answers[name] for name in answers if name != "value of quantiles"}


def back(answers, **ways):
    """Answers as of the case that was not changed: `value`, `size` ... by their names."""
    return {
        name: ways.get(name.split()[0].replace("-", "_"), lambda x: x)(value)
        for name, value in answers.items()
    }


def features_elsewhere(case):
    """At 0, and then in other units."""
    factors = np.array([1e3, 1 / 7])
    case = case.with_(model=with_bandwidth(case.model, lambda h: factors * h))
    answers = case.features(lambda X: (X - PLACES) * factors).answers()
    is_density = isinstance(case.model, ProductKernelDensity)
    log_volume = np.log(factors).sum() if is_density else 0.0
    return back(answers, log_density=lambda x: x + log_volume, slope=lambda x: x * factors)


def targets_elsewhere(case):
    """At 0, and then in another unit."""
    move, factor = 1000 * UNIT, 3e-5
    answers = case.each(lambda y: (y - move) * factor, "y", "targets").answers()
    return back(
        answers, value=lambda x: x / factor + move, size=lambda x: x / factor,
        slope=lambda x: x / factor, log_density=lambda x: x + np.log(factor),
    )  # fmt: skip


def beside_other_units(case):
    """The difference that the unit of a second output makes to the first, and to itself."""
    other = UNIT * np.cos(case.X[:, 0] / UNITS[0])
    parts = []
    for unit in (1.0, 1e6):
        answers = case.with_(y=np.column_stack([case.y, unit * other])).answers()
        units = np.array([1.0, unit])
        # Of intervals, slopes, and of weights of each output, outputs are not the last axis.
        ways = dict.fromkeys(("value", "size"), lambda x, units=units: x / units)
        parts.append(back(answers, slope=lambda x, units=units: x / units[:, None], **ways))
    # Of one output only shapes are others: the difference is added to what is expected.
    before = expected_of(repr(case.model))
    return {
        name: value + np.nanmax(np.abs(parts[1][name] - parts[0][name]))
        for name, value in before.items()
    }


def permuted(case):
    """Rows and columns in another order."""
    rows = np.random.default_rng(1).permutation(len(case.X))
    case = case.with_(model=with_bandwidth(case.model, lambda h: h[::-1]))
    case = case.each(lambda x: x[rows], "X", "y").features(lambda X: X[:, ::-1])
    return back(case.answers(), slope=lambda x: x[..., ::-1])


def beside_a_constant(case):
    case = case.with_(model=with_bandwidth(case.model, lambda h: np.r_[0.1, h]))
    case = case.features(lambda X: np.c_[np.full(len(X), 7.3), X])
    return back(case.answers(), slope=lambda x: x[..., 1:])


def copies_as_weights(case):
    """The difference between rows twice and rows of weight two."""
    twice = case.each(lambda x: np.repeat(x, 2, axis=0), "X", "y").answers()
    heavy = case.with_(weights=np.full(len(case.X), 2.0)).answers()
    same = [name for name in heavy if name in ("value", "number", "log-density", "slope")]
    before = expected_of(repr(case.model))
    return {name: before[name] + twice[name] - heavy[name] for name in same}


def rows_of_no_weight(case):
    weights = np.r_[np.ones(40), np.zeros(9)]
    X, y = case.X[np.r_[:40, :9]], case.y[np.r_[:40, :9]]
    X[40:] += UNITS / 2
    return case.with_(X=X, y=y, weights=weights).answers()


def weights_in(unit):
    def weighed(case):
        # Rules of thumb have a number of rows, which is the sum of their weights.
        size = 1.0 if has_a_rule(case.model) else unit
        return case.with_(weights=np.full(len(case.X), size)).answers()

    return weighed


def other_queries(case):
    """Three that were asked one by one, three among copies, and three in another order."""
    model = case.fitted()

    def asked(*rows):
        parts = [ask(model, case.queries[part], case.targets[part]) for part in rows]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    alone, copies = asked([0], [1], [2]), asked(np.tile(np.arange(9), 7))
    turned = asked(np.arange(9)[::-1])
    return {
        name: np.concatenate([alone[name], copies[name][12:15], turned[name][::-1][6:]])
        for name in alone
    }


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


def has_a_rule(model):
    return str(getattr(model, "bandwidth", "")) in ("scott", "silverman")


def searches_nothing(model):
    return has_a_rule(model) or not isinstance(model.bandwidth, str)


def all_models(model):
    return True


def of_several_outputs(model):
    return is_regressor(model) and not isinstance(
        model, ConditionalKernelDensity | TransformerRegressor
    )


def first_of_its_class(model):
    """The classes read data; what their parameters are does not matter to it."""
    return model is next(other for other in MODELS if type(other) is type(model))


PLACES_AND_UNITS = "where features are", "units of the features"
OF_THE_TARGET = "where the target is", "unit of the target"
ORDERS = "order of the rows", "order of the columns"
# By the rows of the table in docs/promises.md that they are about: how a case is changed, and
# for which models there is such a change.
RELATIONS = {
    "odd memory": (("form of the data",), form(odd), first_of_its_class),
    "memory map": (("form of the data",), form(mapped), first_of_its_class),
    "frame": (("form of the data",), form(frame), first_of_its_class),
    "lists": (("form of the data",), form(np.ndarray.tolist), first_of_its_class),
    "single": (("single precision",), single_precision, all_models),
    "features": (PLACES_AND_UNITS, features_elsewhere, all_models),
    "targets": (OF_THE_TARGET, targets_elsewhere, is_regressor),
    "outputs": (("units of other outputs",), beside_other_units, of_several_outputs),
    "orders": (ORDERS, permuted, all_models),
    "constant": (("constant columns",), beside_a_constant, all_models),
    "copies": (("copies are weights",), copies_as_weights, searches_nothing),
    "weight 0": (("copies are weights",), rows_of_no_weight, all_models),
    "large weights": (("unit of the weights",), weights_in(1e48), all_models),
    "small weights": (("unit of the weights",), weights_in(1e-150), all_models),
    "other queries": (("other queries",), other_queries, all_models),
}
TABLE_RELATIONS = {
    "names of levels": levels_renamed,
    "types of levels": levels_of_other_types,
    "order of the columns": table_columns_permuted,
}
OF_SEARCHES = "features", "targets", "large weights"
OF_LONG = *OF_SEARCHES, "orders", "weight 0", "other queries"


def promised():
    """(group, relation) -> how exactly it is promised, as docs/promises.md says."""
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


def tolerance_of(group, relations):
    """The least that is promised of them; None where nothing is."""
    return min((PROMISED[group, x] for x in relations if (group, x) in PROMISED), default=None)


def cases():
    """Every promised relation of every model."""
    for model in MODELS:
        for name, (relations, change, holds) in RELATIONS.items():
            tolerance = tolerance_of(GROUP_OF[repr(model)], relations)
            asked = model not in SLOW or name in OF_LONG
            if tolerance is not None and holds(model) and asked:
                quick = model in QUICK or (model in SEARCH and name in OF_SEARCHES)
                yield pytest.param(
                    model, change, tolerance, id=f"{name}-{name_of(model)}",
                    marks=[] if quick else [pytest.mark.slow],
                )  # fmt: skip


def test_the_page_has_these_relations_and_estimators():
    tested = {x for relations, *_ in RELATIONS.values() for x in relations}
    assert {x for _, x in PROMISED} == tested | TABLE_RELATIONS.keys()
    assert {group for group, _ in PROMISED} == set(GROUP_OF.values())
    others = {type(model) for model in EVERY.values()} - {type(model) for model in MODELS}
    names = "Forecaster", "Model", "Seq2Seq"
    assert all(kind.__name__.endswith(names) for kind in others)


def beyond(tolerance, found, expected):
    """By how much which answers differ, in units of theirs, where it is too much."""
    differences = {}
    for name, value in found.items():
        value, other, size = np.asarray(value), np.asarray(expected[name]), 1.0
        if name.split()[0] in ("value", "size"):
            size = UNIT
        elif name == "slope":
            size = UNIT / (UNITS if value.shape[-1] == 2 else UNITS[:1])
        both = np.isnan(value) & np.isnan(other)
        differences[name] = np.where(both, 0.0, np.abs(value - other) / size).max()
    # Intervals are quantiles of residuals, which rounding may change.
    least = {name: 1e-9 if name in UNCERTAIN else 0.0 for name in differences}
    return {n: x for n, x in differences.items() if not x <= max(tolerance, least[n])}


UNCERTAIN = "value of predict_interval", "value of confidence_band", "size"


@pytest.mark.parametrize(("model", "change", "tolerance"), cases())
def test_relation(model, change, tolerance):
    assert not beyond(tolerance, change(case_of(model)), expected_of(repr(model)))


def is_line(model):
    return isinstance(model, LocalPolynomialRegressor)


TABLES = [
    (model, relation)
    for model in READ_CATEGORIES
    for relation in TABLE_RELATIONS
    if (GROUP_OF[repr(model)], relation) in PROMISED
]


@pytest.mark.parametrize(
    ("model", "relation"), slow_but([x for x in TABLES if not is_line(x[0])], TABLES), ids=repr
)
def test_relation_of_a_table(model, relation):
    found = TABLE_RELATIONS[relation](case_of_table(model))
    expected = expected_of(repr(model), case_of_table)
    assert not beyond(PROMISED[GROUP_OF[repr(model)], relation], found, expected)


WEIGHTS = (
    10.0 ** np.random.default_rng(1).uniform(-200, 200, 40),
    np.where(np.arange(40) % 10, 1.0, 1e48),
)
WEIGHED = [model for model in MODELS if not hasattr(model, "transform")]


@pytest.mark.parametrize("model", of(WEIGHED, [m for m in QUICK if not is_line(m)]))
def test_weights_of_any_size(model):
    """Rows count by the ratios of their weights, and not where these are next to nothing."""
    for weights in WEIGHTS:
        size = weights.max() if has_a_rule(model) else 1.0
        answers = case_of(model).with_(weights=weights / size).answers()
        if getattr(model, "empty", "nearest") != "nan":
            assert all(np.isfinite(value).all() for value in answers.values())


# Forecasters: what is done to the series, the way back, and how exact that is. Their forms are
# those of tests/forecasting/test_one_form.py.
WAVE = 20 + 3 * np.sin(np.arange(70) * np.pi / 6) + np.random.default_rng(0).normal(size=70)
SERIES = pd.DataFrame({"a": WAVE, "b": np.roll(WAVE, 3) + np.linspace(0, 5, 70)})
FORECASTERS = [
    KernelForecaster(4, bandwidth=1.0),
    TransformerForecaster(4, candidates=["ridge", "analogs"]),
]
SERIES_RELATIONS = {
    "odd memory": (lambda y: odd(y.to_numpy()), lambda f: f, 0.0),
    "single precision": (lambda y: y.astype(np.float32), lambda f: f, 1e-5),
    "scale": (lambda y: 8 * y, lambda f: f / 8, 1e-6),
    "order of series": (lambda y: y[["b", "a"]], lambda f: f[["a", "b"]], 1e-9),
}


@pytest.mark.parametrize("model", of(WEIGHED, [m for m in QUICK if not is_line(m)]))
def test_rows_of_no_weight_may_be_of_any_size(model):
    """They are absent, without a warning of NumPy's."""
    case, answers = case_of(model), []
    for change in (1, 1e200):
        X, y = np.vstack([case.X, change * case.X[:1]]), np.append(case.y, case.y[0])
        if not is_classifier(model):
            y[-1] *= change
        weights = np.append(np.ones(len(case.X)), 0.0)
        case = case.with_(X=X, y=y, weights=weights)
        answers.append(case.answers())
        if hasattr(model, "confidence_band") and knows_errors(model):
            intervals = case.fitted().predict_interval(case.queries, heteroscedastic=True)
            answers[-1]["value of heteroscedastic intervals"] = intervals
        case = case_of(model)
    tolerance = PROMISED[GROUP_OF[repr(model)], "unit of the weights"]
    assert not beyond(tolerance, *answers)


@functools.cache
def forecasts(name):
    model = next(model for model in FORECASTERS if repr(model) == name)
    return clone(model).fit(SERIES).predict().to_numpy()


@pytest.mark.usefixtures("few_rates")
@pytest.mark.parametrize("name", SERIES_RELATIONS)
@pytest.mark.parametrize("model", FORECASTERS, ids=name_of)
def test_relation_of_series(model, name):
    change, back, tolerance = SERIES_RELATIONS[name]
    expected = forecasts(repr(model))
    found = np.asarray(back(clone(model).fit(change(SERIES)).predict()))
    np.testing.assert_allclose(found, expected, rtol=tolerance)


# Numbers of features, and sizes of numbers in X and in the targets: where the numbers are at
# their ends, and where ten squares of them are.
EXTREMES = [(1, 1e-300, 1.0), (1, 1e300, 1.0), (10, 1e-160, 1.0), (10, 1e160, 1.0)]
EXTREMES += [(2, 1.0, 1e-300), (2, 1.0, 1e300), (1, 1e-310, 1.0)]
# What may be refused at these sizes, by an error that says so.
REFUSED = re.compile(
    "features overflow at bandwidth|y has values as large as|whose square overflows|"
    r"(?s:features divided by bandwidth.* overflow)|too small for a bandwidth"
)


def answers_at(model, n_features, size, target_size):
    """Answers; none where the fit is refused in words that say why."""
    rng = np.random.default_rng(0)
    # A bandwidth for each, or for 66 coefficients of a parabola, takes long to search.
    X = size * rng.normal(size=(30, min(n_features, 4) if model in SLOW else n_features))
    y = np.sin(X[:, 0] / size) + 0.1 * rng.normal(size=30)
    y = np.where(y > 0, "b", "a") if is_classifier(model) else target_size * y
    try:
        return first_answer(with_bandwidth(model, lambda h: 0.7).fit(X, y), X[:9], y[:9])
    except ValueError as error:
        if REFUSED.search(str(error)):
            return np.zeros(1)
        raise


@pytest.mark.parametrize("model", of(MODELS))
def test_finite_in_finite_out(model):
    """Warnings are errors here; a square, a sum or a quotient out of range is one."""
    least = -np.inf if hasattr(model, "score_samples") else -np.finfo(float).max
    for extreme in EXTREMES:
        if extreme[2] == 1.0 or is_regressor(model):
            found = answers_at(clone(model), *extreme)
            known = found[~np.isnan(found)] if getattr(model, "empty", "") == "nan" else found
            assert ((least <= known) & (known < np.inf)).all(), extreme


@pytest.mark.slow
def test_many_features_of_any_size():
    X = np.random.default_rng(0).normal(size=(40, 60)) * 10.0 ** np.linspace(-100, 100, 60)
    y = X[:, 30]
    for kind in NadarayaWatsonRegressor, LocalPolynomialRegressor, ProductKernelDensity:
        assert np.isfinite(first_answer(kind().fit(X, y), X, y)).all()
