"""The contract that every public estimator keeps, with its main options and forms of data."""

import collections
import copy
import functools
import inspect
import pickle
from decimal import Decimal

import every_estimator
import matplotlib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from every_estimator import EVERY, NETWORKS, answer, data_for, global_state
from recorder import Recorder
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from slow_cases import slow_but

import sklearn_attention
from sklearn_attention import (
    ConditionalKernelDensity,
    KernelAttentionRegressor,
    KernelForecaster,
    NadarayaWatsonRegressor,
    ProductKernelDensity,
    Training,
    TransformerClassifier,
    TransformerForecaster,
    TransformerLanguageModel,
    TransformerRegressor,
    TransformerSeq2Seq,
)
from sklearn_attention.kernels import Periodic

pytestmark = [
    pytest.mark.filterwarnings("ignore:bandwidth="),
    pytest.mark.usefixtures("few_convolutions", "few_rates", "few_trees"),
]

# Data of other forms than tests/every_estimator.py has.


def mixed_frame(n=60):
    """Numbers, texts of which some are missing, and levels in an order."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"length": rng.normal(size=n)})
    frame["color"] = pd.Series(rng.choice(["red", "green", None], n), dtype="str")
    codes = rng.integers(3, size=n)
    frame["size"] = pd.Categorical.from_codes(codes, ["small", "medium", "large"], ordered=True)
    return frame, frame["length"].to_numpy() + codes


def labelled(X, y):
    return X, np.where(y > np.median(y), "b", "a")


def steps():
    """Series of several lengths, and a number for each."""
    rng = np.random.default_rng(0)
    y, lengths = rng.normal(size=40), rng.integers(1, 6, size=40)
    return [v + rng.normal(size=(n, 2)) for n, v in zip(lengths, y, strict=True)], y


def texts():
    rng = np.random.default_rng(0)
    y, lengths = rng.normal(size=40), rng.integers(1, 6, size=40)
    ends = np.where(y > 0, "day", "night")
    return ["good " * n + end for n, end in zip(lengths, ends, strict=True)], y


def ids(n=30):
    rng = np.random.default_rng(0)
    return [rng.integers(5, 12, size=rng.integers(2, 8)).tolist() for _ in range(n)]


def months(form):
    """A series with a feature, of 60 steps, and the feature of the three that follow."""
    index = {
        "array": pd.RangeIndex(63),
        "minutes": pd.date_range("2024-01-01", periods=63, freq="10min"),
        "periods": pd.period_range("2019-01", periods=63, freq="M"),
    }.get(form, pd.date_range("2019-01-01", periods=63, freq="MS"))
    X = pd.DataFrame({"x": np.arange(63) % 5.0}, index)
    y = 20 + np.sin(np.arange(63) / 2) + 0.3 * X["x"]
    y += 0.1 * np.random.default_rng(0).normal(size=63)
    y = {"array": y.to_numpy(), "frame": y.to_frame("y")}.get(form, y)
    return (X[:60], y[:60]), X[60:]


FRAME, ROWS_AND_NUMBERS = mixed_frame(), data_for(EVERY["average"])
TINY = {"d_model": 8, "n_heads": 2, "n_layers": 1, "training": Training(max_steps=3)}
ANALOGS = KernelForecaster(3, lookback=6, bandwidth=1.0)
RIDGE = TransformerForecaster(3, candidates=["ridge", "features"], log=False)

# Estimators and what they are fitted to; forecasters also with the features of what follows.
OF_OWN_FORMS = {
    "average by search": (NadarayaWatsonRegressor(), ROWS_AND_NUMBERS),
    "periodic average": (
        NadarayaWatsonRegressor(Periodic(period=2.0), bandwidth=0.5),
        ROWS_AND_NUMBERS,
    ),
    "density of a frame": (
        ProductKernelDensity("tricube", bandwidth="scott", sensitivity=0.5),
        FRAME[:1],
    ),
    "conditional density of a frame": (
        ConditionalKernelDensity("tricube", bandwidth="scott", target_bandwidth="scott"),
        FRAME,
    ),
    "kernel attention of a frame": (
        KernelAttentionRegressor("average", n_folds=1, max_steps=3),
        FRAME,
    ),
    "regressor of a frame": (TransformerRegressor(**TINY), FRAME),
    "classifier of steps": (TransformerClassifier(**TINY), labelled(*steps())),
    "regressor of texts": (TransformerRegressor(**TINY), texts()),
    "regressor of quantiles": (
        TransformerRegressor(**TINY, loss="quantile", quantile=[0.1, 0.5, 0.9]),
        ROWS_AND_NUMBERS,
    ),
    "analogs of months": (ANALOGS, *months("months")),
    "analogs of an array": (ANALOGS, *months("array")),
    **{
        f"forecaster of {form}": (RIDGE, *months(form))
        for form in ("minutes", "periods", "frame")
    },
    "language model of words": (
        TransformerLanguageModel(tokenizer="words", **TINY),
        (texts()[0],),
    ),
    "language model of ids": (TransformerLanguageModel(tokenizer="ids", **TINY), (ids(),)),
    "translator of ids": (TransformerSeq2Seq(**TINY), (ids(), [x[::-1] for x in ids()])),
}
CASES = {name: (estimator, data_for(estimator)) for name, estimator in EVERY.items()}
CASES |= OF_OWN_FORMS
ROWS = [
    name for name, (_, (X, *_), *_) in CASES.items()
    if isinstance(X, np.ndarray) and X.ndim == 2
]  # fmt: skip
# Of those that read rows alike, one each.
READERS = "average", "conditional density", "density", "kernel attention", "regressor", "waves"


QUICK_CASES = CASES.keys() - {"kernel attention and trees"}


def of(names, quick=QUICK_CASES):
    return pytest.mark.parametrize("name", slow_but(quick, names))


every = of(CASES)


def fresh(name):
    return clone(CASES[name][0])


@functools.cache
def fitted(name):
    """The fitted estimator, which is not to be changed, and all that it says."""
    data = CASES[name][1]
    model = every_estimator.fitted(name) if name in EVERY else fresh(name).fit(*data)
    return model, answers(model, name)


METHODS = (
    "attention_maps cdf confidence_band explain get_feature_names_out "
    "local_slopes perplexity predict predict_cdf predict_gradient predict_interval "
    "predict_log_proba predict_proba predict_quantiles sample score score_samples "
    "smoother_matrix transform"
).split()
PROPERTIES = "aicc_", "best_index_", "candidate_weights_", "effective_dof_", "loo_residuals_"
QUICK = {"n_resamples": 5, "max_new_tokens": 9, "random_state": 0}


def ask(model, method, data, ahead=()):
    """What a method says of the data, or of what follows it."""
    takes = inspect.signature(getattr(model, method)).parameters
    options = {name: value for name, value in QUICK.items() if name in takes}
    if method == "attention_maps" and isinstance(model, TransformerLanguageModel):
        arguments = [data[0][0][:5]]
    elif "X" not in takes or (hasattr(model, "update") and method != "score"):
        arguments = ahead if "X" in takes else ()
    else:
        arguments = data[: 1 + ("y" in takes)]
    return plain(getattr(model, method)(*arguments, **options))


def plain(value):
    """Frames and series as their parts, which numpy compares."""
    if isinstance(value, pd.DataFrame | pd.Series):
        return {"index": value.index.tolist(), "values": value.to_numpy(), "as": type(value)}
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return vars(value) if hasattr(value, "__dataclass_fields__") else value


def lacks(model, method):
    """Whether an estimator has not learned quantiles, a network, or anything beside one."""
    if isinstance(model, TransformerRegressor):
        return method == "predict_quantiles" and model.loss != "quantile"
    if not isinstance(model, TransformerForecaster):
        return False
    return method == ("explain" if model.candidates is None else "attention_maps")


def answers(model, name):
    """All that a model says, by method and property."""
    _, data, *ahead = CASES[name]
    found = {
        method: ask(model, method, data, ahead)
        for method in METHODS
        if hasattr(model, method) and not lacks(CASES[name][0], method)
    }
    found |= {name: plain(getattr(model, name)) for name in PROPERTIES if hasattr(model, name)}
    assert len(found) > 1
    return found


def assert_says(model, name, expected):
    """What it is for, out of all that it said before."""
    _, data, *ahead = CASES[name]
    method = next(x for x in ("score_samples", "predict", "transform") if x in expected)
    np.testing.assert_equal(ask(model, method, data, ahead), expected[method])


def attributes(model):
    """What an estimator holds, but what it computed and will compute again."""
    return {name: value for name, value in vars(model).items() if name != "_memo"}


def assert_untouched(model, before):
    assert attributes(model).keys() == before.keys()
    for name, value in before.items():
        assert vars(model)[name] is value, name


def test_every_public_estimator_is_here():
    public = {getattr(sklearn_attention, name) for name in sklearn_attention.__all__}
    estimators = {kind for kind in public if hasattr(kind, "fit")}
    assert estimators == {type(estimator) for estimator in EVERY.values()}


def through_skops(model):
    """By trusting the estimator, parameters, kernels, and what scikit-learn's trees hold."""
    skops = pytest.importorskip("skops.io")
    binary = skops.dumps(model)
    types = skops.get_untrusted_types(data=binary)
    parameters = {type(value) for value in model.get_params().values()}
    known = {f"{kind.__module__}.{kind.__name__}" for kind in {type(model), *parameters}}
    trees = (
        "sklearn_attention.kernels.",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.utils.validation.check_array",
        "functools.partial",
    )
    assert all(name in known or name.startswith(trees) for name in types), types
    return skops.loads(binary, trusted=types)


