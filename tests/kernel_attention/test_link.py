"""The link from scores to probabilities."""

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from scipy.special import expit, logit, softmax

from sklearn_attention.kernel_attention import _boosting as module
from sklearn_attention.kernel_attention._boosting import MultinomialLink

FREQUENCIES = np.array([0.2, 0.3, 0.5])


class TestMultinomialLink:
    def make(self, n=300, n_kinds=2, seed=0):
        """Scores that are too timid, and one class that is forgotten by them."""
        rng = np.random.default_rng(seed)
        truth = softmax(rng.normal(size=(n, 3)) * 2 + [0, 0, 1], axis=1)
        labels = np.array([rng.choice(3, p=p) for p in truth])
        timid = 0.4 * (truth - FREQUENCIES)
        scores = timid + 0.02 * rng.normal(size=(n_kinds, n, 3))
        return scores, np.eye(3)[labels], rng.uniform(0.5, 2, n)

    def log_loss(self, probabilities, indicators, weights):
        return -weights @ (indicators * np.log(probabilities)).sum(axis=1) / weights.sum()

    def test_equals_its_formula(self):
        scores, _, _ = self.make(n=5)
        theta, vartheta = [0.5, 1.5], [0.3, 0.0]
        link = MultinomialLink(
            FREQUENCIES, np.array(theta + vartheta), np.array([0.1, 0.0, -0.3]), 0.01
        )
        for row, found in enumerate(link(scores)):
            raw = np.array(link.bias)
            for c in range(3):
                for m in range(2):
                    f = scores[m, row, c]
                    raw[c] += theta[m] * f
                    raw[c] += vartheta[m] * np.arcsinh((f + FREQUENCIES[c]) / 0.04)
            likely = FREQUENCIES * np.exp(raw)
            expected = 0.99 * likely / likely.sum() + 0.01 * FREQUENCIES
            np.testing.assert_allclose(found, expected, rtol=1e-12)

    @pytest.mark.parametrize("n_kinds", [1, 2])
    def test_improves_on_the_scores(self, n_kinds):
        scores, indicators, weights = self.make(n_kinds=n_kinds)
        link = MultinomialLink.fit(scores, indicators, weights, FREQUENCIES)
        raw = np.clip(scores.mean(axis=0) + FREQUENCIES, 1e-3, None)
        raw /= raw.sum(axis=1, keepdims=True)
        before = self.log_loss(raw, indicators, weights)
        assert self.log_loss(link(scores), indicators, weights) < before - 0.05
        assert link.strengths.shape == (2 * n_kinds,)
        assert (link.strengths >= 0).all()
        # Timid scores are believed more than they say.
        assert link.strengths.sum() > 2

    def test_frequencies_answer_where_scores_say_nothing(self):
        _, indicators, weights = self.make()
        rates = weights @ indicators / weights.sum()
        link = MultinomialLink.fit(np.zeros((1, 300, 3)), indicators, weights, rates)
        found = link(np.zeros((1, 4, 3)))
        np.testing.assert_allclose(found, np.tile(rates, (4, 1)), atol=0.01)

    def test_no_other_link_fits_better(self):
        scores, indicators, weights = self.make(n=60)
        link = MultinomialLink.fit(scores, indicators, weights, FREQUENCIES)
        heads = module._heads(scores, FREQUENCIES)
        units = heads.std(axis=(1, 2))
        found = np.concatenate([link.strengths, link.bias, [logit(link.mix)]])

        def objective(free):
            other = MultinomialLink(FREQUENCIES, free[:4], free[4:7], expit(free[7]))
            value = weights.sum() * self.log_loss(other(scores), indicators, weights)
            value += 0.5 * module._PRECISION * np.square(free[:4] * units).sum()
            value += 0.5 * module._PRECISION * weights.sum() * free[4:7] @ free[4:7]
            return value + 0.5 * module._MIX_PRECISION * (free[7] - module._USUAL_MIX) ** 2

        best = minimize(objective, found, bounds=[(0, None)] * 4 + [(None, None)] * 4)
        assert objective(found) == pytest.approx(best.fun, rel=1e-5)

    def test_gradient_equals_differences(self, monkeypatch):
        scores, indicators, weights = self.make(n=40)
        losses = []

        def listening(loss, start, **options):
            losses.append(loss)
            return minimize(loss, start, **options)

        monkeypatch.setattr(module, "minimize", listening)
        MultinomialLink.fit(scores, indicators, weights, FREQUENCIES)
        (loss,) = losses
        for seed in range(3):
            free = np.random.default_rng(seed).uniform(0.1, 2, 8)
            error = check_grad(lambda free: loss(free)[0], lambda free: loss(free)[1], free)
            assert error < 1e-5 * np.linalg.norm(loss(free)[1])

    @pytest.mark.parametrize("far", [1e2, 1e6])
    def test_probabilities_whatever_the_scores(self, far):
        link = MultinomialLink.fit(*self.make(), FREQUENCIES)
        scores = np.array([-far, -3.0, 0.0, 0.5, far])
        table = np.stack(np.meshgrid(scores, scores, scores), axis=-1).reshape(-1, 3)
        found = link(np.stack([table, table]))
        np.testing.assert_allclose(found.sum(axis=1), 1)
        assert (found > 0).all()

    def test_a_class_without_rows(self):
        scores, indicators, weights = self.make(n=60)
        scores = np.dstack([scores, np.zeros((2, 60, 1))])
        indicators = np.column_stack([indicators, np.zeros(60)])
        link = MultinomialLink.fit(scores, indicators, weights, np.append(FREQUENCIES, 1e-9))
        found = link(scores)
        np.testing.assert_allclose(found.sum(axis=1), 1)
        assert (found[:, 3] < 1e-6).all()

    def test_one_class(self):
        scores = np.random.default_rng(0).uniform(size=(2, 10, 1))
        link = MultinomialLink.fit(scores, np.ones((10, 1)), np.ones(10), np.ones(1))
        np.testing.assert_allclose(link(scores), np.ones((10, 1)), rtol=1e-15)
