"""Fits and predictions in several threads at once, and in workers."""

import copy
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import torch
from every_estimator import (
    EVERY,
    NETWORKS,
    answer,
    data_for,
    fit_and_answer,
    fitted,
    global_state,
)
from sklearn.model_selection import cross_val_score
from slow_cases import slow_but

from sklearn_attention import Training, TransformerLanguageModel

pytestmark = pytest.mark.usefixtures("two_threads_of_torch")
everywhere = pytest.mark.parametrize("name", EVERY)
quickly = pytest.mark.usefixtures("few_rates", "few_trees")


def in_threads(n_threads, function, n_calls):
    parallel = joblib.Parallel(n_threads, backend="threading")
    return parallel(joblib.delayed(function)() for _ in range(n_calls))


def state_beside_warnings():
    # scikit-learn's trees enter Python's catch_warnings, which threads at once confuse.
    return {name: part for name, part in global_state().items() if name != "warnings"}


@quickly
@pytest.mark.parametrize(
    "name", slow_but(["language model", "regressor", "kernel attention"], EVERY)
)
def test_fits_in_threads_equal_those_one_after_the_other(name):
    data, before = data_for(EVERY[name]), state_beside_warnings()
    expected = answer(fitted(name), data)
    for found in in_threads(3, lambda: fit_and_answer(EVERY[name], data), 6):
        np.testing.assert_array_equal(found, expected)
    assert state_beside_warnings() == before


@quickly
@everywhere
def test_eight_threads_predict_what_one_does(name):
    data, before = data_for(EVERY[name]), global_state()
    expected, model = answer(fitted(name), data), copy.deepcopy(fitted(name))
    for found in in_threads(8, lambda: answer(model, data), 8):
        np.testing.assert_array_equal(found, expected)
    assert global_state() == before


def test_random_numbers_of_others_are_as_if_there_were_no_fit():
    model, data = NETWORKS["regressor"], data_for(NETWORKS["regressor"])
    torch.manual_seed(0)
    alone = [torch.rand(3) for _ in range(50)]
    with ThreadPoolExecutor(1) as pool:
        torch.manual_seed(0)
        done, drawn = pool.submit(fit_and_answer, model, data), []
        while not done.done():
            drawn.append(torch.rand(3))
    assert len(drawn) > 50
    assert all(map(torch.equal, drawn, alone))


@pytest.mark.filterwarnings("ignore:.*of another training")
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_folds_that_share_a_checkpoint_do_not_disturb_one_another(n_jobs, tmp_path):
    """One after the other, and at once."""

    def scores(training):
        estimator = TransformerLanguageModel(
            d_model=8, n_heads=2, n_layers=1, max_epochs=2, dropout=0.1, random_state=0,
            training=training,
        )  # fmt: skip
        (texts,) = data_for(estimator)
        with joblib.parallel_config("threading"):
            return cross_val_score(estimator, texts, cv=3, n_jobs=n_jobs, error_score="raise")

    found = scores(Training(checkpoint=tmp_path / "checkpoint.pt"))
    np.testing.assert_array_equal(found, scores(None))
    if n_jobs == 1:
        assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.pt"]


@pytest.mark.slow
@pytest.mark.parametrize("context", ["loky", "spawn", "forkserver"])
def test_workers_predict_and_fit_the_same(context):
    names = ["language model", "regressor", "density", "kernel attention"]
    estimators = [EVERY[name] for name in names]
    data = [data_for(estimator) for estimator in estimators]
    expected = [fit_and_answer(*pair) for pair in zip(estimators, data, strict=True)]
    if context == "loky":
        parallel = joblib.Parallel(2)
        pairs = zip(estimators, data, strict=True)
        found = parallel(joblib.delayed(fit_and_answer)(*pair) for pair in pairs)
    else:
        import multiprocessing

        with multiprocessing.get_context(context).Pool(2) as pool:
            found = pool.starmap(fit_and_answer, zip(estimators, data, strict=True))
    for own, alone in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, alone, rtol=1e-5)
