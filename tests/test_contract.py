"""The contract that every public estimator keeps, with its main options and forms of data."""

import collections
import copy
import functools
import inspect
import io
import itertools
import pickle
from decimal import Decimal

import joblib
import matplotlib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from every_estimator import EVERY, NETWORKS, answer, data_for, global_state
from recorder import Recorder
from sklearn.base import clone, is_regressor
from sklearn.callback import ProgressBar
from sklearn.exceptions import NotFittedError
from slow_cases import slow_but

import sklearn_attention
from sklearn_attention import (
    AdaptiveBandwidth,
    Architecture,
    ConditionalKernelDensity,
    KernelAttentionClassifier,
    KernelAttentionRegressor,
    KernelForecaster,
    LocalPolynomialCV,
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonCV,
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

# Data of other forms than tests/every_estimator.py has


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


def sequences(words):
    """Sequences of steps, or texts, of several lengths, and a number for each."""
    rng = np.random.default_rng(0)
    y, lengths = rng.normal(size=40), rng.integers(1, 6, size=40)
    if words:
        X = [
            "good " * n + ("day" if v > 0 else "night") for n, v in zip(lengths, y, strict=True)
        ]
    else:
        X = [v + rng.normal(size=(n, 2)) for n, v in zip(lengths, y, strict=True)]
    return X, y


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


FRAME = mixed_frame()
READOUTS = "average", "solve"
KERNEL_ATTENTION = {"n_folds": 1, "max_steps": 3}
TINY = {"d_model": 8, "n_heads": 2, "n_layers": 1, "training": Training(max_steps=3)}
FORECASTERS = {
    "analogs": KernelForecaster(3, lookback=6),
    "forecaster": TransformerForecaster(3, candidates=["ridge"], log=False),
}

# Estimators and what they are fitted to; forecasters also with the features of what follows.
CASES = {
    **{name: (estimator, data_for(estimator)) for name, estimator in EVERY.items()},
    # In place of the default, which tries thirty ways.
    "best line": (
        LocalPolynomialCV(["gaussian"], degrees=[0, 1]),
        data_for(EVERY["best line"]),
    ),
    "periodic average": (
        NadarayaWatsonRegressor(Periodic(period=2.0), bandwidth=0.5),
        data_for(EVERY["average"]),
    ),
    "robust lines": (LocalPolynomialRegressor(robust=True), data_for(EVERY["lines"])),
    "lines of neighbours": (
        LocalPolynomialRegressor(bandwidth=AdaptiveBandwidth(15)),
        data_for(EVERY["lines"]),
    ),
    "best kernel": (
        NadarayaWatsonCV(["gaussian", Periodic(period=3.0)], [0.3, [0.6, 0.5]]),
        data_for(EVERY["average"]),
    ),
    "best degree": (
        LocalPolynomialCV(["gaussian"], [0.3, [0.6, 0.5]], degrees=[0, 1]),
        data_for(EVERY["average"]),
    ),
    "average of a frame": (NadarayaWatsonRegressor(), FRAME),
    "lines of a frame": (LocalPolynomialRegressor(bandwidth=[0.7, 0.5, 0.5]), FRAME),
    "votes of a frame": (NadarayaWatsonClassifier(), labelled(*FRAME)),
    "density of a frame": (
        ProductKernelDensity("tricube", bandwidth="scott", sensitivity=0.5),
        FRAME[:1],
    ),
    "conditional density of a frame": (
        ConditionalKernelDensity("tricube", bandwidth="scott"),
        FRAME,
    ),
    **{
        f"kernel attention of a frame, {readout}": (
            KernelAttentionRegressor(readout, **KERNEL_ATTENTION),
            FRAME,
        )
        for readout in READOUTS
    },
    **{
        f"classes of a frame by kernel attention, {readout}": (
            KernelAttentionClassifier(readout, **KERNEL_ATTENTION),
            labelled(*FRAME),
        )
        for readout in READOUTS
    },
    **{
        f"{name} of {form}": (kind(**TINY), label(*data))
        for name, kind, label in (
            ("regressor", TransformerRegressor, lambda *data: data),
            ("classifier", TransformerClassifier, labelled),
        )
        for form, data in (
            ("a frame", FRAME),
            ("steps", sequences(words=False)),
            ("texts", sequences(words=True)),
        )
    },
    "regressor of quantiles": (
        TransformerRegressor(**TINY, loss="quantile", quantile=[0.1, 0.5, 0.9]),
        data_for(EVERY["regressor"]),
    ),
    "regressor on another kernel": (
        TransformerRegressor(**TINY, architecture=Architecture(attention_kernel="laplacian")),
        data_for(EVERY["regressor"]),
    ),
    **{
        f"{name} of {form}": (estimator, *months(form))
        for name, estimator in FORECASTERS.items()
        for form in ("months", "minutes", "periods", "array", "frame")
    },
    "language model of words": (
        TransformerLanguageModel(tokenizer="words", **TINY),
        (sequences(words=True)[0],),
    ),
    "language model of ids": (TransformerLanguageModel(tokenizer="ids", **TINY), (ids(),)),
    "translator of ids": (TransformerSeq2Seq(**TINY), (ids(), [x[::-1] for x in ids()])),
}
ROWS = [
    name for name, (estimator, (X, *_), *_) in CASES.items()
    if isinstance(X, np.ndarray) and X.ndim == 2
]  # fmt: skip
# Each of these has a part of others; slow tests ask them too.
LIKE_OTHERS = {
    "regressor without dropout",
    "average of a frame",
    "best degree",
    "best kernel",
    "best line",
    "lines of a frame",
    "lines of neighbours",
    "robust lines",
    "votes of a frame",
    "classifier of a frame",
    "classifier of texts",
    "regressor of steps",
    *(f"kernel attention of a frame, {readout}" for readout in READOUTS[:2]),
    *(f"classes of a frame by kernel attention, {readout}" for readout in READOUTS[1:]),
    *(f"analogs of {form}" for form in ("minutes", "periods", "frame")),
    *(f"forecaster of {form}" for form in ("months", "array")),
}
OWN = CASES.keys() - LIKE_OTHERS
# Of those that read rows alike, one each.
READERS = "average", "conditional density", "density", "kernel attention", "regressor", "waves"
every = pytest.mark.parametrize("name", slow_but(OWN, CASES))


def fresh(name):
    return clone(CASES[name][0])


@functools.cache
def fitted(name):
    """The fitted estimator, which is not to be changed, and all that it says."""
    model = fresh(name).fit(*CASES[name][1])
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
    return getattr(model, method)(*arguments, **options)


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
    _, data, *ahead = CASES[name]
    found = {
        method: plain(ask(model, method, data, ahead))
        for method in METHODS
        if hasattr(model, method) and not lacks(CASES[name][0], method)
    }
    found |= {name: plain(getattr(model, name)) for name in PROPERTIES if hasattr(model, name)}
    assert len(found) > 1
    return found


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


def through_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    return joblib.load(file)


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


STORES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "deepcopy": copy.deepcopy,
    "joblib": through_joblib,
    "skops": through_skops,
}


