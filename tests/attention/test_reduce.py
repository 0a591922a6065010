"""One sum, wherever keys are and whichever algorithm makes it, against plain least squares."""

import numpy as np
import pytest
from slow_local import slow_local

from sklearn_attention import attend
from sklearn_attention.attention import LeaveOneOut, _smoother, attend_local
from sklearn_attention.kernels._base import as_kernel

N = 90
KERNELS = {
    "gaussian": 0.7, "epanechnikov": 2.5, "laplacian": 0.6, "tricube": 2.5, "matern32": 0.8,
    "rational_quadratic": 0.8, "logistic": 0.4,
}  # fmt: skip
PLACES = {
    "normal": lambda rng, d: rng.normal(size=(N, d)),
    "heavy tails": lambda rng, d: rng.standard_t(3, size=(N, d)),
    "tied": lambda rng, d: np.round(2 * rng.normal(size=(N, d))) / 2,
    "outlier": lambda rng, d: np.vstack([rng.normal(size=(N - 1, d)), np.full((1, d), 1e4)]),
}


def in_memory(tables, path):
    return tables


def in_maps(tables, path):
    found = []
    for k, table in enumerate(tables):
        if table is None:
            found.append(None)
            continue
        np.save(path / f"{k}.npy", table)
        found.append(np.load(path / f"{k}.npy", mmap_mode="r"))
    return found


def in_partitions(tables, path):
    arrays = pytest.importorskip("dask.array")
    return [
        None if x is None else arrays.from_array(x, chunks=(31, -1)[: x.ndim]) for x in tables
    ]


@pytest.mark.parametrize(
    ("kernel", "place", "degree", "d", "weighted", "leave_out", "where"),
    [
        ("gaussian", "normal", 0, 1, True, False, in_memory),
        ("gaussian", "outlier", 1, 2, False, True, in_maps),
        ("gaussian", "tied", 2, 3, True, False, in_partitions),
        ("epanechnikov", "heavy tails", 0, 2, True, True, in_partitions),
        ("epanechnikov", "tied", 1, 1, True, True, in_memory),
        ("epanechnikov", "normal", 2, 1, False, False, in_maps),
        ("laplacian", "outlier", 1, 3, True, False, in_partitions),
        ("tricube", "normal", 0, 3, False, True, in_maps),
        ("matern32", "heavy tails", 2, 1, True, False, in_memory),
        ("rational_quadratic", "tied", 0, 1, True, True, in_partitions),
        ("logistic", "outlier", 1, 1, False, False, in_maps),
    ],
)
def test_equals_least_squares(
    kernel, place, degree, d, weighted, leave_out, where, tmp_path, monkeypatch
):
    rng = np.random.default_rng(0)
    keys, h = PLACES[place](rng, d), KERNELS[kernel]
    values = np.column_stack([np.sin(keys[:, 0].clip(-9, 9)), rng.normal(size=N)]) + 7
    weights = rng.uniform(0.5, 2, N) * (rng.random(N) > 0.1) if weighted else None
    queries = keys if leave_out else np.vstack([0.3 * rng.normal(size=(8, d)), keys[:4] + 0.01])
    if where is in_maps:
        monkeypatch.setattr(_smoother, "ROWS_AT_ONCE", 25)
    options = {"bandwidth": h, "leave_one_out": leave_out}
    given = where((keys, values, weights), tmp_path)
    asked = given[0] if leave_out else queries
    if degree == 0:
        found = attend(asked, *given[:2], kernel, sample_weight=given[2], **options)[0]
    else:
        options["degree"] = degree
        fit = attend_local(asked, *given[:2], kernel, sample_weight=given[2], **options)
        found, sure = np.asarray(fit.values), np.asarray(fit.ridge) == 0
    found, table = np.asarray(found), np.exp(as_kernel(kernel).log(queries / h, keys / h))
    table = table * (1 if weights is None else weights)
    for q in range(0, len(queries), 1 if not leave_out else 9):
        if leave_out:
            table[q, q] = 0
        total = table[q].sum()
        if not total or (degree and not sure[q]):
            continue  # what answers has tests of its own
        expected = slow_local(queries[q], keys, values, table[q], degree, h)[0]
        np.testing.assert_allclose(found[q], expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("degree", [0, 1])
def test_many_sums_are_made_some_queries_at_a_time(degree, monkeypatch):
    from sklearn_attention.attention import _reduce

    rng = np.random.default_rng(0)
    keys, values = rng.normal(size=(N, 1)), rng.normal(size=(N, 3))
    smoother = LeaveOneOut(keys, values, as_kernel("gaussian"), degree=degree)
    expected = smoother.predictions(0.3)
    monkeypatch.setattr(_reduce, "IN_MEMORY", 100)
    for ours, theirs in zip(smoother.predictions(0.3), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