@every
def test_files_bring_it_back(name):
    """Pickles, as which copies and joblib's files are made, and skops's.

    What is loaded is changed by no answer: pickles leave out what is computed again.
    """
    model, expected = fitted(name)
    loaded = pickle.loads(pickle.dumps(model))
    assert not getattr(loaded, "_memo", {})
    assert repr(loaded) == repr(model)
    before, stored = attributes(loaded), pickle.dumps(loaded)
    np.testing.assert_equal(answers(loaded, name), expected)
    assert_untouched(loaded, before)
    assert pickle.dumps(loaded) == stored
    loaded = through_skops(model)
    assert repr(loaded) == repr(model)
    assert_says(loaded, name, expected)


@of([n for n in CASES if hasattr(CASES[n][0], "partial_fit")])
def test_what_was_stored_learns_more(name):
    data = CASES[name][1]
    twins = copy.deepcopy(fitted(name)[0]), through_skops(fitted(name)[0])
    for twin in twins:
        twin.partial_fit(*[part[:9] for part in data])
    np.testing.assert_equal(*(answers(twin, name) for twin in twins))


@of([n for n in CASES if hasattr(CASES[n][0], "update")])
def test_what_was_stored_is_updated(name):
    (_, _, *ahead), model = CASES[name], fitted(name)[0]
    following = *ahead, model.predict(*ahead)
    twins = copy.deepcopy(model).update(*following), through_skops(model).update(*following)
    for part in ahead:
        later = part.index + 3 if isinstance(part.index, pd.RangeIndex) else part.index.shift(3)
        ahead = [part.set_axis(later)]
    one, other = (np.asarray(twin.predict(*ahead)) for twin in twins)
    np.testing.assert_array_equal(one, other)


