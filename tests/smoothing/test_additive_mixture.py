"""Mixtures with an additive stage, against refits, differences and formulas."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sklearn_attention import AdaptiveBandwidth, LocalPolynomialRegressor
from sklearn_attention.smoothing._additive import learn_terms
from sklearn_attention.smoothing._additive_mixture import AdditiveMixture, best_mixing_weight

CLOSE = {"rtol": 1e-8, "atol": 1e-8}


def make_rows(n=40, d=2, seed=0):
    """Rows of a sum of two functions and a weak product."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d))
    mean = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.5 * X[:, 0] * X[:, 1]
    return X, mean + 0.2 * rng.normal(size=n)


def make_frame(n=60, seed=0):
    """Rows of a number, another one and a category, and their targets."""
    X, y = make_rows(n, seed=seed)
    levels = np.random.default_rng(seed).integers(3, size=n)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(c=np.array(list("xyz"))[levels])
    return frame, y + levels


def mixture_of(X, y, weights=None, share=0.6, columns=None):
    """A mixture at given bandwidths and share, whose penalties REML has chosen."""
    joint = LocalPolynomialRegressor(bandwidth=[0.7] * X.shape[1]).fit(X, y, weights).smoother_
    terms = learn_terms(joint.keys, joint.values_2d, joint.columns, joint.row_weights)
    mixture = AdditiveMixture.from_joint(joint, terms)
    second = joint.rescaled(lambda bandwidth: 1.3 * bandwidth)
    return mixture.with_second_stage(second).replace(mixing_weight=share)


# Searches for both structures take seconds.
BOTH = ["additive", pytest.param("auto", marks=pytest.mark.slow)]


def cases():
    """Rows, targets and weights."""
    X, y = make_rows()
    weights = np.random.default_rng(1).uniform(0.2, 2, len(X))
    weights[::7] = 0
    both = np.column_stack([y, 100 * X[:, 0] + 50])
    return {"plain": (X, y, None), "weights": (X, y, weights), "outputs": (X, both, weights)}


@pytest.mark.parametrize("case", cases())
@pytest.mark.parametrize("share", [0.6, 1.0])
def test_predictions_are_the_hat_matrix_times_the_targets(case, share):
    X, y, weights = cases()[case]
    smoother = mixture_of(X, y, weights, share)
    queries = np.vstack([0.9 * X[:8], 1.5 * X[:4]])
    hat = smoother.local_rows(queries)
    np.testing.assert_allclose(hat.effects @ y, smoother.predict(queries), **CLOSE)
    np.testing.assert_allclose(hat.values, smoother.predict(queries).reshape(12, -1), **CLOSE)
    np.testing.assert_allclose(hat.effects.sum(axis=1), 1, **CLOSE)
    # Other values in the place of the targets.
    other = np.cos(y)
    np.testing.assert_allclose(hat.effects @ other, smoother.predict(queries, other), **CLOSE)
    leverage = np.diag(smoother.local_rows(X).effects)
    kept = smoother.row_weights > 0
    np.testing.assert_allclose(
        smoother.training_predictions.leverage[kept], leverage[kept], **CLOSE
    )
    fitted = smoother.predict(X).reshape(len(X), -1)
    np.testing.assert_allclose(smoother.training_predictions.fitted, fitted, **CLOSE)


@pytest.mark.parametrize("case", cases())
def test_rows_left_out_are_predicted_as_by_refits(case):
    X, y, weights = cases()[case]
    smoother = mixture_of(X, y, weights)
    # Beyond the other rows, averages of several degrees would go on as lines.
    low, high = np.sort(X[smoother.row_weights > 0], axis=0)[[0, -1]]
    is_inside = ((low < X) & (X < high)).all(axis=1) & (smoother.row_weights > 0)
    rows = np.flatnonzero(is_inside)[:12]
    expected = [smoother.take(np.arange(len(X)) != i).predict(X[[i]]).reshape(-1) for i in rows]
    np.testing.assert_allclose(smoother.training_predictions.left_out[rows], expected, **CLOSE)
    np.testing.assert_allclose(smoother.predict_left_out(rows), expected, **CLOSE)


