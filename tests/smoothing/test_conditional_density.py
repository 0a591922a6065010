"""ConditionalKernelDensity: its mean is Nadaraya-Watson, and the rest belongs together."""

import numpy as np
import pytest
from every_kernel import DENSITIES
from recorder import Recorder
from scipy.integrate import cumulative_trapezoid
from scipy.stats import kstest, t
from sklearn.base import clone
from smoothing_cases import frame_of

from sklearn_attention import (
    Columns,
    ConditionalKernelDensity,
    NadarayaWatsonRegressor,
    attention_weights,
)
from sklearn_attention.bandwidth import rule_bandwidth
from sklearn_attention.bandwidth._background import center_and_scale
from sklearn_attention.kernels import Gaussian
from sklearn_attention.kernels._base import as_kernel
from sklearn_attention.smoothing import _mixtures


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    return X, np.sin(X[:, 0]) + 0.2 * rng.normal(size=50)


@pytest.fixture
def mixed():
    return frame_of(80)


def fixed(kernel="gaussian", target_kernel="gaussian", **params):
    return ConditionalKernelDensity(
        kernel, bandwidth=0.5, target_kernel=target_kernel, target_bandwidth=0.3,
        **({"degree": 0} | params),
    )  # fmt: skip


def slow_density(model, x, y):
    """The formula, one training row at a time."""
    h, g = model.bandwidth_, model.target_bandwidth_
    weights = [model.kernel_([x / h], [key / h])[0, 0] for key in model.keys_]
    if model.key_weights_ is not None:
        weights = model.key_weights_ * weights
    spread = [model.target_kernel_([[y / g]], [[v / g]])[0, 0] / g for v in model.values_]
    return np.dot(weights, spread) / np.sum(weights)


class TestDensity:
    @pytest.mark.parametrize("target_kernel", DENSITIES)
    def test_is_the_formula_whose_mean_is_nadaraya_watson(self, data, target_kernel):
        X, y = data
        weights = np.random.default_rng(1).uniform(0.1, 2, size=len(X))
        model = fixed("tricube", target_kernel).fit(X, y, sample_weight=weights)
        expected = [slow_density(model, *pair) for pair in zip(X[:15], y[:15], strict=True)]
        found = np.exp(model.score_samples(X[:15], y[:15]))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        average = NadarayaWatsonRegressor("tricube", bandwidth=0.5).fit(X, y, weights)
        np.testing.assert_allclose(model.predict(X), average.predict(X), rtol=1e-12)
        logarithms, weights = np.log(expected), np.arange(15.0)
        assert model.score(X[:15], y[:15]) == pytest.approx(logarithms.mean())
        weighted = model.score(X[:15], y[:15], sample_weight=weights)
        assert weighted == pytest.approx(np.average(logarithms, weights=weights))

    def test_far_out_the_nearest_row_alone_counts(self, data):
        X, y = data
        model = fixed().fit(X, y)
        nearest = X[:, 0].argmax()
        far = X[nearest] + np.array([[1e4, 0.0], [1e6, 0.0], [1e8, 0.0]])
        found = model.score_samples(far, np.full(3, y[nearest] + 0.2))
        expected = Gaussian().log([[0.2 / 0.3]], [[0.0]])[0, 0] - np.log(0.3)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        # A target that no kernel reaches has density 0.
        compact = fixed(target_kernel="tricube").fit(X, y)
        assert compact.score_samples(X[:1], [100.0]).tolist() == [-np.inf]

    def test_blocks_are_one(self, data, monkeypatch):
        X, y = data
        model = fixed().fit(X, y)
        whole = model.score_samples(X, y), model.predict_quantiles(X, [0.1, 0.9])
        monkeypatch.setattr(_mixtures, "_BLOCK_PAIRS", 150)
        np.testing.assert_allclose(model.score_samples(X, y), whole[0], rtol=1e-12)
        np.testing.assert_allclose(model.predict_quantiles(X, [0.1, 0.9]), whole[1], atol=1e-12)


class TestDistribution:
    @pytest.mark.parametrize("degree", [0, 1])
    def test_thresholds_of_all_queries_and_of_each(self, data, degree):
        X, y = data
        model = fixed(degree=degree).fit(X, y)
        common = model.predict_cdf(X, y)
        assert common.shape == (50, 50)
        each = model.predict_cdf(X, np.column_stack([y, y + 1]))
        assert each.shape == (50, 2)
        np.testing.assert_allclose(each[:, 0], np.diag(common), rtol=1e-12)
        assert model.predict_cdf(X, 0.3).shape == (50, 1)
        with pytest.raises(
            ValueError, match=r"y of shape \(1, 4\).*shape \(n_thresholds,\), the same for"
        ):
            model.predict_cdf(X, np.zeros((1, 4)))

    def test_quantiles_across_a_gap(self):
        # No density between the targets: bisection has to answer there.
        X, y = np.zeros((4, 1)), np.array([0.0, 0.0, 100.0, 100.0])
        model = ConditionalKernelDensity(
            bandwidth=1.0, target_kernel="boxcar", target_bandwidth=1.0, degree=0
        ).fit(X, y)
        quantiles = model.predict_quantiles([[0.0]], [0.25, 0.5, 0.75])[0]
        np.testing.assert_allclose(quantiles[[0, 2]], [0, 100], atol=1e-9)
        assert 1 - 1e-9 <= quantiles[1] <= 99


