"""The contracts of kernel_contracts.py, for the tests of this folder to inherit."""

import sys
from pathlib import Path

import pytest

# Whatever the import mode, ``from kernel_contracts import ...`` finds the file beside this.
sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("kernel_contracts")


def pytest_generate_tests(metafunc):
    """Run each test of a contract that asks for ``kernel`` on every sample of its class."""
    samples = getattr(metafunc.cls, "samples", None)
    if samples and "kernel" in metafunc.fixturenames:
        metafunc.parametrize("kernel", samples, ids=repr)
