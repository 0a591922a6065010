"""scikit-learn's own checks, and the company that encoders of rows keep."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_attention import (
    Architecture,
    Training,
    TransformerClassifier,
    TransformerRegressor,
)

ESTIMATORS = [TransformerRegressor, TransformerClassifier]
TINY = {"d_model": 8, "n_heads": 2, "n_layers": 1, "training": Training(max_steps=3)}
# As many steps as the checks that look at scores need.
CHECKED = TINY | {"training": Training(max_steps=60), "learning_rate": 0.02}
VARIANTS = [
    TransformerRegressor(**CHECKED),
    TransformerRegressor(
        "steps",
        **CHECKED | {"training": Training(validation_fraction=None, max_steps=60)},
        pooling="last",
    ),
    TransformerClassifier(**CHECKED),
    TransformerClassifier(
        "features",
        **CHECKED,
        pooling="mean",
        architecture=Architecture(attention_kernel="gaussian"),
    ),
]
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": (
        "weights are learned from random batches of rows: a row of weight 2 is drawn once, its "
        "copies are two rows"
    ),
    "check_methods_subset_invariance": (
        "the network computes in single precision, in which products of matrices of other "
        "sizes round otherwise; the check compares to 1e-7, and on some machines it passes"
    ),
}
# What skops asks about in fitted trees of scikit-learn.
TREES = (
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.utils.validation.check_array",
    "functools.partial",
)
SERIES = {
    "check_regressors_train": (
        "features without an order are read as a series, in which so few steps of learning do "
        "not tell them apart by where they stand"
    )
}


def expected_failures(estimator):
    return EXPECTED | (SERIES if estimator.tokens == "steps" else {})


# Whether rounding shows in the one or the other depends on the machine.
@parametrize_with_checks(VARIANTS, expected_failed_checks=expected_failures, xfail_strict=False)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def make_rows(form, n=40):
    """Rows of a form, and a number for each."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=n)
    if form == "features":
        X = pd.DataFrame({"a": y + 0.1 * rng.normal(size=n), "b": rng.choice(["u", "v"], n)})
        X.loc[3, "a"] = np.nan
    elif form == "steps":
        X = [y[i] + rng.normal(size=(rng.integers(1, 6), 2)) for i in range(n)]
    else:
        X = ["good " * rng.integers(1, 4) + ("day" if value > 0 else "night") for value in y]
    return X, y


def fit(estimator, form="features", **parameters):
    X, y = make_rows(form)
    y = y if estimator is TransformerRegressor else np.where(y > 0, "high", "low")
    return estimator(**TINY | parameters).fit(X, y), X, y


def answers(model, X):
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


def global_state():
    return (
        torch.get_rng_state().tolist(),
        np.random.get_state()[1].tolist(),  # noqa: NPY002 (nobody may have touched it)
        torch.get_num_threads(),
        torch.get_default_dtype(),
    )


FORMS = ["features", "steps", "text"]
every_face = pytest.mark.parametrize(
    ("estimator", "form"), [(estimator, form) for estimator in ESTIMATORS for form in FORMS]
)


@every_face
class TestFiles:
    @pytest.mark.parametrize("store", ["pickle", "deepcopy", "skops"])
    def test_bring_it_back(self, estimator, form, store):
        model, X, _ = fit(estimator, form)
        expected = answers(model, X)
        assert model._memo
        if store == "pickle":
            loaded = pickle.loads(pickle.dumps(model))
        elif store == "deepcopy":
            loaded = copy.deepcopy(model)
        else:
            skops = pytest.importorskip("skops.io")
            binary = skops.dumps(model)
            types = skops.get_untrusted_types(data=binary)
            trusted = ("sklearn_attention.", *(TREES if form == "features" else ()))
            assert all(name.startswith(trusted) for name in types)
            loaded = skops.loads(binary, trusted=types)
        assert loaded._memo == {}
        np.testing.assert_array_equal(answers(loaded, X), expected)
        np.testing.assert_array_equal(loaded.attention_maps(X), model.attention_maps(X))

    def test_asking_changes_no_public_attribute(self, estimator, form):
        model, X, y = fit(estimator, form)
        before = {name: value for name, value in vars(model).items() if name != "_memo"}
        stored = pickle.dumps(before)
        answers(model, X)
        model.transform(X)
        model.attention_maps(X)
        model.score(X, y)
        assert {name for name in vars(model) if name != "_memo"} == set(before)
        assert pickle.dumps(before) == stored


