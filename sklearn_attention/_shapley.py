"""Effects of features on predictions of tables: Shapley values against background rows.

Terms of this module:

* Scores (n_rows, n_scores) are all targets, or the log-odds of all classes. Effects explain one
  score for each output; `columns` (n_rows, n_outputs) has the positions of these scores.
* A coalition is a set of features; its mask (n_features,) is True for members.
* A mixed row has the features of a coalition from a row that is explained, and all other
  features from a background row.
* The value of a coalition is the mean score of its mixed rows over the background.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from scipy.linalg import null_space
from scipy.special import comb, logit
from sklearn.base import is_classifier
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from ._blocks import blocks
from ._frames import narwhals_frame
from ._labels import classes_of_outputs, split_classes
from ._partitions import need_all_rows, to_memory
from ._typical_rows import typical_rows
from ._validation import check_flag

# Name of the column with the mean prediction over the background rows.
BASE_VALUE = "base value"
# Number of features up to which all coalitions are evaluated, which are at most 256.
MAX_EXACT = 8
# Random coalitions are drawn with their complements. This is the number of pairs that are drawn
# together, for each feature. With 4 the error of the worst feature is 0.57 to 0.79 of that of
# means over 4 random orders and their reverses, which evaluate as many coalitions (seven
# tables, 8 rows, 16 or 20 draws).
PAIRS_AT_ONCE = 4
# Further pairs are drawn for rows with a standard error above TOLERANCE standard deviations of
# the predictions, up to MAX_PAIRS pairs for each feature.
TOLERANCE, MAX_PAIRS = 0.01, 8
# Probabilities are clipped to this distance from 0 and 1, where log-odds are infinite.
MIN_PROBABILITY = 1e-6
# Number of cells in a table of mixed rows that are predicted together, and of scores in memory.
_NUMBERS_AT_ONCE, _SCORES_AT_ONCE = 2**20, 2**22


class FeatureEffectsMixin:
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
            in at most eight features, effects are exact and the errors are those of rounding.

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
        features all coalitions are evaluated. Otherwise effects are fitted by least squares to
        the differences between random coalitions and their complements [4]_,

        .. math:: v(S) - v(\bar S) \approx \sum_{j \in S} \phi_j - \sum_{j \notin S} \phi_j

        where a size s of S has a probability in proportion to 1 / (s (d - s)). There are four
        such pairs for each feature, and four more if a standard error of the row exceeds 0.01
        standard deviations of the predictions. The coalitions are the same in each call.

        Mixed rows may be ones that never occur, such as a child with the income of an adult:
        effects describe the model, not the world. Log-odds are those of probabilities between
        1e-6 and 1 - 1e-6. The time is in proportion to the number of rows of the background.
        For 100 rows it is a quarter to a fiftieth for kernel attention with a Gaussian kernel,
        which is a product of a factor for the features of the row and one for the others.

        References
        ----------
        .. [1] Shapley, L. S. (1953). A value for n-person games. Contributions to the Theory of
           Games 2, 307-317.
        .. [2] Lundberg, S. M. and Lee, S.-I. (2017). A unified approach to interpreting model
           predictions. Advances in Neural Information Processing Systems 30.
        .. [3] Janzing, D., Minorics, L. and Bloebaum, P. (2020). Feature relevance
           quantification in explainable AI: a causal problem. AISTATS 2020.
        .. [4] Covert, I. and Lee, S.-I. (2021). Improving KernelSHAP: practical Shapley value
           estimation using linear regression. AISTATS 2021.

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
        (X,) = to_memory(X)
        rows = self._read_rows(X)
        names = [BASE_VALUE, *_check_feature_names_in(self)]
        refuse_column(names[1:], BASE_VALUE, "mean prediction")
        scores = self._predict_scores(rows)
        columns = self._explained_scores(scores, class_label)
        game = self._game(background)
        tables = np.zeros((2, len(rows), len(names), columns.shape[1]))
        tables[0, :, 0] = game.base[columns]
        tables[:, :, 1:] = game.effects(rows, scores, columns)
        effects, std = (_frames_like(X, names, table) for table in tables)
        return (effects, std) if return_std else effects

    def _training_rows(self):
        """Return training rows, their weights or None, and the positions of categories."""
        need_all_rows("effects of features", self.keys_, remedy="pass a background")
        return self.keys_, self.key_weights_, self.columns_.categorical

    def _game(self, background):
        """Return the Game against rows that a user passed, or those of the fit for None."""
        if background is None:
            if self._background is None:
                self._background = typical_rows(*self._training_rows(), self._predict_scores)
            return self._cached("game", lambda: self._game_against(self._background))
        try:
            rows = self._read_rows(*to_memory(background))
        except (TypeError, ValueError) as error:
            raise ValueError(f"background does not fit: {error}") from error
        return self._game_against(rows)

    def _game_against(self, background):
        """Return the Game against a background.

        A subclass may compute mean scores in a faster way. If these have errors above the
        tolerance, the Game averages predictions instead.
        """
        scores, mean_scores = self._predict_scores(background), self._mean_scores
        base, tolerance = scores.mean(axis=0), TOLERANCE * scores.std(axis=0)
        order, error = _order_by_influence(background, scores, self._predict_scores), 0 * base
        if type(self)._mean_scores is not FeatureEffectsMixin._mean_scores:
            # With the coalition of all features, mean scores should be predictions.
            all_features = np.ones((1, background.shape[1]), dtype=bool)
            differences = mean_scores(background, background[:1], all_features)[0] - scores
            error = np.sqrt(np.square(differences).mean(axis=0))
            if (error > tolerance).any():
                mean_scores, error = partial(FeatureEffectsMixin._mean_scores, self), 0 * base
        return Game(background, mean_scores, base, tolerance, error, order)

    def _predict_scores(self, rows):
        """Predict rows: all targets, or log-odds of all classes; (n_rows, n_scores)."""
        return self._scores_of(self._predict_rows(rows))

    def _scores_of(self, predictions):
        """Return targets, or log-odds for probabilities of classes, (n_rows, n_scores)."""
        scores = predictions
        if is_classifier(self):
            probabilities = np.hstack(classes_of_outputs(predictions)).astype(np.float64)
            scores = logit(probabilities.clip(MIN_PROBABILITY, 1 - MIN_PROBABILITY))
        scores = np.asarray(scores, dtype=np.float64).reshape(len(scores), -1)
        n_missing = np.isnan(scores).any(axis=1).sum()
        if n_missing:
            raise ValueError(
                f"empty='nan' leaves {n_missing} rows of X, or mixed of X and the background, "
                "without a prediction: fit with empty='nearest' or a larger bandwidth."
            )
        return scores

    def _mean_scores(self, rows, background, masks):
        """Average scores of mixed rows over the background, (n_masks, n_rows, n_scores).

        `masks` (n_masks, n_features) are those of the coalitions.
        """
        differs = ~_equal(rows[:, None], background).all(axis=1)
        size, means = max(1, _NUMBERS_AT_ONCE // background.size), []
        for row, has_effect in zip(rows, differs, strict=True):
            # Coalitions have the same mixed rows if they differ only in features in which the
            # row equals all background rows. Each set of mixed rows is predicted once.
            distinct, position = np.unique(masks & has_effect, axis=0, return_inverse=True)
            means_of_blocks = []
            for block in blocks(len(distinct), size):
                mixed = mixed_rows(row[None], background, distinct[block])
                scores = self._predict_scores(mixed.reshape(-1, len(row)))
                means_of_blocks.append(scores.reshape(*mixed.shape[:3], -1).mean(axis=2))
            means.append(np.concatenate(means_of_blocks)[position.reshape(-1)])
        return np.concatenate(means, axis=1)

    def _explained_scores(self, scores, class_label):
        """Return `columns`: the position of the explained score for each row and output.

        If `class_label` is None, the score of the predicted class is explained.
        """
        if not is_classifier(self):
            if class_label is not None:
                raise ValueError(f"class_label={class_label!r} is for classifiers: omit it.")
            return np.tile(np.arange(scores.shape[1]), (len(scores), 1))
        classes = classes_of_outputs(self.classes_)
        # The position of the first class of each output among all scores.
        first_columns = np.cumsum([0, *map(len, classes[:-1])])
        if class_label is None:
            tables = split_classes(scores, self.classes_)
            return first_columns + np.stack([table.argmax(axis=1) for table in tables], axis=1)
        labels = class_label if isinstance(class_label, list) else [class_label] * len(classes)
        try:
            pairs = zip(classes, labels, strict=True)
            positions = [known.tolist().index(label) for known, label in pairs]
        except (ValueError, TypeError):  # comparisons with pandas.NA have no truth value
            remedy = ", or a list with one for each output" if len(classes) > 1 else ""
            raise ValueError(
                f"class_label={class_label!r} is not a class: pass one of "
                f"{self.classes_}{remedy}."
            ) from None
        return np.tile(first_columns + positions, (len(scores), 1))


def refuse_column(names, name, meaning):
    """Raise ValueError if a feature has the name of another column in a table of effects.

    `meaning` describes that column in the message.
    """
    if name in names:
        raise ValueError(
            f"X has a column named {name!r}, which is the name that explain_features gives to "
            f"the {meaning}: rename it."
        )


def _frames_like(X, names, table):
    """Make a frame for each output, in the data frame library of X and with its index.

    `table` (n_rows, n_columns, n_outputs) has the cells, and `names` are those of the columns.
    Frames are of pandas if X is an array. For one output the result is the frame itself, for
    several outputs a list of frames.
    """
    frame, frames = narwhals_frame(X), []
    backend = "pandas" if frame is None else frame.implementation
    for cells in np.moveaxis(table, 2, 0):
        columns = dict(zip(names, cells.T, strict=True))
        frames.append(nw.from_dict(columns, backend=backend).to_native())
        if hasattr(X, "iloc"):
            frames[-1].index = X.index
    return frames if len(frames) > 1 else frames[0]


def mixed_rows(rows, background, masks):
    """Return all mixed rows, (n_masks, n_rows, n_background, n_features).

    `masks` (n_masks, n_features) are those of the coalitions.
    """
    return np.where(masks[:, None, None], rows[:, None], background)


def _equal(a, b):
    """Compare numbers of two arrays; NaN equals NaN."""
    return (a == b) | (np.isnan(a) & np.isnan(b))


def _order_by_influence(rows, scores, predict_scores):
    """Order features by influence, from the most to the least influential.

    The influence of a feature is how much scores change if its cell is taken from the row with
    the next lower score. `scores` are those of the rows. Up to `MAX_EXACT` features the order
    is not needed, and features stay in their order.
    """
    n_rows, n_features = rows.shape
    if n_features <= MAX_EXACT:
        return np.arange(n_features)
    by_score, changes = np.argsort(scores[:, 0]), []
    for block in blocks(n_features, max(1, _NUMBERS_AT_ONCE // rows.size)):
        features = np.arange(block.start, block.stop)
        mixed = np.tile(rows, (len(features), 1, 1))
        for table, j in zip(mixed, features, strict=True):
            table[by_score, j] = rows[np.roll(by_score, 1), j]
        mixed_scores = predict_scores(mixed.reshape(-1, n_features))
        changes.append(np.abs(mixed_scores.reshape(len(features), n_rows, -1) - scores))
    changes = np.concatenate(changes).mean(axis=(1, 2))
    # Features of the same influence must not be ordered by rounding.
    return np.argsort(-np.round(changes / (changes.max() or 1.0), 9), kind="stable")


@dataclass(frozen=True)
class Game:
    """The game of Shapley values, whose players are features: the values of all coalitions."""

    background: np.ndarray  # (n_background, n_features)
    # ``mean_scores(rows, background, masks)`` returns scores of mixed rows, averaged over the
    # background, (n_masks, n_rows, n_scores).
    mean_scores: Callable
    base: np.ndarray  # mean scores of the background, (n_scores,)
    tolerance: np.ndarray  # largest standard error, (n_scores,)
    error: np.ndarray  # typical error of `mean_scores`, (n_scores,); 0 if they are exact
    # Features, the most influential first. Random coalitions refer to this order, so that
    # effects do not depend on the order of the columns.
    order: np.ndarray

    def effects(self, rows, scores, columns):
        """Compute Shapley values and their standard errors, (2, n_rows, n_features, n_outputs).

        `scores` are those of the rows; see the module for `columns`.
        """
        effects = np.zeros((2, *rows.shape, columns.shape[1]))
        # A feature in which a row equals all background rows has no effect.
        differs = ~_equal(rows[:, None], self.background).all(axis=1)
        # 1. If a few features have effects, evaluate all coalitions of these. Rows with effects
        # of the same features are evaluated together.
        is_exact = differs.sum(axis=1) <= MAX_EXACT
        for has_effect in np.unique(differs[is_exact], axis=0):
            # The masks are in the order of binary numbers.
            n = has_effect.sum()
            masks = np.zeros((2**n, len(has_effect)), dtype=bool)
            masks[:, has_effect] = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
            is_member = (differs == has_effect).all(axis=1)
            for chosen in self._blocks(is_member, len(masks), scores):
                data = rows[chosen], scores[chosen], columns[chosen]
                values, error = self._values(masks, *data)
                effects[0, chosen] = effects_of_all(values, masks).swapaxes(0, 1)
                effects[1, chosen] = error[:, None] * has_effect[:, None]
        # 2. Otherwise evaluate random coalitions and their complements.
        n_masks = 2 * PAIRS_AT_ONCE * rows.shape[1]
        for chosen in self._blocks(~is_exact, n_masks, scores):
            data = rows[chosen], scores[chosen], columns[chosen], differs[chosen]
            effects[:, chosen] = self._fit_effects(*data)
        return effects

    def _blocks(self, is_chosen, n_masks, scores):
        """Yield positions of chosen rows, few enough for the scores of all their mixed rows."""
        n_scores = n_masks * len(self.background) * scores.shape[1]
        positions = np.flatnonzero(is_chosen)
        for block in blocks(len(positions), max(1, _SCORES_AT_ONCE // n_scores)):
            yield positions[block]

    def _values(self, masks, rows, scores, columns):
        """Compute values (n_masks, n_rows, n_outputs) of coalitions, and their typical error.

        `masks` must contain the coalition of no feature and that of all features. Their values
        are predictions, which are known. The error (n_rows, n_outputs) is that of `mean_scores`
        for these two, or the error of the Game if that is larger.
        """
        sizes = masks.sum(axis=1)[:, None, None]
        approximate = self.mean_scores(rows, self.background, masks)
        values = np.where(sizes == sizes.max(), scores, approximate)
        values = np.where(sizes == 0, self.base, values)
        error = np.maximum(np.abs(values - approximate).max(axis=0), self.error)
        values = np.take_along_axis(values, columns[None], axis=2)
        return values, np.take_along_axis(error, columns, axis=1)

    def _fit_effects(self, rows, scores, columns, differs):
        """Fit effects to values of random coalitions, as many as each row needs.

        `differs` (n_rows, n_features) is True where a feature may have an effect; the other
        arguments and the result are those of `effects`.
        """
        n_features, n_outputs = rows.shape[1], columns.shape[1]
        effects, remaining = np.zeros((2, *rows.shape, n_outputs)), np.arange(len(rows))
        totals = np.take_along_axis(scores - self.base, columns, axis=1)
        tolerance, rng = self.tolerance[columns][:, None], np.random.default_rng(0)
        # The masks are the coalitions drawn so far. The differences are their values minus
        # those of their complements, for the remaining rows.
        masks = np.zeros((0, n_features), dtype=bool)
        differences = np.zeros((0, len(rows), n_outputs))
        while len(remaining) and len(masks) < MAX_PAIRS * n_features:
            # 1. Draw coalitions.
            drawn = np.empty((PAIRS_AT_ONCE * n_features, n_features), dtype=bool)
            drawn[:, self.order] = random_coalitions(*drawn.shape, rng)
            # 2. Evaluate them and their complements, with the coalitions of no and of all
            # features.
            none_and_all = np.repeat([[False], [True]], n_features, axis=1)
            evaluated = np.vstack([none_and_all, drawn, ~drawn])
            data = rows[remaining], scores[remaining], columns[remaining]
            values, error = self._values(evaluated, *data)
            of_drawn, of_complements = np.split(values[2:], 2)
            masks = np.vstack([masks, drawn])
            differences = np.concatenate([differences, of_drawn - of_complements])
            # 3. Fit effects to all coalitions; rows with effects of the same features are
            # fitted together.
            for has_effect in np.unique(differs[remaining], axis=0):
                is_member = (differs[remaining] == has_effect).all(axis=1)
                group = remaining[is_member]
                fitted, std = fit_effects(
                    masks[:, has_effect], differences[:, is_member], totals[group]
                )
                cells = np.ix_(group, np.flatnonzero(has_effect))
                effects[0][cells] = fitted.swapaxes(0, 1)
                effects[1][cells] = np.hypot(std, error[is_member]).swapaxes(0, 1)
            # 4. Keep the rows whose standard errors are too large.
            needs_more = (effects[1, remaining] > tolerance[remaining]).any(axis=(1, 2))
            remaining, differences = remaining[needs_more], differences[:, needs_more]
        return effects


def effects_of_all(values, masks):
    """Average what each feature adds to all coalitions without it, (n_features, ...).

    `masks` (n_masks, n_features) are all subsets of a part of the features, in the order of
    binary numbers, and `values` (n_masks, ...) are their values. All other features are in no
    subset, and have the effect 0.
    """
    effects = np.zeros((masks.shape[1], *values.shape[1:]))
    sizes, n = masks.sum(axis=1), masks.any(axis=0).sum()
    for j in np.flatnonzero(masks.any(axis=0)):
        is_member = masks[:, j]
        # Because of the order, coalitions with and without j are in pairs. A coalition of size
        # s has the weight s! (n - s - 1)! / n!.
        weights = 1 / (n * comb(n - 1, sizes[~is_member]))
        effects[j] = np.tensordot(weights, values[is_member] - values[~is_member], 1)
    return effects


def random_coalitions(n_coalitions, n_features, rng):
    """Draw coalitions of 1 to n - 1 features, whose sizes s have weights 1 / (s (n - s))."""
    sizes = np.arange(1, n_features)
    cumulative = np.cumsum(1 / (sizes * (n_features - sizes)))
    # Sizes are stratified: one is drawn from each of equal parts of their distribution.
    positions = (np.arange(n_coalitions) + rng.random(n_coalitions)) / n_coalitions
    drawn = np.searchsorted(cumulative, positions * cumulative[-1]).clip(max=len(sizes) - 1)
    ranks = rng.permuted(np.tile(np.arange(n_features), (n_coalitions, 1)), axis=1)
    return ranks < sizes[drawn, None]


def fit_effects(masks, differences, totals):
    """Fit effects by least squares; return them and their standard errors.

    Parameters
    ----------
    masks : ndarray of bool of shape (n_masks, n_features)
        Coalitions.
    differences : ndarray of shape (n_masks, n_rows, n_outputs)
        Their values less those of their complements. Each is approximately the sum of the
        effects of its members less the sum of all other effects, exactly so if no three
        features interact.
    totals : ndarray of shape (n_rows, n_outputs)
        Sum of the effects of all features.

    Returns
    -------
    effects, std : ndarray of shape (n_features, n_rows, n_outputs)
    """
    signs, n_features = 2.0 * masks - 1, masks.shape[1]
    # Effects are totals / n_features plus terms that sum to 0, which are combinations of this
    # basis. The terms are weights @ targets.
    basis = null_space(np.ones((1, n_features)))
    predictors = signs @ basis
    inverse = np.linalg.pinv(predictors.T @ predictors)
    weights = basis @ inverse @ predictors.T
    targets = differences - signs.mean(axis=1)[:, None, None] * totals
    effects = totals / n_features + np.tensordot(weights, targets, 1)
    # Residuals of coalitions of medium size are larger. So standard errors are the estimator
    # HC3 of MacKinnon and White (1985), Journal of Econometrics 29, 305-325, which allows for
    # this.
    residuals = differences - np.tensordot(signs, effects, 1)
    leverages = np.einsum("ij,ji->i", predictors, inverse @ predictors.T)
    left_out = residuals / np.maximum(1 - leverages, 1e-9)[:, None, None]
    return effects, np.sqrt(np.tensordot(np.square(weights), np.square(left_out), 1))


def effects_in_order(values_of, rank):
    """Average what features add if they join one by one, in an order and in its reverse.

    `rank` (n_features,) is the position of each feature in the order, from 0.
    ``values_of(masks)`` returns the values (n_masks, ...) of coalitions (n_masks, n_features).
    Returns the value of no feature, (...), and what each feature adds, (n_features, ...).
    """
    masks = rank < np.arange(len(rank) + 1)[:, None]
    # The complements are the coalitions of the reverse order, the largest first.
    values = np.stack(np.split(values_of(np.concatenate([masks, ~masks])), 2))
    joining, leaving = np.diff(values, axis=1)
    return values[0, 0], (joining - leaving)[rank] / 2
