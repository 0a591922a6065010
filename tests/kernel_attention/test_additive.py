"""When kernel attention has an additive part, and that all methods allow for it."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest

from sklearn_attention import KernelAttentionClassifier, KernelAttentionRegressor
from sklearn_attention._new_levels import with_new_levels
from sklearn_attention.kernel_attention._additive import fit_additive
from sklearn_attention.kernel_attention._members import squared_loss

QUICK = {"max_steps": 5, "boosting": None}


def make_sum(n=90, seed=0):
    """Sums of functions of a number with missing cells, one with few values, and a town."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({
        "size": rng.normal(size=n),
        "rooms": rng.integers(1, 5, n).astype(float),
        "town": rng.choice(["Aachen", "Bonn", "Celle"], n),
    })  # fmt: skip
    y = np.sin(2 * X["size"]) + np.sqrt(X["rooms"]) + 2.0 * (X["town"] == "Bonn")
    X.loc[::9, "size"] = np.nan
    return X, y.to_numpy() + 0.1 * rng.normal(size=n)


def make_product(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, X[:, 0] * X[:, 1]


@pytest.fixture(scope="module")
def model():
    X, y = make_sum()
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    return KernelAttentionRegressor(**QUICK).fit(X, y, weight)


@pytest.fixture(scope="module")
def two_outputs():
    X, y = make_sum()
    return KernelAttentionRegressor(**QUICK).fit(X, np.column_stack([y, 1e9 * (y**2 - y)]))


def with_shares(model, shares):
    """A copy of a model whose members have other weights of the additive part."""
    changed = pickle.loads(pickle.dumps(model))
    additive = dataclasses.replace(model._fitted.additive, shares=np.array(shares))
    changed._fitted = dataclasses.replace(model._fitted, additive=additive)
    return changed


def slow_ridge(additive, member, training, rows, X):
    """Predictions for rows X by the ridge beside a member, refitted to training rows."""
    Z, weights = additive.columns.encode(training.X[rows]), training.weights[rows][:, None]
    gram = (weights * Z).T @ Z + np.diag(additive.penalties[member])
    coefficients = np.linalg.solve(gram, (weights * Z).T @ training.targets[rows])
    return additive.columns.encode(X) @ coefficients


def test_sums_have_an_additive_part_and_products_none(model):
    assert 0 < model.additive_share_ <= 1
    assert model.additive_share_ == model._fitted.additive.shares.mean()
    assert KernelAttentionRegressor(**QUICK).fit(*make_product()).additive_share_ == 0


@pytest.mark.parametrize(
    "parameters",
    [{"ridge": 0.1}, {"readout": "average"}, {"bandwidth": 1.0, "encodings": "standard"}],
)
def test_kernels_that_are_given_have_no_additive_part(parameters):
    X, y = make_sum()
    assert KernelAttentionRegressor(**QUICK | parameters).fit(X, y).additive_share_ == 0


def test_few_rows_and_many_columns_have_no_additive_part():
    X, y = make_sum(49)
    assert KernelAttentionRegressor(**QUICK).fit(X, y).additive_share_ == 0
    X = np.random.default_rng(0).normal(size=(60, 241))
    assert KernelAttentionRegressor(**QUICK).fit(X, X[:, 0]).additive_share_ == 0


def test_predictions_mix_those_of_kernels_and_ridges(model):
    shares = [0.2, 0.0, 1.0, 0.6]
    mixed, rows = with_shares(model, shares), np.arange(len(model.keys_))
    fitted, X = mixed._fitted, model._read_rows(make_sum(20, seed=2)[0])
    predictions = [
        (1 - share) * member.predict(fitted.training, X)
        + share * slow_ridge(fitted.additive, number, fitted.training, rows, X)
        for number, (member, share) in enumerate(zip(fitted.members, shares, strict=True))
    ]
    np.testing.assert_allclose(fitted.predict(X), np.mean(predictions, axis=0), atol=1e-9)
    held_out = fitted.training.X[fitted.folds[0]]
    expected = 0.8 * fitted.members[0].predict(fitted.training, held_out)
    expected += 0.2 * slow_ridge(fitted.additive, 0, fitted.training, rows, held_out)
    found = fitted.predict_held_out()[: len(held_out)]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("name", ["model", "two_outputs"])
def test_explained_weights_give_the_predictions(name, request):
    model = request.getfixturevalue(name)
    assert model.additive_share_ > 0
    queries = make_sum(20, seed=2)[0]
    queries.loc[3, "town"] = "Dortmund"
    weights = model._fitted.weights(model._read_rows(queries))
    predictions = model.predict(queries)
    scale = np.abs(predictions).max(axis=0)
    np.testing.assert_allclose(weights @ model.values_ / scale, predictions / scale, atol=1e-12)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    explanation = model.explain(queries.iloc[:1], k=len(model.keys_))
    np.testing.assert_allclose(np.sort(explanation["weight"]), np.sort(weights[0]))


@pytest.mark.parametrize("name", ["model", "two_outputs"])
def test_slopes_are_derivatives_of_predictions(name, request):
    model, step = request.getfixturevalue(name), 1e-6
    # Where a node is, predictions have a slope to either side.
    queries = make_sum(20, seed=2)[0].dropna()
    queries = queries.assign(rooms=queries["rooms"] + 0.3)
    slopes = model.local_slopes(queries).reshape(len(queries), -1, 3)
    scale = np.abs(slopes).max(axis=(0, 2))
    for column, feature in enumerate(("size", "rooms")):
        moved = queries.assign(**{feature: queries[feature] + step})
        change = (model.predict(moved) - model.predict(queries)) / step
        expected = change.reshape(len(queries), -1) / scale
        np.testing.assert_allclose(slopes[..., column] / scale, expected, atol=1e-3)
    assert not slopes[..., 2].any()


def test_units_change_nothing(model):
    X, y = make_sum()
    queries = make_sum(20, seed=2)[0]
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    scaled = KernelAttentionRegressor(**QUICK)
    scaled.fit(X.assign(size=1e-9 * X["size"]), 1e9 * y, weight)
    predictions = scaled.predict(queries.assign(size=1e-9 * queries["size"]))
    np.testing.assert_allclose(1e-9 * predictions, model.predict(queries), rtol=1e-6)
    assert scaled.additive_share_ == model.additive_share_


def test_one_huge_number_leaves_other_rows_as_they_are():
    X, y = make_sum(120)
    queries, expected = make_sum(300, seed=2)
    errors = []
    for size in (X["size"][1], 1e12):
        changed = X.assign(size=np.where(np.arange(120) == 1, size, X["size"]))
        model = KernelAttentionRegressor(boosting=None).fit(changed, y)
        errors.append(np.sqrt(np.mean(np.square(model.predict(queries) - expected))))
    assert errors[1] < 1.5 * errors[0]


def fit_to(model, kernel, y=None):
    """Fit additive parts to the rows of a model beside given predictions of its kernels."""
    training = model._fitted.training
    if y is not None:
        training = dataclasses.replace(training, values=y)
    kinds = model.columns_.kinds
    return training, *fit_additive(training, kinds, model._fitted.folds, kernel, squared_loss)


def test_a_fold_chooses_neither_its_penalties_nor_its_weight(model):
    folds, training = model._fitted.folds, model._fitted.training
    # The kernel of the first fold is far off, and the others are exact.
    kernel = [training.targets[fold] + 5.0 * (m == 0) for m, fold in enumerate(folds)]
    _, expected, mixed = fit_to(model, kernel)
    assert expected.shares[0] == 0
    assert (expected.shares[1:] > 0).all()
    np.testing.assert_array_equal(mixed[0], kernel[0])
    y = model.values_.copy()
    y[folds[0]] += np.random.default_rng(3).normal(size=len(folds[0]))
    ratios = fit_to(model, kernel, y)[1].penalties[:, 1:] / expected.penalties[:, 1:]
    np.testing.assert_allclose(ratios[0], 1, rtol=1e-6)
    assert (np.abs(ratios[1:] - 1).max(axis=1) > 0.01).all()


def test_held_out_predictions_are_those_of_refits_without_the_row(model):
    folds, training = model._fitted.folds, model._fitted.training
    kernel = [np.full((len(fold), 1), 3.0) for fold in folds]
    _, additive, mixed = fit_to(model, kernel)
    for member in (0, 2):
        row, share = folds[member][4], additive.shares[member]
        others = np.delete(np.arange(len(training)), row)
        ridge = slow_ridge(additive, member, training, others, training.X[[row]])
        expected = (1 - share) * 3.0 + share * ridge
        np.testing.assert_allclose(mixed[member][[4]], expected, atol=1e-9)


def test_gains_by_chance_do_not_count(model):
    folds, training = model._fitted.folds, model._fitted.training
    exact = [training.targets[fold] for fold in folds]
    _, additive, mixed = fit_to(model, exact)
    assert additive is None
    assert mixed is exact


def test_errors_without_a_level_are_those_of_refits(model):
    mixed = with_shares(model, [0.5, 0.5, 1.0, 0.5])
    fitted, effects = mixed._fitted, mixed._level_effects
    training, towns = fitted.training, fitted.training.X[:, 2]
    rows = np.intersect1d(fitted.folds[2], np.flatnonzero(towns == 1))
    without_level, without_row = effects._errors(2, rows, [(rows, towns == 1)])
    new = with_new_levels(training.X[rows], 2)
    remaining = slow_ridge(fitted.additive, 2, training, np.flatnonzero(towns != 1), new)
    for number, row in enumerate(rows):
        others = np.delete(np.arange(len(training)), row)
        ridge = slow_ridge(fitted.additive, 2, training, others, training.X[[row]])
        change = training.scale * (ridge - remaining[number])[0]
        np.testing.assert_allclose(
            without_level[number] - without_row[number], change, atol=1e-9
        )
    queries = make_sum(6, seed=2)[0]
    widths = [
        np.ptp(mixed.predict_interval(table), axis=1).mean()
        for table in (queries, queries.assign(town="Dortmund"))
    ]
    assert widths[1] > 2 * widths[0]


def test_files_without_an_additive_part_predict_by_kernels(model):
    stored = pickle.loads(pickle.dumps(with_shares(model, [0.0] * 4)))
    queries = make_sum(20, seed=2)[0]
    expected = stored.predict(queries), stored.local_slopes(queries)
    vars(stored._fitted).pop("additive")
    np.testing.assert_allclose(stored.predict(queries), expected[0], rtol=1e-12)
    np.testing.assert_allclose(stored.local_slopes(queries), expected[1], atol=1e-12)


def test_classifiers_have_an_additive_part_beyond_1000_rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1001, 3))
    y = np.sin(4 * X[:, 0]) + X[:, 1] ** 2 + X[:, 2] + 0.6 * rng.normal(size=1001) > 0.3
    few, many = (
        KernelAttentionClassifier(n_folds=2, **QUICK).fit(X[:n], y[:n]) for n in (1000, 1001)
    )
    assert few.additive_share_ == 0 < many.additive_share_
    scores = many._fitted.weights(X[:20]) @ many.values_ - many._fitted.training.center
    # Kernels of more than 500 rows may be in single precision.
    np.testing.assert_allclose(scores, many._fitted.predict(X[:20]), atol=1e-4)
    np.testing.assert_allclose(many.predict_proba(X[:20]).sum(axis=1), 1)


