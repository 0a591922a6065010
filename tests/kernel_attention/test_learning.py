"""Members that learn their kernels: what is free, what is given, and from which rows."""

import dataclasses

import numpy as np
import pytest

from sklearn_attention.kernel_attention import _members as module
from sklearn_attention.kernel_attention._encodings import ENCODINGS, Encoding
from sklearn_attention.kernel_attention._losses import SquaredLoss
from sklearn_attention.kernel_attention._members import KernelRidge, LocalAverage, Options
from sklearn_attention.kernel_attention._rows import TrainingRows
from sklearn_attention.kernels import as_kernel

LEARNED = Options(as_kernel("gaussian"), max_steps=8)
every_member = pytest.mark.parametrize(
    "member", [KernelRidge(), LocalAverage(), LocalAverage(lines=True)],
    ids=["solve", "average", "lines"],
)  # fmt: skip


def make_training(n=120, seed=0, encodings=ENCODINGS):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    learned = [Encoding.learn(name, X, ["numeric"] * 3, None) for name in encodings]
    y = np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(n, 1))
    return TrainingRows(X, (y - y.mean()) / y.std(), rng.uniform(0.5, 2, n), learned)


def fit(member, training, judged, options=LEARNED, seed=0):
    judged = np.asarray(judged, dtype=int)
    rng = np.random.default_rng(seed)
    return member.fit(training, judged, SquaredLoss(), rng, options)


def mean_square(training, rows, predictions):
    return np.square(training.targets[rows] - predictions).mean()


@every_member
def test_learning_helps(member):
    training, judged = make_training(), np.arange(40)
    still = dataclasses.replace(LEARNED, max_steps=0)
    before = mean_square(training, judged, fit(member, training, judged, still)[1])
    options = dataclasses.replace(LEARNED, max_steps=30)
    after = mean_square(training, judged, fit(member, training, judged, options)[1])
    assert after < 0.7 * before


@every_member
def test_rows_that_are_judged_are_not_learned_from(member):
    training, judged = make_training(), np.arange(40)
    targets = training.targets.copy()
    targets[judged] = 1e3 * targets[judged[::-1]]
    other = dataclasses.replace(training, targets=targets)
    found, expected = fit(member, other, judged)[0], fit(member, training, judged)[0]
    np.testing.assert_array_equal(found.kernel.values, expected.kernel.values)


@every_member
def test_left_out_are_predictions_without_the_row(member):
    training, judged = make_training(), np.array([3, 70, 119])
    fitted, left_out = fit(member, training, judged)
    for row, left in zip(judged, left_out, strict=True):
        X = training.X[[row]]
        if isinstance(member, KernelRidge):
            # Without noise to be told, a row says nothing.
            weights = training.weights.copy()
            weights[row] = 1e-12
            rest = dataclasses.replace(training, weights=weights)
            nothing = np.array([], dtype=int)
            again = type(fitted).fit(fitted.kernel, rest, np.random.default_rng(0), nothing)[0]
        else:
            again = dataclasses.replace(fitted, rows=np.delete(np.arange(120), row))
            rest = training
        np.testing.assert_allclose(again.predict(rest, X)[0], left, rtol=1e-7, atol=1e-9)


@every_member
def test_given_parameters_are_kept(member):
    training = make_training(encodings=("standard",))
    scales = np.array([0.1, -0.4, 2.0])
    options = Options(as_kernel("gaussian"), scales=scales, ridge=0.3)
    kernel = fit(member, training, np.arange(120), options)[0].kernel
    np.testing.assert_array_equal(kernel.named()["scale"][0], scales)
    assert kernel.noise == pytest.approx(0.3)
    # Nothing but the smooth part, of size 1.
    z = training.coordinates(np.arange(9), np.float64)
    squared = np.square((z[0][:, None] - z[0]) * np.exp(scales)).sum(axis=2)
    np.testing.assert_allclose(kernel.matrix(z, z), np.exp(-squared / 2), rtol=1e-10)


@every_member
def test_a_ridge_may_be_given_and_the_rest_learned(member):
    options = dataclasses.replace(LEARNED, ridge=0.3)
    kernel = fit(member, make_training(), np.arange(40), options)[0].kernel
    assert kernel.noise == pytest.approx(0.3)


