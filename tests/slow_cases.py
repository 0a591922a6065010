"""Cases of a test of which every run has few, and `make test-slow` all."""

import itertools

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


def one_in(n, *axes):
    """All combinations of some lists; of n that differ in one place, one is quick."""
    cases = itertools.product(*map(enumerate, axes))
    return [
        pytest.param(*values, marks=[] if sum(places) % n == 0 else [pytest.mark.slow])
        for places, values in (zip(*case, strict=True) for case in cases)
    ]
