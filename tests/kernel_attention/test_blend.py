"""Ways blended by least squares, and the link from scores to probabilities."""

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize, nnls
from scipy.special import log_softmax, softmax

from sklearn_attention.kernel_attention import _blend as module
from sklearn_attention.kernel_attention._blend import MultinomialLink, blend


class TestBlend:
    def make(self, n_ways=3, n=40, n_outputs=2, seed=0):
        rng = np.random.default_rng(seed)
        targets = rng.normal(size=(n, n_outputs))
        left_out = targets + 0.5 * rng.normal(size=(n_ways, n, n_outputs))
        return left_out, targets, rng.uniform(0.2, 3, n)

    def test_equals_scipy(self):
        left_out, targets, weights = self.make()
        found = blend(left_out, targets, weights)
        for output in range(2):
            root = np.sqrt(weights)
            expected, _ = nnls(
                left_out[:, :, output].T * root[:, None], targets[:, output] * root
            )
            np.testing.assert_allclose(found[:, output], expected, atol=1e-12)

    def test_no_other_weights_fit_better(self):
        left_out, targets, weights = self.make(n_outputs=1)

        def error(shares):
            errors = targets[:, 0] - shares @ left_out[:, :, 0]
            return weights @ errors**2

        found = blend(left_out, targets, weights)[:, 0]
        assert (found >= 0).all()
        best = minimize(error, np.full(3, 0.3), bounds=[(0, None)] * 3)
        np.testing.assert_allclose(found, best.x, atol=1e-4)

    @pytest.mark.parametrize(("share", "expected"), [(0.01, 0.0), (0.05, 0.05)])
    def test_what_hardly_helps_has_no_weight(self, share, expected):
        ways = np.eye(2, 6)[:, :, None]
        found = blend(ways, ways[0] + share * ways[1], np.ones(6))
        np.testing.assert_allclose(found[:, 0], [1.0, expected])

    def test_what_misleads_has_no_weight(self):
        left_out, targets, weights = self.make(n_outputs=1)
        left_out[1] = -targets
        found = blend(left_out, targets, weights)[:, 0]
        assert found[1] == 0
        assert found[0] > 0
        assert found[2] > 0

    def test_where_all_mislead_the_least_bad_one_answers(self):
        _, targets, weights = self.make(n_outputs=1)
        left_out = np.stack([-2 * targets, -targets, -3 * targets])
        np.testing.assert_array_equal(blend(left_out, targets, weights)[:, 0], [0, 1, 0])


# Ways whose scores are log-odds: neither of two.
SCORES = np.array([False, False])


