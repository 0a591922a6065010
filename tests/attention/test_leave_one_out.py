"""Rows predicted from all others, against one refit for each row."""

import numpy as np
import pytest
from slow_local import slow_fit

from sklearn_attention import Columns, attend, attention_weights
from sklearn_attention.attention import LeaveOneOut, attend_local
from sklearn_attention.kernels import (
    Epanechnikov,
    Gaussian,
    Laplacian,
    Matern32,
    ProductKernel,
    Silverman,
)
from sklearn_attention.kernels._base import as_kernel
from sklearn_attention.kernels._product_kernel import mixed_kernel


def make_data(n=40, d=2, p=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, d))
    return X, np.sin(6 * X[:, [0] * p]) + 0.3 * rng.normal(size=(n, p))


def refit(X, values, kernel, degree, h, weight=None, rows=None):
    """Left out, fitted and leverage, one least-squares problem after the other."""
    h = np.broadcast_to(h, X.shape[1]) if np.ndim(h) < 2 else h
    weight = np.ones(len(X)) if weight is None else weight
    rows = np.arange(len(X))[weight > 0] if rows is None else rows
    units = np.eye(len(X))
    found = []
    for i in rows:
        w = as_kernel(kernel)(kernel.rescale(X[[i]], h), kernel.rescale(X, h))[0] * weight
        others = np.where(np.arange(len(X)) == i, 0, w)
        left_out = slow_fit(X[i], X, values, others, degree, h)
        fitted = slow_fit(X[i], X, np.hstack([values, units[:, [i]]]), w, degree, h)
        found.append((left_out, fitted[:-1], fitted[-1]))
    return tuple(np.array(field) for field in zip(*found, strict=True))


def check_predictions(found, expected, tolerance=1e-8):
    for field, reference in zip(found, expected, strict=True):
        np.testing.assert_allclose(field, reference, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("kernel", "degree", "d", "weighted"),
    [
        (Gaussian(), 0, 1, False),
        (Gaussian(), 1, 2, True),
        (Gaussian(), 3, 2, False),
        (Epanechnikov(), 3, 1, True),
        (Laplacian(), 2, 2, True),
        (ProductKernel("gaussian"), 2, 2, True),
        (ProductKernel("triweight"), 0, 2, False),
    ],
    ids=repr,
)
def test_equals_refitting(kernel, degree, d, weighted):
    X, values = make_data(d=d)
    weight = np.random.default_rng(1).integers(0, 4, 40) / 2 if weighted else None
    # Of cubics windows have to be wider, so that rows determine them.
    h = np.array([0.8, 1.1])[:d] * (2.0 if degree == 3 else 1.0)
    smoother = LeaveOneOut(X, values, kernel, bandwidth=h, degree=degree, sample_weight=weight)
    found = smoother.predictions()
    expected = refit(X, values, kernel, degree, h, weight)
    check_predictions(found, expected, 1e-7)
    kept = np.arange(40) if weight is None else np.flatnonzero(weight)
    np.testing.assert_array_equal(smoother.rows, kept)
    # And the criteria's ingredients follow from them.
    w = np.ones(40) if weight is None else weight[kept]
    scores = smoother.scores([1.0])
    for score, predicted in zip(scores, expected[:2], strict=False):
        errors = ((predicted - values[kept]) ** 2).mean(axis=1)
        np.testing.assert_allclose(score, [np.average(errors, weights=w)], rtol=1e-7)
    np.testing.assert_allclose(scores.trace, [expected[2].sum()], rtol=1e-7)


def soft(queries, keys):
    return 1 / (1 + ((queries[:, None] - keys[None]) ** 2).sum(-1))


def test_lines_accept_functions_as_kernels_and_refuse_signed_kernels():
    (X, values), kernel = make_data(), as_kernel(soft)
    found = LeaveOneOut(X, values, kernel, bandwidth=0.5, degree=1).predictions()
    check_predictions(found, refit(X, values, kernel, 1, 0.5), 1e-8)
    with pytest.raises(ValueError, match=r"kernel=.*choose a radial kernel"):
        LeaveOneOut(X, values, kernel).scores(np.ones((1, 40)))
    with pytest.raises(ValueError, match="takes negative values"):
        LeaveOneOut(X, values, Silverman(), degree=1).predictions()