@every_face
class TestRepetition:
    def test_same_seed_same_answers(self, estimator, form):
        (one, X, _), (other, _, _) = (fit(estimator, form, random_state=3) for _ in range(2))
        np.testing.assert_array_equal(answers(one, X), answers(other, X))
        different = answers(fit(estimator, form, random_state=4)[0], X)
        assert not np.array_equal(answers(one, X), different)

    def test_no_global_state_changes(self, estimator, form):
        before = global_state()
        model, X, _ = fit(estimator, form)
        answers(model, X)
        assert global_state() == before

    def test_refitting_forgets(self, estimator, form):
        model, _, y = fit(estimator, "features")
        X = make_rows(form)[0]
        fresh = clone(model).fit(X, y)
        model.fit(X, y)
        np.testing.assert_array_equal(answers(model, X), answers(fresh, X))
        assert set(vars(model)) == set(vars(fresh))

    def test_a_failing_fit_leaves_the_estimator_as_it_was(self, estimator, form):
        model, X, y = fit(estimator, form)
        before, expected = dict(vars(model)), answers(model, X)
        with pytest.raises(ValueError, match="dropout=2"):
            model.set_params(dropout=2.0).fit(X, y)
        model.set_params(dropout=0.0)
        assert vars(model) == before
        np.testing.assert_array_equal(answers(model, X), expected)
        fresh = estimator(n_heads=3)
        with pytest.raises(ValueError, match="n_heads=3 does not divide"):
            fresh.fit(X, y)
        assert vars(fresh) == vars(estimator(n_heads=3))

    def test_a_checkpoint_continues_what_was_interrupted(self, estimator, form, tmp_path):
        class Impatient(Recorder):
            def on_fit_task_end(self, estimator, context):
                if len(self.begun) == 3:  # the fit, and two epochs of four
                    raise KeyError("enough")

        steps = {"training": Training(max_steps=None), "max_epochs": 4}
        whole, X, y = fit(estimator, form, **steps)
        stopped = clone(whole).set_params(training__checkpoint=str(tmp_path / "state"))
        with pytest.raises(KeyError, match="enough"):
            stopped.set_callbacks(Impatient()).fit(X, y)
        resumed = (
            clone(whole).set_params(training__checkpoint=str(tmp_path / "state")).fit(X, y)
        )
        np.testing.assert_array_equal(answers(resumed, X), answers(whole, X))
        seconds = resumed.training_history_["seconds"]
        assert clone(resumed).fit(X, y).training_history_["seconds"] == seconds
        other = clone(resumed).set_params(random_state=7).fit(X, y)
        assert other.training_history_["seconds"] != seconds

    def test_warm_start_goes_on(self, estimator, form):
        cold, X, y = fit(estimator, form)
        warm = clone(cold).set_params(warm_start=True).fit(X, y)
        for name, start in cold.network_.items():
            np.testing.assert_array_equal(warm.network_[name], start)
        warm.set_params(
            learning_rate=1e-9, training__weight_decay=0.0, training__validation_fraction=None
        )
        warm.fit(X, y)
        for name, start in cold.network_.items():
            np.testing.assert_allclose(warm.network_[name], start, atol=1e-6)


class Recorder:
    """A callback that writes down what it is told."""

    max_propagation_depth = None

    def __init__(self):
        self.begun, self.ended, self.setups, self.teardowns = [], [], 0, 0

    def setup(self, estimator, context):
        self.setups += 1

    def teardown(self, estimator, context):
        self.teardowns += 1

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context.task_name)


class PredictingRecorder(Recorder):
    """A callback that asks what the fitted estimator predicts."""

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        self.ended.append((context.task_name, fitted_estimator.predict(X).shape))