@every
def test_a_clone_is_unfitted_and_alike(name):
    model, found = fitted(name)
    again = clone(model)
    assert repr(again) == repr(model)
    assert vars(again).keys() == vars(CASES[name][0]).keys()
    _, data, *ahead = CASES[name]
    for method in set(METHODS) & found.keys():
        with pytest.raises(NotFittedError):
            ask(again, method, data, ahead)


class SetLater:
    """A parameter that a fitted estimator has no business with."""

    def refuse(self, *arguments):
        raise AssertionError("a parameter was read that was set after the fit")

    __eq__ = __bool__ = __call__ = __iter__ = __float__ = __index__ = __str__ = __repr__ = (
        refuse
    )
    __hash__ = None


# Where to compute with a network, and how a translator searches, may be said after the fit.
MAY_CHANGE = {False: set(), True: {"device", "n_beams", "length_penalty"}}


@every
def test_parameters_that_are_set_later_change_nothing(name):
    """Of a copy, which has computed nothing yet."""
    model, expected = copy.deepcopy(fitted(name)[0]), fitted(name)[1]
    for parameter in model.get_params(deep=False):
        if parameter not in MAY_CHANGE[hasattr(model, "network_")]:
            setattr(model, parameter, SetLater())
    np.testing.assert_equal(answers(model, name), expected)


