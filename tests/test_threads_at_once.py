"""Fits and predictions in several threads at once, and in workers."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import torch
from every_estimator import EVERY, NETWORKS, answer, data_for, fit_and_answer, global_state
from sklearn.model_selection import cross_val_score

from sklearn_attention import Training, TransformerLanguageModel

pytestmark = pytest.mark.usefixtures("two_threads_of_torch")
everywhere = pytest.mark.parametrize("name", EVERY)
# Not where other processes fit, which know nothing of it.
quickly = pytest.mark.usefixtures("few_rates", "few_trees")


@pytest.fixture(scope="module")
def fitted():
    """Pickle of each fitted estimator and its answer, once it is asked for."""
    found = {}

    def fitted(name):
        if name not in found:
            data = data_for(EVERY[name])
            model = EVERY[name].fit(*data)
            found[name] = pickle.dumps(model), answer(model, data)
        return found[name]

    return fitted


def in_threads(n_threads, function, n_calls):
    parallel = joblib.Parallel(n_threads, backend="threading")
    return parallel(joblib.delayed(function)() for _ in range(n_calls))


def state_beside_warnings():
    # scikit-learn's trees enter Python's catch_warnings, which threads at once confuse.
    return {name: part for name, part in global_state().items() if name != "warnings"}


def check_fits(name, n_threads, n_fits):
    estimator, before = EVERY[name], state_beside_warnings()
    data = data_for(estimator)
    alone = fit_and_answer(estimator, data)
    for found in in_threads(n_threads, lambda: fit_and_answer(estimator, data), n_fits):
        np.testing.assert_array_equal(found, alone)
    assert state_beside_warnings() == before


@quickly
@pytest.mark.parametrize("name", ["language model", "regressor", "kernel attention"])
def test_fits_in_threads_equal_those_one_after_the_other(name):
    check_fits(name, n_threads=2, n_fits=3)


@pytest.mark.slow
@everywhere
def test_many_fits_in_threads_equal_those_one_after_the_other(name):
    check_fits(name, n_threads=4, n_fits=24)


def check_predictions(pickled, expected, data, n_rounds):
    for _ in range(n_rounds):
        model = pickle.loads(pickled)
        for found in in_threads(8, lambda model=model: answer(model, data), 8):
            np.testing.assert_array_equal(found, expected)


@quickly
@everywhere
def test_eight_threads_predict_what_one_does(name, fitted):
    pickled, expected = fitted(name)
    before = global_state()
    check_predictions(pickled, expected, data_for(EVERY[name]), n_rounds=1)
    assert global_state() == before


@quickly
@pytest.mark.slow
@everywhere
def test_eight_threads_predict_what_one_does_again_and_again(name, fitted):
    check_predictions(*fitted(name), data_for(EVERY[name]), n_rounds=20)


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


class TestOneCheckpoint:
    @pytest.fixture
    def estimator(self, tmp_path):
        return TransformerLanguageModel(
            d_model=8, n_heads=2, n_layers=1, max_epochs=2, dropout=0.1, random_state=0,
            training=Training(checkpoint=tmp_path / "checkpoint.pt"),
        )  # fmt: skip

    def scores(self, estimator, n_jobs=None):
        (texts,) = data_for(estimator)
        with joblib.parallel_config("threading"):
            return cross_val_score(estimator, texts, cv=3, n_jobs=n_jobs, error_score="raise")

    def test_folds_one_after_the_other(self, estimator, tmp_path):
        found = self.scores(estimator)
        np.testing.assert_array_equal(
            found, self.scores(estimator.set_params(training__checkpoint=None))
        )
        assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.pt"]

    @pytest.mark.filterwarnings("ignore:.*of another training")
    def test_folds_at_once(self, estimator):
        found = self.scores(estimator, n_jobs=3)
        np.testing.assert_array_equal(
            found, self.scores(estimator.set_params(training__checkpoint=None))
        )


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
