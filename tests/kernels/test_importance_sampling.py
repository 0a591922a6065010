"""Directions of the smallest variance against integrals, and what must not change."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

from sklearn_attention.kernels._frequencies import adapt_directions


def log_second_moment(precision, s):
    """Of one direction's estimate of exp(q.k), relative to the square of its mean."""

    def log_normal(w, precision):
        return 0.5 * (math.log(precision / (2 * math.pi)) - precision * w * w)

    def squared(w):
        return math.exp(2 * log_normal(w, 1) - log_normal(w, precision) + 2 * w * s - s * s)

    return math.log(quad(squared, -40, 40, points=[0, s, 2 * s], limit=400)[0])


def skewed_rows(n, d, seed, center=0.3):
    rng = np.random.default_rng(seed)
    return center + rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / d**0.5


def test_variance_is_the_minimiser_of_the_mean_over_pairs():
    sums = np.random.default_rng(0).normal(size=9) * 1.3
    found = minimize_scalar(
        lambda precision: np.mean([log_second_moment(precision, s) for s in sums]),
        bounds=(0.05, 1.5), method="bounded",
    )  # fmt: skip
    directions, _ = adapt_directions(np.ones((1, 1)), np.mean(sums**2)[None, None])
    assert directions.item() ** 2 == pytest.approx(1 / found.x, rel=1e-4)


def test_weights_are_quotients_of_densities():
    rows = skewed_rows(50, 4, seed=0)
    covariance = np.cov(rows.T)
    normals = np.random.default_rng(1).normal(size=(7, 4))
    directions, log_weights = adapt_directions(normals, covariance)
    root = adapt_directions(np.eye(4), covariance)[0]
    np.testing.assert_allclose(root @ covariance, covariance @ root, atol=1e-12)
    drawn_from = multivariate_normal(np.zeros(4), root @ root)
    expected = multivariate_normal(np.zeros(4)).logpdf(directions) - drawn_from.logpdf(
        directions
    )
    np.testing.assert_allclose(log_weights, expected, rtol=1e-10, atol=1e-12)
