"""Errors of kernel attention without the level of a row, against systems without its rows."""

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import KernelAttentionRegressor
from sklearn_attention._new_levels import with_new_levels

QUICK = {"n_folds": 2, "max_steps": 2, "boosting": None}
every_readout = pytest.mark.parametrize("readout", ["solve", "average"])


def make_shops(n_shops=6, n_rows=8, effect=4.0, seed=0):
    rng = np.random.default_rng(seed)
    shop, size = np.repeat(np.arange(n_shops), n_rows), rng.uniform(size=n_shops * n_rows)
    y = np.sin(5 * size) + effect * rng.normal(size=n_shops)[shop]
    X = pd.DataFrame({"size": size, "shop": [f"shop {k}" for k in shop]})
    return X, y + 0.3 * rng.normal(size=len(y))


def slow_prediction(model, member, query, kept):
    """The prediction for one row of numbers and codes from some training rows alone."""
    training, kernel = model._fitted.training, member.kernel
    rows, query = (training.encode(Z, np.float64) for Z in (training.X[kept], query[None]))
    at_query, targets = kernel.matrix(query, rows)[0], training.targets[kept]
    if model.readout == "average":
        return at_query @ targets / at_query.sum()
    noise = np.diag(kernel.noise_variances(training.weights[kept]))
    return at_query @ np.linalg.solve(kernel.matrix(rows, rows) + noise, targets)


@every_readout
def test_errors_are_those_of_the_rows_of_other_levels(readout):
    X, y = make_shops()
    model = KernelAttentionRegressor(readout, **QUICK).fit(X, y)
    fitted, effects = model._fitted, model._level_effects
    codes = fitted.training.X
    levels = [np.flatnonzero(codes[:, 1] == code) for code in range(6)]
    parts = [
        (np.intersect1d(level, fitted.held_out), np.isin(codes[:, 1], codes[level, 1]))
        for level in levels
    ]
    rows = np.concatenate([rows for rows, _ in parts])
    without_level, without_row = effects._errors(1, rows, parts)
    order = [list(fitted.held_out).index(row) for row in rows]
    np.testing.assert_allclose(without_row[:, 0], model.loo_residuals_[order], rtol=1e-9)
    for row, found in zip(rows, without_level[:, 0], strict=True):
        (number,) = [k for k, fold in enumerate(fitted.folds) if row in fold]
        kept = np.flatnonzero(codes[:, 1] != codes[row, 1])
        new = with_new_levels(codes[[row]], 1)[0]
        predicted = slow_prediction(model, fitted.members[number], new, kept)
        predicted = predicted * fitted.training.scale + fitted.training.center
        assert found == pytest.approx(y[row] - predicted[0], rel=1e-6, abs=1e-6)


@every_readout
def test_levels_of_one_row_are_in_one_fold(readout):
    X, y = make_shops(n_shops=8, n_rows=4)
    X = X.assign(colour=np.where(np.arange(32) < 3, ["a", "b", "c", *["red"] * 29], "red"))
    model = KernelAttentionRegressor(readout, **QUICK).fit(X, y)
    widths = [
        np.diff(model.predict_quantiles(X[5:6].assign(**new), [0.05, 0.95])).item()
        for new in ({}, {"colour": "new"}, {"shop": "new"}, {"colour": "new", "shop": "new"})
    ]
    assert np.isfinite(widths).all()
    assert widths[2] > 2 * widths[0]


def test_of_many_rows_a_sample_tells(monkeypatch):
    """The sample has the rows that are predicted, and some of all others."""
    X, y = make_shops(n_shops=8, n_rows=20)
    model = KernelAttentionRegressor(**QUICK).fit(X, y)
    query = X[:5].assign(shop="new")
    expected = model._level_effects.distribution(model._read_rows(query)).std
    monkeypatch.setattr("sklearn_attention._new_levels.MAX_ROWS", 64)
    monkeypatch.setattr("sklearn_attention.kernel_attention._leave_level_out.MAX_ROWS", 100)
    model._memo.clear()
    found = model._level_effects.distribution(model._read_rows(query)).std
    assert not np.array_equal(found, expected)
    np.testing.assert_allclose(found, expected, rtol=0.4)


def test_trees_lose_their_part_of_a_level_as_well():
    """Of targets that are steps beside effects of shops, trees have most of both."""
    rng = np.random.default_rng(0)
    shop, Z = np.repeat(np.arange(20), 20), rng.uniform(size=(400, 2))
    effect = 4.0 * rng.choice([-1, 1], 20)
    steps = 4 * (np.floor(6 * Z[:, 0]) % 2) + 4 * (np.floor(7 * Z[:, 1]) % 2)
    y = steps + effect[shop] + 0.3 * rng.normal(size=400)
    X = pd.DataFrame(Z, columns=["a", "b"]).assign(shop=[f"shop {k}" for k in shop])
    model = KernelAttentionRegressor(n_folds=1, max_steps=2).fit(X, y)
    assert model.boosting_share_ > 0.3
    queries = X.assign(shop="new")
    lower, upper = model.predict_interval(queries, coverage=0.9).T
    # Effects are +4 or -4, so that intervals of 4 to either side of the middle hold them.
    assert 0.85 < np.mean((lower < y) & (y < upper)) <= 1
    assert 6 < np.median(upper - lower) < 20


def test_deviations_are_those_of_a_known_level():
    """The kernel's own guess of what a level adds does not come on top."""
    X, y = make_shops()
    model = KernelAttentionRegressor(**QUICK).fit(X, y)
    effects, training = model._level_effects, model._fitted.training
    codes = model._read_rows(X[:6].assign(shop="new"))
    found = effects.deviations(codes, training.encode(codes, np.float64))
    rows = model._fitted.held_out_rows
    usual = np.median(rows.deviations)
    assert (found >= usual - 1e-12).all()
    assert (found < rows.deviations_of(training.encode(codes, np.float64))).all()
    far = codes.copy()
    far[:, 0] += 5
    assert (effects.deviations(far, training.encode(far, np.float64)) > 1.5 * found).all()
