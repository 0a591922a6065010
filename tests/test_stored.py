"""Files of earlier versions, and of this one, predict what they did."""

from pathlib import Path

import numpy as np
import pytest
from every_estimator import EVERY, answer, data_for

STORED = sorted((Path(__file__).parent / "stored").glob("*/*.skops"))


# Trees of other versions of scikit-learn say that they are.
@pytest.mark.filterwarnings("ignore:Trying to unpickle estimator")
@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_stored_estimators_predict_what_they_did(path):
    skops = pytest.importorskip("skops.io")
    trusted = skops.get_untrusted_types(file=path)
    assert all(
        name.startswith(("sklearn_attention.", "sklearn.", "numpy.")) for name in trusted
    )
    with np.load(path.parent / "answers.npz") as answers:
        expected = answers[path.stem]
    model = skops.load(path, trusted=trusted)
    found = answer(model, data_for(EVERY[path.stem]))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_every_estimator_is_stored():
    """In each version that is stored, but for two that are like others."""
    for folder in {path.parent for path in STORED}:
        assert {path.stem for path in folder.glob("*.skops")} <= EVERY.keys()
    assert len(STORED) >= len(EVERY) - 2
