"""Effects of features on predictions of tables: Shapley values against background rows."""

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy.special import comb, logit
from sklearn.base import is_classifier
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from ._blocks import blocks
from ._columns import frame_of
from ._labels import classes_of_outputs, split_classes
from ._partitions import in_memory, need_all_rows
from ._validation import check_flag

# Name of the column with the mean prediction over the background rows.
BASE_VALUE = "base value"
# Training rows in a background, and the number of rows among which these are chosen. With 50
# rows the feature with the largest error has an error of 0.008 to 0.064 standard deviations of
# the predictions on 13 tables, with 20 rows up to 0.082, with 100 rows 0.007 to 0.019.
BACKGROUND_ROWS, MAX_CANDIDATES = 50, 5000
# Number of features up to which all coalitions are evaluated, at most 256.
MAX_EXACT = 8
# Pairs of orders are drawn until no standard error of a row exceeds this multiple of the
# standard deviation of predictions; the smallest and the largest number of pairs.
TOLERANCE, MIN_PAIRS, MAX_PAIRS = 0.01, 4, 16
# A variance by few draws is averaged with the mean over the features of the row, which counts
# as this number of draws: 0.93 to 0.96 of the effects lie within two standard errors (four
# models of ten features, 20 seeds).
_POOLED_DRAWS = 4
# Probabilities are kept this far from 0 and 1, where log-odds are infinite.
MIN_PROBABILITY = 1e-6
# Numbers in a table of mixed rows that are predicted together.
_NUMBERS_AT_ONCE = 2**20


def typical_rows(rows, weights, categorical, predict_scores):
    """Choose up to `BACKGROUND_ROWS` training rows that represent all of them.

    `weights` (n_rows,) are those of the fit, or None; `categorical` lists the columns that have
    codes of levels.
    """
    weights = np.ones(len(rows)) if weights is None else weights
    candidates = np.random.default_rng(0).permutation(np.flatnonzero(weights > 0))
    candidates = np.sort(candidates[:MAX_CANDIDATES])
    rows, weights = np.asarray(rows[candidates]), (weights / weights.max())[candidates]
    if len(rows) <= BACKGROUND_ROWS:
        return rows
    points = _distribution_points(rows, categorical, weights)
    targets = _distribution_points(predict_scores(rows), (), weights)
    return rows[herd(np.hstack([points, targets]), BACKGROUND_ROWS)]


def _order_by_influence(rows, scores, predict_scores):
    """Order features by how much predictions change if the cells of a feature move one row on.

    Random orders refer to this one, so that effects do not depend on the order of the columns.
    """
    n_rows, n_features = rows.shape
    mixed, by_score = np.tile(rows, (n_features, 1, 1)), np.argsort(scores[:, 0])
    for j, table in enumerate(mixed):
        table[by_score, j] = rows[np.roll(by_score, 1), j]
    mixed_scores = predict_scores(mixed.reshape(-1, n_features)).reshape(n_features, n_rows, -1)
    changes = np.abs(mixed_scores - scores).mean(axis=(1, 2))
    # Features of the same influence must not be ordered by rounding.
    return np.argsort(-np.round(changes / (changes.max() or 1.0), 9), kind="stable")


def _distribution_points(table, categorical, weights):
    """Encode rows such that means tell the distributions of all columns of a table.

    Columns count alike: each becomes indicators of levels, or ramps between eleven quantiles
    and an indicator of missing cells, with variances that sum to 1.
    """
    encoded = []
    for j, column in enumerate(table.T):
        known = ~np.isnan(column)
        if j in categorical or not known.any():
            points = (column[:, None] == np.unique(column)).astype(np.float64)
        else:
            knots = np.unique(np.quantile(column[known], np.linspace(0, 1, 11)))
            steps = np.arange(len(knots))
            position = np.interp(np.where(known, column, knots[0]), knots, steps)
            points = np.column_stack([(position[:, None] - steps[:-1]).clip(0, 1), ~known])
        encoded.append(_with_unit_variance(points, weights))
    return _with_unit_variance(np.hstack(encoded), weights)


def _with_unit_variance(points, weights):
    """Centre points, and divide them such that their variances sum to 1 unless all are 0."""
    points = points - np.average(points, axis=0, weights=weights)
    norm = np.sqrt(np.average(np.square(points).sum(axis=1), weights=weights))
    return points / (norm if norm > 1e-9 else 1.0)


