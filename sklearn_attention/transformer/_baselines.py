"""Baselines of tables and texts, added to the outputs of a transformer."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression, Ridge

from .._stacking import fit_trees, predict_scores


@dataclass(frozen=True, eq=False)
class TableBaseline:
    """Boosted trees of scikit-learn at the defaults of :func:`fit_trees`, for each output."""

    models: list
    n_classes: tuple | None

    @classmethod
    def fit(cls, rows, targets, weights, loss, held_out, reader, random_state):
        """Fit to rows; return the baseline, and predictions of rows held out by the others."""
        # Targets (n_rows, n_outputs) are numbers, or numbers of classes. Trees have no "huber":
        # they learn by the squared error.
        cells = rows.cells()
        kind = "squared_error" if loss.name == "huber" else loss.name
        options = {
            "unordered": range(rows.n_numeric, cells.shape[1]),
            "random_state": int(random_state.randint(2**31 - 1)),
        }

        def fit(X, y, weights, quantile):
            own = {"loss": kind, "quantile": quantile}
            own = own if loss.n_classes is None else {"classifies": True}
            return fit_trees(X, y, weights, **options, **own)

        def fitted(own):
            return cls(_models(fit, cells, targets, weights, own, loss), loss.n_classes)

        return _whole_and_left_out(fitted, rows, held_out)

    def outputs(self, rows):
        """Predictions, or logits of classes; (n_rows, n_outputs)."""
        return _outputs(self.models, rows.cells(), self.n_classes)


@dataclass(frozen=True, eq=False)
class TextBaseline:
    """Logistic or ridge regression, for each output, on TF-IDF of the tokens of texts."""

    tf_idf: TfidfTransformer
    models: list
    n_tokens: int
    n_classes: tuple | None

    @classmethod
    def fit(cls, rows, targets, weights, loss, held_out, reader, random_state):
        """As for :class:`TableBaseline`; nothing is drawn."""
        n_tokens = reader.token_arguments()["n_tokens"]
        counts = _counts(rows, n_tokens)

        def fitted(own):
            tf_idf = TfidfTransformer(sublinear_tf=True).fit(counts[own])
            features = tf_idf.transform(counts)
            kind = partial(LogisticRegression, max_iter=1000)
            kind = Ridge if loss.n_classes is None else kind
            models = _models(
                lambda *rows: kind().fit(*rows[:3]), features, targets, weights, own, loss
            )
            return cls(tf_idf, models, n_tokens, loss.n_classes)

        return _whole_and_left_out(fitted, rows, held_out)

    def outputs(self, rows):
        """Predictions, or logits of classes; (n_rows, n_outputs)."""
        features = self.tf_idf.transform(_counts(rows, self.n_tokens))
        return _outputs(self.models, features, self.n_classes)


def _models(fit, features, targets, weights, rows, loss):
    """A model of some rows for each output; of a single class, the one that knows it."""
    X, weights = features[rows], weights[rows]
    quantiles = loss.quantile or (None,) * targets.shape[1]
    return [
        DummyClassifier().fit(X, y)
        if loss.n_classes is not None and (y == y[0]).all()
        else fit(X, y, weights, quantile)
        for y, quantile in zip(targets[rows].T, quantiles, strict=True)
    ]


def _outputs(models, features, n_classes):
    """Predictions of a model for each output, or its logits of all classes, side by side."""
    # A class may be only among the rows held out.
    absent = [None] * len(models) if n_classes is None else map(np.zeros, n_classes)
    pairs = zip(models, absent, strict=True)
    return np.column_stack([predict_scores(model, features, none) for model, none in pairs])


def _whole_and_left_out(fitted, rows, held_out):
    """A baseline fitted to all rows, and what one without those held out predicts for them."""
    everything = np.arange(len(rows))
    whole = fitted(everything)
    if len(held_out) == 0:
        return whole, np.empty((0, 1))
    rest = fitted(np.setdiff1d(everything, held_out))
    return whole, rest.outputs(rows.take(held_out))


def _counts(rows, n_tokens):
    """Counts of tokens in texts; sparse, (n_rows, n_tokens)."""
    ends = np.append(0, np.cumsum(rows.lengths))
    shape = len(rows), n_tokens
    counts = csr_matrix((np.ones(ends[-1]), rows.steps, ends), shape=shape)
    counts.sum_duplicates()
    return counts