def test_queries_without_each_row_are_predicted_as_by_refits():
    X, y = make_rows()
    queries = 0.8 * X[:5]
    both = mixture_of(X, y, share=1.0)
    for smoother, tolerance in ((both.replace(residual_fields=()), 1e-9), (both, 0.06)):
        found = smoother.local_rows(queries, without_each=True).left_out[:, :6, 0]
        expected = np.transpose(
            [smoother.take(np.arange(len(X)) != i).predict(queries) for i in range(6)]
        )
        # The second stage applied to the columns of the hat matrix is as if it had the row.
        np.testing.assert_allclose(found, expected, atol=tolerance)


def test_rows_in_wider_windows_are_left_out_nearly_as_by_refits():
    X, y = make_rows()
    smoother, rows = mixture_of(X, y), np.arange(6)
    found = smoother.predict_left_out(rows, 4.0)
    wide = smoother.rescaled(lambda bandwidth: 4 * bandwidth)
    errors = found - wide.predict_left_out(rows)
    assert np.abs(errors).max() < 0.3 * np.std(y)


def test_gradients_are_derivatives_of_predictions():
    X, y = make_rows()
    smoother = mixture_of(X, np.column_stack([y, 2 * y]))
    smoother = smoother.with_members([(2, smoother.bandwidth, 1.0)])
    smoother = smoother.replace(residual_fields=((2, smoother.bandwidth, 1.0),))
    queries, step = 0.7 * X[:10], 1e-6
    found = smoother.gradient(queries, smoother.values)
    for j, axis in enumerate(step * np.eye(2)):
        ends = (smoother.predict(queries + sign * axis) for sign in (1, -1))
        rise = np.subtract(*ends)
        np.testing.assert_allclose(found[:, :, j], rise / (2 * step), rtol=1e-3, atol=1e-3)


def test_weights_stand_for_copies_of_rows():
    X, y = make_rows()
    counts = np.random.default_rng(2).integers(1, 3, len(X)).astype(float)
    smoother = mixture_of(X, y, counts)
    copies = np.repeat(np.arange(len(X)), counts.astype(int))
    copied = smoother.take(copies).replace(key_weights=None)
    queries = 0.9 * X[:10]
    np.testing.assert_allclose(copied.predict(queries), smoother.predict(queries), **CLOSE)


def test_mixing_weight_minimises_the_squared_error():
    rng = np.random.default_rng(0)
    signal, weights = rng.normal(size=(50, 2)), rng.uniform(size=50)
    stages, joint = signal + rng.normal(size=(50, 2)), signal + rng.normal(size=(50, 2))
    share = best_mixing_weight(stages, joint, weights)
    shares = np.linspace(0, 1, 1001)
    losses = [weights @ np.square(v * stages + (1 - v) * joint).sum(axis=1) for v in shares]
    assert share == pytest.approx(shares[np.argmin(losses)], abs=1e-3)
    assert best_mixing_weight(joint, 0 * joint, weights) == 0
    assert best_mixing_weight(0 * joint, joint, weights) == 1
    # A single row with a huge error, and rows without a prediction, choose nothing.
    stages[0], joint[1] = 1e6, np.nan
    expected = best_mixing_weight(stages[2:], joint[2:], weights[2:])
    assert best_mixing_weight(stages, joint, weights) == pytest.approx(expected)


@pytest.mark.slow
def test_an_additive_truth_is_predicted_by_both_stages():
    X, y = make_rows()
    model = LocalPolynomialRegressor().fit(X, y)
    assert isinstance(model.smoother_, AdditiveMixture)
    assert 0.3 < model.additive_share_ <= 1
    joint = LocalPolynomialRegressor(structure="joint").fit(X, y)
    assert joint.additive_share_ == 0
    assert model.loo_score_ > joint.loo_score_
    best = model.loo_residuals_
    for share in (model.additive_share_ - 0.05, min(model.additive_share_ + 0.05, 1)):
        other = model.smoother_.replace(mixing_weight=share)
        errors = other.values_2d - other.training_predictions.left_out
        assert np.square(errors).sum() >= np.square(best).sum() - 1e-9


