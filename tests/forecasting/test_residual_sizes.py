"""Sizes of residuals, and how few of them are shrunk."""

import numpy as np
import pytest

from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting._residual_sizes import (
    horizons_per_origin,
    latest_inflation,
    random_walk_sizes,
    residual_profile,
    shrunken_mean_sizes,
    sizes_of_origins,
)


def make_errors(n=39, horizon=2):
    """Errors that grow with the steps ahead; (n, horizon, 1)."""
    return np.random.default_rng(0).normal(size=(n, horizon, 1)) * [[1], [3], [4]][:horizon]


def test_the_profile_is_in_part_that_of_a_random_walk():
    residuals, walk = make_errors(30, 3), np.array([1.0, 1.5, 2.0])
    residuals[:12, 2] = np.nan
    size = np.abs(residuals[:, :, 0])
    size = np.minimum(size, np.nanquantile(size, 0.95))  # few huge ones do not count
    n = np.array([30, 30, 18])
    ratio = np.nansum(size) / (n @ walk)
    expected = (np.nansum(size, axis=0) + 10 * ratio * walk) / (n + 10)
    found = residual_profile(residuals, walk)
    np.testing.assert_allclose(found, expected / expected.mean())
    for nothing in (residuals[:0], 0 * residuals):
        np.testing.assert_allclose(residual_profile(nothing, walk), walk / 1.5)


def test_sizes_are_weighted_by_the_profile():
    residuals = np.array([[1.0, 3.0], [np.nan, -4.0], [np.nan, np.nan]])[:, :, None]
    found = sizes_of_origins(residuals / [[0.5], [1.5]], np.array([0.5, 1.5]))
    np.testing.assert_allclose(found, [(1 + 3) / 2, 4 / 1.5, np.nan])


def test_units_of_series_are_in_part_those_of_all():
    sizes, series = np.array([2.0, 2.5, 2.0, np.nan]), np.array([0, 0, 2, 2])
    scale, n_horizons = np.array([1.0, 5.0, 0.5]), np.array([0.7, 0.7, 1.0, 1.0])
    unit, usual, is_inexact = shrunken_mean_sizes(
        sizes, series, n_horizons, scale, walk_size=3.0
    )  # fmt: skip
    size = [2.25, 4]  # in units of the series
    assert usual == pytest.approx((size[0] ** 1.4 * size[1] * 3**4) ** (1 / 6.4))
    share = np.array([1.4**2 / (1.4**2 + 1), 0.0, 1 / 2])
    expected = scale * usual * np.array([size[0] / usual, 1, size[1] / usual]) ** share
    np.testing.assert_allclose(unit, expected)
    np.testing.assert_array_equal(is_inexact, [True, False, True])


@pytest.mark.parametrize(("ratio", "expected"), [(4.0, 1.6), (2.25, 1.5), (0.2, 1.0)])
def test_larger_errors_of_the_latest_block_widen_intervals(ratio, expected):
    series = np.repeat([0, 1], 10)
    is_latest = np.tile(np.arange(10) < 4, 2)
    size = np.where(series == 0, 1.0, 70.0) * np.where(is_latest, ratio, 1.0)
    assert latest_inflation(size, series, is_latest) == pytest.approx(expected)
    # A series without earlier errors says nothing, nor does an origin without observations.
    size[[2, 7]] = np.nan
    rows = (series == 0) | is_latest
    assert latest_inflation(size[rows], series[rows], is_latest[rows]) == pytest.approx(
        expected
    )
    assert latest_inflation(size, series, np.zeros(20, dtype=bool)) == 1


@pytest.mark.parametrize("n_steps", [2, 9])
def test_a_random_walk_is_uncertain_by_its_steps_and_by_its_drift(n_steps):
    sizes = random_walk_sizes(4, n_steps)
    for ahead, size in enumerate(sizes, start=1):
        # The error is the sum of the steps ahead, less the mean past step for each of them.
        of_steps = np.append(np.full(n_steps, -ahead / n_steps), np.ones(ahead))
        assert size == pytest.approx(np.linalg.norm(of_steps))


def test_an_origin_counts_as_the_horizons_that_those_of_its_series_span():
    table = Table.from_arrays([np.zeros(20), np.zeros(9)])
    series, known = np.array([0, 0, 0, 1]), np.array([5, 7, 18, 8])
    horizons = horizons_per_origin(Origins.at_ends(table, 4).at_steps(series, known))
    # Three origins span the 15 last steps of their series, and one spans a single step.
    np.testing.assert_allclose(horizons, [15 / 4 / 3] * 3 + [1 / 4])