@pytest.mark.parametrize(
    "kernel", [Gaussian(), Epanechnikov(), Laplacian(), Silverman()], ids=repr
)
@pytest.mark.parametrize(("h", "d"), [(1e-6, 1), (0.02, 2), (3.0, 1), (1e8, 2)])
def test_any_bandwidth_equals_attend(kernel, h, d):
    rng = np.random.default_rng(0)
    X, values = make_data(60, d)
    X[:10] = X[10:20]  # rows at one place
    X[20:24], values[20:24] = X[24:28], values[24:28]  # and copies
    X[30] += 50.0  # a row far from all others
    weight = rng.uniform(0.2, 2, 60)
    smoother = LeaveOneOut(X, values, kernel, sample_weight=weight)
    options = dict(bandwidth=h, sample_weight=weight)
    expected = attend(X, X, values, kernel, leave_one_out=True, **options)[0]
    found = smoother.predictions(h)
    np.testing.assert_allclose(found.left_out, expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(
        found.fitted, attend(X, X, values, kernel, **options)[0], rtol=1e-9, atol=1e-9
    )
    leverage = np.diag(attention_weights(X, X, kernel, **options))
    np.testing.assert_allclose(found.leverage, leverage, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "places"), [("gaussian", "cauchy"), ("laplacian", "outlier"), ("boxcar", "normal")]
)
def test_scales_together_score_as_one_by_one(places, name):
    rng = np.random.default_rng(0)
    x = rng.standard_cauchy(200) if places == "cauchy" else rng.normal(size=200)
    if places == "outlier":
        x[17] = 1e4
    values = np.sin(3 * x[:, None]) + rng.normal(size=(200, 2))
    weight = rng.uniform(0.5, 2, 200)
    smoother = LeaveOneOut(x[:, None], values, as_kernel(name), sample_weight=weight)
    scales = np.geomspace(0.013, 11.0, 25)[rng.permutation(25)]
    together = smoother.scores(scales)
    for k, scale in enumerate(scales):
        for field, alone in zip(together, smoother.scores([scale]), strict=True):
            np.testing.assert_allclose(field[k], alone[0], rtol=1e-8)


@pytest.mark.parametrize(
    ("kernel", "degree", "mixed"),
    [(Gaussian(), 1, True), (Epanechnikov(), 0, True), (Matern32(), 1, False)],
    ids=repr,
)
def test_each_row_may_have_its_own_scale(kernel, degree, mixed):
    X, values = make_data(50, 2)
    if mixed:
        X[:, 1] = np.arange(50) % 3
        columns = Columns(("numeric", "unordered"), (None, range(3)))
        kernel = mixed_kernel(kernel, columns, [0, 0.3])
    rng = np.random.default_rng(1)
    rows = rng.permutation(50)[:30]
    scales = rng.uniform(0.6, 3, (4, 30))
    smoother = LeaveOneOut(X, values, kernel, bandwidth=0.4, degree=degree, rows=rows)
    scores = smoother.scores(scales)
    for k, scale in enumerate(scales):
        found = smoother.predictions(scale)
        average = attend_local if degree else attend
        options = dict(degree=degree) if degree else {}
        options |= dict(bandwidth=0.4, query_scale=scale)
        expected = average(X[rows], X, values, kernel, leave_one_out=rows, **options)[0]
        np.testing.assert_allclose(found.left_out, expected, rtol=1e-7, atol=1e-8)
        fitted = average(X[rows], X, values, kernel, **options)[0]
        np.testing.assert_allclose(found.fitted, fitted, rtol=1e-7, atol=1e-8)
        error = ((expected - values[rows]) ** 2).mean()
        assert scores.left_out[k] == pytest.approx(error, rel=1e-7)
        assert scores.trace[k] == pytest.approx(found.leverage.sum(), rel=1e-9)


