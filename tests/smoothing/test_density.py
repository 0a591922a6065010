"""ProductKernelDensity: the sum it says it is, with mass 1, and a good scikit-learn citizen."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from every_kernel import DENSITIES

from sklearn_attention import ProductKernelDensity
from sklearn_attention.attention._algorithms import _near_keys
from sklearn_attention.bandwidth import rule_bandwidth
from sklearn_attention.kernels import Tricube
from sklearn_attention.kernels._categorical import level_table
from sklearn_attention.smoothing import _density
from sklearn_attention.smoothing._scale import Scale

SIZES = ["small", "medium", "large"]


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 2)) * [1.0, 3.0]


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 40
    sizes = pd.Categorical.from_codes(rng.integers(2, size=n), SIZES, ordered=True)
    colors = rng.choice(["red", "green", "blue"], n, p=[0.6, 0.3, 0.1])
    return pd.DataFrame({"color": colors, "length": rng.normal(size=n), "size": sizes})


def slow_density(model, x):
    """The formula, one key and one column at a time."""
    weights = model.key_weights_
    weights = np.ones(len(model.keys_)) if weights is None else weights
    columns, total = model.columns_, 0.0
    for w, s, key in zip(weights, model.local_factors_, model.keys_, strict=True):
        product = w / weights.sum()
        for j, kind in enumerate(columns.kinds):
            h = model.bandwidth_[j]
            if kind == "numeric":
                product *= model.kernel_([[x[j] / (h * s)]], [[key[j] / (h * s)]])[0, 0] / (
                    h * s
                )
            else:
                product *= level_table(kind, columns.n_levels[j], h)[0][int(x[j]), int(key[j])]
        total += product
    return total


class TestEstimate:
    @pytest.mark.parametrize("kernel", DENSITIES)
    def test_is_the_formula(self, X, kernel):
        weights = np.random.default_rng(1).uniform(0.1, 2, size=len(X))
        model = ProductKernelDensity(kernel, bandwidth=[1.5, 4.0], sensitivity=0.5)
        model.fit(X, sample_weight=weights)
        queries = X[:5] + 0.3
        expected = [slow_density(model, query) for query in queries]
        np.testing.assert_allclose(np.exp(model.score_samples(queries)), expected, rtol=1e-12)
        assert model.score(queries) == pytest.approx(np.log(expected).sum(), rel=1e-12)

    def test_is_the_formula_for_categories_too(self, frame):
        model = ProductKernelDensity(bandwidth=[0.2, 0.5, 0.3], sensitivity=0.5).fit(frame)
        expected = [slow_density(model, key) for key in model.keys_[:3]]
        found = np.exp(model.score_samples(frame[:3]))
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_local_factors(self, X):
        fixed = ProductKernelDensity(bandwidth=1.0).fit(X)
        adaptive = ProductKernelDensity(bandwidth=1.0, sensitivity=0.5).fit(X)
        pilot = np.exp(fixed.score_samples(X))
        mean = math.exp(np.mean(np.log(pilot)))
        exact = (pilot / mean) ** -0.5
        steps = np.round(8 * np.log2(exact))
        np.testing.assert_allclose(adaptive.local_factors_, 2 ** (steps / 8))
        assert np.abs(np.log2(adaptive.local_factors_ / exact)).max() <= 1 / 16 + 1e-12
        far = ProductKernelDensity(bandwidth=1.0, sensitivity=1.0).fit(
            np.vstack([X, [[90, 0]]])
        )
        sparsest = np.log2(far.local_factors_[-1])
        assert sparsest == sparsest.round() >= 2
        np.testing.assert_array_equal(fixed.local_factors_, 1)

    @pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
    def test_categories_by_near_rows(self, frame, kernel, monkeypatch):
        monkeypatch.setattr(_near_keys, "FEW_PAIRS", 0)
        monkeypatch.setattr(_near_keys.NearKeys, "saves_time", lambda *_: True)
        frame["width"] = np.random.default_rng(1).normal(size=len(frame))
        weights = np.random.default_rng(2).uniform(size=len(frame))
        model = ProductKernelDensity(kernel, bandwidth=[0.2, 0.8, 0.3, 0.6])
        model.fit(frame, sample_weight=weights)
        found = model.score_samples(frame)
        # As if each row had a bandwidth of its own, pair by pair.
        model.local_factors_ = model.local_factors_ * (1 + 1e-15)
        expected = model.score_samples(frame)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


class TestDistributionFunction:
    @pytest.mark.parametrize(
        ("kernel", "bandwidth", "sensitivity", "bounds"),
        [
            # By likelihood there is a background too.
            ("gaussian", "likelihood", 0, None),
            ("gaussian", "likelihood", 0.5, (-2, 3)),
            ("gaussian", "scott", 0, (-2, None)),
            ("boxcar", 2.5, 0, (None, 3)),
            ("tricube", 2.5, 0.5, (-2, 3)),
        ],
    )
    def test_is_the_integral_of_the_density(self, X, kernel, bandwidth, sensitivity, bounds):
        X = X[:, :1].clip(-2, 3)
        options = {"sensitivity": sensitivity, "bounds": bounds}
        model = ProductKernelDensity(kernel, bandwidth=bandwidth, **options).fit(X)
        places = np.linspace(-1.9, 2.9, 2001)[:, None]
        below = model.cdf(places)
        density = np.exp(model.score_samples(places))
        steps = (density[1:] + density[:-1]) / 2 * np.diff(places[:, 0])
        # Between two points the density of the boxcar jumps.
        tolerance = 3e-3 if kernel == "boxcar" else 1e-5
        np.testing.assert_allclose(np.diff(below).cumsum(), steps.cumsum(), atol=tolerance)
        low, high = (None, None) if bounds is None else bounds
        ends = model.cdf([[-1e6 if low is None else low], [1e6 if high is None else high]])
        np.testing.assert_allclose(ends, [0, 1], atol=1e-11)
        assert model.cdf([[-1e300], [1e300]]).tolist() == pytest.approx([0, 1], abs=1e-12)

    def test_numbers_and_levels_are_the_share_of_draws(self, frame):
        bounds, weights = [None, (-4, 4), None], np.arange(len(frame))
        model = ProductKernelDensity(bounds=bounds, sensitivity=0.5)
        drawn = model.fit(frame, sample_weight=weights).sample(20_000, random_state=0)
        codes = drawn["size"].cat.codes
        for i in range(3):
            row = frame.iloc[[i]]
            inside = (drawn["color"] == row["color"].item()) & (
                drawn["length"] <= row["length"].item()
            )
            share = (inside & (codes <= SIZES.index(row["size"].item()))).mean()
            assert model.cdf(row)[0] == pytest.approx(share, abs=0.015)


class TestBandwidth:
    def test_the_estimate_has_the_background_with_likelihood_alone(self, X):
        model = ProductKernelDensity().fit(X)
        kernels = ProductKernelDensity(bandwidth=model.bandwidth_).fit(X)
        queries = np.array([[0.0, 0.0], [1e3, 0.0]])
        expected = 40 * np.exp(kernels.score_samples(queries))
        expected += np.exp(model._mixture.background_around().log_density(queries))
        np.testing.assert_allclose(np.exp(model.score_samples(queries)), expected / 41)
        # Fitted again by another rule, the model forgets what the first one learned.
        model.set_params(bandwidth="scott").fit(X)
        assert not hasattr(model, "background_")
        assert not hasattr(model, "likelihood_score_")

    def test_numbers(self, X, frame):
        tricube = ProductKernelDensity("tricube", bandwidth="scott").fit(X).bandwidth_
        np.testing.assert_array_equal(tricube, rule_bandwidth(X, Tricube(), "scott"))
        mixed = ProductKernelDensity(bandwidth=[0, 2, 1]).fit(frame)
        np.testing.assert_array_equal(mixed.bandwidth_, [0, 2, 1])
        # One number leaves the lambdas to the rule.
        one = ProductKernelDensity(bandwidth=0.5).fit(frame).bandwidth_
        rule = ProductKernelDensity(bandwidth="scott").fit(frame).bandwidth_
        np.testing.assert_array_equal(one, [rule[0], 0.5, rule[2]])


SHAPES = {
    "heavy tails": lambda rng: rng.standard_t(2, size=100),
    "uniform": lambda rng: rng.uniform(size=100),
}


class TestSensitivity:
    @pytest.mark.parametrize(
        ("bounds", "weights"),
        [(None, None), ((-30, 30), np.arange(20) % 3 / 2), ((0, None), np.arange(20) % 3 / 2)],
    )
    def test_rows_left_out_are_described_by_the_others(self, frame, bounds, weights):
        frame = frame[:20].assign(length=frame["length"].abs())
        model = ProductKernelDensity(bounds=bounds, sensitivity=0.5)
        mixture = model.fit(frame, sample_weight=weights)._mixture
        assert len(np.unique(mixture.local_factors)) > 2
        found = mixture.loo_log_density()
        for i in (1, 7, 19):
            others = replace(mixture.take(np.arange(20) != i), background=None)
            row = mixture.scale.invert(mixture.keys[[i]])
            kernels = np.exp(others.log_density(row))[0]
            if bounds:  # without its own images, which others have
                kernels = sum(
                    np.exp(replace(others, scale=Scale()).log_density(image))[0]
                    for image in mixture._images(mixture.keys[[i]])
                ) * np.exp(mixture.scale.log_slopes(row)[0])
            background = np.exp(mixture.background_around().log_density(row))[0]
            expected = (
                1 - mixture.background_weight
            ) * kernels + mixture.background_weight * background
            assert found[i] == pytest.approx(np.log(expected), rel=1e-9, abs=1e-9)

    @pytest.mark.parametrize("shape", SHAPES)
    def test_auto_is_that_of_best_likelihood(self, shape):
        X = SHAPES[shape](np.random.default_rng(0))[:, None]
        model, scores = ProductKernelDensity().fit(X), {}
        for sensitivity in (0, 0.25, 0.5):
            own = ProductKernelDensity(sensitivity=sensitivity).fit(X)
            assert own.bandwidth_ == model.bandwidth_
            scores[sensitivity] = own._mixture.loo_log_density().sum() - 2 * (sensitivity > 0)
            if sensitivity == 0:
                assert own.likelihood_score_ * 100 == pytest.approx(scores[0], rel=1e-9)
        best = max(scores, key=scores.get)
        assert (best > 0) == (shape == "heavy tails")
        expected = ProductKernelDensity(sensitivity=best).fit(X)
        np.testing.assert_array_equal(model.local_factors_, expected.local_factors_)

    def test_auto_is_0_elsewhere(self, monkeypatch):
        x = SHAPES["heavy tails"](np.random.default_rng(0))[:, None]
        assert len(np.unique(ProductKernelDensity().fit(x).local_factors_)) > 5
        arrays = pytest.importorskip("dask.array")
        elsewhere = [
            ProductKernelDensity(bandwidth=bandwidth).fit(x) for bandwidth in (0.5, "scott")
        ]
        elsewhere.append(ProductKernelDensity().fit(arrays.from_array(x, (50, 1))))
        monkeypatch.setattr(_density, "MAX_KEYS", 99)
        elsewhere.append(ProductKernelDensity().fit(x))
        for model in elsewhere:
            np.testing.assert_array_equal(model.local_factors_, 1)

    def test_many_rows_have_factors_by_some(self, monkeypatch):
        X = SHAPES["heavy tails"](np.random.default_rng(0))[:, None]
        whole = ProductKernelDensity().fit(X)
        monkeypatch.setattr(_density, "_MAX_PILOT_ROWS", 50)
        monkeypatch.setattr(_density, "MAX_SEARCH_ROWS", 50)
        some = ProductKernelDensity().fit(X)
        ratio = some.local_factors_ / whole.local_factors_
        assert 0 < np.quantile(np.abs(np.log2(ratio)), 0.9) <= 0.5
        assert some.score(X) == pytest.approx(whole.score(X), rel=0.02)


class TestPointMasses:
    @pytest.mark.parametrize(("share", "offset"), [(0.3, 0.0), (0.06, 273.15)])
    def test_bandwidths_are_of_the_other_rows(self, share, offset):
        rng = np.random.default_rng(0)
        rain = rng.gamma(2, 8, size=(300, 1)) + offset
        rain[: int(300 * share)] = offset
        message = (
            rf"without those that have the value {offset:g} of column 0, which {share:.0%}"
        )
        with pytest.warns(UserWarning, match=message):
            model = ProductKernelDensity().fit(rain)
        # As the warning advises.
        wet = ProductKernelDensity().fit(rain[int(300 * share) :])
        np.testing.assert_allclose(model.bandwidth_, wet.bandwidth_, rtol=0.1)
        assert np.isfinite(model.score_samples(rain)).all()

    @pytest.mark.parametrize("bounds", [None, (0, None)])
    def test_values_and_columns_are_named_as_they_were_passed(self, bounds):
        rng = np.random.default_rng(0)
        tips = np.where(rng.random(300) < 0.4, 0.0, rng.gamma(2.0, 2.0, 300))
        frame = pd.DataFrame({"tip": tips})
        with pytest.warns(UserWarning, match="tip") as caught:
            model = ProductKernelDensity(bounds=bounds, sensitivity=0).fit(frame)
        assert [str(warning.message) for warning in caught] == [
            "bandwidth='likelihood' was chosen without those that have the value 0 of column "
            f"'tip', which {np.mean(tips == 0):.0%} of the rows share. A density spreads such "
            "a point mass: keep its share apart, and fit the other rows alone."
        ]
        if bounds:  # The search compared logarithms.
            assert np.isfinite(model.log_offsets_).all()

    def test_a_floor_is_named_by_its_column(self):
        amounts = np.repeat(np.random.default_rng(0).gamma(0.5, size=30), 2)
        frame = pd.DataFrame({"amount": amounts})
        with pytest.warns(UserWarning, match="floor") as caught:
            ProductKernelDensity(bounds=(0, None), sensitivity=0).fit(frame)
        assert [str(warning.message) for warning in caught] == [
            "bandwidth='likelihood' ended at its floor in column 'amount', where some of 60 "
            "values repeat others exactly; a copy describes its original exactly, so the floor "
            "may be too small: pass a number, or a frame with such columns as ordered "
            "categories."
        ]

    def test_of_nearly_all_rows(self):
        x = np.append(np.zeros(95), np.arange(1.0, 6.0))[:, None]
        with pytest.warns(UserWarning, match="too few rows besides those that .* 95% of the"):
            ProductKernelDensity().fit(x)


@pytest.mark.parametrize("weighted", [False, True])
def test_partial_fit_equals_fit_on_all_rows(frame, weighted):
    weights = np.where(np.arange(40) < 25, 1.0, 2.0) if weighted else None
    whole = ProductKernelDensity().fit(frame, sample_weight=weights)
    grown = ProductKernelDensity().partial_fit(frame[:25])
    grown.partial_fit(frame[25:], sample_weight=weights[25:] if weighted else None)
    np.testing.assert_allclose(grown.score_samples(frame), whole.score_samples(frame))
    assert grown.likelihood_score_ == pytest.approx(whole.likelihood_score_, rel=1e-9)


class TestSample:
    def test_frames_come_back(self, frame):
        model = ProductKernelDensity().fit(frame)
        sample = model.sample(20_000, random_state=0)
        assert list(sample.columns) == list(frame.columns)
        assert sample["size"].cat.ordered
        assert sample["size"].cat.categories.tolist() == SIZES
        table, _ = level_table("unordered", 3, model.bandwidth_[0])
        expected = table[:, model.keys_[:, 0].astype(int)].mean(axis=1)
        shares = sample["color"].value_counts(normalize=True)[["blue", "green", "red"]]
        np.testing.assert_allclose(shares, expected, atol=0.01)


class TestBadInput:
    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"kernel": "silverman"}, "kernel='silverman' .* positive smoothing"),
            ({"bandwidth": [1, 2]}, "there are 3 features"),
            ({"bandwidth": [0.9, 1, 0.5]}, r"bandwidth\[0\]=0.9 .*\[0, 0.666667\]"),
            ({"sensitivity": "much"}, "sensitivity='much' is not valid: pass 'auto'"),
        ],
    )
    def test_parameters(self, frame, params, message):
        with pytest.raises(ValueError, match=message):
            ProductKernelDensity(**params).fit(frame)

    def test_bounds_that_leave_out_rows(self, X):
        table = pd.DataFrame(X, columns=["a", "b"]).clip(-1, 1)
        table.loc[:2, "b"] = [100, -5, 90]
        for bounds, n_outside in (([None, (-2, 90)], 2), ((None, 90), 1)):
            message = f"leave out {n_outside} .*'b', .* from -5 to 100: remove"
            with pytest.raises(ValueError, match=message):
                ProductKernelDensity(bounds=bounds).fit(table)


def test_a_far_row_of_no_weight_has_no_local_factor():
    x = np.append(np.random.default_rng(0).normal(size=50), 60.0)[:, None]
    model = ProductKernelDensity(bandwidth=0.3, sensitivity=0.5)
    found = model.fit(x, sample_weight=np.arange(51) < 50).score_samples(x[:9])
    expected = model.fit(x[:50]).score_samples(x[:9])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
