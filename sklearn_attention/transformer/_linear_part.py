"""Linear models of series and texts, which stand beside a transformer."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression, Ridge

from ._convolutions import RandomConvolutions
from ._left_out_ridge import LeftOutRidge, fit_left_out_ridge

_MOST_ITERATIONS = 1000


@dataclass(frozen=True, eq=False)
class SeriesPart:
    """Ridge regression on random convolutions of series."""

    convolutions: RandomConvolutions
    ridge: LeftOutRidge

    @classmethod
    def fit(cls, rows, targets, weights, n_classes, held_out, random_state):
        """Fit to rows, and predict some of them by the others.

        Parameters
        ----------
        rows : SequenceRows
        targets : ndarray of float of shape (n_rows, n_outputs) or of int of shape (n_rows,)
            Numbers, or classes.
        weights : ndarray of shape (n_rows,)
        n_classes : int or None
            None for numbers.
        held_out : ndarray of int
            Rows to be predicted by the others.
        random_state : RandomState

        Returns
        -------
        part : SeriesPart
        left_out : ndarray of shape (n_held_out, n_outputs)
        """
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
class TextPart:
    """Logistic or ridge regression on how often tokens are in a text (TF-IDF)."""

    tf_idf: TfidfTransformer
    model: BaseEstimator
    n_tokens: int

    @classmethod
    def fit(cls, rows, targets, weights, n_classes, held_out, n_tokens):
        """As for :class:`SeriesPart`, with the size of the vocabulary; nothing is drawn."""
        counts = _counts(rows, n_tokens)
        rest = np.setdiff1d(np.arange(len(rows)), held_out)

        def fitted(own):
            tf_idf = TfidfTransformer(sublinear_tf=True).fit(counts[own])
            model = Ridge()
            if n_classes is not None:
                model = LogisticRegression(max_iter=_MOST_ITERATIONS)
            model.fit(tf_idf.transform(counts[own]), targets[own], sample_weight=weights[own])
            return cls(tf_idf, model, n_tokens)

        whole = fitted(np.arange(len(rows)))
        if len(held_out) == 0:
            return whole, np.empty((0, 1))
        return whole, fitted(rest)._of(counts[held_out])

    def outputs(self, rows):
        """Predictions, or logits of classes; (n_rows, n_outputs)."""
        return self._of(_counts(rows, self.n_tokens))

    def _of(self, counts):
        features = self.tf_idf.transform(counts)
        if isinstance(self.model, Ridge):
            return self.model.predict(features).reshape(features.shape[0], -1)
        return self.model.predict_log_proba(features)


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