# Copies and joblib's files are made by the methods by which pickles are.
@pytest.mark.parametrize(
    ("name", "store"),
    [
        *slow_but(
            {*itertools.product(OWN, ("pickle", "skops"))},
            itertools.product(CASES, ("pickle", "skops")),
        ),
        ("forecaster", "deepcopy"),
        ("regressor of a frame", "joblib"),
    ],
)
def test_files_bring_it_back(name, store):
    model, expected = fitted(name)
    loaded = STORES[store](model)
    assert not getattr(loaded, "_memo", {})
    assert repr(loaded) == repr(model)
    if store == "skops":  # pickles have the same attributes, and are asked everything
        _, data, *ahead = CASES[name]
        method = next(
            each for each in ("score_samples", "predict", "transform") if each in expected
        )
        found = plain(ask(loaded, method, data, ahead))
        np.testing.assert_equal(found, expected[method])
    else:
        np.testing.assert_equal(answers(loaded, name), expected)


@pytest.mark.parametrize(
    "name", slow_but(OWN, [n for n in CASES if hasattr(CASES[n][0], "partial_fit")])
)
def test_what_was_stored_learns_more(name):
    _, (X, y) = CASES[name]
    loaded = through_skops(fitted(name)[0])
    twins = copy.deepcopy(fitted(name)[0]), loaded
    one, other = (twin.partial_fit(X[:9], y[:9]).predict(X) for twin in twins)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", [n for n in CASES if hasattr(CASES[n][0], "update")])
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