def test_categories_alone_have_no_line(mixed):
    X, y = mixed[0][["color", "size"]], mixed[1]
    model = ConditionalKernelDensity(bandwidth=0.2, target_bandwidth=0.3).fit(X, y)
    assert not hasattr(model, "line_bandwidth_")
    alike = clone(model).set_params(degree=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), alike.predict(X))


class TestDegree:
    @pytest.mark.parametrize(("curve", "degree"), [("sine", 1), ("jump", 0)])
    def test_is_that_of_the_larger_likelihood(self, curve, degree):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(30, 1))
        y = np.sin(6 * X[:, 0]) if curve == "sine" else 3.0 * (X[:, 0] > 0.5)
        y = y + 0.1 * rng.normal(size=30)
        model = ConditionalKernelDensity().fit(X, y)
        given = [ConditionalKernelDensity(degree=own).fit(X, y) for own in (0, 1)]
        scores = [own.likelihood_score_ for own in given]
        assert np.argmax(scores) == degree == model.degree_
        assert model.likelihood_score_ == scores[degree]
        found, expected = (own.score_samples(X, y) for own in (model, given[degree]))
        np.testing.assert_array_equal(found, expected)
        assert hasattr(model, "residuals_") == (degree == 1)

    def test_around_point_masses_there_is_no_line(self):
        rng = np.random.default_rng(0)
        X, y = rng.uniform(size=(80, 1)), rng.gamma(2, size=80)
        y[X[:, 0] > 0.7] = 0
        with pytest.warns(UserWarning, match="the value 0 of the target"):
            assert ConditionalKernelDensity().fit(X, y).degree_ == 0


class TestBackground:
    @pytest.mark.parametrize(("degree", "bounds"), [(0, None), (1, (-9, 9))])
    def test_has_the_mass_of_one_row(self, data, degree, bounds):
        X, y = data
        model = ConditionalKernelDensity(degree=degree, bounds=bounds).fit(X, y)
        alike = ConditionalKernelDensity(
            bandwidth=model.bandwidth_, target_bandwidth=model.target_bandwidth_, degree=0
        )
        center, spread = 0.0, y
        if degree:
            center, spread = model._line.predict(X[:9]), model.residuals_
        kernels = np.exp(alike.fit(X, spread).score_samples(X[:9], y[:9] - center))
        middle, scale = center_and_scale(spread[:, None], Columns.numbers(1))
        np.testing.assert_allclose(model.background_, [middle[0], scale[0]], rtol=1e-12)
        z = (y[:9] - center - middle) / scale
        wide = t(2).pdf(z) / scale
        if bounds:  # to which it is truncated
            high, low = ((bound - center - middle) / scale for bound in (9, -9))
            wide = wide / (t(2).cdf(high) - t(2).cdf(low))
        expected = (50 * kernels + wide) / 51
        np.testing.assert_allclose(np.exp(model.score_samples(X[:9], y[:9])), expected)


class TestBounds:
    @pytest.mark.parametrize(
        ("bounds", "options", "degree"),
        [
            ((0, None), {}, 1),
            ((None, 6), {"bandwidth": 0.3, "target_bandwidth": 2.5}, 0),
            ((0, 6), {"bandwidth": 0.3, "target_bandwidth": 2.5}, 1),
        ],
    )
    def test_all_answers_are_of_one_density(self, bounds, options, degree):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(40, 1))
        y = (2 * X[:, 0] + rng.exponential(size=40)).clip(0.01, 5.99)
        model = ConditionalKernelDensity(bounds=bounds, degree=degree, **options).fit(X, y)
        low, high = (0 if bounds[0] == 0 else -3e3), (6 if bounds[1] == 6 else 3e3)
        # Close to each other near the rows, and to the bounds.
        grid = np.unique(np.concatenate([
            np.linspace(max(low, -12), min(high, 18), 2001),
            np.geomspace(18, max(high, 18), 2001), -np.geomspace(12, max(-low, 12), 2001),
        ]).clip(low, high))  # fmt: skip
        for x in [[0.1], [0.9]]:
            density = np.exp(model.score_samples(np.tile(x, (len(grid), 1)), grid))
            below = cumulative_trapezoid(density, grid, initial=0)
            assert below[-1] == pytest.approx(1, abs=2e-4)
            cdf = model.predict_cdf([x], grid[::200])[0]
            np.testing.assert_allclose(cdf, below[::200], atol=2e-4)
            probability = [1e-4, 0.05, 0.5, 0.95, 0.9999]
            quantiles = model.predict_quantiles([x], probability)
            assert ((low <= quantiles) & (quantiles <= high)).all()
            cdf = model.predict_cdf([x], quantiles)[0]
            np.testing.assert_allclose(cdf, probability, atol=1e-9)
            sample = model.sample([x], 3000, random_state=0)[0]
            assert low <= sample.min() < sample.max() <= high
            assert kstest(sample, lambda v, x=x: model.predict_cdf([x], v)[0]).pvalue > 0.001
        for edge in bounds:
            if edge is not None:
                outside = edge + (0.1 if edge else -0.1)
                assert model.score_samples([[0.5]], [outside]) == -np.inf
                means = model.predict([[-9.0], [9.0]])
                assert ((means >= low) & (means <= high)).all()


