"""Probabilities from scores of members, and boosted trees, stacked where they help."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax

from .._columns import UNORDERED
from .._stacking import MIN_PROBABILITY, fit_trees, nonnegative_weights, predict_scores

# Fewer rows than this are not split into trees.
FEWEST_ROWS = 50
# The loss of held-out rows has to fall by this share of it, and by more than one further
# weight without meaning lowers the loss of so many rows by chance.
MIN_GAIN, CHANCE = 0.003, 6.0
# Trees that show in a fiftieth of a fit's time whether more would help: in regression by such
# a share of the loss. With 0.04, errors of 14 sets on three splits each are 1.002 times as
# large (Ames 1.024), and a fit takes 0.97 of the time.
_FEW_TREES = {"max_iter": 12, "max_leaf_nodes": 8, "learning_rate": 0.4}
_LEAST_HINT = 0.01
# Share of the gain of all held-out rows that these few trees and those of the first fold need
# for classes. With 1, log-losses of e-mails are 1.003 and of incomes 1.004 times as large,
# those of mammograms 0.996, and those of eight other sets the same.
_EARLY_GAIN = 0.25
# Of classes, whose every tree is one for each: log-losses are those of 200 trees of 31 leaves,
# in a fifth of the time.
_TREES_OF_CLASSES = {"max_iter": 60, "max_leaf_nodes": 15, "learning_rate": 0.15}
# Typical errors beyond which an error counts less, so that few rows do not decide.
_LARGE_ERROR = 9.0
# Of the link: strengths, biases, and the logarithm of how much frequencies are mixed in.
_PRECISION, _MIX_PRECISION = 0.01, 0.25
_USUAL_MIX = -7.0
_LEAST_SHARE = 0.04


@dataclass(frozen=True)
class MultinomialLink:
    r"""Probabilities from scores of the classes.

    :math:`P(c \mid x) = (1 - \epsilon) \pi_c e^{z_c} / \sum_k \pi_k e^{z_k} + \epsilon \pi_c`
    with :math:`z_c = b_c + \theta f_c + \vartheta \operatorname{arsinh}((f_c + \pi_c) / .04) +
    \theta_t g_c` and :math:`\theta, \vartheta, \theta_t \ge 0`. A score f is about an indicator
    less the frequency :math:`\pi_c`; g, if there are boosted trees, are their
    log-probabilities less those of the frequencies.
    """

    frequencies: np.ndarray  # (n_classes,)
    strengths: np.ndarray  # theta, vartheta, and that of the trees if any
    bias: np.ndarray  # (n_classes,)
    mix: float  # the epsilon

    @classmethod
    def fit(cls, scores, indicators, weights, frequencies, trees=None):
        """The link of least log-loss of rows held out.

        Scores, indicators and trees are (n_held_out, n_classes).
        """
        heads = _heads(scores, frequencies, trees)
        units = np.maximum(heads.std(axis=(1, 2)), 1e-6)
        heads = heads / units[:, None, None]
        n_heads, _, n_classes = heads.shape
        log_prior = np.log(frequencies)
        of_own = indicators @ frequencies
        precision = _PRECISION * weights.sum()

        def loss(free):
            strengths, bias = free[:n_heads], free[n_heads:-1]
            mix = expit(free[-1])
            p = softmax(log_prior + bias + np.tensordot(strengths, heads, 1), axis=1)
            own = (p * indicators).sum(axis=1)
            mixed = (1 - mix) * own + mix * of_own
            of_logits = ((1 - mix) * own / mixed * weights)[:, None] * (p - indicators)
            off = free[-1] - _USUAL_MIX
            value = -weights @ np.log(mixed) + 0.5 * (
                _PRECISION * strengths @ strengths
                + precision * bias @ bias
                + _MIX_PRECISION * off**2
            )
            slope = [
                np.tensordot(heads, of_logits, 2) + _PRECISION * strengths,
                of_logits.sum(axis=0) + precision * bias,
                [weights @ ((own - of_own) / mixed) * mix * (1 - mix) + _MIX_PRECISION * off],
            ]
            return value, np.concatenate(slope)

        start = np.concatenate(
            [np.full(n_heads, 1 / n_heads), np.zeros(n_classes), [_USUAL_MIX]]
        )
        bounds = [(0, None)] * n_heads + [(None, None)] * (n_classes + 1)
        x = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
        return cls(frequencies, x[:n_heads] / units, x[n_heads:-1], float(expit(x[-1])))

    def __call__(self, scores, trees=None):
        """Probabilities (n, n_classes) from scores, and trees', of the same shape."""
        heads = _heads(scores, self.frequencies, trees)
        logits = np.log(self.frequencies) + self.bias + np.tensordot(self.strengths, heads, 1)
        return (1 - self.mix) * softmax(logits, axis=1) + self.mix * self.frequencies


def _heads(scores, frequencies, trees=None):
    heads = [scores, np.arcsinh((scores + frequencies) / _LEAST_SHARE)]
    return np.stack(heads if trees is None else [*heads, trees])


