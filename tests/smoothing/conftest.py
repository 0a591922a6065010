import sys
from pathlib import Path

import numpy as np
import pytest

# The cases that several files share are imported by name.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def data():
    """Rows of two features; some files have their own."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(40, 2))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.2 * rng.normal(size=40)