class TestMultinomialLink:
    def make(self, n=300, n_ways=2, seed=0):
        """Scores that are too timid, and one class that is forgotten by them."""
        rng = np.random.default_rng(seed)
        truth = softmax(rng.normal(size=(n, 3)) * 2 + [0, 0, 1], axis=1)
        labels = np.array([rng.choice(3, p=p) for p in truth])
        timid = 0.6 / 3 + 0.4 * truth
        scores = timid + 0.02 * rng.normal(size=(n_ways, n, 3))
        return scores, np.eye(3)[labels], rng.uniform(0.5, 2, n)

    def log_loss(self, probabilities, indicators, weights):
        return -weights @ (indicators * np.log(probabilities)).sum(axis=1) / weights.sum()

    def test_equals_its_formula(self):
        scores, _, _ = self.make(n=5)
        link = MultinomialLink(np.array([0.5, 1.5]), np.array([0.1, 0.0, -0.3]), 0.01, SCORES)
        for row, found in enumerate(link(scores)):
            raw = np.array(link.bias)
            for c in range(3):
                for m, theta in enumerate(link.strengths):
                    f = scores[m, row, c]
                    raw[c] += theta * np.log((f + np.sqrt(f**2 + 4 * 0.01**2)) / 2)
            np.testing.assert_allclose(found, np.exp(raw) / np.exp(raw).sum(), rtol=1e-12)

    def test_improves_on_the_scores(self):
        scores, indicators, weights = self.make()
        link = MultinomialLink.fit(scores, indicators, weights, SCORES)
        raw = np.clip(scores.mean(axis=0), 1e-3, None)
        raw /= raw.sum(axis=1, keepdims=True)
        before = self.log_loss(raw, indicators, weights)
        assert self.log_loss(link(scores), indicators, weights) < before - 0.05
        assert (link.strengths >= 0).all()
        # Timid scores are believed more than they say.
        assert link.strengths.sum() > 1.5

    def test_no_other_link_of_its_epsilon_fits_better(self):
        scores, indicators, weights = self.make(n=60)
        link = MultinomialLink.fit(scores, indicators, weights, SCORES)
        free = np.concatenate([link.strengths, link.bias])

        def objective(free):
            other = MultinomialLink(free[:2], free[2:], link.least, SCORES)
            loss = weights.sum() * self.log_loss(other(scores), indicators, weights)
            held = free - np.array([0.5, 0.5, 0, 0, 0])
            return loss + 0.5 * module._LINK_PRECISION * held @ held

        best = minimize(objective, free, bounds=[(0, None)] * 2 + [(None, None)] * 3)
        assert objective(free) == pytest.approx(best.fun, rel=1e-5)

    def test_gradient_equals_differences(self, monkeypatch):
        scores, indicators, weights = self.make(n=40)
        losses = []

        def listening(loss, start, **options):
            losses.append(loss)
            return minimize(loss, start, **options)

        monkeypatch.setattr(module, "minimize", listening)
        MultinomialLink.fit(scores, indicators, weights, SCORES)
        assert len(losses) == 4
        for loss in losses:
            for seed in range(3):
                free = np.random.default_rng(seed).uniform(0.1, 2, 5)
                error = check_grad(lambda free, f=loss: f(free)[0],
                                   lambda free, f=loss: f(free)[1], free)  # fmt: skip
                assert error < 1e-4 * np.linalg.norm(loss(free)[1])

    @pytest.mark.parametrize(
        "far",
        [
            1e2,
            1e6,
        ],
    )
    def test_probabilities_whatever_the_scores(self, far):
        link = MultinomialLink.fit(*self.make(), SCORES)
        scores = np.array([-far, -3.0, 0.0, 0.5, far])
        table = np.stack(np.meshgrid(scores, scores, scores), axis=-1).reshape(-1, 3)
        found = link(np.stack([table, table]))
        np.testing.assert_allclose(found.sum(axis=1), 1)
        assert (found >= 0).all()

    def test_log_odds_are_taken_as_they_are(self):
        scores, indicators, weights = self.make()
        mixed = np.stack([np.log(scores[0]), scores[1]])
        link = MultinomialLink.fit(mixed, indicators, weights, np.array([True, False]))
        raw = link.bias + link.strengths[0] * mixed[0]
        far = 4 * link.least**2
        raw = raw + link.strengths[1] * np.log((scores[1] + np.sqrt(scores[1] ** 2 + far)) / 2)
        np.testing.assert_allclose(link(mixed), softmax(raw, axis=1), rtol=1e-10)

    def test_one_class(self):
        scores = np.random.default_rng(0).uniform(size=(2, 10, 1))
        link = MultinomialLink.fit(scores, np.ones((10, 1)), np.ones(10), SCORES)
        np.testing.assert_array_equal(link(scores), np.ones((10, 1)))


def test_log_scores_are_about_the_logarithm():
    scores = np.array([0.5, 1.0, 2.0])
    found = module._log_scores(scores.reshape(1, 3, 1), 1e-3, SCORES[:1])[0, :, 0]
    np.testing.assert_allclose(found, log_softmax(np.log(scores)) + np.log(3.5), atol=1e-5)
