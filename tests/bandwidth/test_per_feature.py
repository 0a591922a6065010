"""A bandwidth for each feature and a lambda for each category, against brute force."""

import itertools

import numpy as np
import pytest
from leave_one_out import criteria, leave_one_out_error

from sklearn_attention import Columns, NadarayaWatsonClassifier, attention_weights
from sklearn_attention.attention import LeaveOneOut, Scores
from sklearn_attention.bandwidth import (
    _per_feature,
    corrected_akaike,
    generalized_cross_validation,
    select_bandwidth,
)
from sklearn_attention.bandwidth._per_feature import search_bandwidths
from sklearn_attention.bandwidth._search import Rows
from sklearn_attention.kernels import Boxcar, Epanechnikov, Gaussian, Matern32
from sklearn_attention.kernels._product_kernel import mixed_kernel

COLUMNS = Columns(
    ("numeric", "unordered", "ordered", "unordered"), (None, range(3), range(4), range(5))
)


def select_bandwidths(X, values, kernel, criterion="loo", *, per_feature=True, **options):
    """Bandwidths, the criterion there, and the relevance of each feature."""
    found = select_bandwidth(X, values, kernel, criterion, per_feature=per_feature, **options)
    return found.bandwidth, found.value, found.relevance


def numbers(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 2)) * [1.0, 20.0]
    return X, np.sin(9 * X[:, :1]) + 0.1 * X[:, 1:] + 0.2 * rng.normal(size=(n, 1))


def mixed(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 1, n), *(rng.integers(0, c, n) for c in (3, 4, 5))])
    y = np.sin(5 * X[:, 0]) + 3 * X[:, 1] + 2 * X[:, 2] + 0.1 * rng.normal(size=n)
    return X, y[:, None]


@pytest.mark.parametrize(
    ("kernel", "degree"), [(Gaussian(), 1), (Matern32(), 0), (Epanechnikov(), 0)], ids=repr
)
def test_not_above_a_grid(kernel, degree):
    X, values = numbers(40, seed=1)  # where a descent from one start gets stuck
    rows = Rows(
        X=X, values=values, columns=Columns.numbers(2), degree=degree, empty="nan",
        per_feature=True, random_state=0,
    )  # fmt: skip
    h, value, *_ = search_bandwidths("loo", rows, kernel, None)
    assert value == pytest.approx(
        leave_one_out_error(X, values, kernel, h, degree=degree), rel=1e-6
    )
    grid = itertools.product(np.geomspace(0.05, 3, 7), np.geomspace(2, 200, 7))
    brute = criteria(X, values, kernel, list(map(np.array, grid)), degree=degree).min()
    # Compact kernels make surfaces with kinks, on which descents end early.
    assert value <= brute * (1.05 if kernel == Epanechnikov() else 1 + 1e-6)


@pytest.mark.parametrize(
    ("criterion", "degree", "weighted"),
    [("loo", 0, True), ("gcv", 1, True), ("aicc", 0, False)],
)
def test_value_is_the_criterion_at_the_bandwidths(criterion, degree, weighted):
    X, values = mixed(60)
    values = 100 * values
    weight = np.random.default_rng(1).integers(0, 3, 60).astype(float) if weighted else None
    h, value, _ = select_bandwidths(
        X, values, Gaussian(), criterion, columns=COLUMNS, degree=degree, empty="nan",
        sample_weight=weight, random_state=0,
    )  # fmt: skip
    kernel = mixed_kernel(Gaussian(), COLUMNS, h)
    bandwidth = np.where([True, False, False, False], h, 1)
    options = dict(bandwidth=bandwidth, degree=degree, sample_weight=weight)
    scores = Scores(*np.ravel(LeaveOneOut(X, values, kernel, **options).scores([1.0])))
    kept = np.ones(60) if weight is None else weight > 0
    expected = {
        "loo": scores.left_out,
        "gcv": generalized_cross_validation(scores, kept.sum()),
        "aicc": corrected_akaike(scores, kept.sum()),
    }[criterion]
    assert value == pytest.approx(float(expected), rel=1e-4)


def test_lambdas_of_categories():
    X, values = mixed(160)
    h, value, relevance = select_bandwidths(
        X, values, Gaussian(), columns=COLUMNS, random_state=0
    )
    assert h[1] < 0.1  # each level is another world
    assert h[2] < 0.2
    assert relevance[1] > 0.9
    # What makes no difference is hardly told apart, and not at all but by chance.
    assert 0.55 < h[3] <= 4 / 5
    at = np.array([h[0], 1, 1, 1])
    errors = [
        leave_one_out_error(X, values, mixed_kernel(Gaussian(), COLUMNS, [*h[:3], lam]), at)
        for lam in (0.0, 0.3, 0.7, 0.8)
    ]
    assert value <= min(errors)