def herd(points, n_rows):
    """Choose rows one by one such that the mean of the chosen ones stays near the origin."""
    squared_norms, chosen = np.square(points).sum(axis=1), []
    for _ in range(n_rows):
        distances = squared_norms + 2 * points @ points[chosen].sum(axis=0)
        distances[chosen] = np.inf
        chosen.append(int(distances.argmin()))
    return chosen


class FeatureEffects:
    """Mixin of estimators of tables that explain predictions by features.

    An estimator reads rows by ``_read_rows(X)``, as numbers and codes of levels, and predicts
    them by ``_predict_rows(rows)``: targets, or probabilities as from `predict_proba`.
    """

    # Rows that stand for the population. They are chosen when they are first needed, and are
    # stored; every fit discards them.
    _background: np.ndarray | None = None

    def explain_features(
        self, X, *, background=None, class_label=None, return_std: bool = False
    ) -> Any:
        r"""Explain how much each feature of a row moves its prediction.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Rows of a table whose predictions are explained.
        background : array-like of shape (n_background, n_features), default=None
            Rows with which the rows of X are compared, all of the same weight. By default up to
            50 training rows whose features and predictions are distributed as in all training
            rows. They are chosen in the first call, and stored with the estimator.
        class_label : label or list of labels, default=None
            Class whose log-odds are explained; only for classifiers. A list has one for each
            output. By default the class that is predicted for the row.
        return_std : bool, default=False
            Whether to return standard errors as well. Where a row differs from the background
            in at most eight features, effects are exact and the errors 0.

        Returns
        -------
        effects : data frame of shape (n_queries, 1 + n_features), or list of such frames
            "base value" is the mean prediction over the background, and a column for each
            feature says how much it adds. The columns of a row sum to its prediction, or to
            the log-odds of the class. A frame of the library of X with its index, of pandas if
            X is an array. A list if there are several outputs.
        std : data frame, or list of such frames
            Standard errors of the effects. Only returned if `return_std` is True.

        Raises
        ------
        ValueError
            If X was not a table in `fit`, the estimator remembers no training rows and
            `background` is None, `class_label` is not a class, a feature is named "base value",
            or a row with features of another one has no prediction.

        Notes
        -----
        Effects are interventional Shapley values [1]_ [2]_. A coalition S of features has the
        value

        .. math:: v(S) = \frac{1}{m} \sum_{b=1}^m f(x_S, z_{b, \bar S})

        the mean prediction over the m background rows :math:`z_b` if they had the features S of
        the row x [3]_. With d features the effect of feature j is

        .. math:: \phi_j = \sum_{S \not\ni j} \frac{|S|!\, (d - |S| - 1)!}{d!}
                  \bigl(v(S \cup \{j\}) - v(S)\bigr)

        the mean of what it adds over all orders in which features may be set. A feature in
        which the row equals all background rows has no effect and does not count. Up to eight
        features all coalitions are evaluated, otherwise 4 to 16 random orders with their
        reverses, until all standard errors of the row are below 0.01 standard deviations of the
        predictions. The orders are the same in each call.

        Mixed rows may be ones that never occur, such as a child with the income of an adult:
        effects describe the model, not the world. Log-odds are those of probabilities between
        1e-6 and 1 - 1e-6. The time is in proportion to the number of rows of the background.

        References
        ----------
        .. [1] Shapley, L. S. (1953). A value for n-person games. Contributions to the Theory of
           Games 2, 307-317.
        .. [2] Lundberg, S. M. and Lee, S.-I. (2017). A unified approach to interpreting model
           predictions. Advances in Neural Information Processing Systems 30.
        .. [3] Janzing, D., Minorics, L. and Bloebaum, P. (2020). Feature relevance
           quantification in explainable AI: a causal problem. AISTATS 2020.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn_attention import NadarayaWatsonRegressor
        >>> X = pd.DataFrame({"size": [1.0, 1.0, 5.0, 5.0], "city": ["Oslo", "Rome"] * 2})
        >>> y = [1.0, 2.0, 5.0, 6.0]  # the size, and 1 more in Rome
        >>> model = NadarayaWatsonRegressor(bandwidth=[1.0, 0.0]).fit(X, y)
        >>> model.explain_features(X[:2]).round(2)
           base value  size  city
        0         3.5  -2.0  -0.5
        1         3.5  -2.0   0.5
        """
        check_is_fitted(self)
        return_std = check_flag("return_std", return_std)
        (X,) = in_memory(X)
        rows = self._read_rows(X)
        names = [BASE_VALUE, *_check_feature_names_in(self, None)]
        refuse_column(names[1:], BASE_VALUE, "mean prediction")
        scores = self._predict_scores(rows)
        columns = self._explained_scores(scores, class_label)
        game = Game(self._compared_rows(background), self._predict_scores)
        tables = np.zeros((2, len(rows), len(names), columns.shape[1]))
        tables[0, :, 0] = game.base[columns]
        for number, row in enumerate(rows):
            tables[:, number, 1:] = game.effects(row, scores[number], columns[number])
        effects, std = (_frames_like(X, names, table) for table in tables)
        return (effects, std) if return_std else effects

    def _training_rows(self):
        """Return training rows, their weights or None, and the positions of categories."""
        need_all_rows("effects of features", self.keys_, remedy="pass a background")
        return self.keys_, self.key_weights_, self.columns_.categorical

    def _compared_rows(self, background):
        """Read the background that a user passed, or return that of the fit for None."""
        if background is None:
            if self._background is None:
                self._background = typical_rows(*self._training_rows(), self._predict_scores)
            return self._background
        try:
            return self._read_rows(*in_memory(background))
        except (TypeError, ValueError) as error:
            raise ValueError(f"background does not fit: {error}") from error

    def _predict_scores(self, rows):
        """Predict rows: all targets, or log-odds of all classes; (n_rows, n_scores)."""
        scores = self._predict_rows(rows)
        if is_classifier(self):
            probabilities = np.hstack(classes_of_outputs(scores)).astype(np.float64)
            scores = logit(probabilities.clip(MIN_PROBABILITY, 1 - MIN_PROBABILITY))
        scores = np.asarray(scores, dtype=np.float64).reshape(len(rows), -1)
        n_lost = np.isnan(scores).any(axis=1).sum()
        if n_lost:
            raise ValueError(
                f"empty='nan' leaves {n_lost} rows of X, or mixed of X and the background, "
                "without a prediction: fit with empty='nearest' or a larger bandwidth."
            )
        return scores

    def _explained_scores(self, scores, class_label):
        """Choose columns (n_rows, n_outputs) of the scores (n_rows, n_scores) to explain."""
        if not is_classifier(self):
            if class_label is not None:
                raise ValueError(f"class_label={class_label!r} is for classifiers: omit it.")
            return np.tile(np.arange(scores.shape[1]), (len(scores), 1))
        classes = classes_of_outputs(self.classes_)
        first = np.cumsum([0, *map(len, classes[:-1])])
        if class_label is None:
            tables = split_classes(scores, self.classes_)
            return first + np.stack([table.argmax(axis=1) for table in tables], axis=1)
        labels = class_label if isinstance(class_label, list) else [class_label] * len(classes)
        try:
            pairs = zip(classes, labels, strict=True)
            positions = [known.tolist().index(label) for known, label in pairs]
        except ValueError:
            raise ValueError(
                f"class_label={class_label!r} names no class of each output: pass one of "
                f"{self.classes_}, or a list with one for each output."
            ) from None
        return np.tile(first + positions, (len(scores), 1))


