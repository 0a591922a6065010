"""Rows to validate with that users pass, in place of some that are held out."""

import numpy as np
import pytest
import sklearn
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_attention import Training, TransformerClassifier, TransformerRegressor

TINY = {"d_model": 8, "n_heads": 2, "n_layers": 1, "max_epochs": 3}
NOTHING = Training(validation_fraction=None)


def make_rows(form, n=60, seed=0):
    """Rows of a form, and a number for each."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    if form == "features":
        X = np.column_stack([y + 0.3 * rng.normal(size=n), rng.normal(size=n)])
    elif form == "steps":
        X = [y[i] + rng.normal(size=rng.integers(5, 20)) for i in range(n)]
    else:
        X = ["good " * rng.integers(1, 4) + ("day" if value > 0 else "night") for value in y]
    return X, y


every_form = pytest.mark.parametrize("form", ["features", "steps", "text"])


@every_form
@pytest.mark.usefixtures("few_convolutions")
class TestAreLookedAt:
    def test_the_loss_of_validation_is_theirs(self, form):
        (X, y), (X_val, y_val) = make_rows(form), make_rows(form, 20, seed=1)
        weights = np.arange(20.0)
        given = {"X_val": X_val, "y_val": y_val, "sample_weight_val": weights}
        model = TransformerRegressor(**TINY, baseline=False).fit(X, y, **given)
        errors = ((model.predict(X_val) - y_val) / model.encoder_.task.scale) ** 2
        best = min(model.training_history_["validation_loss"])
        assert best == pytest.approx(np.average(errors, weights=weights), rel=1e-4)

    def test_all_other_rows_are_learned_from(self, form):
        (X, y), (X_val, y_val) = make_rows(form), make_rows(form, 20, seed=1)
        options = TINY | {"max_epochs": 1, "baseline": False}
        one = TransformerRegressor(**options).fit(X, y, X_val=X_val, y_val=y_val)
        other = TransformerRegressor(**options, training=NOTHING).fit(X, y)
        for name, weights in other.network_.weights.items():
            np.testing.assert_array_equal(one.network_.weights[name], weights)

    def test_share_of_a_baseline_that_has_not_seen_them(self, form):
        (X, y), (X_val, y_val) = make_rows(form, 30), make_rows(form, 30, seed=1)
        model = TransformerRegressor(**TINY).fit(X, y, X_val=X_val, y_val=y_val)
        alone = TransformerRegressor(**TINY, training=NOTHING, baseline=True).fit(X, y)
        assert alone.transformer_weight_ == 0
        rows = model._read(X_val)[0]
        np.testing.assert_allclose(model.baseline_.outputs(rows), alone.baseline_.outputs(rows))
        assert 0 < model.baseline_weight_ != 1


def test_the_loss_of_classes_has_their_weights():
    (X, y), (X_val, y_val) = make_rows("features"), make_rows("features", 20, seed=1)
    names, own = np.where(y > 0, "high", "low"), np.where(y_val > 0, "high", "low")
    model = TransformerClassifier(**TINY, baseline=False, class_weight={"high": 4.0})
    model.fit(X, names, X_val=X_val, y_val=own)
    weights = np.where(own == "high", 4.0, 1.0)
    expected = log_loss(own, model.predict_proba(X_val), sample_weight=weights)
    best = min(model.training_history_["validation_loss"])
    assert best == pytest.approx(expected, rel=1e-4)


def test_pipelines_transform_them():
    (X, y), (X_val, y_val) = make_rows("features"), make_rows("features", 20, seed=1)
    with sklearn.config_context(enable_metadata_routing=True):
        model = TransformerRegressor(**TINY).set_fit_request(X_val=True, y_val=True)
        pipeline = make_pipeline(StandardScaler(), model, transform_input=["X_val"])
        pipeline.fit(1000 * X, y, X_val=1000 * X_val, y_val=y_val)
    scaler = StandardScaler().fit(1000 * X)
    direct = TransformerRegressor(**TINY).fit(
        scaler.transform(1000 * X), y, X_val=scaler.transform(1000 * X_val), y_val=y_val
    )
    np.testing.assert_array_equal(
        pipeline.predict(1000 * X), direct.predict(scaler.transform(1000 * X))
    )


class TestBadInput:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"X_val": np.eye(3)}, "X_val was passed without y_val: pass both"),
            ({"sample_weight_val": [1, 1, 1]}, "sample_weight_val was passed without X_val"),
            ({"X_val": np.eye(4), "y_val": [0] * 4}, "X_val and y_val do not .*4 features"),
            ({"X_val": np.eye(3), "y_val": np.eye(3)}, r"y_val has shape \(3, 3\), but y \(3,"),
        ],
    )
    def test_is_named(self, given, message):
        with pytest.raises(ValueError, match=message):
            TransformerRegressor(**TINY).fit(np.eye(3), [0, 1, 1], **given)

    def test_unknown_classes(self):
        with pytest.raises(ValueError, match=r"y_val has classes \[7\] that y did not have"):
            TransformerClassifier(**TINY).fit(
                np.eye(3), [0, 1, 1], X_val=np.eye(3), y_val=[0, 1, 7]
            )