def test_one_scale_with_categories():
    rng = np.random.default_rng(0)
    X, _ = mixed()
    X = np.column_stack([X, 1e3 * rng.uniform(size=len(X))])
    values = np.sin(5 * X[:, :1]) + X[:, 1:2] + 0.1 * rng.normal(size=(len(X), 1))
    columns = COLUMNS + Columns.numbers(1)
    h, value, _ = select_bandwidths(X, values, Gaussian(), columns=columns, per_feature=False)
    assert h[0] / X[:, 0].std() == pytest.approx(h[4] / X[:, 4].std(), rel=1e-9)
    kernel = mixed_kernel(Gaussian(), columns, h)
    given = columns.divisors(h)
    assert value == pytest.approx(leave_one_out_error(X, values, kernel, given), rel=1e-6)
    for factor in (0.7, 1.4):
        other = leave_one_out_error(X, values, kernel, np.where(given == h, factor * h, 1))
        assert value <= other


def test_nothing_to_find():
    X, values = numbers(3)
    with pytest.raises(ValueError, match="n_samples=1: pass more"):
        select_bandwidths(X[:1], values[:1], Gaussian())
    with pytest.raises(ValueError, match="bandwidth='thumb' is unknown: choose from"):
        select_bandwidths(X, values, Gaussian(), "thumb")
    with pytest.raises(ValueError, match=r"values has shape \(3, 0\).*at least one"):
        select_bandwidths(X, values[:, :0], Gaussian())


@pytest.mark.parametrize("kernel", [Epanechnikov(), Boxcar()], ids=repr)
def test_every_row_must_be_predicted_where_asked(kernel):
    rng = np.random.default_rng(0)
    X = np.append(rng.uniform(0, 1, 30), 20.0)[:, None]
    values = np.sin(9 * X)
    h, value, _ = select_bandwidths(X, values, kernel, empty="nan")
    assert h[0] >= 18
    assert np.isfinite(value)


def test_a_sample_judges_one_scale_as_wide_as_it_needs(monkeypatch):
    judged, plain = [], _per_feature._GradientSearch._leave_one_out
    monkeypatch.setattr(_per_feature, "MAX_SEARCH_ROWS", 50)
    monkeypatch.setattr(
        _per_feature._GradientSearch,
        "_leave_one_out",
        lambda self, h: judged.append(h) or plain(self, h),
    )
    X = np.random.default_rng(0).uniform(size=(200, 2))
    choice = select_bandwidth(
        X, X[:, :1] + X[:, 1:], Gaussian(), per_feature="auto", random_state=0
    )
    assert choice.relevance is None
    np.testing.assert_allclose(judged[-2], choice.bandwidth * 4 ** (1 / 6))


def test_classes_need_likelihood_too(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(60, 3))
    y = (X[:, 0] > 0).astype(int) + (X[:, 0] > 0.6)
    weights = rng.uniform(0.5, 2, size=60)
    search, judged, found = _per_feature._GradientSearch, [], []
    plain, likelihood = search._leave_one_out, search._log_likelihood
    monkeypatch.setattr(search, "_leave_one_out", lambda s, h: judged.append(h) or plain(s, h))

    def recorded(search, leave_one_out):
        found.append(likelihood(search, leave_one_out))
        return found[-1]

    monkeypatch.setattr(search, "_log_likelihood", recorded)
    model = NadarayaWatsonClassifier().fit(X, y, weights)
    assert hasattr(model, "relevance_")
    n = weights.sum() ** 2 / (weights @ weights)
    for h, value in zip(judged[-2:], found, strict=True):
        shares = attention_weights(X, X, bandwidth=h, sample_weight=weights, leave_one_out=True)
        alike = y[:, None] == y
        proba = (n * (shares * alike).sum(axis=1) + alike @ weights / weights.sum()) / (n + 1)
        assert value == pytest.approx(60 * np.average(np.log(proba), weights=weights), rel=1e-9)
    assert found[1] - found[0] > 2 * 2
    monkeypatch.setattr(_per_feature, "_GAIN_OF_CLASSES", (found[1] - found[0]) / 2 + 1e-6)
    assert not hasattr(NadarayaWatsonClassifier().fit(X, y, weights), "relevance_")


def test_many_rows_are_searched_alike_in_any_order():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(330, 3))
    values = np.column_stack([np.sin(6 * X[:, 0]), rng.integers(0, 2, 330)])
    order = rng.permutation(330)
    found, other = (
        select_bandwidth(X[rows], values[rows], Gaussian(), per_feature="auto").bandwidth
        for rows in (slice(None), order)
    )
    np.testing.assert_allclose(other, found, rtol=1e-5)


@pytest.mark.parametrize(
    ("shape", "degree", "criterion"),
    [((8, 8), 1, "loo"), ((60, 51), 0, "loo"), ((30, 2), 0, "loo"), ((30, 2), 0, "aicc")],
)
def test_one_scale_of_too_many_features_and_where_errors_are_0(shape, degree, criterion):
    X = np.random.default_rng(0).normal(size=shape)
    values = np.ones((30, 1)) if shape[1] == 2 else np.sign(X[:, :1])
    choice = select_bandwidth(
        X, values, Gaussian(), criterion, degree=degree, per_feature="auto"
    )
    assert choice.relevance is None
    assert choice.results is not None