@pytest.mark.usefixtures("two_threads_of_torch")
@pytest.mark.filterwarnings("ignore:transformer_weight_ is")
@every
def test_the_same_again_and_no_global_state_changes(name):
    """By an estimator that has learned and said something else before, which it forgets."""
    data, (model, expected) = CASES[name][1], fitted(name)
    before = global_state(), dict(matplotlib.rcParams)
    n = len(data[0]) // 2
    again = fresh(name).fit(*[part[:n] for part in data])
    for method in {"partial_fit", "update"} & {*dir(again)}:
        getattr(again, method)(*[part[n : n + 3] for part in data])
    if hasattr(again, "_memo"):
        answers(again, name)
    found = answers(again.fit(*data), name)
    pickle.dumps(again)
    assert (global_state(), dict(matplotlib.rcParams)) == before
    np.testing.assert_equal(found, expected)
    assert vars(again).keys() == vars(model).keys()


@of(NETWORKS, {"regressor", "translator"})
def test_another_seed_makes_another_network(name):
    other = fresh(name).set_params(random_state=1).fit(*CASES[name][1])
    weights = fitted(name)[0].network_.weights
    assert any((other.network_.weights[part] != value).any() for part, value in weights.items())


def spoiled(part):
    """The same with infinity, or nothing where a sequence is."""
    wrong = copy.deepcopy(part)
    if isinstance(part, list) and not isinstance(part[0], np.ndarray):
        wrong[5] = None
    elif isinstance(part, pd.DataFrame):
        wrong.iloc[5, 0] = np.inf
    elif isinstance(part, pd.Series):
        wrong.iloc[5] = np.inf
    else:
        wrong[5] = np.full_like(wrong[5], np.inf)
    return wrong


# The first that an estimator has is wrong.
WRONG = {"dropout": 2.0, "n_folds": 31, "kernels": ["cubic"], "kernel": "cubic"}


def wrong_parameter(estimator):
    name = next(name for name in WRONG if name in estimator.get_params())
    return {name: WRONG[name]}


@every
def test_a_failed_fit_leaves_the_estimator_as_it_was(name):
    data = CASES[name][1]
    model, expected = copy.deepcopy(fitted(name)[0]), fitted(name)[1]
    before = attributes(model)
    with pytest.raises(ValueError, match=r"inf|missing"):
        model.fit(spoiled(data[0]), *data[1:])
    assert_untouched(model, before)
    wrong = wrong_parameter(model)
    usual = {parameter: getattr(model, parameter) for parameter in wrong}
    for estimator in (model, fresh(name)):
        estimator.set_params(**wrong)
        before = attributes(estimator)
        with pytest.raises(ValueError, match=r"2\.0|31|cubic"):
            estimator.fit(*data)
        assert_untouched(estimator, before)
    assert_says(model.set_params(**usual), name, expected)


TASKS = {"epoch", "bandwidth", "member", "candidate", "training"}
TELLING = [n for n in ("average by search", *EVERY) if hasattr(CASES[n][0], "set_callbacks")]


@of(TELLING)
def test_callbacks_are_told_of_every_task_and_change_nothing(name):
    data = CASES[name][1]
    recorder = Recorder(lambda model: answer(model, data))
    model = fresh(name).set_callbacks(recorder).fit(*data)
    assert_says(model, name, fitted(name)[1])
    assert recorder.begun[0] == recorder.ended[-1] == "fit"
    assert collections.Counter(recorder.begun) == collections.Counter(recorder.ended)
    assert {*recorder.begun} - {"fit"} <= TASKS
    assert recorder.setups == recorder.teardowns == 1
    np.testing.assert_array_equal(recorder.answers[-1], answer(model, data))
    recorder = Recorder()
    with pytest.raises(ValueError, match=r"2\.0|31|cubic"):
        fresh(name).set_params(**wrong_parameter(model)).set_callbacks(recorder).fit(*data)
    assert recorder.setups == recorder.teardowns


