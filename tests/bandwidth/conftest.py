import sys
from pathlib import Path

import numpy as np
import pytest

# A helper that several files share is imported by name.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(24, 2)) * [1, 5]
    return np.column_stack(
        [numbers[:, 0], rng.integers(3, size=24), numbers[:, 1], rng.integers(4, size=24)]
    )


@pytest.fixture
def weights():
    return np.random.default_rng(1).uniform(0.5, 2, size=24)