@pytest.mark.parametrize(
    "options",
    [
        {"bandwidth": 0.5}, {"bandwidth": "scott"}, {"degree": 0, "per_feature": False},
        pytest.param({"gap": 2, "per_feature": False}, marks=pytest.mark.slow),
        pytest.param({"structure": "joint"}, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_structure_is_joint_where_nothing_is_searched_for_all_features(options):
    model = LocalPolynomialRegressor(**options).fit(*make_rows(24))
    assert model.additive_share_ == 0
    assert not hasattr(model, "components_")


def test_one_feature_is_joint_and_a_constant_beside_it_changes_nothing():
    X, y = make_rows(30)
    X[:, 1] = 3.0
    models = [LocalPolynomialRegressor().fit(rows, y) for rows in (X[:, :1], X)]
    for model in models:
        assert model.additive_share_ == 0
    np.testing.assert_allclose(*(m.fitted_values_ for m in models), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"gap": 2}, "gap=0"), ({"kernel": "periodic"}, "kernel='gaussian'"),
        ({"bandwidth": AdaptiveBandwidth(5)}, "bandwidth='scott'"),
        ({"bandwidth": "knn-loo"}, "bandwidth='scott'"),
    ],
)  # fmt: skip
def test_an_additive_structure_that_cannot_be_had_is_refused(options, word):
    X, y = make_rows(24)
    with pytest.raises(ValueError, match=f"structure='additive'.*{word}"):
        LocalPolynomialRegressor(structure="additive", **options).fit(X, y)


def test_what_does_not_vary_has_no_additive_structure():
    X, y = make_rows(24)
    additive = LocalPolynomialRegressor(structure="additive")
    for rows, targets in ((X, 0 * y), (0 * X, y)):
        with pytest.raises(ValueError, match="structure='joint'"):
            additive.fit(rows, targets)
    with pytest.raises(ValueError, match="structure='sum' is unknown"):
        LocalPolynomialRegressor(structure="sum").fit(X, y)


@pytest.mark.parametrize("n", [7, 20])
def test_few_rows_have_more_columns_than_rows(n):
    X, y = make_rows(n, 3)
    X[:, 2] = X[:, 2] > 0
    model = LocalPolynomialRegressor(structure="additive").fit(X, y)
    assert np.isfinite(model.predict(3 * X)).all()
    assert model.effective_dof_ < n


