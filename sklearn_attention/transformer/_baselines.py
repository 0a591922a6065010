"""Baselines of tables, series and texts, which stand beside a transformer."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression, Ridge

from .._openmp import tree_threads
from ._convolutions import RandomConvolutions
from ._left_out_ridge import LeftOutRidge, fit_left_out_ridge

_MOST_ITERATIONS = 1000
# HistGradientBoosting takes no category with higher codes.
_HIGHEST_CODE = 254
_LEAST_PROBABILITY = 1e-6


@dataclass(frozen=True, eq=False)
class TableBaseline:
    """Boosted trees of scikit-learn at their defaults, for each output of a regression."""

    models: list
    n_classes: int | None

    @classmethod
    def fit(cls, rows, targets, weights, n_classes, held_out, loss, random_state):
        """Fit to rows, and predict some of them by the others.

        Parameters
        ----------
        rows : TableRows
        targets : ndarray of float of shape (n_rows, n_outputs) or of int of shape (n_rows,)
            Numbers, or classes.
        weights : ndarray of shape (n_rows,)
        n_classes : int or None
            None for numbers.
        held_out : ndarray of int
            Rows to be predicted by the others.
        loss : {"squared_error", "absolute_error", "huber", "log_loss"}
            For "huber", which trees do not have, they learn by the squared error.
        random_state : RandomState

        Returns
        -------
        baseline : TableBaseline
        left_out : ndarray of shape (n_held_out, n_outputs)
        """
        cells = rows.cells()
        is_category = np.arange(cells.shape[1]) >= rows.n_numeric
        is_category &= ~(cells > _HIGHEST_CODE).any(axis=0)
        options = {
            "categorical_features": is_category if is_category.any() else None,
            "random_state": int(random_state.randint(2**31 - 1)),
        }

        def fitted(own):
            if n_classes is None:
                kind = "absolute_error" if loss == "absolute_error" else "squared_error"
                trees, columns = HistGradientBoostingRegressor(loss=kind, **options), targets.T
            else:
                trees, columns = HistGradientBoostingClassifier(**options), [targets]
                if np.unique(targets[own], return_counts=True)[1].min() < 2:
                    # Rows to stop early by are drawn of each class.
                    trees.set_params(early_stopping=False)
            with tree_threads(cells.size):
                models = [clone(trees).fit(cells[own], y[own], weights[own]) for y in columns]
            return cls(models, n_classes)

        return _whole_and_left_out(fitted, rows, held_out)

    def outputs(self, rows):
        """Predictions, or logits of classes; (n_rows, n_outputs)."""
        cells = rows.cells()
        with tree_threads(cells.size):
            if self.n_classes is None:
                return np.column_stack([model.predict(cells) for model in self.models])
            (model,) = self.models
            found = np.maximum(model.predict_proba(cells), _LEAST_PROBABILITY)
        probabilities = np.full((len(rows), self.n_classes), _LEAST_PROBABILITY)
        probabilities[:, model.classes_] = found
        return np.log(probabilities)


@dataclass(frozen=True, eq=False)
class SeriesBaseline:
    """Ridge regression on random convolutions of series."""

    convolutions: RandomConvolutions
    ridge: LeftOutRidge

    @classmethod
    def fit(cls, rows, targets, weights, n_classes, held_out, random_state):
        """As for :class:`TableBaseline`, of SequenceRows; the loss is least squares."""
        sequences = _series(rows)
        convolutions = RandomConvolutions.of(sequences, random_state)
        classes = None if n_classes is None else targets
        targets = targets if n_classes is None else np.eye(n_classes)[targets]
        features = convolutions.features(sequences)
        ridge, left_out = fit_left_out_ridge(features, targets, weights, classes)
        return cls(convolutions, ridge), left_out[held_out]

    def outputs(self, rows):
        """Predictions, or logits of classes; (n_rows, n_outputs)."""
        return self.ridge.outputs(self.convolutions.features(_series(rows)))


@dataclass(frozen=True, eq=False)
class TextBaseline:
    """Logistic or ridge regression on how often tokens are in a text (TF-IDF)."""

    tf_idf: TfidfTransformer
    model: BaseEstimator
    n_tokens: int

    @classmethod
    def fit(cls, rows, targets, weights, n_classes, held_out, n_tokens):
        """As for :class:`TableBaseline`, with the size of the vocabulary; nothing is drawn."""
        counts = _counts(rows, n_tokens)

        def fitted(own):
            tf_idf = TfidfTransformer(sublinear_tf=True).fit(counts[own])
            model = Ridge()
            if n_classes is not None:
                model = LogisticRegression(max_iter=_MOST_ITERATIONS)
            model.fit(tf_idf.transform(counts[own]), targets[own], sample_weight=weights[own])
            return cls(tf_idf, model, n_tokens)

        return _whole_and_left_out(fitted, rows, held_out)

    def outputs(self, rows):
        """Predictions, or logits of classes; (n_rows, n_outputs)."""
        features = self.tf_idf.transform(_counts(rows, self.n_tokens))
        if isinstance(self.model, Ridge):
            return self.model.predict(features).reshape(features.shape[0], -1)
        return self.model.predict_log_proba(features)


def _whole_and_left_out(fitted, rows, held_out):
    """A baseline fitted to all rows, and what one without those held out predicts for them."""
    everything = np.arange(len(rows))
    whole = fitted(everything)
    if len(held_out) == 0:
        return whole, np.empty((0, 1))
    rest = fitted(np.setdiff1d(everything, held_out))
    return whole, rest.outputs(rows.take(held_out))


def _series(rows):
    """Series as arrays of numbers, means in the place of missing values."""
    steps = np.nan_to_num(rows.steps)
    return np.split(steps, rows.starts[1:])


def _counts(rows, n_tokens):
    """How often each token is in each text; sparse, (n_rows, n_tokens)."""
    ends = np.append(0, np.cumsum(rows.lengths))
    shape = len(rows), n_tokens
    counts = csr_matrix((np.ones(ends[-1]), rows.steps, ends), shape=shape)
    counts.sum_duplicates()
    return counts
