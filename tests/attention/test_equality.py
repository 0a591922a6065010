"""Random problems of all kinds against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_attention import LOG_KERNELS, slow_average, slow_log_weights
from slow_local import slow_fit, slow_local

from sklearn_attention import attend, attention_weights
from sklearn_attention.attention import (
    LeaveOneOut,
    _reduce,
    attend_local,
    attention_sums,
    local_rows,
)
from sklearn_attention.attention._algorithms import _dense, _near_keys
from sklearn_attention.kernels._base import as_kernel

PLACES = ["normal", "ties", "clusters", "outlier", "offset", "constant", "one place"]
EPS = np.finfo(np.float64).eps


@pytest.fixture(params=["as it is", "trees", "fused", "small tiles"])
def way(request, monkeypatch):
    """However few the pairs are, every way of summing them is taken."""
    if request.param == "trees":
        monkeypatch.setattr(_near_keys, "FEW_PAIRS", 0)
        monkeypatch.setattr(_near_keys.NearKeys, "saves_time", lambda *_: True)
        monkeypatch.setattr(_near_keys, "_LEAF", 2)
    if request.param == "fused":
        monkeypatch.setattr(_reduce, "_MIN_FUSED_PAIRS", 0)
    if request.param == "small tiles":
        for name, size in {"IN_CACHE": 64, "FEW_PAIRS": 0}.items():
            monkeypatch.setattr(_dense, name, size)
    return request.param


def placed(rng, place, n, d):
    """Rows of numbers."""
    X = rng.normal(size=(n, d))
    if place == "ties":
        X = X.round()
    elif place == "clusters":
        X = 0.1 * X + rng.integers(-5, 5, (n, 1))
    elif place == "outlier":
        X[0] = 1e6
    elif place == "offset":
        X += 1e6
    elif place == "constant":
        X[:, -1] = 0.7
    elif place == "one place":
        X[:] = X[0]
    return X


def make_case(seed, n_keys=30, n_queries=6):
    """A problem of averages, drawn at random, and the options to call for it."""
    rng = np.random.default_rng(seed)
    d, n_values = rng.choice([1, 2, 3, 5]), rng.choice([1, 1, 3])
    keys = placed(rng, rng.choice(PLACES), n_keys, d)
    own = rng.integers(0, n_keys, n_queries)
    queries = keys[own]
    if rng.random() < 0.5:  # off the key that is left out, if any is
        queries = queries + rng.normal(size=queries.shape) * rng.choice([0.5, 20.0])
        own[rng.random(n_queries) < 0.3] = -1
    values = rng.normal(size=(n_keys, n_values)) + rng.choice([0.0, 1e3])
    options = {
        "kernel": rng.choice(sorted(LOG_KERNELS)),
        "bandwidth": float(10 ** rng.uniform(-0.5, 0.7)),
        "sample_weight": [
            None,
            rng.uniform(size=n_keys) * (rng.random(n_keys) < 0.7),
            10 ** rng.uniform(-200, 0, n_keys),
        ][rng.integers(3)],
    }
    scale = 10 ** rng.uniform(-0.5, 0.5, n_queries) if rng.random() < 0.3 else None
    return rng, queries, keys, values, own if rng.random() < 0.5 else None, scale, options


def slow_logs(queries, keys, own, scale, options):
    """Logarithms of all weights, one after the other, and the largest numbers in these."""
    scale = np.ones(len(queries)) if scale is None else scale
    kernel, weights = LOG_KERNELS[options["kernel"]], options["sample_weight"]
    logs = [
        slow_log_weights(queries[[i]], keys, kernel, options["bandwidth"] * scale[i], weights)[
            0
        ]
        for i in range(len(queries))
    ]
    logs = np.array(logs)
    if own is not None:
        logs[own >= 0, own[own >= 0]] = -np.inf
    return logs, np.abs(logs.max(axis=1))


def queries_that_leave_out(rng, keys, n_queries=40):
    """Queries and `leave_one_out` in every form."""
    n_keys, d = keys.shape
    anywhere, order = 2 * rng.normal(size=(n_queries, d)), rng.permutation(n_keys)
    return {
        "no key": (anywhere, False),
        "positions": (anywhere, rng.integers(-1, n_keys, n_queries)),
        "the keys themselves": (keys, True),
        "the keys in another order": (keys[order], order),
        "moved keys": (keys + 0.3 * rng.normal(size=keys.shape), True),
    }


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "boxcar", "laplacian"])
@pytest.mark.parametrize("n", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_every_form_of_leaving_out_equals_all_pairs(kernel, d, n):
    @settings(max_examples=n)
    @given(st.integers(0, 10**6))
    def check(seed):
        compare_forms(np.random.default_rng(seed), kernel, d)

    check()


def compare_forms(rng, kernel, d):
    """Compare algorithms where queries leave out keys."""
    keys = placed(rng, rng.choice(PLACES[:3]), 300, d)
    values, weights = rng.normal(size=(300, 2)), rng.uniform(size=300)
    weights[rng.random(300) < 0.2] = 0.0
    options = {"bandwidth": 10 ** rng.uniform(-0.7, 0.5), "sample_weight": weights}
    for name, (queries, left_out) in queries_that_leave_out(rng, keys).items():
        for function in (attend, attend_local)[: 2 if d < 3 else 1]:
            found, expected = (
                function(
                    queries, keys, values, kernel, leave_one_out=left_out, algorithm=algorithm,
                    **options,
                )[0]
                for algorithm in ("auto", "dense")
            )  # fmt: skip
            tolerance = 1e-8 if function is attend else 1e-6
            np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance, err_msg=name)


# A few problems in every run, and many in a slow one.
some_and_many = pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 240), marks=pytest.mark.slow)], ids=str
)


@some_and_many
def test_averages_equal_loops(way, seeds):
    # A logarithm L of a weight is rounded by a few eps L, which moves averages by as much of
    # the values. Trees leave out 1e-12 of the weight, and sums of linear time are trusted where
    # their rounding is 1e-9 of them at most.
    for seed in seeds:
        rng, queries, keys, values, own, scale, options = make_case(seed)
        logs, size = slow_logs(queries, keys, own, scale, options)
        given = {"query_scale": scale, "leave_one_out": False if own is None else own}
        algorithm = rng.choice(["auto", "dense"])
        found, log_total = attend(
            queries, keys, values, algorithm=algorithm, empty="nan", **given, **options
        )
        lost = logs.max(axis=1) == -np.inf
        np.testing.assert_array_equal(np.isnan(found).any(axis=1), lost, f"seed {seed}")
        np.testing.assert_array_equal(log_total == -np.inf, lost, f"seed {seed}")
        tolerance = (1e-9 + 16 * EPS * size[~lost])[:, None]
        expected, log_sums = slow_average(logs[~lost], values)
        largest = np.abs(values).max()
        assert (np.abs(found[~lost] - expected) <= tolerance * largest).all(), seed
        error = np.abs(log_total[~lost] - log_sums)
        assert (error <= tolerance[:, 0]).all(), seed
        weights = attention_weights(queries, keys, **given, **options)[~lost]
        np.testing.assert_allclose(
            weights @ values, expected, rtol=0, atol=tolerance.max(initial=0) * largest
        )
        if own is None and scale is None:
            check_sums_in_parts(queries, keys, values, options, (found, log_total), lost)


def check_sums_in_parts(queries, keys, values, options, expected, lost):
    """Sums over two parts of the keys add up."""
    weights, parts = options["sample_weight"], []
    for some in slice(0, 11), slice(11, None):
        given = options | {"sample_weight": None if weights is None else weights[some]}
        parts.append(attention_sums(queries, keys[some], values[some], empty="nan", **given))
    found = sum(parts).average("nan")
    for field, whole in zip(found, expected, strict=True):
        np.testing.assert_allclose(field[~lost], whole[~lost], rtol=1e-9, atol=1e-9)


@some_and_many
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_local_polynomials_equal_least_squares(way, degree, seeds):
    # Least squares of rows loses fewer digits than of their moments: those of a variance of
    # MIN_VARIANCE are its square root, 1e-2, of eps times the square of a far query's distance.
    n_compared = 0
    for seed in seeds:
        rng, queries, keys, values, own, scale, options = make_case(1000 + seed)
        queries, keys = queries[:, :3], keys[:, :3]
        logs, _ = slow_logs(queries, keys, own, scale, options)
        fit = attend_local(
            queries, keys, values, degree=degree, query_scale=scale, empty="nan",
            leave_one_out=False if own is None else own,
            algorithm=rng.choice(["auto", "dense"]), **options,
        )  # fmt: skip
        rows = local_rows(
            queries, keys, values, degree=degree, query_scale=scale, empty="nan", **options
        )
        log_sums = attend(
            queries, keys, values, query_scale=scale,
            leave_one_out=False if own is None else own, **options,
        )[1]  # fmt: skip
        np.testing.assert_allclose(fit.log_normalizers, log_sums, rtol=1e-9, atol=1e-9)
        usable = np.isfinite(fit.ridge) & (fit.ridge == 0) & (fit.squared_distance < 1e4)
        for i in np.flatnonzero(usable):
            weights = np.exp(logs[i] - logs[i].max())
            unit = options["bandwidth"] * (1.0 if scale is None else scale[i])
            expected = slow_local(queries[i], keys, values, weights, degree, unit)
            atol = 1e-7 * np.abs(values).max()
            np.testing.assert_allclose(fit.values[i], expected[0], rtol=1e-7, atol=atol)
            np.testing.assert_allclose(
                fit.slopes[i], expected[1], rtol=1e-5, atol=10 * atol / unit
            )
            if own is None:
                np.testing.assert_allclose(rows.values[i], expected[0], rtol=1e-7, atol=atol)
            n_compared += 1
    assert n_compared > (0.8 if degree < 3 else 0.4) * len(seeds)


@some_and_many
@pytest.mark.parametrize("degree", [0, 1])
def test_rows_left_out_equal_refitting(way, degree, seeds):
    # As averages and lines before: 1e-7 covers what moments lose to least squares of rows.
    n_compared = 0
    for seed in seeds:
        rng, _, keys, values, *_, options = make_case(2000 + seed, n_keys=20)
        if options["sample_weight"] is not None:
            options["sample_weight"] = rng.uniform(0.1, 1, 20)
        bandwidth = options["bandwidth"]
        gap = rng.choice([0, 0, 2])
        smoother = LeaveOneOut(
            keys, values, degree=degree, gap=int(gap), empty="nan",
            algorithm=rng.choice(["auto", "dense"]), **options,
        )  # fmt: skip
        scale = 10 ** rng.uniform(-0.3, 0.5, 20) if rng.random() < 0.5 else np.full(20, 1.3)
        found = smoother.predictions(scale)
        _, ridge = attend_local(
            keys, keys, values, query_scale=scale, leave_one_out=True, empty="nan", **options
        )[2:4]
        kernel = as_kernel(options["kernel"])
        sample_weight = options["sample_weight"]
        sample_weight = np.ones(20) if sample_weight is None else sample_weight
        for i in range(20):
            unit = bandwidth * scale[i]
            weights = kernel(keys[[i]] / unit, keys / unit)[0] * sample_weight
            others = np.where(np.abs(np.arange(20) - i) > gap, weights, 0.0)
            if not others.sum() > 1e-200 * weights.max():
                continue
            if degree and (gap or ridge[i] > 0):
                continue  # only what rows determine is least squares
            expected = slow_fit(keys[i], keys, values, others, degree, unit)
            atol = 1e-7 * np.abs(values).max()
            np.testing.assert_allclose(found.left_out[i], expected, rtol=1e-7, atol=atol)
            if not degree:
                own = weights[i] / weights.sum()
                np.testing.assert_allclose(found.leverage[i], own, rtol=1e-9)
            n_compared += 1
    assert n_compared > len(seeds)
