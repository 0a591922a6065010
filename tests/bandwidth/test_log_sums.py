"""Sums of products of kernels over rows, against loops over pairs."""

import math

import numpy as np
import pytest

from sklearn_attention import Columns
from sklearn_attention.bandwidth._log_sums import LogSums, each_column
from sklearn_attention.kernels import Epanechnikov, Gaussian, level_table

COLUMNS = Columns(("numeric", "numeric", "unordered"), (None, None, range(3)))
BANDWIDTH = np.array([0.8, 1.3, 0.3])


def slow_log_sums(kernel, keys, queries, weights, factors, leave_out):
    table, _ = level_table("unordered", 3, BANDWIDTH[2])
    found = []
    for place, query in enumerate(queries):
        total = 0.0
        for row, key in enumerate(keys):
            if leave_out and row == place:
                continue
            term = weights[row] * table[int(query[2]), int(key[2])]
            for j in (0, 1):
                u = (query[j] - key[j]) / (BANDWIDTH[j] * factors[row])
                term *= float(kernel.profile(np.array(u**2))) / factors[row]
            total += term
        found.append(math.log(total))
    return found


@pytest.mark.parametrize("leave_out", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian(), Epanechnikov()], ids=repr)
@pytest.mark.parametrize("local", [False, True])
def test_are_the_formula(kernel, local, leave_out):
    rng = np.random.default_rng(0)
    keys = np.column_stack([rng.uniform(size=(20, 2)), rng.integers(3, size=20)])
    queries = keys if leave_out else np.add(keys[::-1], [0.1, -0.1, 0])
    weights, factors = rng.uniform(0.5, 2, (2, 20))
    sums = LogSums(
        keys, each_column(kernel, COLUMNS), COLUMNS, weights, factors if local else None
    )
    found, _ = sums(BANDWIDTH, None if leave_out else queries, leave_out=leave_out)
    factors = factors if local else np.ones(20)
    expected = slow_log_sums(kernel, keys, queries, weights, factors, leave_out)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
