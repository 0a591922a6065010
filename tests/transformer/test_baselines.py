"""The baseline beside a transformer, and how both are added up."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax, softmax
from sklearn.ensemble import HistGradientBoostingRegressor
from tiny_encoders import in_units

from sklearn_attention import (
    Architecture,
    Training,
    TransformerClassifier,
    TransformerRegressor,
)
from sklearn_attention._labels import split_classes
from sklearn_attention.transformer import _series_baseline
from sklearn_attention.transformer._fitted import choose_weights
from sklearn_attention.transformer._series_baseline import (
    RandomConvolutions,
    _sharpen,
    fit_left_out_ridge,
)
from sklearn_attention.transformer._task import Loss

TINY = {"d_model": 8, "n_heads": 2, "n_layers": 1, "max_epochs": 2}


def make_series(n=60, n_channels=1, seed=0):
    """Bumps on noise, of one kind or of another."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = [rng.normal(size=(rng.integers(40, 60), n_channels)).astype(np.float32) for _ in y]
    for x, kind in zip(X, y, strict=True):
        place = rng.integers(5, 25)
        x[place : place + 8, 0] += [4, 4, 4, 4, -4, -4, -4, -4] if kind else 4
    return X, y


def test_convolutions_are_shares_of_times_above_a_bias(monkeypatch):
    monkeypatch.setattr(_series_baseline, "_N_FEATURES", 1000)
    X, _ = make_series(6, n_channels=2)
    X[0] = X[0][:20]
    convolutions = RandomConvolutions.learn(X, np.random.RandomState(0))
    found = convolutions.features(X)
    places = [*itertools.combinations(range(9), 3)]
    places = places[::2] + places[1::2]
    series, first = X[3].astype(float), 0
    for i, part in enumerate(convolutions.groups):
        d, margin = part["dilation"], part["margin"]
        # Half of the kernels see whole windows only, where the shortest series has one.
        assert margin == 4 * d * (len(X[0]) > 8 * d)
        wide = np.pad(series, ((4 * d, 4 * d), (0, 0)))
        for k in range(84):
            kernel = np.where(np.isin(np.arange(9), places[k]), 2.0, -1.0)
            biases = part["biases"][k]
            if k in (0, 41, 42, 83):
                summed = wide[:, part["used"][k]].sum(axis=1)
                seen = [kernel @ summed[t : t + 8 * d + 1 : d] for t in range(len(series))]
                cut = margin if (k >= 42) != i % 2 and len(series) > 2 * margin else 0
                seen = np.array(seen)[cut : len(series) - cut]
                expected = [np.mean(seen > bias) for bias in biases]
                # Ties with the bias may fall to either side.
                np.testing.assert_allclose(found[3, first : first + len(biases)], expected,
                                           atol=0.03)  # fmt: skip
            first += len(biases)
    assert first == found.shape[1]
    assert 900 < first < 1010


@pytest.mark.parametrize("shape", [(30, 80), (60, 5)])
def test_left_out_predictions_are_those_of_ridges_without_the_row(shape):
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=shape), rng.uniform(0.5, 2, shape[0])
    y = X[:, :2] + rng.normal(size=(shape[0], 2))
    ridge, left_out = fit_left_out_ridge(X, y, weights)
    fitted = ridge.outputs(X)
    Z = (X - ridge.center) / ridge.scale
    # The penalty that was chosen, from the normal equations.
    root = np.sqrt(weights / weights.mean())[:, None]
    gram, cross = (root * Z).T @ (root * Z), (root * Z).T @ (root * (y - ridge.intercept))
    penalty = (cross[:, 0] - gram @ ridge.coef[:, 0]) @ ridge.coef[:, 0]
    penalty /= ridge.coef[:, 0] @ ridge.coef[:, 0]
    for row in (0, 7):
        rest = np.arange(len(X)) != row
        own, target = root[rest] * Z[rest], root[rest] * (y[rest] - ridge.intercept)
        # An intercept of the others, as the closed form has it in its leverage.
        design = np.column_stack([own, root[rest]])
        ridged = design.T @ design + penalty * np.diag([1.0] * shape[1] + [0.0])
        coef = np.linalg.solve(ridged, design.T @ target)
        expected = np.append(Z[row], 1) @ coef + ridge.intercept
        np.testing.assert_allclose(left_out[row], expected, atol=1e-6)
    assert np.mean((left_out - y) ** 2) > np.mean((fitted - y) ** 2)


