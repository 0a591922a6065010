"""What docs/promises.md says of all estimators."""

import copy
import pickle

import matplotlib
import numpy as np
import pandas as pd
import pytest
from every_estimator import EVERY, answer, data_for
from sklearn.base import is_regressor

ROWS = [
    EVERY[name]
    for name in (
        "average", "votes", "lines", "best average", "best line", "density",
        "conditional density", "kernel attention", "classes by kernel attention",
        "regressor without dropout", "classifier", "waves", "positive features",
    )
]  # fmt: skip
SERIES = [EVERY["analogs"], EVERY["forecaster"]]
everywhere = pytest.mark.parametrize("estimator", ROWS + SERIES, ids=lambda e: type(e).__name__)

pytestmark = pytest.mark.filterwarnings("ignore:The validation loss was still falling")


@everywhere
def test_single_precision_stays(estimator):
    if "Density" in type(estimator).__name__:
        pytest.skip("log-densities are in double precision, as scikit-learn's are")
    data = data_for(estimator, np.float32)
    assert answer(copy.deepcopy(estimator).fit(*data), data).dtype == np.float32


@everywhere
def test_the_same_again_and_nothing_is_touched(estimator):
    data = data_for(estimator)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    style = dict(matplotlib.rcParams)
    models = [copy.deepcopy(estimator).fit(*data) for _ in range(2)]
    first, second = (answer(model, data) for model in models)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert dict(matplotlib.rcParams) == style


@everywhere
def test_data_may_be_overwritten_after_a_fit(estimator):
    data = data_for(estimator)
    passed = [part.copy() for part in data]
    weights = {} if len(data) == 1 or "Features" in type(estimator).__name__ else {
        "sample_weight": np.linspace(1, 2, len(data[0]))
    }  # fmt: skip
    model = copy.deepcopy(estimator).fit(*passed, **weights)
    expected = answer(model, data)
    for part in (*passed, *weights.values()):
        part[:] = part[0]
    np.testing.assert_array_equal(answer(model, data), expected)


@pytest.mark.parametrize("estimator", ROWS[:7], ids=lambda e: type(e).__name__)
def test_memory_maps_are_not_copied(estimator, tmp_path):
    X, y = data_for(estimator)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = copy.deepcopy(estimator).fit(mapped, y)
    assert np.shares_memory(model.keys_, mapped)
    np.testing.assert_array_equal(
        answer(model, (X, y)), answer(copy.deepcopy(estimator).fit(X, y), (X, y))
    )


@pytest.mark.parametrize("estimator", ROWS, ids=lambda e: type(e).__name__)
def test_rows_are_answered_alone_as_among_others(estimator):
    data = data_for(estimator)
    model = copy.deepcopy(estimator).fit(*data)
    alone = answer(model, tuple(part[7:8] for part in data))
    np.testing.assert_allclose(alone[0], answer(model, data)[7], rtol=1e-5, atol=1e-6)


@everywhere
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(estimator):
    data = data_for(estimator)
    model = copy.deepcopy(estimator).fit(*data)
    before = answer(model, data)
    names = set(vars(model))
    infinite = data[0].copy()
    infinite[5] = np.inf
    with pytest.raises(ValueError, match="inf"):
        model.fit(infinite, *data[1:])
    assert set(vars(model)) == names
    np.testing.assert_array_equal(answer(model, data), before)


@everywhere
def test_fitted_estimators_go_into_files(estimator):
    skops = pytest.importorskip("skops.io")
    data = data_for(estimator)
    model = copy.deepcopy(estimator).fit(*data)
    binary = skops.dumps(model)
    loaded = skops.loads(binary, trusted=skops.get_untrusted_types(data=binary))
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), loaded):
        np.testing.assert_array_equal(answer(again, data), answer(model, data))


@pytest.mark.parametrize("estimator", [*ROWS[:5], *ROWS[6:11]], ids=lambda e: type(e).__name__)
def test_a_score_is_higher_for_what_is_better(estimator):
    X, y = data_for(estimator)
    model = copy.deepcopy(estimator).fit(X, y)
    assert model.score(X, y) > model.score(X, y[::-1])


@pytest.mark.parametrize(
    ("estimator", "flag"),
    [
        *((kind, "per_feature") for kind in ROWS[:3]),
        *((kind, "warm_start") for kind in (*ROWS[9:11], SERIES[1])),
        *((kind, "orthogonal") for kind in ROWS[11:]),
    ],
    ids=lambda part: part if isinstance(part, str) else type(part).__name__,
)
def test_a_flag_is_true_or_false(estimator, flag):
    model = copy.deepcopy(estimator)
    with pytest.raises(ValueError, match=f"{flag}='no' is not valid: pass True or False"):
        model.set_params(**{flag: "no"}).fit(*data_for(estimator))
    model.set_params(**{flag: np.True_}).fit(*data_for(estimator))


@everywhere
def test_errors_name_the_class_that_was_called(estimator):
    with pytest.raises(TypeError, match=rf"^{type(estimator).__name__}\.__init__"):
        type(estimator)(1, 2, 3)


@pytest.mark.parametrize("estimator", ROWS, ids=lambda e: type(e).__name__)
def test_dates_and_classes_are_no_numbers(estimator):
    X, y = data_for(estimator)
    dates = pd.to_datetime(np.arange(60), unit="D", origin="2024-01-01").to_numpy()
    for wrong in (dates[:, None], pd.DataFrame({"when": dates})):
        with pytest.raises(ValueError, match=r"X has dates or times .*make numbers of them"):
            copy.deepcopy(estimator).fit(wrong, y)
    stamps = np.column_stack([X, pd.Series(dates).astype(object)])
    with pytest.raises(TypeError, match=r"X has a column that is not numeric .*Timestamp"):
        copy.deepcopy(estimator).fit(stamps, y)
    if is_regressor(estimator):
        for names in (np.where(y > 0, "b", "a"), np.where(y > 0, "b", "a").astype(object)):
            with pytest.raises(
                ValueError, match=r"y has texts, such as '[ab]': .* a classifier"
            ):
                copy.deepcopy(estimator).fit(X, names)