def test_additive_predictions_are_a_mean_and_components():
    frame, y = make_frame()
    model = LocalPolynomialRegressor(structure="additive").fit(frame, y)
    X = model.keys_
    parts = [model.smoother_.component(j, X)[0][:, 0] for j in range(3)]
    np.testing.assert_allclose(np.mean(parts, axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(model.fitted_values_, y.mean() + sum(parts), **CLOSE)
    table = model.components_
    assert table["name"].tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(table["importance"], np.std(parts, axis=1), rtol=1e-9)
    assert 1 + table["degrees_of_freedom"].sum() == pytest.approx(model.effective_dof_)
    # The effects of levels are 0, 1 and 2.
    effects = [parts[2][(frame["c"] == level).to_numpy()][0] for level in "xyz"]
    np.testing.assert_allclose(np.diff(effects), 1, atol=0.25)
    several = LocalPolynomialRegressor(structure="additive").fit(frame, np.stack([y, y], 1))
    assert several.components_.columns[2:].tolist() == ["importance_0", "importance_1"]


def test_a_smoother_without_a_feature_does_not_depend_on_it():
    frame, y = make_frame()
    smoother = LocalPolynomialRegressor(structure="additive").fit(frame, y).smoother_
    for j in range(3):
        without = smoother.without_terms_of(j)
        moved = smoother.keys.copy()
        moved[:, j] = moved[::-1, j]
        np.testing.assert_allclose(without.predict(moved), without.predict(smoother.keys))
        assert np.square(smoother.predict(moved) - smoother.predict(smoother.keys)).sum() > 1


@pytest.mark.parametrize("structure", BOTH)
def test_units_and_orders_do_not_matter(structure):
    X, y = make_rows()
    model = LocalPolynomialRegressor(structure=structure)
    expected = clone(model).fit(X, y).fitted_values_
    order = np.random.default_rng(3).permutation(len(X))
    changed = {
        "units": (X * [1000.0, 0.01] + 7, 1e4 * y, lambda fitted: fitted / 1e4),
        "rows": (X[order], y[order], lambda fitted: fitted[np.argsort(order)]),
        "columns": (X[:, ::-1], y, lambda fitted: fitted),
    }
    for rows, targets, back in changed.values():
        fitted = back(model.fit(rows, targets).fitted_values_)
        np.testing.assert_allclose(fitted, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("structure", BOTH)
def test_rows_of_weight_0_are_absent(structure):
    X, y = make_rows()
    far = np.vstack([X, [[1e6, -1e6]]])
    weights = np.append(2 * np.ones(len(X)), 0.0)
    model = LocalPolynomialRegressor(structure=structure)
    found = clone(model).fit(far, np.append(y, 1e9), weights).predict(X)
    np.testing.assert_allclose(found, model.fit(X, y).predict(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("structure", BOTH)
def test_numbers_keep_their_precision(structure):
    X, y = make_rows()
    model = LocalPolynomialRegressor(structure=structure)
    single = clone(model).fit(X.astype(np.float32), y.astype(np.float32))
    assert isinstance(single.smoother_, AdditiveMixture)
    queries = X[:9].astype(np.float32)
    for values in (
        single.predict(queries), single.predict_gradient(queries), single.loo_residuals_,
        single.smoother_matrix(queries), single.predict_interval(queries),
    ):  # fmt: skip
        assert values.dtype == np.float32
    found = single.predict(queries)
    np.testing.assert_allclose(found, model.fit(X, y).predict(X[:9]), atol=0.02)


def test_files_hold_both_stages():
    X, y = make_rows()
    model = LocalPolynomialRegressor(structure="additive").fit(X, y)
    model.smoother_ = mixture_of(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    pd.testing.assert_frame_equal(loaded.components_, model.components_)


@pytest.mark.slow
def test_no_dependence_of_residuals_is_no_warning():
    X, _ = make_rows(60)
    y = X @ [1.0, -2.0] + 0.1 * np.random.default_rng(1).normal(size=60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LocalPolynomialRegressor().fit(X, y)
    assert model.additive_share_ > 0.5


@pytest.mark.slow
def test_robust_weights_are_those_of_the_additive_stage():
    X, y = make_rows(80)
    spoiled = y.copy()
    spoiled[:5] += 50
    model = LocalPolynomialRegressor(robust=True).fit(X, spoiled)
    assert model.additive_share_ > 0
    assert np.abs(model.predict(X) - LocalPolynomialRegressor().fit(X, y).predict(X)).max() < 1


@pytest.mark.parametrize("structure", BOTH)
def test_further_rows_are_as_if_they_had_been_there(structure):
    X, y = make_rows(60)
    model = LocalPolynomialRegressor(structure=structure)
    grown = clone(model).fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    whole = model.fit(X, y)
    np.testing.assert_array_equal(grown.predict(X), whole.predict(X))


@pytest.mark.slow
def test_sums_of_functions_have_smaller_errors_than_by_joint_smoothing():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 5))
    mean = np.sin(6 * X[:, 0]) + 2 * X[:, 1] ** 2
    y = mean + 0.4 * rng.normal(size=400)
    errors = [
        np.std(LocalPolynomialRegressor(structure=structure).fit(X, y).predict(X) - mean)
        for structure in ("joint", "auto", "additive")
    ]
    assert max(errors[1:]) < 0.7 * errors[0]


def test_an_outlier_in_a_feature_does_not_spoil_its_line():
    X, y = make_rows(200)
    model = LocalPolynomialRegressor(structure="additive")
    expected = clone(model).fit(X, y).predict(X)
    spoiled = X.copy()
    spoiled[0, 0], spoiled[1, 1] = 1e6, -3e5
    errors = model.fit(spoiled, y).predict(X) - expected
    assert np.std(errors[2:]) < 0.15 * np.std(expected)


def test_summaries_tell_the_share():
    X, y = make_rows()
    model = LocalPolynomialRegressor(structure="additive").fit(X, y)
    assert model.summary().additive_share == 1
    assert "additive share                1.00" in str(model.summary())
    joint = LocalPolynomialRegressor(bandwidth=0.5).fit(X, y)
    assert "additive share" not in str(joint.summary())


def test_penalties_are_chosen_again_for_each_draw_of_a_test(monkeypatch):
    model = LocalPolynomialRegressor(structure="additive").fit(*make_rows())
    drawn = []
    monkeypatch.setattr(
        model, "_smoother_of", lambda values: drawn.append(values) or model.smoother_
    )
    model.feature_significance(3)
    assert len(drawn) == 6