def test_sharpness_minimises_the_left_out_log_loss():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    classes = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    ridge, left_out = fit_left_out_ridge(X, np.eye(2)[classes], np.ones(200), (2,))

    def loss(factor):
        return -log_softmax(factor * left_out, axis=1)[np.arange(200), classes].mean()

    assert loss(1.0) < min(loss(0.5), loss(2.0))
    assert (ridge.sharpness > 1).all()


class TestBlend:
    def test_weights_minimise_the_penalised_loss(self):
        rng = np.random.default_rng(0)
        classes = rng.integers(3, size=500)
        baseline = 2 * np.eye(3)[classes] + rng.normal(size=(500, 3))
        network = np.eye(3)[classes] + rng.normal(size=(500, 3))
        loss = Loss("log_loss", n_classes=(3,)).negative_log_likelihood(
            classes[:, None], np.ones(500)
        )
        best = choose_weights(baseline, network, loss)
        assert (best > 0.3).all()

        def risk(w):
            away = w - [0.7, 0.3]
            return loss(w[0] * baseline + w[1] * network)[0].sum() + 3 * away @ away / 2

        for step in ([0.05, 0], [-0.05, 0], [0, 0.05], [0, -0.05]):
            assert risk(best) < risk(best + step)

    def test_an_average_has_weights_that_add_up_to_one(self):
        rng = np.random.default_rng(0)
        targets, baseline, network = rng.normal(size=(3, 50, 1))
        loss = Loss("quantile", quantile=(0.9,)).negative_log_likelihood(
            targets, np.ones(50), baseline
        )
        found = choose_weights(baseline, network, loss, average=True)
        assert found.sum() == pytest.approx(1)
        shares = np.linspace(0, 1, 1001)
        risks = [
            loss((1 - share) * baseline + share * network)[0].sum() + 3 * (share - 0.3) ** 2
            for share in shares
        ]
        assert found[1] == pytest.approx(shares[np.argmin(risks)], abs=0.002)

    def test_log_losses_of_outputs_are_averaged(self):
        rng = np.random.default_rng(0)
        classes = np.column_stack([rng.integers(3, size=20), rng.integers(2, size=20)])
        weights, outputs = rng.uniform(1, 2, 20), rng.normal(size=(20, 5))
        losses, slopes = Loss("log_loss", n_classes=(3, 2)).negative_log_likelihood(
            classes, weights
        )(outputs)
        one = Loss("log_loss", n_classes=(3,)).negative_log_likelihood(classes[:, :1], weights)(
            outputs[:, :3]
        )
        two = Loss("log_loss", n_classes=(2,)).negative_log_likelihood(classes[:, 1:], weights)(
            outputs[:, 3:]
        )
        np.testing.assert_allclose(losses, (one[0] + two[0]) / 2)
        np.testing.assert_allclose(slopes, np.hstack([one[1], two[1]]) / 2)
        expected = -weights * log_softmax(outputs[:, :3], axis=1)[np.arange(20), classes[:, 0]]
        np.testing.assert_allclose(one[0], expected)

    @pytest.mark.parametrize(
        "loss",
        [Loss("squared_error"), Loss("huber"), Loss("quantile", quantile=(0.9,))],
        ids=lambda loss: loss.name,
    )
    def test_losses_of_numbers_have_their_derivatives(self, loss):
        rng = np.random.default_rng(0)
        targets, baseline, outputs = rng.normal(size=(3, 20, 2))
        weights = rng.uniform(1, 2, 20)
        unit = 0.5 if loss.quantile is None else 1.0
        losses_of = loss.negative_log_likelihood(targets, weights, baseline)
        mean = np.average(losses_of(baseline)[0] / weights, weights=weights)
        assert mean == pytest.approx(unit)
        losses, slopes = losses_of(outputs)
        for j in range(2):
            step = np.zeros(2)
            step[j] = 1e-6
            numeric = (losses_of(outputs + step)[0] - losses) / 1e-6
            np.testing.assert_allclose(slopes[:, j], numeric, atol=1e-4)