class TestBandwidths:
    def test_rules_take_features_and_target_together(self, data):
        X, y = data
        both = {"bandwidth": "silverman", "target_bandwidth": "silverman"}
        model = ConditionalKernelDensity("tricube", target_kernel="logistic", **both).fit(X, y)
        joint = np.column_stack([X, model.residuals_])
        of_features = rule_bandwidth(joint, as_kernel("tricube"), "silverman")[:2]
        np.testing.assert_allclose(model.bandwidth_, of_features, rtol=1e-15)
        of_target = rule_bandwidth(joint, as_kernel("logistic"), "silverman")[2]
        assert model.target_bandwidth_ == pytest.approx(of_target, rel=1e-15)
        assert not hasattr(model, "likelihood_score_")


def test_where_nothing_is_near_all_answers_are_nan_if_asked(data):
    X, y = data
    model = fixed("epanechnikov", empty="nan").fit(X, y)
    queries = np.array([[50.0, 50.0], X[0]])
    answers = (
        model.predict(queries), model.score_samples(queries, [0.0, 0.0]),
        model.predict_cdf(queries, 0.0)[:, 0], model.predict_quantiles(queries, 0.5)[:, 0],
        model.sample(queries, random_state=0)[:, 0],
    )  # fmt: skip
    for answer in answers:
        np.testing.assert_array_equal(np.isnan(answer), [True, False])


class TestBadInput:
    def test_functions_take_numbers(self, data):
        def similar(X, Y):
            return np.exp(-abs(X[:, :1] - Y[:, 0]))

        with pytest.raises(ValueError, match="takes negative values, but a density needs"):
            fixed(lambda X, Y: 1.0 - abs(X[:, :1] - Y[:, 0])).fit(*data)
        with pytest.raises(ValueError, match="a product of positive kernels"):
            ConditionalKernelDensity(similar).fit(*data)
        weights = attention_weights(data[0], data[0], similar, bandwidth=0.5)
        model = fixed(similar).fit(*data)
        np.testing.assert_allclose(model.predict(data[0]), weights @ data[1], rtol=1e-12)

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"target_bandwidth": 0}, "target_bandwidth=0 is not valid"),
            ({"degree": 2}, "degree=2 is not valid: pass 'auto', 0 or 1"),
            ({"bounds": (1, 0)}, r"bounds=\(1, 0\) is not valid: pass None, a pair"),
            ({"bounds": (0, None)}, r"bounds=\(0, None\) leave out .* of column 'y'"),
            ({"kernel": "silverman"}, "kernel='silverman' takes negative values"),
            ({"target_kernel": "matern32"}, "target_kernel='matern32' .* positive smoothing"),
        ],
    )
    def test_parameters(self, data, params, message):
        with pytest.raises(ValueError, match=message):
            fixed().set_params(**params).fit(*data)

    @pytest.mark.parametrize("quantiles", [1, "half"])
    def test_quantiles(self, data, quantiles):
        message = r"quantiles=.*(pass a number between 0 and 1|is not a list of numbers)"
        with pytest.raises(ValueError, match=message):
            fixed().fit(*data).predict_quantiles(data[0], quantiles)


def test_a_callback_can_end_the_search(mixed):
    recorder = Recorder(stop_after=5)
    model = ConditionalKernelDensity().set_callbacks(recorder).fit(*mixed)
    assert recorder.begun == ["fit"] + 5 * ["bandwidth"]
    assert np.isfinite(model.predict(mixed[0])).all()


@pytest.mark.parametrize("target_bandwidth", ["likelihood", "scott", 0.3])
def test_a_target_of_tiny_values_is_named(target_bandwidth):
    X = np.random.default_rng(5).uniform(-1, 1, (60, 2))
    model = ConditionalKernelDensity(target_bandwidth=target_bandwidth)
    with pytest.raises(ValueError, match=r"^y has a standard deviation of 2.78e-320"):
        model.fit(X, X[:, 0] * 5e-320)


def test_a_floor_of_the_target_is_named():
    x = np.arange(30.0).repeat(2)
    with pytest.warns(UserWarning, match=r"ended at its floor in the target, where some of 60"):
        ConditionalKernelDensity(degree=0).fit(x[:, None], np.sin(x))