def refuse_column(names, name, meaning):
    """Raise ValueError if a feature has the name of a column that effects have besides."""
    if name in names:
        raise ValueError(
            f"X has a column named {name!r}, which is the name that explain_features gives to "
            f"the {meaning}: rename it."
        )


def _frames_like(X, names, table):
    """Make a frame of the library of X, with its index, for each output of a table.

    It is of pandas if X is an array. Of one output the frame is returned, otherwise a list.
    """
    frame, frames = frame_of(X), []
    backend = "pandas" if frame is None else frame.implementation
    for cells in np.moveaxis(table, 2, 0):
        columns = dict(zip(names, cells.T, strict=True))
        frames.append(nw.from_dict(columns, backend=backend).to_native())
        if hasattr(X, "iloc"):
            frames[-1].index = X.index
    return frames if len(frames) > 1 else frames[0]


class Game:
    """Mean predictions over the background, with features of a coalition taken from a row."""

    def __init__(self, background, predict_scores):
        self._background, self._predict_scores = background, predict_scores
        scores = predict_scores(background)
        self.base, self._tolerance = scores.mean(axis=0), TOLERANCE * scores.std(axis=0)
        self._order = _order_by_influence(background, scores, predict_scores)

    def effects(self, row, scores, columns):
        """Compute Shapley values and their standard errors, (2, n_features, n_outputs).

        `scores` (n_scores,) are predictions of the row, of which `columns` (n_outputs,) are
        explained.
        """
        background = self._background
        is_same = (background == row) | (np.isnan(background) & np.isnan(row))
        # A feature that equals those of all background rows has no effect.
        features = self._order[~is_same.all(axis=0)[self._order]]

        def values_of(masks):
            return self._values(row, scores, features, masks)[:, columns]

        tables, n = np.zeros((2, len(row), len(columns))), len(features)
        if n <= MAX_EXACT:
            tables[0, features] = all_effects(values_of, n)
        else:
            tables[:, features] = sampled_effects(values_of, n, self._tolerance[columns])
        return tables

    def _values(self, row, scores, features, masks):
        """Compute values (n_masks, n_scores) of coalitions of `features`, which a row keeps."""
        keeps, has_any = np.zeros((len(masks), len(row)), dtype=bool), masks.any(axis=1)
        keeps[:, features] = masks
        values = np.where(has_any[:, None], scores, self.base)
        inner = np.flatnonzero(has_any & ~masks.all(axis=1))
        for block in blocks(len(inner), max(1, _NUMBERS_AT_ONCE // self._background.size)):
            mixed = np.where(keeps[inner[block], None], row, self._background)
            mixed_scores = self._predict_scores(mixed.reshape(-1, len(row)))
            values[inner[block]] = mixed_scores.reshape(*mixed.shape[:2], -1).mean(axis=1)
        return values


def all_effects(values_of, n):
    """Average what each of n features adds to all coalitions without it; (n, n_outputs).

    ``values_of(masks)`` returns the values (n_masks, ...) of coalitions, masks (n_masks, n).
    """
    masks = np.arange(2**n)[:, None] >> np.arange(n) & 1 == 1
    values, sizes = values_of(masks), masks.sum(axis=1)
    effects = np.empty((n, values.shape[1]))
    for j, is_member in enumerate(masks.T):
        weights = 1 / (n * comb(n - 1, sizes[~is_member]))
        effects[j] = weights @ (values[is_member] - values[~is_member])
    return effects


def sampled_effects(values_of, n, tolerance):
    """Average what n features add in random orders and their reverses; return standard errors.

    Orders are drawn until no standard error exceeds `tolerance` (n_outputs,).
    """
    rng, draws = np.random.default_rng(0), []
    for _ in range(MAX_PAIRS):
        draws.append(effects_in_order(values_of, rng.permutation(n))[1])
        if len(draws) >= MIN_PAIRS and (standard_errors(draws) <= tolerance).all():
            break
    return np.mean(draws, axis=0), standard_errors(draws)


def effects_in_order(values_of, rank):
    """Average what features add if they join one by one, in an order and in its reverse.

    `rank` (n_features,) is the place of each feature in the order. ``values_of(masks)`` returns
    the values (n_masks, ...) of coalitions, masks (n_masks, n_features). Returns the value of
    no feature, (...), and what each feature adds, (n_features, ...).
    """
    masks = rank < np.arange(len(rank) + 1)[:, None]
    # The complements are the coalitions of the reverse order, the largest first.
    values = np.stack(np.split(values_of(np.concatenate([masks, ~masks])), 2))
    joining, leaving = np.diff(values, axis=1)
    return values[0, 0], (joining - leaving)[rank] / 2


def standard_errors(draws):
    """Compute standard errors (n_features, n_outputs) of the means of a list of draws."""
    variances, n_free = np.var(draws, axis=0, ddof=1) / len(draws), len(draws) - 1
    total = n_free * variances + _POOLED_DRAWS * variances.mean(axis=0)
    return np.sqrt(total / (n_free + _POOLED_DRAWS))
