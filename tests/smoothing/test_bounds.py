"""Densities in bounds: mass 1 within, none outside, and right near the bounds."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

from sklearn_attention import ProductKernelDensity


@pytest.fixture
def x():
    return np.random.default_rng(0).beta(1, 2, size=(60, 1))


class TestEstimate:
    def test_is_the_sum_of_images(self, x):
        weights = np.random.default_rng(1).uniform(size=60)
        options = {"bandwidth": 0.1, "sensitivity": 0.5}
        model = ProductKernelDensity(**options, bounds=(0, None)).fit(x, sample_weight=weights)
        alike = ProductKernelDensity(**options).fit(x, sample_weight=weights)
        # The same local factors, which are those of the density in bounds.
        alike.local_factors_ = model.local_factors_
        expected = sum(np.exp(alike.score_samples(side * x)) for side in (1, -1))
        np.testing.assert_allclose(np.exp(model.score_samples(x)), expected, rtol=1e-10)


class TestLogarithms:
    """Beside one bound a column may be compared by logarithms of its distance."""

    @pytest.mark.parametrize(
        ("bounds", "sign", "weighted"), [((3, None), 1, True), ((None, 3), -1, False)]
    )
    def test_all_answers_are_of_one_density(self, bounds, sign, weighted):
        rng = np.random.default_rng(0)
        distance = rng.lognormal(size=(60, 1))
        weights = rng.uniform(0.2, 2, size=60) if weighted else None
        model = ProductKernelDensity(bounds=bounds)
        model.fit(3 + sign * distance, sample_weight=weights)
        median = np.quantile(distance[:, 0], 0.5, method="inverted_cdf", weights=weights)
        np.testing.assert_allclose(model.log_offsets_, [median / 2])
        # That of logarithms by itself, and the background.
        z = sign * np.log(distance + median / 2)
        ends = (np.log(median / 2), None) if sign > 0 else (None, -np.log(median / 2))
        options = {"bandwidth": model.bandwidth_, "bounds": [ends]}
        logs = ProductKernelDensity(**options).fit(z, sample_weight=weights)
        logs.local_factors_ = model.local_factors_
        places = np.array([[0.0], [0.01], [0.7], [5.0], [40.0]])
        kernels = logs.score_samples(sign * np.log(places + median / 2))
        kernels = np.exp(kernels) / (places[:, 0] + median / 2)
        mixture = model._mixture
        wide = np.exp(mixture.background_around().log_density(3 + sign * places))
        expected = (1 - mixture.background_weight) * kernels + mixture.background_weight * wide
        found = np.exp(model.score_samples(3 + sign * places))
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        assert model.score_samples([[3 - sign * 0.1]]) == -np.inf
        # Its mass, distribution function and draws.
        grid = 3 + sign * np.append(0, np.geomspace(1e-4, 1e7, 10_001))
        density = np.exp(model.score_samples(grid[:, None]))
        below = np.abs(
            np.insert(np.cumsum(np.diff(grid) * (density[1:] + density[:-1]) / 2), 0, 0)
        )
        assert below[-1] == pytest.approx(1, abs=1e-3)
        cdf = model.cdf(grid[::1000, None])
        np.testing.assert_allclose(cdf if sign > 0 else 1 - cdf, below[::1000], atol=1e-3)
        sample = model.sample(1000, random_state=0)
        assert (sign * (sample - 3) >= 0).all()
        assert kstest(sample[:, 0], lambda x: model.cdf(x[:, None])).pvalue > 0.001
        fixed = ProductKernelDensity(bounds=bounds, sensitivity=0)
        fixed.fit(model.keys_, sample_weight=weights)
        assert fixed.likelihood_score_ == pytest.approx(fixed._mixture.score(), rel=1e-9)
        assert model._mixture.score() >= fixed.likelihood_score_

    def test_only_where_they_are_better(self):
        rng = np.random.default_rng(0)
        n = 50
        X = np.column_stack(
            [rng.lognormal(size=n), np.abs(rng.normal(size=n)), rng.uniform(size=n)]
        )
        bounds = [(0, None), (0, None), (0, 1)]
        model = ProductKernelDensity(bounds=bounds, sensitivity=0).fit(X)
        assert np.isfinite(model.log_offsets_).tolist() == [True, False, False]
        given = ProductKernelDensity(bounds=bounds, bandwidth=0.5).fit(X)
        assert not hasattr(given, "log_offsets_")
        model.set_params(bounds=None, bandwidth=1.0).fit(X)
        assert not hasattr(model, "log_offsets_")


class TestBadInput:
    @pytest.mark.parametrize("bounds", [(0, 0), "positive", [(0, 1)], (0, np.nan)])
    def test_no_bounds(self, bounds):
        X = np.random.default_rng(0).uniform(size=(20, 2))
        with pytest.raises(ValueError, match=r"bounds=.* is not valid: pass None, a pair"):
            ProductKernelDensity(bounds=bounds).fit(X)

    def test_categories(self, x):
        frame = pd.DataFrame({"share": x[:, 0], "kind": list("ab") * 30})
        with pytest.raises(ValueError, match="column 'kind' is a category: pass None"):
            ProductKernelDensity(bounds=[None, (0, 1)]).fit(frame)
        model = ProductKernelDensity(bandwidth=1.0, bounds=(0, 1)).fit(frame)
        assert model.bounds_[1].tolist() == [-np.inf, np.inf]
