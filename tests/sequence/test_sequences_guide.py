"""What the guide shows is true."""

import doctest
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "sequences.md"


@pytest.mark.skipif(not GUIDE.exists(), reason="the documentation does not come along")
def test_the_guide():
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = doctest.testfile(str(GUIDE), module_relative=False, optionflags=flags)
    assert found.attempted > 10
    assert found.failed == 0