class TestEstimators:
    @pytest.mark.usefixtures("few_convolutions")
    def test_outputs_are_those_of_the_baseline_and_the_network(self):
        X, y = make_series()
        model = TransformerClassifier(**TINY).fit(X, y)
        assert model.baseline_weight_ > 0
        rows = model._read(X)[0]
        logits = model.baseline_weight_ * model.baseline_.outputs(rows)
        logits = logits + model.transformer_weight_ * model.encoder_._encode(rows, "cpu")[0]
        np.testing.assert_allclose(
            model.predict_log_proba(X), log_softmax(logits, axis=1), rtol=1e-5
        )
        assert model.encoder_.reader.patch_length == 6

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"loss": "quantile"}, "quantile=None is not valid: pass a number between 0 and 1"),
            (
                {"loss": "quantile", "quantile": 0.8, "baseline": True, "tokens": "steps"},
                "with loss='quantile' of steps, for",
            ),
            ({"quantile": 0.5}, "quantile=0.5 has no meaning for loss='squared_error'"),
            ({"loss": "quantile", "quantile": [0.5, 2.0]}, r"quantile=2.0 is not valid"),
            (
                {"loss": "quantile", "quantile": [0.1, 0.9]},
                "does not contain 0.5, the median.*: add 0.5",
            ),
        ],
    )
    def test_quantiles_are_checked(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            TransformerRegressor(**parameters).fit(np.eye(3), np.arange(3))

    @pytest.mark.parametrize("n_outputs", [None, 2])
    def test_several_quantiles_do_not_cross(self, n_outputs):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(90, 2)).astype(np.float32)
        y = X[:, 0] + rng.standard_normal(size=(n_outputs or 1, 90)).astype(np.float32)
        y = y.T if n_outputs else y[0]
        levels = [0.9, 0.4, 0.5, 0.6, 0.1]
        small = {**TINY, "baseline": False, "loss": "quantile"}
        model = TransformerRegressor(**small, quantile=levels).fit(X, y)
        assert model.quantiles_.tolist() == sorted(levels)
        found = model.predict_quantiles(X)
        assert found.shape == (90, 5, *y.shape[1:])
        assert found.dtype == np.float32
        assert (np.diff(found, axis=1) >= 0).all()
        np.testing.assert_array_equal(model.predict(X), found[:, 2])
        some = model.predict_quantiles(X[:5], [(1 + 0.8) / 2, 0.4])
        np.testing.assert_allclose(some, found[:5, [4, 1]], rtol=1e-5)
        # Those of the network do, so that there was something to put in order.
        own = model.encoder_.outputs(model._read(X)[0], "cpu").reshape(90, -1, 5)
        assert (np.diff(own, axis=2) < 0).any()

    def test_quantiles_that_were_not_learned_are_refused(self):
        X, y = np.eye(4), np.arange(4.0)
        small = {**TINY, "baseline": False}
        model = TransformerRegressor(**small, loss="quantile", quantile=0.9).fit(X, y)
        np.testing.assert_array_equal(model.predict_quantiles(X, 0.9)[:, 0], model.predict(X))
        model.set_params(quantile=[0.1, 0.5, 0.9])
        message = r"quantiles=\[0\.1, 0\.9\] were not all learned, only.*\[0.1, 0.5, 0.9\]"
        with pytest.raises(ValueError, match=message):
            model.predict_quantiles(X, [0.1, 0.9])
        assert model.fit(X, y).predict_quantiles(X, [0.1, 0.9]).shape == (4, 2)
        with pytest.raises(ValueError, match=r"quantiles=1.5 is not valid"):
            model.predict_quantiles(X, [0.1, 1.5])
        model = TransformerRegressor(**small).fit(X, y)
        message = r"quantiles=None .* loss='squared_error' learns none.*quantile=\[0\.5\]"
        with pytest.raises(ValueError, match=message):
            model.predict_quantiles(X)
        medians = TransformerRegressor(**small, loss="absolute_error").fit(X, y)
        np.testing.assert_array_equal(medians.predict_quantiles(X)[:, 0], medians.predict(X))

    @pytest.mark.usefixtures("few_convolutions")
    def test_weights_are_0_and_1_without_baseline_or_held_out_rows(self):
        X, y = make_series(30)
        architecture = Architecture(patch_length=4)
        model = TransformerClassifier(**TINY, baseline=False, architecture=architecture)
        model.fit(X, y)
        assert model.encoder_.reader.patch_length == 4
        assert model.baseline_ is None
        assert (model.baseline_weight_, model.transformer_weight_) == (0, 1)
        # Nothing is held out of few rows.
        model = TransformerClassifier(**TINY).fit(X, y)
        assert (model.baseline_weight_, model.transformer_weight_) == (1, 0)
        with pytest.raises(ValueError, match="baseline='yes' is not valid"):
            TransformerClassifier(**TINY, baseline="yes").fit(X, y)

    def test_the_baseline_of_tables_is_boosted_trees(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"x": rng.normal(size=120), "c": rng.choice(list("uvw"), 120)})
        frame.loc[::7, "x"] = np.nan
        frame.loc[::11, "c"] = None
        y = np.column_stack([frame["c"] == "u", frame["x"].isna()]) * [1.0, 50.0]
        model = TransformerRegressor(**TINY, random_state=3).fit(frame, y)
        # Codes of categories are categories, and missing cells of either kind are missing.
        cells = frame[["x"]].assign(c=frame["c"].map({"u": 0, "v": 1, "w": 2})).to_numpy()
        options = {"categorical_features": [1], "random_state": 0}
        trees = [HistGradientBoostingRegressor(**options).fit(cells, part) for part in y.T]
        expected = np.column_stack([tree.predict(cells) for tree in trees])
        rows = model._read(frame)[0]
        found = in_units(model, model.baseline_.outputs(rows))
        np.testing.assert_allclose(found, expected, atol=1e-6 * y.max())
        both = model.baseline_weight_ * model.baseline_.outputs(rows)
        both = both + model.transformer_weight_ * model.encoder_._encode(rows, "cpu")[0]
        np.testing.assert_allclose(model.predict(frame), in_units(model, both), rtol=1e-6)
        unseen = frame.assign(c="new")
        missing = frame.assign(c=pd.Series([None] * 120, dtype=frame["c"].dtype))
        np.testing.assert_array_equal(model.predict(unseen), model.predict(missing))