@pytest.mark.parametrize(("degree", "d"), [(0, 1), (1, 2), (2, 1)])
def test_an_isolated_row_fits_itself_and_follows_empty(d, degree):
    X, values = make_data(30, d)
    X[0] += 10.0
    smoother = LeaveOneOut(X, values, Epanechnikov(), degree=degree)
    found, options = smoother.predictions(0.9), {"bandwidth": 0.9, "leave_one_out": True}
    if degree:
        options["degree"] = degree
        expected = attend_local(X, X, values, Epanechnikov(), **options).values
    else:
        expected = attend(X, X, values, Epanechnikov(), **options)[0]
    np.testing.assert_allclose(found.left_out, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.fitted[0], values[0], rtol=1e-9)
    assert found.leverage[0] == pytest.approx(1)
    smoother = LeaveOneOut(X, values, Epanechnikov(), degree=degree, empty="nan")
    lonely = np.isnan(smoother.predictions(0.9).left_out).all(axis=1)
    assert np.flatnonzero(lonely).tolist() == [0]
    assert np.isnan(smoother.scores([0.9, 20.0]).left_out).tolist() == [True, False]
    # The row itself is left whatever is said of the others.
    for field, expected in zip(smoother.predictions(0.9)[1:], found[1:], strict=True):
        np.testing.assert_allclose(field, expected, rtol=1e-9)


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize(("empty", "widen"), [("nearest", True), ("nan", False)])
def test_a_row_alone_is_fitted_by_itself(degree, empty, widen):
    X, values = make_data(1)
    options = {"degree": degree, "empty": empty, "widen": widen}
    found = LeaveOneOut(X, values, Epanechnikov(), **options).predictions()
    assert np.isnan(found.left_out).all()
    np.testing.assert_allclose(found.fitted, values)
    np.testing.assert_allclose(found.leverage, 1)


@pytest.mark.parametrize("kernel", [Silverman(), Gaussian(), Epanechnikov()], ids=repr)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_gap_is_weight_0_for_the_rows_around(kernel, d):
    """In every algorithm, also of signed kernels; rows of weight 0 are not counted."""
    X, values = make_data(60, d)
    weights = np.where(np.arange(60) % 7 == 3, 0.0, np.linspace(0.5, 2, 60))
    found = LeaveOneOut(X, values, kernel, bandwidth=0.8, sample_weight=weights, gap=3)
    rows, left_out = found.rows, found.predictions().left_out
    for i, row in enumerate(rows):
        others = weights.copy()
        others[rows[max(i - 3, 0) : i + 4]] = 0.0
        expected, _ = attend(X[[row]], X, values, kernel, bandwidth=0.8, sample_weight=others)
        np.testing.assert_allclose(left_out[i], expected[0], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"query_scale": np.ones((4, 1))}, r"query_scale must have shape \(4,\)"),
        ({"query_scale": [1, 1, 0, 1]}, "query_scale is not valid: pass finite numbers"),
        # Kernels without a distance.
        ({"query_scale": np.ones(4), "kernel": "linear"}, "choose a radial kernel such as"),
        *(
            ({"leave_one_out": own}, "leave_one_out=.* is not valid: pass True, False")
            for own in ([0, 1], [0, 1, 2, 4], [-2, 0, 0, 0], [0.0] * 4, None)
        ),
        (
            {"leave_one_out": True, "queries": np.zeros((2, 2))},
            "out the position of each query's own key",
        ),
    ],
    ids=str,
)
def test_wrong_scales_and_positions_are_refused(options, message):
    X = np.zeros((4, 2))
    with pytest.raises(ValueError, match=message):
        attend(**{"queries": X, "keys": X, "values": X} | options)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"X": np.zeros(40)}, r"X must have shape \(n_samples, n_features\), got \(40,\)"),
        ({"X": np.zeros((40, 0))}, r"X has shape \(40, 0\), without any feature"),
        ({"sample_weight": -np.ones(40)}, "sample_weight has a negative value"),
        ({"gap": -1}, "gap=-1 is not valid: pass an integer that is not negative"),
        ({"rows": [40]}, r"rows=\[40\] is not valid: pass positions of rows, from 0 to 39"),
        ({"rows": np.ones(40, bool)}, r"(?s)rows=array\(.* is not valid"),
        ({"rows": np.arange(0)}, "selects no row of positive weight"),
        ({"degree": 4}, "degree=4 is not valid: pass 0, 1, 2 or 3"),
        ({"widen": "yes"}, "widen='yes' is not valid: pass True or False"),
    ],
)
def test_what_does_not_fit_is_named(wrong, message):
    X, values = make_data()
    with pytest.raises(ValueError, match=message):
        LeaveOneOut(**{"X": X, "values": values, "kernel": "gaussian"} | wrong)


@pytest.mark.parametrize("scales", [[], [0.0], ["a"], np.ones((2, 5))])
def test_scales_that_do_not_fit_are_named(scales):
    (X, values), message = make_data(), r"(?s)scales?=.* is not valid: pass (a )?numbers? great"
    smoother = LeaveOneOut(X, values, "gaussian")
    for call in (smoother.scores, smoother.predictions):
        with pytest.raises(ValueError, match=message):
            call(scales)
    with pytest.raises(ValueError, match=r"values has shape \(40, 0\).*at least one"):
        LeaveOneOut(X, values[:, :0], "gaussian").scores([1.0])
