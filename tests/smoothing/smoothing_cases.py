"""Smoothers with what they are fitted to, and the same without one of their rows."""

import copy
import math

import numpy as np
import pandas as pd
from sklearn.base import clone

from sklearn_attention import AdaptiveBandwidth, LocalPolynomialRegressor
from sklearn_attention.attention import local_rows
from sklearn_attention.kernels import ProductKernel

LEVELS = ["small", "medium", "large"]


def frame_of(n, seed=0):
    rng = np.random.default_rng(seed)
    sizes = pd.Categorical.from_codes(rng.integers(3, size=n), LEVELS, ordered=True)
    frame = pd.DataFrame({"x": rng.uniform(-1, 1, n), "color": rng.choice(list("rgb"), n)})
    frame["size"] = sizes
    y = 2 * frame["x"] + (frame["color"] == "r") + 0.2 * rng.normal(size=n)
    return frame, y.to_numpy()


def take(X, rows):
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def refit_without(model, X, y, i, weight=None):
    """The model, with the same bandwidth, that never saw row i."""
    rows = np.flatnonzero(np.arange(len(y)) != i)
    given = model.bandwidth_
    if hasattr(model, "n_neighbors_"):
        given = AdaptiveBandwidth(model.n_neighbors_)
    other = clone(model).set_params(bandwidth=given)
    other.fit(take(X, rows), y[rows], None if weight is None else weight[rows])
    # What distances to neighbours are measured in, and lambdas by rule, depend on all rows.
    other.smoother_ = other.smoother_.replace(bandwidth=model.bandwidth_, kernel=model.kernel_)
    return other


def case_of(name):
    """An estimator, by a kind of rows and a degree, and what it is fitted to."""
    kind, _, degree = name.rpartition("-")
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-1, 1, size=(18, 2)), rng.normal(size=18)
    weight = rng.uniform(0.2, 3, 18)
    some = weight * (rng.uniform(size=18) > 0.2)
    both = np.column_stack([y, X[:, 0] + y**2])
    frame, target = frame_of(18)
    neighbours, product = AdaptiveBandwidth(11), ProductKernel("epanechnikov")
    kernel, bandwidth, *given = {
        "plain": ("gaussian", 0.9, X, y, None),
        "weights": ("gaussian", 0.9, X, y, weight),
        "absent": ("gaussian", 0.9, X, y, some),
        "outputs": ("gaussian", 0.9, X, both, weight),
        "compact": ("tricube", [2.5, 3.0], X, y, weight),
        "product": (product, 2.5, X, both, weight),
        "periodic": ("periodic", 0.9, X, y, weight),
        "signed": ("silverman", 0.9, X, y, weight),
        "knn": ("gaussian", neighbours, X, y, None),
        "knn-weights": ("gaussian", neighbours, X, both, some),
        "frame": ("gaussian", [0.8, 0.2, 0.3], frame, target, None),
        "frame-weights": ("gaussian", [0.8, 0.2, 0.3], frame, target, some),
        "frame-knn": ("gaussian", neighbours, frame, target, None),
    }[kind]
    return LocalPolynomialRegressor(kernel, bandwidth=bandwidth, degree=int(degree)), *given


def jackknife_plus(values, errors, coverage):
    """Ends of Barber et al. (2021) from predictions without and errors of each row."""
    n = len(values)
    rank = math.ceil(round(coverage * (n + 1), 9))
    if rank > n:
        return -math.inf, math.inf
    lower, upper = np.sort(values - errors), np.sort(values + errors)
    return lower[n - rank], upper[rank - 1]


def growth_at(model, queries):
    """Expected sizes of the model's errors at queries, over the noise."""
    smoother = model.smoother_
    return smoother.errors.expected_size(queries, smoother.local_rows(queries).effects)


def growth_of_rows(model):
    """The same of its rows left out, 1 where there is no error, or the row has no weight."""
    errors = model.smoother_.errors
    known = errors.standardized != 0
    return np.divide(
        errors.loo_residuals, errors.standardized, where=known, out=np.ones(known.shape)
    )


def rows_at(model, queries, degree, factor, weighted=True):
    """What training rows do at a multiple of the model's bandwidth."""
    bandwidth = model.columns_.divisors(factor * model.bandwidth_)
    factors = model.smoother_.bandwidth_factors(queries)
    return local_rows(
        queries, model.keys_, model.values_.reshape(len(model.keys_), -1), model.kernel_,
        degree=degree, bandwidth=bandwidth, query_scale=factors,
        sample_weight=model.key_weights_ if weighted else present(model),
    )  # fmt: skip


def present(model):
    """Weights of rows that count alike where they are at all."""
    return (model.smoother_.row_weights > 0).astype(float)


def window_of(model, n_rows):
    """A model and a multiple of its bandwidth at which rows' own shares are one in `n_rows`.

    Where levels have too few rows for that, lambdas move to where all levels count alike.
    """
    seen = np.flatnonzero(present(model))

    def is_wide(wide, factor):
        weights = rows_at(wide, wide.keys_, 0, factor, weighted=False).weights
        return weights[seen, seen].sum() <= len(seen) / n_rows

    for factor in 2.0 ** np.arange(0, 10, 0.5):
        if is_wide(model, factor):
            return model, factor
    wide, columns = copy.copy(model), model.columns_
    for step in range(1, 12):
        if columns.categorical:
            lambdas = model.bandwidth_ + (1 - 0.5**step) * (
                np.where(columns.is_numeric, 1.0, columns.highest_lam) - model.bandwidth_
            )
            bandwidth = np.where(columns.is_numeric, model.bandwidth_, lambdas)
            wide.smoother_ = model.smoother_.with_bandwidth(bandwidth)
        if is_wide(wide, factor):
            break
    return wide, factor


def wave(n=80, seed=0, **options):
    """Fit a smoother of a sine with noise."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(size=n))
    y = np.sin(7 * x) + 0.2 * rng.normal(size=n)
    return LocalPolynomialRegressor(bandwidth=0.08, **options).fit(x[:, None], y)