def make_labels(form, n=60):
    """Rows of a form, and two classes for each: of three names, and of two."""
    rng = np.random.default_rng(0)
    one, two = np.arange(n) % 3, rng.permutation(n) % 2
    if form == "features":
        X = np.column_stack([one, two]) + 0.1 * rng.normal(size=(n, 2))
    elif form == "steps":
        X = [rng.normal(size=30) * (1 + 9 * a) + 40 * b for a, b in zip(one, two, strict=True)]
    else:
        X = [f"{'abc'[a]} and {'uv'[b]}" for a, b in zip(one, two, strict=True)]
    return X, np.column_stack([np.array(["low", "mid", "top"])[one], np.array(["n", "y"])[two]])


@pytest.mark.usefixtures("few_convolutions", "few_trees")
class TestSeveralOutputs:
    @pytest.mark.parametrize("form", ["features", "steps", "text"])
    def test_are_classes_and_probabilities_of_each(self, form):
        X, y = make_labels(form)
        model = TransformerClassifier(**TINY, baseline=True).fit(X, y)
        names = [classes.tolist() for classes in model.classes_]
        assert names == [["low", "mid", "top"], ["n", "y"]]
        probabilities = model.predict_proba(X)
        for part, own in zip(probabilities, names, strict=True):
            assert part.shape == (60, len(own))
            np.testing.assert_allclose(part.sum(axis=1), 1)
        found, weights = model.predict(X), np.arange(60.0)
        assert (found == y).mean() > 0.9
        right = (found == y).all(axis=1)
        assert model.score(X, y, weights) == pytest.approx(np.average(right, weights=weights))

    def test_a_baseline_learns_each_as_if_alone(self):
        X, y = make_labels("text")
        model = TransformerClassifier(**TINY, baseline=True).fit(X, y)
        outputs = model.baseline_.outputs(model._read(X)[0])
        logits = split_classes(outputs, model.classes_)
        for part, column in zip(logits, y.T, strict=True):
            alone = TransformerClassifier(**TINY, baseline=True).fit(X, column)
            expected = alone.baseline_.outputs(alone._read(X)[0])
            np.testing.assert_allclose(
                softmax(part, axis=1), softmax(expected, axis=1), atol=1e-6
            )

    def test_the_network_learns_the_mean_of_their_losses(self):
        X, y = make_labels("features")
        options = TINY | {"training": Training(validation_fraction=None), "baseline": False}
        model = TransformerClassifier(**options).fit(X, y)
        # Twice the same output is that output.
        twice = TransformerClassifier(**options).fit(X, np.column_stack([y[:, 1], y[:, 1]]))
        np.testing.assert_allclose(*twice.predict_proba(X), atol=1e-6)
        # At first all classes are as probable as one another.
        first = model.training_history_["loss"][0]
        assert first == pytest.approx((np.log(3) + np.log(2)) / 2, abs=0.2)

    def test_warm_start_knows_the_classes(self):
        X, y = make_labels("features")
        model = TransformerClassifier(**TINY, warm_start=True).fit(X, y)
        model.fit(X[:40], y[:40])
        for other, message in [
            (np.where(y == "n", "new", y), r"y has classes \['new'\] that the last fit"),
            (y[:, 0], "y has 1 outputs, but the last fit had 2"),
        ]:
            with pytest.raises(ValueError, match=message):
                model.fit(X, other)
        with pytest.raises(ValueError, match=r"y has shape \(60,\), .* 2 outputs"):
            model.score(X, y[:, 0])

    def test_a_class_of_one_row_or_of_all_rows_has_finite_probabilities(self):
        X, y = make_labels("features")
        y = np.column_stack([y, ["rare", *["usual"] * 59], ["only"] * 60])
        found = TransformerClassifier(**TINY, baseline=True).fit(X, y).predict_proba(X)
        assert [part.shape[1] for part in found] == [3, 2, 2, 1]
        assert all(np.isfinite(part).all() for part in found)
        assert found[2][1:, 1].min() > 0.5
        np.testing.assert_array_equal(found[3], 1)


