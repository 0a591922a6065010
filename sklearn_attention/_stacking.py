"""Stacking: boosted trees of scikit-learn, and non-negative weights of several predictions."""

import numpy as np
from scipy.optimize import nnls

from ._blocks import blocks_of_queries, evenly_spread
from ._thread_pools import libraries

# Number of cells of a table below which trees fit and predict with one thread. More threads
# save less than half a second, and on a busy machine they wait for one another many times as
# long.
_FEW_CELLS = 2**19
# Number of rows, drawn by their weights, from which scikit-learn chooses bins.
_MAX_BINNED_ROWS = 200_000
# Probabilities below this are raised to it before their logarithm is taken.
MIN_PROBABILITY = 1e-6
# L2 penalty of trees that classify. It is added to sums of second derivatives, which vanish if
# a class is rare, so that trees diverge. With it log-losses of eight of ten sets of classes are
# 0.59 to 1.0 of those without it, those of digits 1.08, and those of penguins 0.041 instead of
# 0.026. Errors of regression would change by 0.5 %.
_CLASS_PENALTY = 1.0
# Number of training rows over whose levels probabilities are averaged if a level is unknown. In
# the benchmark of new levels the log-loss of "children" was 0.53 with 8 rows, and is 0.43 with
# 32 rows and without the column.
_AVERAGED_ROWS = 32
# Rounds of reweighting for Huber's loss; half and twice as many give the same weights.
_N_ROUNDS = 5


def fit_trees(X, y, weights=None, *, classifies=False, unordered=(), **parameters):
    """Fit scikit-learn's HistGradientBoosting.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        NaN is a missing cell.
    y : ndarray of shape (n_rows,)
    weights : ndarray of shape (n_rows,) or None
    classifies : bool
        Whether y has classes.
    unordered : sequence of int
        Positions of columns that have codes of unordered levels.
    **parameters : object
        Parameters of the estimator.

    Returns
    -------
    trees : estimator
        It has two more attributes, for `predict_scores`: ``known_rows_``
        (n_known_rows, n_columns), training rows whose levels replace unknown ones, and
        ``complete_`` (n_columns,), a mask of the unordered columns that had no missing cell.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    trees = (HistGradientBoostingClassifier if classifies else HistGradientBoostingRegressor)()
    penalty = {"l2_regularization": _CLASS_PENALTY} if classifies else {}
    if classifies and np.unique(y, return_counts=True)[1].min() < 2:
        # Early stopping would need two rows of each class.
        parameters["early_stopping"] = False
    # A column with more levels than bins cannot be categorical, and is read as numbers.
    is_present = ~np.isnan(X)
    n_levels = {j: len(np.unique(X[is_present[:, j], j])) for j in unordered}
    categories = [j for j, n in n_levels.items() if n <= trees.max_bins]
    if weights is not None:
        is_present[weights == 0] = False
        # Equal weights are omitted, since binning by weights takes longer than growing the
        # trees. They are passed if leaves are quantiles, which scikit-learn computes otherwise
        # without weights.
        has_quantile_leaves = parameters.get("loss") in ("absolute_error", "quantile")
        weights = weights if has_quantile_leaves or np.ptp(weights) else None
    counts = is_present.sum(axis=0)
    if len(X) > _MAX_BINNED_ROWS:
        counts = _MAX_BINNED_ROWS * np.average(is_present, axis=0, weights=weights)
    # scikit-learn fails if a column has no value among the rows from which it chooses bins, and
    # these may be a sample. A column that has fewer values than a leaf has rows allows no
    # split, so it is replaced by a constant.
    X = np.where(counts < trees.min_samples_leaf, 0.0, X)
    trees.set_params(categorical_features=categories or None, **penalty | parameters)
    with _limited_threads(X):
        trees.fit(X, y, weights)
    trees.known_rows_ = evenly_spread(X, _AVERAGED_ROWS)
    trees.complete_ = np.isin(np.arange(X.shape[1]), unordered) & ~np.isnan(X).any(axis=0)
    return trees


def predict_scores(model, X, absent=None):
    """Predict numbers (n_rows,), or logarithms of probabilities (n_rows, n_classes).

    `absent` is None for a model that predicts numbers. For a model that classifies, it has the
    probabilities (n_classes,) of classes that the model has not seen, at their positions.
    """
    with _limited_threads(X):
        if absent is None:
            return model.predict(X)
        seen_probabilities = _probabilities(model, X)
    probabilities = np.tile(absent, (X.shape[0], 1))
    probabilities[:, model.classes_] = seen_probabilities
    return np.log(np.maximum(probabilities, MIN_PROBABILITY))


def _probabilities(model, X):
    """Predict probabilities; average them over known levels if a level is unknown.

    Unknown levels are encoded as NaN, and so are missing cells. If a category had no missing
    cell in training (`complete_`), NaN is an unknown level. Trees would send it to the side of
    most rows at each split, so that probabilities would be too extreme. So its row is predicted
    with the level of each of several training rows (`known_rows_`) in its place.
    """
    probabilities = model.predict_proba(X)
    if hasattr(model, "complete_"):  # absent from other models, and from files of version 0.2.0
        unknown = np.isnan(X) & model.complete_
        rows = np.flatnonzero(unknown.any(axis=1))
        for block in blocks_of_queries(len(rows), model.known_rows_.size):
            queries = rows[block, None]
            # Each query is repeated for each known row: (n_queries, n_known_rows, n_columns).
            filled = np.where(unknown[queries], model.known_rows_, X[queries])
            filled_probabilities = model.predict_proba(filled.reshape(-1, X.shape[1]))
            shape = len(queries), len(model.known_rows_), -1
            probabilities[rows[block]] = filled_probabilities.reshape(shape).mean(axis=1)
    return probabilities


def _limited_threads(X):
    """Return a context in which trees use one thread if the table is small."""
    return libraries("openmp").limit(limits=1 if X.size < _FEW_CELLS else None)


def nonnegative_weights(columns, targets, weights, limit=None):
    """Find non-negative coefficients (n_columns,) of columns whose sum approximates targets.

    They minimize the squared error of ``columns @ coefficients``, weighted by `weights` (n,).
    If `limit` is not None, they approximately minimize Huber's loss, in which errors beyond the
    limit count by their absolute value.
    """
    row_weights = weights
    for _ in range(1 if limit is None else _N_ROUNDS):
        root = np.sqrt(row_weights)
        coefficients, _ = nnls(columns * root[:, None], targets * root)
        if limit is not None:
            # Least squares with these weights have the same solution as Huber's loss.
            errors = np.abs(targets - columns @ coefficients)
            row_weights = weights * limit / np.maximum(errors, limit)
    return coefficients
