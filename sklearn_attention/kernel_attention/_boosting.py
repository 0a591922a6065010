r"""Boosted trees that are stacked with kernel attention, and probabilities of classes.

Trees of gradient boosting are fitted for each fold without the rows that it holds out, so that
their predictions of these rows are out of fold. They are stacked (Breiman 1996) if the rows
held out are then predicted better:

- numbers: the prediction is a weighted sum of that of the kernel and that of the trees, with
  non-negative stacking weights.
- classes: a calibrated link (`MultinomialLink`) turns scores of the kernel, and
  log-probabilities of the trees, into probabilities. It is used without trees, too.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, softmax

from .._columns import UNORDERED
from .._stacking import MIN_PROBABILITY, fit_trees, nonnegative_weights, predict_scores

# Minimum number of rows with which trees are tried.
MIN_ROWS = 50
# The loss of the rows held out has to fall by at least this fraction of it, and by more than a
# further coefficient without meaning lowers it by chance: the deviance of all rows, or the sum
# of squares divided by the mean square, has to fall by this number.
MIN_GAIN, CHANCE = 0.003, 6.0
# Parameters of a few trees, which show in a fiftieth of a fit's time whether more would help:
# in regression if they lower the loss by this fraction. With 0.04, errors of 14 sets on three
# splits each are 1.002 times as large (Ames 1.024), and a fit takes 0.97 of the time.
_FEW_TREES = {"max_iter": 12, "max_leaf_nodes": 8, "learning_rate": 0.4}
_MIN_HINT_GAIN = 0.01
# Fraction of the gain required of all held-out rows that is required of the few trees, and of
# the trees of the first fold, for classes. With 1, log-losses of e-mails are 1.003 and of
# incomes 1.004 times as large, those of mammograms 0.996, and those of eight other sets the
# same.
_EARLY_GAIN = 0.25
# Parameters of trees for classes, which take one tree for each class at a time: log-losses are
# those of 200 trees of 31 leaves, in a fifth of the time.
_TREES_OF_CLASSES = {"max_iter": 60, "max_leaf_nodes": 15, "learning_rate": 0.15}
# Errors count less if they exceed this multiple of the median absolute error, so that a few
# rows do not decide.
_LARGE_ERROR = 9.0
# The link: precision of the normal priors of strengths (in units of their heads' standard
# deviations) and, per row, of biases; precision and mean of the prior of the log-odds of the
# mixing weight epsilon.
_PRECISION, _MIX_PRECISION = 0.01, 0.25
_USUAL_MIX = -7.0
# Probabilities near this are where the arsinh of the link turns from linear to logarithmic.
_ARSINH_SCALE = 0.04


@dataclass(frozen=True)
class MultinomialLink:
    r"""Probabilities from scores of the classes.

    :math:`P(c \mid x) = (1 - \epsilon) \pi_c e^{z_c} / \sum_k \pi_k e^{z_k} + \epsilon \pi_c`
    with :math:`z_c = b_c + \theta f_c + \vartheta \operatorname{arsinh}((f_c + \pi_c) / 0.04) +
    \theta_t g_c` and :math:`\theta, \vartheta, \theta_t \ge 0`. A score f approximates the
    indicator of its class minus the frequency :math:`\pi_c`; g, if there are boosted trees, are
    their log-probabilities minus :math:`\log \pi_c`. The functions of f and g that have a
    strength :math:`\theta` are called heads.
    """

    frequencies: np.ndarray  # pi, (n_classes,)
    strengths: np.ndarray  # theta, vartheta, and theta_t if there are trees
    bias: np.ndarray  # b, (n_classes,)
    mix: float  # epsilon

    @classmethod
    def fit(cls, scores, indicators, weights, frequencies, trees=None):
        """Calibrate the link: find the one of least log-loss, with weak priors.

        Parameters
        ----------
        scores, indicators, trees : ndarray of shape (n, n_classes)
            The f, the classes as indicators, and the g, all of rows held out.
        weights : ndarray of shape (n,)
        frequencies : ndarray of shape (n_classes,)
        """
        heads = _heads(scores, frequencies, trees)
        units = np.maximum(heads.std(axis=(1, 2)), 1e-6)
        heads = heads / units[:, None, None]
        n_heads, _, n_classes = heads.shape
        log_prior = np.log(frequencies)
        frequency_of_class = indicators @ frequencies
        bias_precision = _PRECISION * weights.sum()

        def objective(parameters):
            """Return the penalised log-loss and its gradient; the last parameter is a logit."""
            strengths, bias, logit = (
                parameters[:n_heads],
                parameters[n_heads:-1],
                parameters[-1],
            )
            mix = expit(logit)
            p = softmax(log_prior + bias + np.tensordot(strengths, heads, 1), axis=1)
            p_of_class = (p * indicators).sum(axis=1)
            mixed = (1 - mix) * p_of_class + mix * frequency_of_class
            # Derivatives of the log-loss in the arguments of the softmax.
            slopes = ((1 - mix) * p_of_class / mixed * weights)[:, None] * (p - indicators)
            logit_change = logit - _USUAL_MIX
            value = -weights @ np.log(mixed) + 0.5 * (
                _PRECISION * strengths @ strengths
                + bias_precision * bias @ bias
                + _MIX_PRECISION * logit_change**2
            )
            mix_slope = weights @ ((p_of_class - frequency_of_class) / mixed) * mix * (1 - mix)
            gradient = [
                np.tensordot(heads, slopes, 2) + _PRECISION * strengths,
                slopes.sum(axis=0) + bias_precision * bias,
                [mix_slope + _MIX_PRECISION * logit_change],
            ]
            return value, np.concatenate(gradient)

        start = np.concatenate(
            [np.full(n_heads, 1 / n_heads), np.zeros(n_classes), [_USUAL_MIX]]
        )
        bounds = [(0, None)] * n_heads + [(None, None)] * (n_classes + 1)
        solution = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x
        strengths, bias = solution[:n_heads] / units, solution[n_heads:-1]
        return cls(frequencies, strengths, bias, float(expit(solution[-1])))

    def __call__(self, scores, trees=None):
        """Return probabilities (n, n_classes) from the f and the g, of the same shape."""
        heads = _heads(scores, self.frequencies, trees)
        logits = np.log(self.frequencies) + self.bias + np.tensordot(self.strengths, heads, 1)
        return (1 - self.mix) * softmax(logits, axis=1) + self.mix * self.frequencies


def _heads(scores, frequencies, trees=None):
    """Return what the strengths of a link are multiplied by, (n_heads, n, n_classes)."""
    heads = [scores, np.arcsinh((scores + frequencies) / _ARSINH_SCALE)]
    if trees is not None:
        heads.append(trees)
    return np.stack(heads)


def stack_regressor(X, columns, targets, weights, folds, kernel):
    """Stack boosted trees with kernel attention, for one output.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        Training rows, numbers and codes of levels.
    columns : Columns
    targets, weights : ndarray of shape (n,)
    folds : list of ndarray of int
        Positions of the rows that each fold holds out; n_held_out in all.
    kernel : ndarray of shape (n_held_out,)
        Predictions of the rows held out by kernel attention, fold by fold.

    Returns
    -------
    boosters : list of HistGradientBoostingRegressor
        One for each fold, fitted without its rows. None at all if they do not help.
    stacking_weights : ndarray of shape (2,)
        Weights of the predictions by kernel attention and by trees.
    predictions : ndarray of shape (n_held_out,)
        Stacked predictions of the rows held out.
    """
    held_out = np.concatenate(folds)
    known_targets, known_weights = targets[held_out], weights[held_out]

    def stack(trees, min_gain=MIN_GAIN):
        # Trees of the first fold predict only the first rows held out.
        n = len(trees)
        predictions = np.column_stack([kernel[:n], trees])
        return _stacking_weights(predictions, known_targets[:n], known_weights[:n], min_gain)

    boosters, stacking_weights, trees = _boost(
        X, columns, targets, weights, folds, stack, _MIN_HINT_GAIN
    )
    if not boosters:
        return [], np.array([1.0, 0.0]), kernel
    predictions = stacking_weights[0] * kernel + stacking_weights[1] * trees
    return boosters, stacking_weights, predictions


def stack_classifier(X, columns, indicators, weights, folds, scores, frequencies):
    """Stack boosted trees with kernel attention, for one output.

    Parameters
    ----------
    X, columns, weights, folds
        As for `stack_regressor`.
    indicators : ndarray of shape (n, n_classes)
        Classes of the rows.
    scores : ndarray of shape (n_held_out, n_classes)
        Scores of the rows held out by kernel attention, fold by fold.
    frequencies : ndarray of shape (n_classes,)

    Returns
    -------
    boosters : list of HistGradientBoostingClassifier
        As in `stack_regressor`.
    link : MultinomialLink or None
        The link of scores and trees, None if trees do not help.
    """
    codes, held_out = indicators.argmax(axis=1), np.concatenate(folds)
    if not all(np.ptp(np.delete(codes, fold)) for fold in folds):
        # The trees of a fold would see a single class.
        return [], None
    known_indicators, known_weights = indicators[held_out], weights[held_out]

    def stack(trees, min_gain=MIN_GAIN):
        n, losses = len(trees), []
        for trees_or_none in (None, trees):
            link = MultinomialLink.fit(
                scores[:n], known_indicators[:n], known_weights[:n], frequencies, trees_or_none
            )
            probabilities = link(scores[:n], trees_or_none)
            p_of_class = (probabilities * known_indicators[:n]).sum(axis=1)
            losses.append(-np.average(np.log(p_of_class), weights=known_weights[:n]))
        # A deviance is twice the log-loss.
        required = max(min_gain * losses[0], CHANCE / 2 / n)
        required *= 1.0 if n == len(held_out) else _EARLY_GAIN
        return link if losses[0] - losses[1] >= required else None

    options = {"classifies": True} | _TREES_OF_CLASSES
    boosters, link, _ = _boost(
        X, columns, codes, weights, folds, stack, MIN_GAIN, frequencies, **options
    )
    return boosters, link


def predict_trees(boosters, X, columns, frequencies=None):
    """Return the mean of the boosters' predictions, (n,) or (n, n_classes).

    Classifiers, for which `frequencies` (n_classes,) are passed, predict log-probabilities
    minus logarithms of these frequencies.
    """
    # Codes of levels that were not known when fitted are negative; to trees they are missing.
    X = np.where((X < 0) & ~columns.is_numeric, np.nan, X)
    return sum(_predict(booster, X, frequencies) for booster in boosters) / len(boosters)


def _boost(X, columns, y, weights, folds, stack, min_hint_gain, frequencies=None, **options):
    """Fit the boosters of all folds, unless a few trees show that they would not help.

    Parameters
    ----------
    X, columns, weights, folds
        As for `stack_regressor`.
    y : ndarray of shape (n,)
        Targets, or codes of classes.
    stack : callable
        ``stack(trees, min_gain)`` stacks the predictions of the first rows held out by trees.
        It returns None if the loss falls by less than the fraction `min_gain`.
    min_hint_gain : float
        This fraction for a few trees of the first fold.
    frequencies : ndarray of shape (n_classes,), default=None
        As for `predict_trees`.
    **options : object
        Parameters of `fit_trees`.

    Returns
    -------
    boosters : list
    stacked : object
        The result of `stack` for the predictions of all rows held out.
    held_out : ndarray of shape (n_held_out,) or (n_held_out, n_classes)
        These predictions. If trees do not help, the results are [], None and None.
    """
    # The few trees are without weights, by which binning would take twenty times as long.
    few_trees = _fit_without(folds[0], X, columns, y, **options | _FEW_TREES)
    if stack(_predict(few_trees, X[folds[0]], frequencies), min_hint_gain) is None:
        return [], None, None
    boosters, held_out = [], []
    for number, fold in enumerate(folds):
        booster = _fit_without(fold, X, columns, y, weights, random_state=number, **options)
        boosters.append(booster)
        held_out.append(_predict(booster, X[fold], frequencies))
        if number == 0:
            stacked = stack(held_out[0])
            if stacked is None:
                return [], None, None
    held_out = np.concatenate(held_out)
    if len(folds) > 1:
        stacked = stack(held_out)
    return (boosters, stacked, held_out) if stacked is not None else ([], None, None)


def _fit_without(fold, X, columns, y, weights=None, random_state=0, **options):
    """Fit trees to all rows but those of the fold."""
    X, y = np.delete(X, fold, axis=0), np.delete(y, fold)
    if weights is not None:
        weights = np.delete(weights, fold)
    unordered = [j for j, kind in enumerate(columns.kinds) if kind == UNORDERED]
    options |= {"unordered": unordered, "early_stopping": False, "random_state": random_state}
    return fit_trees(X, y, weights, **options)


def _predict(booster, X, frequencies=None):
    """Predict as in `predict_trees`, by one booster."""
    if frequencies is None:
        return predict_scores(booster, X)
    # A class that the booster has not seen is as probable as it is frequent.
    log_frequencies = np.log(np.maximum(frequencies, MIN_PROBABILITY))
    return predict_scores(booster, X, frequencies) - log_frequencies


def largest_error(errors):
    """Compute the size beyond which errors count alike, from absolute errors (n, n_columns)."""
    # If most errors are 0, the mean takes the place of the median.
    return _LARGE_ERROR * (np.median(errors, axis=0).max() or errors.mean(axis=0).max())


def _stacking_weights(predictions, targets, weights, min_gain):
    """Return non-negative weights (2,) of two predictions; None if the second one hardly helps.

    `predictions` are (n, 2), targets and weights of rows (n,). The second one helps if the
    squared error, with large errors limited, is lower by the fraction `min_gain` of that of the
    first one alone.
    """
    limit = largest_error(np.abs(targets[:, None] - predictions))
    if limit == 0:
        return None
    stacking_weights = nonnegative_weights(predictions, targets, weights, limit)

    def loss(prediction):
        errors = np.abs(targets - prediction)
        return np.average(np.square(np.minimum(errors, limit)), weights=weights)

    loss_alone = loss(predictions[:, 0])
    gain = loss_alone - loss(predictions @ stacking_weights)
    required = max(min_gain, CHANCE / len(targets)) * loss_alone
    return stacking_weights if stacking_weights[1] > 0 and gain >= required else None
