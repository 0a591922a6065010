"""Files of released versions, from 0.2.0 on, predict what they did."""

from pathlib import Path

import numpy as np
import pytest
from every_estimator import EVERY, answer, data_for

STORED = sorted((Path(__file__).parent / "stored").glob("*/*.skops"))
FOLDERS = sorted({path.parent for path in STORED})


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


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_estimator_is_stored(folder):
    """Or one of its class is."""
    names = {path.stem for path in folder.glob("*.skops")}
    assert names <= EVERY.keys()
    assert {type(EVERY[name]) for name in names} == set(map(type, EVERY.values()))