@pytest.mark.slow
def test_sums_are_predicted_better_and_intervals_hold():
    rng = np.random.default_rng(0)
    ratios, covered = [], []
    for _ in range(10):
        X = rng.uniform(size=(300, 4))
        mean = np.sin(6 * X[:, 0]) + 4 * np.square(X[:, 1] - 0.5) + X[:, 2]
        y = mean + 0.4 * rng.normal(size=300)
        model = KernelAttentionRegressor().fit(X[:100], y[:100])
        assert model.additive_share_ > 0.5
        kernels = with_shares(model, [0.0] * 4)
        errors = [np.std(m.predict(X[100:]) - mean[100:]) for m in (model, kernels)]
        ratios.append(errors[0] / errors[1])
        lower, upper = model.predict_interval(X[100:]).T
        covered.append(np.mean((lower <= y[100:]) & (y[100:] <= upper)))
    assert np.mean(ratios) < 0.7
    assert 0.86 < np.mean(covered) < 0.94


def test_a_trend_goes_on_beyond_the_rows():
    rng = np.random.default_rng(0)
    price, other = rng.normal(size=(2, 120))
    X = np.column_stack([np.arange(120.0), price, other])
    y = 100 + 2 * X[:, 0] - 5 * X[:, 1] + 3 * rng.normal(size=120)
    model = KernelAttentionRegressor().fit(X, y)
    assert model.additive_share_ > 0.5
    for time in (200, 400):
        query = [[time, 0.0, 0.0]]
        (lower, upper), truth = model.predict_interval(query)[0], 100 + 2 * time
        assert model.predict(query) == pytest.approx(truth, rel=0.02)
        assert lower < truth < upper
