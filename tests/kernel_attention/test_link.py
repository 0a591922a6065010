"""The link from scores to probabilities."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit, softmax

from sklearn_attention.kernel_attention import _boosting as module
from sklearn_attention.kernel_attention._boosting import MultinomialLink

FREQUENCIES = np.array([0.2, 0.3, 0.5])


def make(n=300, seed=0):
    """Scores that are too timid, and one class that is forgotten by them."""
    rng = np.random.default_rng(seed)
    truth = softmax(rng.normal(size=(n, 3)) * 2 + [0, 0, 1], axis=1)
    labels = np.array([rng.choice(3, p=p) for p in truth])
    timid = 0.4 * (truth - FREQUENCIES)
    scores = timid + 0.02 * rng.normal(size=(n, 3))
    return scores, np.eye(3)[labels], rng.uniform(0.5, 2, n)


def log_loss(probabilities, indicators, weights):
    return -weights @ (indicators * np.log(probabilities)).sum(axis=1) / weights.sum()


def test_equals_its_formula():
    scores, _, _ = make(n=5)
    strengths, bias = np.array([1.5, 0.3]), np.array([0.1, 0.0, -0.3])
    link = MultinomialLink(FREQUENCIES, strengths, bias, 0.01)
    for row, found in enumerate(link(scores)):
        raw = np.array(link.bias)
        for c in range(3):
            f = scores[row, c]
            raw[c] += 1.5 * f + 0.3 * np.arcsinh((f + FREQUENCIES[c]) / 0.04)
        likely = FREQUENCIES * np.exp(raw)
        expected = 0.99 * likely / likely.sum() + 0.01 * FREQUENCIES
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_no_other_link_fits_better():
    scores, indicators, weights = make(n=60)
    link = MultinomialLink.fit(scores, indicators, weights, FREQUENCIES)
    heads = module._heads(scores, FREQUENCIES)
    units = heads.std(axis=(1, 2))
    found = np.concatenate([link.strengths, link.bias, [logit(link.mix)]])

    def objective(free):
        other = MultinomialLink(FREQUENCIES, free[:2], free[2:5], expit(free[5]))
        value = weights.sum() * log_loss(other(scores), indicators, weights)
        value += 0.5 * module._PRECISION * np.square(free[:2] * units).sum()
        value += 0.5 * module._PRECISION * weights.sum() * free[2:5] @ free[2:5]
        return value + 0.5 * module._MIX_PRECISION * (free[5] - module._USUAL_MIX) ** 2

    best = minimize(objective, found, bounds=[(0, None)] * 2 + [(None, None)] * 4)
    assert objective(found) == pytest.approx(best.fun, rel=1e-5)


def test_probabilities_whatever_the_scores_and_of_a_class_without_rows():
    scores, indicators, weights = make(n=60)
    scores, indicators = (np.column_stack([x, np.zeros(60)]) for x in (scores, indicators))
    link = MultinomialLink.fit(scores, indicators, weights, np.append(FREQUENCIES, 1e-9))
    assert (link(scores)[:, 3] < 1e-6).all()
    places = np.array([-1e6, -3.0, 0.0, 0.5, 1e6])
    table = np.stack(np.meshgrid(*3 * [places]), axis=-1).reshape(-1, 3)
    found = link(np.column_stack([table, np.zeros(125)]))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found > 0).all()
