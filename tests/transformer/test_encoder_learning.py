"""What encoders of rows can learn, and what their training promises."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sklearn_attention import Training, TransformerClassifier, TransformerRegressor

pytestmark = pytest.mark.usefixtures("few_convolutions")

SMALL = {"d_model": 16, "n_heads": 2, "n_layers": 1}
# What is learned within few steps, and without trees that know it already.
FAST = SMALL | {"max_epochs": 20, "learning_rate": 0.02, "baseline": False}


def test_levels_and_missing_cells_say_something():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=400), "c": rng.choice(list("uvw"), 400)})
    frame["gone"] = rng.normal(size=400)
    frame.loc[rng.uniform(size=400) < 0.3, "gone"] = np.nan
    frame.loc[rng.uniform(size=400) < 0.2, "c"] = None
    y = frame["c"].map({"u": 1.0, "v": -1.0, "w": 0.0}).fillna(3.0)
    y = y + 2.0 * frame["gone"].isna() + 0.05 * frame["x"]
    model = TransformerRegressor(**FAST | {"max_epochs": 6}, batch_size=32)
    model.fit(frame[:300], y[:300])
    assert model.score(frame[300:], y[300:]) > 0.95


def test_order_of_words_is_learned():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.permutation(list("abcd"))) for _ in range(200)]
    earlier = [text.index("a") < text.index("b") for text in texts]
    model = TransformerClassifier(**FAST | {"max_epochs": 8}, batch_size=32)
    model.fit(texts[:150], earlier[:150])
    assert model.score(texts[150:], earlier[150:]) > 0.95
    blind = clone(model).set_params(architecture__positions=None, max_epochs=2)
    assert blind.fit(texts[:150], earlier[:150]).score(texts[150:], earlier[150:]) < 0.7


def test_the_best_epoch_is_kept():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), rng.integers(2, size=40)
    # Nothing can be learned, so that the loss on other rows soon rises.
    model = TransformerClassifier(
        **SMALL, training=Training(validation_fraction=0.3), baseline=False, max_epochs=15,
        learning_rate=0.01, batch_size=16,
    ).fit(X, y)  # fmt: skip
    history = model.training_history_
    losses = history["validation_loss"]
    assert history["best_epoch"] == np.argmin(losses) < len(losses) - 1
    patient = clone(model).set_params(training__patience=2).fit(X, y)
    assert patient.training_history_["stopped"] == "patience"
    assert len(patient.training_history_["loss"]) < len(losses)
    whole = clone(model).set_params(training__validation_fraction=None).fit(X, y)
    assert whole.training_history_["validation_loss"] == []
    assert whole.score(X, y) > model.score(X, y)