# Forecasters of series without features, and estimators of rows of numbers
SERIES_AND_ROWS = ["forecaster", "analogs", *ROWS]


@of(SERIES_AND_ROWS)
def test_single_precision_stays(name):
    data = [
        part.astype(np.float32) if part.dtype.kind == "f" else part for part in CASES[name][1]
    ]
    # Log-densities are in double precision, as scikit-learn's are.
    expected = np.float64 if "density" in name else np.float32
    assert answer(fresh(name).fit(*data), data).dtype == expected


@of(SERIES_AND_ROWS)
def test_data_may_be_overwritten_after_a_fit(name):
    data, model = CASES[name][1], fresh(name)
    passed = [part.copy() for part in data]
    takes = inspect.signature(model.fit).parameters
    weights = {"sample_weight": np.linspace(1, 2, 60)} if "sample_weight" in takes else {}
    expected = answer(model.fit(*passed, **weights), data)
    for part in (*passed, *weights.values()):
        part[:] = part[0]
    np.testing.assert_array_equal(answer(model, data), expected)


@of([n for n in ROWS if ".smoothing." in type(CASES[n][0]).__module__], READERS)
def test_memory_maps_are_not_copied(name, tmp_path):
    X, y = CASES[name][1]
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = fresh(name).fit(mapped, y)
    assert np.shares_memory(model.keys_, mapped)
    assert_says(model, name, fitted(name)[1])


@of([n for n in EVERY if n in ROWS and hasattr(EVERY[n], "predict")])
def test_a_score_is_higher_for_what_is_better(name):
    model, (X, y) = fitted(name)[0], CASES[name][1]
    assert model.score(X, y) > model.score(X, y[::-1])


FLAGS = "per_feature", "warm_start", "orthogonal"
FLAGGED = [(name, flag) for name in EVERY for flag in FLAGS if hasattr(EVERY[name], flag)]


@pytest.mark.parametrize(("name", "flag"), FLAGGED)
def test_a_flag_is_true_or_false(name, flag):
    model, data = fresh(name), CASES[name][1]
    with pytest.raises(ValueError, match=f"{flag}='no' is not valid: pass True or False"):
        model.set_params(**{flag: "no"}).fit(*data)
    model.set_params(**{flag: np.True_}).fit(*data)


@of(ROWS)
def test_columns_have_names(name):
    X, y = CASES[name][1]
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = fresh(name)
    if hasattr(model, "transform"):
        table = model.set_output(transform="pandas").fit(frame, y).transform(frame)
        assert table.columns.tolist() == model.get_feature_names_out().tolist()
        assert table.index.equals(frame.index)
        np.testing.assert_array_equal(table, fitted(name)[1]["transform"])
    else:
        model.fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_equal(answer(model, (frame, y)), answer(fitted(name)[0], (X, y)))
    with pytest.raises(ValueError, match="feature names"):
        answer(model, (frame[["b", "a"]], y))


def outcome(model, X, y):
    """The answer, or what an error says."""
    try:
        return answer(model, (X, y))
    except ValueError as error:
        return str(error)


@of(ROWS, READERS)
def test_cells_of_a_database_are_numbers(name):
    """Decimals and flags are what they are worth, and pandas.NA and None are NaN."""
    (_, y), model = CASES[name][1], fitted(name)[0]
    numbers = np.column_stack([np.arange(60) / 4, np.arange(60) % 3 == 0])
    cells = numbers.astype(object)
    cells[:, 0], cells[:, 1] = [*map(Decimal, numbers[:, 0])], numbers[:, 1] == 1
    for cell, number in ((Decimal("0.25"), 0.25), (None, np.nan), (pd.NA, np.nan)):
        cells[2, 0], numbers[2, 0] = cell, number
        expected = outcome(model, numbers, y)
        for given in (cells, cells.tolist()):
            np.testing.assert_array_equal(outcome(model, given, y), expected)


