import sys
from pathlib import Path

import pytest

# For the helpers that the tests of this folder share.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def rates(request):
    """Few for all tests but those that ask for all."""
    request.getfixturevalue("all_rates" if "all_rates" in request.fixturenames else "few_rates")