class TestLayouts:
    def test_lists_of_integers_of_one_length_are_ambiguous(self):
        X = [[1, 2], [3, 4]] * 5
        with pytest.raises(ValueError, match="tokens='features', 'steps' or 'text'"):
            TransformerClassifier(**TINY).fit(X, [0, 1] * 5)
        assert TransformerClassifier("text", **TINY).fit(X, [0, 1] * 5).tokens_ == "text"

    def test_a_column_of_texts_is_texts(self):
        texts = [f"word{i} is {'good' if i % 2 else 'bad'}" for i in range(40)]
        frame, y = pd.DataFrame({"review": texts}), [0, 1] * 20
        model = TransformerClassifier(**TINY).fit(frame, y)
        assert model.tokens_ == "text"
        np.testing.assert_array_equal(model.predict(frame), model.predict(texts))
        assert model.predict(frame[:1]).shape == (1,)
        refused = "X has 40 different texts in the 40 rows of column 'review', .* as text"
        with pytest.raises(ValueError, match=refused):
            TransformerClassifier(**TINY).fit(frame.assign(n=1.0)[["n", "review"]], y)


def test_classes_that_are_told_apart_without_error_have_no_certain_probability():
    """Half a row, in which all classes are equally likely, is added to the rows."""
    values = np.array([[1.0, 0.0], [0.8, 0.2], [0.1, 0.9]])
    indicators = np.array([[1, 0], [1, 0], [0, 1]])
    share = np.array([0.5, 0.2, 0.3])

    def risk(factor):
        logs = log_softmax(factor * values, axis=1)
        return -share @ (indicators * logs).sum(axis=1) - 0.5 * logs.mean() / 3

    factors = np.geomspace(0.2, 100, 500)
    risks = [risk(factor) for factor in factors]
    sharpness, loss = _sharpen(values, indicators, share)
    assert loss == pytest.approx(min(risks), rel=1e-4)
    assert sharpness == pytest.approx(factors[np.argmin(risks)], rel=0.03)
    assert sharpness < 10
