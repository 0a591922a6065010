"""Breaths a minute of patients, whole numbers over stays of unequal length."""

import numpy as np
import pytest

from sklearn_attention import TransformerClassifier


@pytest.mark.slow
def test_the_warning_names_what_helps():
    """Breaths rise and fall with a period of 7 minutes, or of 21 where patients sleep.

    They do by 10 of noise 1, so that within three periods all can be told apart. Read as ids,
    whose sizes mean nothing, a fifth or so cannot.
    """
    rng = np.random.default_rng(0)
    asleep, lengths = np.arange(120) % 2, rng.integers(20, 60, 120)
    breaths = [
        (20 + 10 * np.sin(0.9 * np.arange(n) / (1 + 2 * own)) + rng.normal(size=n)).astype(int)
        for own, n in zip(asleep, lengths, strict=True)
    ]
    breaths = [stay.tolist() for stay in breaths]
    model = TransformerClassifier(d_model=8, n_heads=2, n_layers=1, max_epochs=2)
    with pytest.warns(UserWarning, match="tokens='steps' if they are series of numbers"):
        model.fit(breaths[:80], asleep[:80])
    assert model.score(breaths[80:], asleep[80:]) < 1.0
    model.set_params(tokens="steps").fit(breaths[:80], asleep[:80])
    assert model.score(breaths[80:], asleep[80:]) == 1.0