# What is refused by name, as X, y or weights, and what is said of it.
RECORDS = np.ones(60, dtype=[("a", "f8"), ("b", "f8")])
NO_ARRAYS = [
    ("is a tensor with requires_grad", torch.ones((60, 2), requires_grad=True)),
    ("is sparse, which .*toarray", scipy.sparse.csr_array(np.ones((60, 2)))),
    ("is an array of records", RECORDS),
    ("is masked in part", np.ma.array(np.ones((60, 2)), mask=np.eye(60, 2) > 0)),
]
DAYS = pd.Series(pd.date_range("2024-01-01", periods=60))
MONTHS = pd.Series(pd.period_range("2020-01", periods=60, freq="M"))
WRONG_ROWS = [
    *NO_ARRAYS,
    ("has dates or times .*make numbers of them", DAYS.to_numpy()[:, None]),
    ("has dates or times in column 'when'", DAYS.to_frame("when")),
    (
        "has dates or times in column 2, .*Timestamp",
        np.column_stack([np.ones((60, 2)), DAYS.astype(object)]),
    ),
    ("has dates or times in column 'b'", pd.DataFrame({"a": 1.0, "b": MONTHS})),
    ("has dates or times in column 'b'", pd.DataFrame({"a": 1.0, "b": [pd.NaT] * 60})),
]
WRONG_WEIGHTS = [
    ("texts, such as 'heavy'", ["heavy"] * 60),
    ("missing values", [pd.NA, *np.ones(59)]),
    ("missing values", pd.Series([None, *np.ones(59)], dtype="Int64")),
    (r"shape \(59,\): pass one number for each of the 60", np.ones(59)),
    (r"shape \(60, 1\): pass one number for each of the 60", np.ones((60, 1))),
    ("dates or times", DAYS),
    ("dates or times", MONTHS),
]


def missing(y):
    """Targets of which one is missing, in several containers."""
    for nothing in (None, np.nan, pd.NA):
        wrong = pd.Series(y).astype(object)
        wrong[3] = nothing
        yield from (wrong, wrong.tolist(), wrong.convert_dtypes(), wrong.astype("category"))


@of(ROWS, READERS)
def test_rows_that_are_none_are_named(name):
    (_, y), (model, _) = CASES[name][1], fitted(name)
    for words, wrong in WRONG_ROWS:
        for call in (fresh(name).fit, lambda *data: answer(model, data)):
            with pytest.raises((TypeError, ValueError), match=f"X {words}"):
                call(wrong, y)


@of([name for name in ROWS if hasattr(fresh(name), "predict")], READERS)
def test_targets_that_are_none_are_named(name):
    (X, y), (model, _) = CASES[name][1], fitted(name)
    calls = fresh(name).fit, model.score
    cases = [
        (words, wrong[:, None] if wrong is RECORDS else wrong) for words, wrong in NO_ARRAYS
    ]
    cases += [("has missing .*NA.*: drop those rows", wrong) for wrong in missing(y)]
    for words, wrong in cases:
        for call in calls:
            with pytest.raises((TypeError, ValueError), match=f"y {words}"):
                call(X, wrong)
    if is_regressor(model):
        names = np.where(y > 0, "b", "a")
        for wrong in (names, names.astype(object)):
            with pytest.raises(ValueError, match=r"y has texts, such as '[ab]', .* classifier"):
                fresh(name).fit(X, wrong)


@of([n for n in ROWS if "sample_weight" in inspect.signature(fresh(n).fit).parameters], READERS)
def test_weights_that_are_none_are_named(name):
    (X, y), (model, _) = CASES[name][1], fitted(name)
    calls = [fresh(name).fit] + ([model.score] if hasattr(model, "predict") else [])
    for words, wrong in WRONG_WEIGHTS:
        for call in calls:
            with pytest.raises(ValueError, match=f"sample_weight has {words}"):
                call(X, y, sample_weight=wrong)
