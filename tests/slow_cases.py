"""Cases of a test of which every run has few, and `make test-slow` all."""

import pytest


def slow_but(quick, cases):
    """What to parametrize a test with; a case of several parameters is a tuple."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[] if case in quick else [pytest.mark.slow],
        )
        for case in cases
    ]
