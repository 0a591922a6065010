"""Stacking: boosted trees of scikit-learn, and weights by which predictions are added up."""

import numpy as np
from scipy.optimize import nnls

from ._blocks import blocks_of_queries, evenly_spread
from ._thread_pools import libraries

# Numbers of a table below which trees fit and predict by one thread: more save less than half
# a second, and on a busy machine wait for one another many times as long.
_FEW_CELLS = 2**19
# Rows that scikit-learn draws, by their weights, to choose bins by.
_MOST_BINNED = 200_000
LEAST_PROBABILITY = 1e-6
# Beside sums of second derivatives, which vanish where a class is rare, so that trees diverge:
# with it log-losses of eight of ten sets of classes are 0.59 to 1.0 of those without, those of
# digits 1.08, and those of penguins 0.041 for 0.026. Errors of regression change by 0.5 %.
_PENALTY_OF_CLASSES = 1.0
# Training rows whose levels stand for an unknown one: with 8, log-loss of children in the
# benchmark of new levels was 0.53, with 32 it is 0.43, and without the column 0.43.
_AVERAGED_ROWS = 32
# Rounds of reweighting; half and twice as many find the same weights.
_N_ROUNDS = 5


def fit_trees(X, y, weights=None, *, classifies=False, unordered=(), **parameters):
    """A fitted HistGradientBoosting; columns at the places `unordered` have codes of levels."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    trees = (HistGradientBoostingClassifier if classifies else HistGradientBoostingRegressor)()
    penalty = {"l2_regularization": _PENALTY_OF_CLASSES} if classifies else {}
    if classifies and np.unique(y, return_counts=True)[1].min() < 2:
        # Rows to stop early by are drawn of each class.
        parameters["early_stopping"] = False
    present = ~np.isnan(X)
    levels = {j: len(np.unique(X[present[:, j], j])) for j in unordered}
    categories = [j for j, n_levels in levels.items() if n_levels <= trees.max_bins]
    if weights is not None:
        present[weights == 0] = False
        # Equal weights are left out, as to bin by weights takes longer than to grow the trees;
        # but leaves that are quantiles are others by scikit-learn without weights.
        by_quantiles = parameters.get("loss") in ("absolute_error", "quantile")
        weights = weights if by_quantiles or np.ptp(weights) else None
    counts = present.sum(axis=0)
    if len(X) > _MOST_BINNED:
        counts = _MOST_BINNED * np.average(present, axis=0, weights=weights)
    # scikit-learn finds no bins for a column without a value among the rows that it chooses
    # them by, which may be fewer than these. Where fewer values than a leaf has rows are
    # there, no split is possible: the column is left out, as one that is constant.
    X = np.where(counts < trees.min_samples_leaf, 0.0, X)
    trees.set_params(categorical_features=categories or None, **penalty | parameters)
    with _threads(X):
        trees.fit(X, y, weights)
    # Rows by whose levels probabilities are averaged where a level is not known.
    trees.known_rows_ = evenly_spread(X, _AVERAGED_ROWS)
    trees.complete_ = np.isin(np.arange(X.shape[1]), unordered) & ~np.isnan(X).any(axis=0)
    return trees


def outputs(model, X, absent=None):
    """Predictions (n_rows,) of a model, or logarithms of probabilities (n_rows, n_classes).

    The latter if there are probabilities (n_classes,) of classes that it has not seen.
    """
    with _threads(X):
        if absent is None:
            return model.predict(X)
        known = _probabilities(model, X)
    probabilities = np.tile(absent, (X.shape[0], 1))
    probabilities[:, model.classes_] = known
    return np.log(np.maximum(probabilities, LEAST_PROBABILITY))


def _probabilities(model, X):
    """Return probabilities of classes; NaN in a category that had none is an unknown level."""
    probabilities = model.predict_proba(X)
    if hasattr(model, "complete_"):  # not of other models, nor in files of version 0.2.0
        unknown = np.isnan(X) & model.complete_
        rows = np.flatnonzero(unknown.any(axis=1))
        # Trees themselves send it down the branch of most rows at every split, so that
        # probabilities would be too extreme.
        for block in blocks_of_queries(len(rows), model.known_rows_.size):
            asked = rows[block, None]
            filled = np.where(unknown[asked], model.known_rows_, X[asked])
            found = model.predict_proba(filled.reshape(-1, X.shape[1]))
            shape = len(asked), len(model.known_rows_), -1
            probabilities[rows[block]] = found.reshape(shape).mean(axis=1)
    return probabilities


def _threads(X):
    """Context for trees on a table: one thread if it is small."""
    return libraries("openmp").limit(limits=1 if X.size < _FEW_CELLS else None)


def nonnegative_weights(columns, targets, weights, limit=None):
    """Non-negative (n_columns,) of least squared errors of ``columns @ found``.

    `weights` (n,) are those of the rows. Beyond a `limit` the absolute error counts.
    """
    counts = weights
    for _ in range(1 if limit is None else _N_ROUNDS):
        root = np.sqrt(counts)
        found, _ = nnls(columns * root[:, None], targets * root)
        if limit is not None:
            # Least squares of these weights are those of Huber's loss.
            errors = np.abs(targets - columns @ found)
            counts = weights * limit / np.maximum(errors, limit)
    return found