def test_averages_learn_no_ridge_and_lines_do():
    training = make_training()
    averages = fit(LocalAverage(), training, np.arange(40))[0].kernel
    assert averages.noise == pytest.approx(1.0)
    lines = fit(LocalAverage(lines=True), training, np.arange(40))[0].kernel
    assert lines.noise != pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("rough", [False, True])
@pytest.mark.parametrize("linear", [False, True])
def test_parts_of_the_kernel_are_as_asked_for(rough, linear):
    member = KernelRidge(rough=rough, linear=linear, constant=False)
    kernel = fit(member, make_training(), np.arange(40))[0].kernel
    assert np.isfinite(kernel.named()["rough"][0]) == rough
    assert np.isfinite(kernel.named()["linear"][0]) == linear
    assert kernel.constant == 0


def test_scales_may_be_held_where_they_start():
    training, judged = make_training(), np.arange(40)
    starts = dataclasses.replace(LEARNED, max_steps=0)
    start = fit(KernelRidge(), training, judged, starts)[0].kernel.named()["scale"]
    far = [
        np.abs(
            fit(KernelRidge(precision=p), training, judged)[0].kernel.named()["scale"] - start
        ).mean()
        for p in (0.0, 1e4)
    ]
    assert far[1] < 0.6 * far[0]


def test_number_of_steps():
    assert Options(None).n_steps(80) == 80
    assert Options(None, max_steps=10).n_steps(80) == 10
    assert Options(None, max_steps=0).n_steps(80) == 0


def test_many_rows_are_learned_from_in_patches(monkeypatch):
    drawn = []

    class Listening(module.PatchBatches):
        def draw(self, kernel):
            drawn.append(super().draw(kernel))
            return drawn[-1]

    monkeypatch.setattr(module, "PatchBatches", Listening)
    monkeypatch.setattr(module, "_MOST_LEARNED_FROM", 60)
    training, judged = make_training(), np.arange(40)
    member = dataclasses.replace(KernelRidge(), most_at_random=50)
    fitted, left_out = fit(member, training, judged)
    assert len(drawn) == 8
    # Learned from a sample, solved with all.
    assert max(rows.max() for rows, _ in drawn) < 60
    assert len(fitted.coefficients[0]) == 120
    assert mean_square(training, judged, left_out) < 0.8


class TestMoreKeysThanLearnedFrom:
    @pytest.fixture(autouse=True)
    def _few_keys(self, monkeypatch):
        monkeypatch.setattr(module, "_KEYS", 50)
        monkeypatch.setattr(module, "_QUERIES", 30)

    @pytest.mark.parametrize("lines", [False, True])
    def test_scales_are_multiplied_by_one_number(self, lines, monkeypatch):
        training, judged = make_training(400), np.arange(100)
        fitted = fit(LocalAverage(lines), training, judged)[0]
        monkeypatch.setattr(module, "_SHARPER", (0.0,))
        plain = fit(LocalAverage(lines), training, judged)[0]
        values = [np.nan_to_num(m.kernel.values, neginf=0) for m in (fitted, plain)]
        gap = values[0] - values[1]
        sharper = fitted.kernel.named(gap)["scale"]
        assert np.ptp(sharper) == pytest.approx(0, abs=1e-12)
        assert sharper[0, 0] >= 0
        fitted.kernel.named(gap)["scale"][:] = 0
        assert not gap.any()

    def test_averages_are_over_some_rows_and_those_judged(self, monkeypatch):
        monkeypatch.setattr(module, "_MOST_AVERAGED", 150)
        training, judged = make_training(400), np.arange(0, 400, 4)
        fitted, left_out = fit(LocalAverage(), training, judged)
        assert 150 <= len(fitted.rows) <= 250
        assert np.isin(judged, fitted.rows).all()
        assert (np.diff(fitted.rows) > 0).all()
        assert mean_square(training, judged, left_out) < 1
        weights = fitted.weights(training, training.X[:5])
        assert weights.shape == (5, 400)
        assert not np.delete(weights, fitted.rows, axis=1).any()


def test_lines_run_along_the_features_that_go_with_the_targets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 20))
    encodings = [Encoding.learn("standard", X, ["numeric"] * 20, None)]
    training = TrainingRows(X, X[:, [7, 19]], np.ones(200), encodings)
    columns = fit(LocalAverage(lines=True), training, np.arange(50))[0].columns
    assert len(columns) == 16
    assert {7, 19} <= set(columns)
    assert (np.diff(columns) > 0).all()