@every
def test_answers_change_no_attribute(name):
    model = copy.deepcopy(fitted(name)[0])
    before, stored = attributes(model), pickle.dumps(model)
    answers(model, name)
    assert_untouched(model, before)
    # Pickles leave out what objects keep because they would compute it again.
    assert pickle.dumps(model) == stored


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
    """Whether or not anything was asked, and computed, before."""
    fit, expected = fitted(name)
    unasked, asked = copy.deepcopy(fit), copy.deepcopy(fit)
    answers(asked, name)
    for model in (unasked, asked):
        for parameter in model.get_params(deep=False):
            if parameter not in MAY_CHANGE[hasattr(model, "network_")]:
                setattr(model, parameter, SetLater())
        np.testing.assert_equal(answers(model, name), expected)


@pytest.mark.usefixtures("two_threads_of_torch")
@every
def test_the_same_again_and_no_global_state_changes(name):
    data = CASES[name][1]
    model, expected = fitted(name)
    before = global_state(), dict(matplotlib.rcParams)
    again = fresh(name).fit(*data)
    found = answers(again, name)
    STORES["pickle"](model)
    assert (global_state(), dict(matplotlib.rcParams)) == before
    np.testing.assert_equal(found, expected)


@pytest.mark.parametrize("name", NETWORKS)
def test_another_seed_makes_another_network(name):
    other = fresh(name).set_params(random_state=1).fit(*CASES[name][1])
    weights = fitted(name)[0].network_.weights
    assert any((other.network_.weights[part] != value).any() for part, value in weights.items())


@every
@pytest.mark.filterwarnings("ignore:transformer_weight_ is")
def test_fitting_again_forgets(name):
    data = CASES[name][1]
    n = len(data[0]) // 2
    model = fresh(name).fit(*[part[:n] for part in data])
    for method in {"partial_fit", "update"} & {*dir(model)}:
        getattr(model, method)(*[part[n : n + 3] for part in data])
    if len(CASES[name]) == 2:  # otherwise it continues after the end of the whole series
        answers(model, name)
    np.testing.assert_equal(answers(model.fit(*data), name), fitted(name)[1])
    assert vars(model).keys() == vars(fitted(name)[0]).keys()


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


@every
def test_a_failed_fit_leaves_the_estimator_as_it_was(name):
    data = CASES[name][1]
    model, expected = copy.deepcopy(fitted(name)[0]), fitted(name)[1]
    before = attributes(model)
    with pytest.raises(ValueError, match=r"inf|missing"):
        model.fit(spoiled(data[0]), *data[1:])
    assert_untouched(model, before)
    parameter = next(parameter for parameter in WRONG if parameter in model.get_params())
    wrong = {parameter: WRONG[parameter]}
    usual = {parameter: getattr(model, parameter)}
    for estimator in (model, fresh(name)):
        estimator.set_params(**wrong)
        before = attributes(estimator)
        with pytest.raises(ValueError, match=r"2\.0|31|cubic"):
            estimator.fit(*data)
        assert_untouched(estimator, before)
    np.testing.assert_equal(answers(model.set_params(**usual), name), expected)


TASKS = {"epoch", "bandwidth", "member", "candidate", "training"}


