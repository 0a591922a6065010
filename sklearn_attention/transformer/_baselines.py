"""Baselines of tables, series and texts, added to the outputs of a transformer."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression, Ridge

from .._thread_pools import tree_threads
from ._convolutions import RandomConvolutions
from ._left_out_ridge import LeftOutRidge, fit_left_out_ridge

_MOST_ITERATIONS = 1000
# HistGradientBoosting takes no category with higher codes.
_HIGHEST_CODE = 254
_LEAST_PROBABILITY = 1e-6


@dataclass(frozen=True, eq=False)
class TableBaseline:
    """Boosted trees of scikit-learn at their defaults, for each output."""

    models: list
    n_classes: tuple | None

    @classmethod
    def fit(cls, rows, targets, weights, loss, held_out, random_state):
        """Fit to rows; return the baseline, and predictions of rows held out by the others."""
        # Targets (n_rows, n_outputs) are numbers, or numbers of classes. Trees have no "huber":
        # they learn by the squared error.
        cells = rows.cells()
        is_category = np.arange(cells.shape[1]) >= rows.n_numeric
        is_category &= ~(cells > _HIGHEST_CODE).any(axis=0)
        options = {
            "categorical_features": is_category if is_category.any() else None,
            "random_state": int(random_state.randint(2**31 - 1)),
        }

        def trees_of(y):
            if loss.n_classes is None:
                kind = "squared_error" if loss.name == "huber" else loss.name
                own = {"loss": kind, "quantile": loss.quantile}
                return HistGradientBoostingRegressor(**own, **options)
            trees = HistGradientBoostingClassifier(**options)
            # Rows to stop early by are drawn of each class.
            rare = np.unique(y, return_counts=True)[1].min() < 2
            return trees.set_params(early_stopping=False) if rare else trees

        def fitted(own):
            features = cells[own]
            # Trees cannot place what has no number; a constant is never split.
            features[:, np.isnan(features).all(axis=0)] = 0.0
            with tree_threads(cells.size):
                models = [_fit(trees_of(y), features, y, weights[own]) for y in targets[own].T]
            return cls(models, loss.n_classes)

        return _whole_and_left_out(fitted, rows, held_out)

    def outputs(self, rows):
        """Predictions, or logits of classes; (n_rows, n_outputs)."""
        cells = rows.cells()
        with tree_threads(cells.size):
            return _outputs(self.models, cells, self.n_classes)


@dataclass(frozen=True, eq=False)
class SeriesBaseline:
    """Ridge regression on random convolutions of series."""

    convolutions: RandomConvolutions
    ridge: LeftOutRidge

    @classmethod
    def fit(cls, rows, targets, weights, loss, held_out, random_state):
        """As for :class:`TableBaseline`, of SequenceRows; the loss is least squares."""
        sequences = _series(rows)
        convolutions = RandomConvolutions.of(sequences, random_state)
        if loss.n_classes is not None:
            pairs = zip(loss.n_classes, targets.T, strict=True)
            targets = np.hstack([np.eye(n)[own] for n, own in pairs])
        features = convolutions.features(sequences)
        ridge, left_out = fit_left_out_ridge(features, targets, weights, loss.n_classes)
        return cls(convolutions, ridge), left_out[held_out]

    def outputs(self, rows):
        """Predictions, or logits of classes; (n_rows, n_outputs)."""
        return self.ridge.outputs(self.convolutions.features(_series(rows)))


@dataclass(frozen=True, eq=False)
class TextBaseline:
    """Logistic or ridge regression, for each output, on TF-IDF of the tokens of texts."""

    tf_idf: TfidfTransformer
    models: list
    n_tokens: int
    n_classes: tuple | None

    @classmethod
    def fit(cls, rows, targets, weights, loss, held_out, n_tokens):
        """As for :class:`TableBaseline`, with the size of the vocabulary; nothing is drawn."""
        counts = _counts(rows, n_tokens)

        def fitted(own):
            tf_idf = TfidfTransformer(sublinear_tf=True).fit(counts[own])
            features = tf_idf.transform(counts[own])
            model = Ridge()
            if loss.n_classes is not None:
                model = LogisticRegression(max_iter=_MOST_ITERATIONS)
            models = [_fit(clone(model), features, y, weights[own]) for y in targets[own].T]
            return cls(tf_idf, models, n_tokens, loss.n_classes)

        return _whole_and_left_out(fitted, rows, held_out)

    def outputs(self, rows):
        """Predictions, or logits of classes; (n_rows, n_outputs)."""
        features = self.tf_idf.transform(_counts(rows, self.n_tokens))
        return _outputs(self.models, features, self.n_classes)


def _fit(model, features, y, weights):
    """A model of one output; where it has a single class, that is its probability."""
    if is_classifier(model) and (y == y[0]).all():
        model = DummyClassifier()
    return model.fit(features, y, sample_weight=weights)


def _outputs(models, features, n_classes):
    """Predictions of a model for each output, or its logits of all classes, side by side."""
    if n_classes is None:
        return np.column_stack([model.predict(features) for model in models])
    found = []
    for model, n in zip(models, n_classes, strict=True):
        probabilities = np.full((features.shape[0], n), _LEAST_PROBABILITY)
        # A class may be only among the rows held out.
        known = np.maximum(model.predict_proba(features), _LEAST_PROBABILITY)
        probabilities[:, model.classes_] = known
        found.append(np.log(probabilities))
    return np.hstack(found)


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
    """Counts of tokens in texts; sparse, (n_rows, n_tokens)."""
    ends = np.append(0, np.cumsum(rows.lengths))
    shape = len(rows), n_tokens
    counts = csr_matrix((np.ones(ends[-1]), rows.steps, ends), shape=shape)
    counts.sum_duplicates()
    return counts