@pytest.mark.parametrize("estimator", ESTIMATORS)
class TestCallbacks:
    def test_every_epoch_is_a_task(self, estimator):
        recorder = Recorder()
        X, y = load_iris(return_X_y=True)
        model = estimator(**TINY | {"training": Training(max_steps=None), "max_epochs": 3})
        model.set_callbacks(recorder).fit(X, y)
        assert recorder.begun == ["fit", "epoch", "epoch", "epoch"]
        assert recorder.ended == ["epoch", "epoch", "epoch", "fit"]
        assert recorder.setups == recorder.teardowns == 1

    def test_every_epoch_has_an_estimator_that_predicts(self, estimator):
        recorder = PredictingRecorder()
        X, y = load_iris(return_X_y=True)
        estimator(**TINY).set_callbacks(recorder).fit(X, y)
        assert recorder.ended == [("epoch", (150,)), ("fit", (150,))]

    def test_parameters_are_checked_before_callbacks_are_set_up(self, estimator):
        recorder = Recorder()
        with pytest.raises(ValueError, match="tokens='words' is unknown"):
            estimator("words").set_callbacks(recorder).fit(*load_iris(return_X_y=True))
        assert recorder.setups == recorder.teardowns == 0

    def test_progress_in_a_search(self, estimator, capfd):
        pytest.importorskip("rich")
        search = GridSearchCV(estimator(**TINY), {"pooling": ["mean", "cls"]}, cv=2)
        search.set_callbacks(ProgressBar()).fit(*load_iris(return_X_y=True))
        assert "GridSearchCV" in capfd.readouterr().out


@pytest.mark.parametrize("estimator", ESTIMATORS)
class TestCompany:
    def test_clone_is_unfitted_and_alike(self, estimator):
        model, X, _ = fit(estimator, architecture=Architecture(attention_kernel="laplacian"))
        other = clone(model)
        assert repr(other) == repr(model)
        for method in ("predict", "transform", "attention_maps"):
            with pytest.raises(NotFittedError):
                getattr(other, method)(X)

    @pytest.mark.parametrize("form", FORMS)
    def test_search_over_kernels(self, estimator, form):
        model, X, y = fit(estimator, form)
        kernels = ["scaled_dot_product", "periodic", "positive_features"]
        grid = {"architecture__attention_kernel": kernels}
        search = GridSearchCV(clone(model), grid, cv=2).fit(X, y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.predict(X).shape == y.shape

    def test_pipelines(self, estimator):
        X, y = load_iris(return_X_y=True, as_frame=True)
        model = make_pipeline(StandardScaler(), estimator(**CHECKED))
        assert cross_val_score(model, X, y, cv=3).shape == (3,)
        split = make_column_transformer(
            (StandardScaler(), ["sepal length (cm)"]), remainder="passthrough",
            verbose_feature_names_out=False,
        ).set_output(transform="pandas")  # fmt: skip
        model = make_pipeline(split, estimator(**CHECKED)).fit(X, y)
        assert set(model[-1].feature_names_in_) == set(X.columns)
        assert model.score(X, y) > 0.5

    def test_frames_out(self, estimator):
        model, X, y = fit(estimator)
        found = clone(model).set_output(transform="pandas").fit(X, y).transform(X)
        assert list(found.columns) == list(model.get_feature_names_out())
        assert found.shape == (40, 8)
        np.testing.assert_array_equal(found.to_numpy(), model.transform(X))

    def test_single_precision_stays_single(self, estimator):
        X, y = load_iris(return_X_y=True)
        model = estimator(**TINY).fit(X, y)
        assert answers(model, X).dtype == np.float64
        assert answers(model, X.astype(np.float32)).dtype == np.float32


def test_sets_of_ordered_and_missing_levels_are_read():
    frame, y = make_rows("features")
    frame["c"] = pd.Categorical(np.where(y > 0, "big", "small"), ["small", "big"], ordered=True)
    frame.loc[[0, 5], "c"] = np.nan
    model = TransformerRegressor(**TINY).fit(frame, y)
    assert model.columns_.kinds == ("numeric", "unordered", "unordered")
    unseen = frame.assign(b="new")
    assert np.isfinite(model.predict(unseen)).all()
    # What is not known counts as what is missing.
    missing = frame.assign(b=pd.Series([None] * len(frame), dtype=frame["b"].dtype))
    np.testing.assert_array_equal(model.predict(unseen), model.predict(missing))