@pytest.mark.parametrize("name", [n for n in EVERY if hasattr(EVERY[n], "set_callbacks")])
def test_callbacks_are_told_of_every_task_and_change_nothing(name):
    data = CASES[name][1]
    recorder = Recorder(lambda model: answer(model, data))
    model = fresh(name).set_callbacks(recorder).fit(*data)
    np.testing.assert_equal(answers(model, name), fitted(name)[1])
    assert recorder.begun[0] == recorder.ended[-1] == "fit"
    assert collections.Counter(recorder.begun) == collections.Counter(recorder.ended)
    assert {*recorder.begun} - {"fit"} <= TASKS
    assert recorder.setups == recorder.teardowns == 1
    np.testing.assert_array_equal(recorder.answers[-1], answer(model, data))
    wrong = next(parameter for parameter in WRONG if parameter in model.get_params())
    recorder = Recorder()
    with pytest.raises(ValueError, match=r"2\.0|31|cubic"):
        fresh(name).set_params(**{wrong: WRONG[wrong]}).set_callbacks(recorder).fit(*data)
    assert recorder.setups == recorder.teardowns


@pytest.mark.parametrize("name", [n for n in EVERY if hasattr(EVERY[n], "set_callbacks")])
def test_progress_is_shown(name, capfd):
    pytest.importorskip("rich")
    estimator = fresh(name).set_callbacks(ProgressBar(max_propagation_depth=None))
    estimator.fit(*CASES[name][1])
    assert f"{type(estimator).__name__} - fit" in capfd.readouterr().out


# Forecasters of series without features, and estimators of rows of numbers
SERIES_AND_ROWS = ["forecaster", "analogs", *ROWS]


@pytest.mark.parametrize("name", slow_but(OWN, SERIES_AND_ROWS))
def test_single_precision_stays(name):
    data = [
        part.astype(np.float32) if part.dtype.kind == "f" else part for part in CASES[name][1]
    ]
    # Log-densities are in double precision, as scikit-learn's are.
    expected = np.float64 if "density" in name else np.float32
    assert answer(fresh(name).fit(*data), data).dtype == expected


@pytest.mark.parametrize("name", slow_but(OWN, SERIES_AND_ROWS))
def test_data_may_be_overwritten_after_a_fit(name):
    data, model = CASES[name][1], fresh(name)
    passed = [part.copy() for part in data]
    takes = inspect.signature(model.fit).parameters
    weights = {"sample_weight": np.linspace(1, 2, 60)} if "sample_weight" in takes else {}
    expected = answer(model.fit(*passed, **weights), data)
    for part in (*passed, *weights.values()):
        part[:] = part[0]
    np.testing.assert_array_equal(answer(model, data), expected)


def remembers_rows(name):
    return type(CASES[name][0]).__module__.startswith("sklearn_attention.smoothing")


@pytest.mark.parametrize("name", slow_but(READERS, list(filter(remembers_rows, ROWS))))
def test_memory_maps_are_not_copied(name, tmp_path):
    X, y = CASES[name][1]
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = fresh(name).fit(mapped, y)
    assert np.shares_memory(model.keys_, mapped)
    np.testing.assert_equal(answers(model, name), fitted(name)[1])


@pytest.mark.parametrize(
    "name", [n for n in EVERY if n in ROWS and hasattr(EVERY[n], "predict")]
)
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


@pytest.mark.parametrize("name", EVERY)
def test_errors_name_the_class_that_was_called(name):
    kind = type(EVERY[name])
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\.__init__"):
        kind(1, 2, 3)


@pytest.mark.parametrize("name", slow_but(OWN, ROWS))
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