def stack_regressor(X, columns, targets, weights, folds, kernel):
    """Boosters of one output, weights (2,) of kernel and trees, and held-out predictions."""
    # `kernel` are held-out predictions of kernel attention, fold by fold. There is a booster
    # for each fold, fitted without its rows, or none if they do not help; the predictions are
    # held out too.
    held_out = np.concatenate(folds)
    known_targets, known_weights = targets[held_out], weights[held_out]

    def stack(trees, least_gain=MIN_GAIN):
        n = len(trees)
        both = np.column_stack([kernel[:n], trees])
        return _robust_shares(both, known_targets[:n], known_weights[:n], least_gain)

    boosters, shares, trees = _boost(X, columns, targets, weights, folds, stack, _LEAST_HINT)
    if not boosters:
        return [], np.array([1.0, 0.0]), kernel
    return boosters, shares, shares[0] * kernel + shares[1] * trees


def stack_classifier(X, columns, indicators, weights, folds, scores, frequencies):
    """Boosters of one output, and the link that stacks them, None if they do not help.

    `scores` (n_held_out, n_classes) are those of kernel attention, fold by fold.
    """
    codes, held_out = indicators.argmax(axis=1), np.concatenate(folds)
    if not all(np.ptp(np.delete(codes, fold)) for fold in folds):
        return [], None
    known_indicators, known_weights = indicators[held_out], weights[held_out]

    def stack(trees, least_gain=MIN_GAIN):
        n, own = len(trees), known_weights[: len(trees)]
        data = scores[:n], known_indicators[:n], own, frequencies
        losses = []
        for heads in (None, trees):
            link = MultinomialLink.fit(*data, heads)
            found = (link(scores[:n], heads) * known_indicators[:n]).sum(axis=1)
            losses.append(-np.average(np.log(found), weights=own))
        # A deviance is twice the log-loss.
        least = max(least_gain * losses[0], CHANCE / 2 / n)
        least *= 1.0 if n == len(held_out) else _EARLY_GAIN
        return link if losses[0] - losses[1] >= least else None

    options = {"classifies": True} | _TREES_OF_CLASSES
    data = X, columns, codes, weights, folds
    return _boost(*data, stack, MIN_GAIN, frequencies, **options)[:2]


def predict_trees(boosters, X, columns, frequencies=None):
    """Mean of the boosters' predictions, (n,) or (n, n_classes).

    Of classifiers, which pass frequencies, log-probabilities less those of the frequencies.
    """
    # To trees a level that was not known when fitted is missing.
    X = np.where((X < 0) & ~columns.is_numeric, np.nan, X)
    return sum(_predict(booster, X, frequencies) for booster in boosters) / len(boosters)


def _boost(X, columns, y, weights, folds, stack, least_hint, frequencies=None, **options):
    """Boosters of all folds, the result of `stack`, and their held-out predictions."""
    # A few trees come first: where they gain little, no more are grown. To bin by weights
    # would take twenty times as long, and this is a hint.
    few = _fit_without(folds[0], X, columns, y, **options | _FEW_TREES)
    if stack(_predict(few, X[folds[0]], frequencies), least_hint) is None:
        return [], None, None
    boosters, held_out = [], []
    for number, fold in enumerate(folds):
        own = options | {"random_state": number}
        boosters.append(_fit_without(fold, X, columns, y, weights, **own))
        held_out.append(_predict(boosters[-1], X[fold], frequencies))
        if number == 0:
            found = stack(held_out[0])
            if found is None:
                return [], None, None
    held_out = np.concatenate(held_out)
    found = found if len(folds) == 1 else stack(held_out)
    return (boosters, found, held_out) if found is not None else ([], None, None)


def _fit_without(fold, X, columns, y, weights=None, random_state=0, **options):
    """A booster of the rows that are not of the fold."""
    X, y = np.delete(X, fold, axis=0), np.delete(y, fold)
    return fit_trees(
        X, y, None if weights is None else np.delete(weights, fold), early_stopping=False,
        unordered=[j for j, kind in enumerate(columns.kinds) if kind == UNORDERED],
        random_state=random_state, **options,
    )  # fmt: skip


def _predict(booster, X, frequencies=None):
    # A class that is not among a booster's is as probable as it is frequent.
    usual = 0.0 if frequencies is None else np.log(np.maximum(frequencies, MIN_PROBABILITY))
    return predict_scores(booster, X, frequencies) - usual


def largest_error(errors):
    """Compute the size beyond which errors count alike, from absolute errors (n, n_columns)."""
    # If most errors are 0, the mean takes the place of the median.
    return _LARGE_ERROR * (np.median(errors, axis=0).max() or errors.mean(axis=0).max())


def _robust_shares(columns, targets, weights, least_gain):
    """Non-negative weights of two predictions, None if the first is about as good by itself."""
    limit = largest_error(np.abs(targets[:, None] - columns))
    if limit == 0:
        return None
    shares = nonnegative_weights(columns, targets, weights, limit)

    def loss(predictions):
        errors = np.abs(targets - predictions)
        return np.average(np.square(np.minimum(errors, limit)), weights=weights)

    alone = loss(columns[:, 0])
    gain = alone - loss(columns @ shares)
    worth = shares[1] > 0 and gain >= max(least_gain, CHANCE / len(targets)) * alone
    return shares if worth else None