@pytest.mark.parametrize("name", slow_but(READERS, ROWS))
def test_dates_and_classes_are_no_numbers(name):
    X, y = CASES[name][1]
    dates = pd.to_datetime(np.arange(60), unit="D", origin="2024-01-01").to_numpy()
    for wrong in (dates[:, None], pd.DataFrame({"when": dates})):
        with pytest.raises(ValueError, match=r"X has dates or times .*make numbers of them"):
            fresh(name).fit(wrong, y)
    stamps = np.column_stack([X, pd.Series(dates).astype(object)])
    with pytest.raises(ValueError, match=r"X has dates or times in column 2, .*Timestamp"):
        fresh(name).fit(stamps, y)
    months = pd.period_range("2020-01", periods=60, freq="M")
    for cells in (months, months.astype(object), [pd.NaT] * 60):
        with pytest.raises(ValueError, match=r"X has dates or times in column 'b'"):
            fresh(name).fit(pd.DataFrame({"a": X[:, 0], "b": cells}), y)
    if is_regressor(CASES[name][0]):
        for names in (np.where(y > 0, "b", "a"), np.where(y > 0, "b", "a").astype(object)):
            with pytest.raises(
                ValueError, match=r"y has texts, such as '[ab]', .* a classifier"
            ):
                fresh(name).fit(X, names)


def outcome(model, X, y):
    """The answer, or what an error says."""
    try:
        return answer(model, (X, y))
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("name", slow_but(READERS, ROWS))
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


WRONG_ARRAYS = {
    "is a tensor with requires_grad": lambda x: torch.tensor(x, requires_grad=True),
    "is sparse, which .*toarray": scipy.sparse.csr_array,
    "is an array of records": lambda x: np.ones(len(x), dtype=[("a", "f8"), ("b", "f8")]),
}


@pytest.mark.parametrize("name", slow_but(READERS, ROWS))
def test_other_arrays_are_named(name):
    (X, y), (model, _) = CASES[name][1], fitted(name)
    for words, make in WRONG_ARRAYS.items():
        with pytest.raises(TypeError, match=f"X {words}"):
            fresh(name).fit(make(X), y)
        with pytest.raises(TypeError, match=f"X {words}"):
            answer(model, (make(X), y))
        if hasattr(model, "predict"):
            for call in (fresh(name).fit, model.score):
                with pytest.raises(TypeError, match=f"y {words}"):
                    call(X, make(np.ones((60, 1))))


@pytest.mark.parametrize(
    "name", slow_but(READERS, [name for name in ROWS if hasattr(fresh(name), "predict")])
)
def test_targets_that_are_missing_are_named(name):
    (X, y), (model, _) = CASES[name][1], fitted(name)
    for missing in (None, np.nan, pd.NA):
        wrong = pd.Series(y).astype(object)
        wrong[3] = missing
        nullable = wrong.convert_dtypes(), wrong.astype("category")
        for given in (wrong, wrong.to_numpy(), wrong.tolist(), *nullable):
            for call in (fresh(name).fit, model.score):
                with pytest.raises(ValueError, match=r"y has missing .*NA.*: drop those rows"):
                    call(X, given)


@pytest.mark.parametrize(
    "name",
    slow_but(
        READERS,
        [
            name
            for name in ROWS
            if not hasattr(fresh(name), "fit_transform") or hasattr(fresh(name), "predict")
        ],
    ),
)
def test_weights_that_are_none_are_named(name):
    (X, y), (model, _) = CASES[name][1], fitted(name)
    ones = np.ones(60)
    for wrong, words in (
        (["heavy"] * 60, "texts, such as 'heavy'"),
        ([pd.NA, *ones[1:]], "missing values"),
        ([None, *ones[1:]], "missing values"),
        (pd.Series([None, *ones[1:]], dtype="Int64"), "missing values"),
        (ones[1:], r"shape \(59,\): pass one number for each of the 60"),
        (ones[:, None], r"shape \(60, 1\): pass one number for each of the 60"),
        (pd.Series(pd.date_range("2024", periods=60)), "dates or times"),
        (pd.Series(pd.period_range("2024", periods=60)), "dates or times"),
        (ones.astype("m8[s]"), "dates or times"),
    ):
        calls = [fresh(name).fit] + ([model.score] if hasattr(model, "predict") else [])
        for call in calls:
            with pytest.raises(ValueError, match=f"sample_weight has {words}"):
                call(X, y, sample_weight=wrong)
