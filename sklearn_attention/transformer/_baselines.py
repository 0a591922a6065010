"""Baselines of tables and texts, added to the outputs of a transformer.

A baseline has a model of scikit-learn for each output. The results of all models stand side by
side in an array of shape (n_rows, n_columns): a column for each number or quantile, or the
logits of all classes of each output.
"""

from dataclasses import dataclass

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
        """Fit to all rows, and predict the held-out rows by a fit to the other ones.

        Parameters
        ----------
        rows : TableRows
            Training rows, those held out included.
        targets : ndarray of shape (n_rows, n_outputs)
            Numbers, or positions of classes among the sorted classes.
        weights : ndarray of shape (n_rows,)
            Weights of the rows.
        loss : Loss
            Loss that the models minimise.
        held_out : ndarray of int
            Positions of the held-out rows.
        reader : TableReader
            Not used; a baseline of texts needs its reader.
        random_state : RandomState
            Draws the seed of the trees.

        Returns
        -------
        baseline : TableBaseline
            Fitted to all rows.
        held_out_outputs : ndarray of shape (n_held_out, n_columns)
            Predictions or logits for the held-out rows.
        """
        cells = rows.cells()
        options = {
            "unordered": range(rows.n_numeric, cells.shape[1]),  # columns of codes
            "random_state": int(random_state.randint(2**31 - 1)),
        }
        # Trees have no "huber": they learn by the squared error.
        tree_loss = "squared_error" if loss.name == "huber" else loss.name

        def fit_output(X, y, weights, quantile):
            if loss.n_classes is not None:
                return fit_trees(X, y, weights, **options, classifies=True)
            return fit_trees(X, y, weights, **options, loss=tree_loss, quantile=quantile)

        def fit_to(selected):
            models = _fit_outputs(fit_output, cells, targets, weights, selected, loss)
            return cls(models, loss.n_classes)

        return _fit_with_held_out_outputs(fit_to, rows, held_out)

    def outputs(self, rows):
        """Return predictions, or logits of classes; (n_rows, n_columns)."""
        return _outputs_of_models(self.models, rows.cells(), self.n_classes)


@dataclass(frozen=True, eq=False)
class TextBaseline:
    """Logistic or ridge regression, for each output, on TF-IDF of the tokens of texts."""

    tf_idf: TfidfTransformer
    models: list
    n_tokens: int
    n_classes: tuple | None

    @classmethod
    def fit(cls, rows, targets, weights, loss, held_out, reader, random_state):
        """Fit as :meth:`TableBaseline.fit`, to SequenceRows of ids; nothing is random."""
        n_tokens = reader.token_arguments()["n_tokens"]
        counts = _token_counts(rows, n_tokens)

        def fit_output(X, y, weights, quantile):
            model = Ridge() if loss.n_classes is None else LogisticRegression(max_iter=1000)
            return model.fit(X, y, weights)

        def fit_to(selected):
            tf_idf = TfidfTransformer(sublinear_tf=True).fit(counts[selected])
            features = tf_idf.transform(counts)
            models = _fit_outputs(fit_output, features, targets, weights, selected, loss)
            return cls(tf_idf, models, n_tokens, loss.n_classes)

        return _fit_with_held_out_outputs(fit_to, rows, held_out)

    def outputs(self, rows):
        """Return predictions, or logits of classes; (n_rows, n_columns)."""
        features = self.tf_idf.transform(_token_counts(rows, self.n_tokens))
        return _outputs_of_models(self.models, features, self.n_classes)


def _fit_outputs(fit_output, features, targets, weights, selected, loss):
    """Fit a model for each column of targets, and return the list of models.

    Parameters
    ----------
    fit_output : callable
        ``fit_output(X, y, weights, quantile)`` returns one fitted model.
    features : ndarray or sparse array of shape (n_rows, n_features)
        Features of all rows.
    targets : ndarray of shape (n_rows, n_columns)
        Targets of all rows, repeated for each quantile if there are several.
    weights : ndarray of shape (n_rows,)
        Weights of all rows.
    selected : ndarray of int
        Positions of the rows that the models are fitted to.
    loss : Loss
        Its `quantile` has the probability of each column of targets, if these are quantiles.
    """
    X, weights = features[selected], weights[selected]
    quantiles = loss.quantile or (None,) * targets.shape[1]
    models = []
    for y, quantile in zip(targets[selected].T, quantiles, strict=True):
        if loss.n_classes is not None and (y == y[0]).all():
            # Classifiers need two classes. The only one has probability 1 with any weights.
            models.append(DummyClassifier().fit(X, y))
        else:
            models.append(fit_output(X, y, weights, quantile))
    return models


def _outputs_of_models(models, features, n_classes):
    """Return the predictions or logits of all models side by side, (n_rows, n_columns)."""
    columns = []
    for j, model in enumerate(models):
        # If only held-out rows have a class, the model has not seen it: its probability is 0.
        unseen_proba = None if n_classes is None else np.zeros(n_classes[j])
        columns.append(predict_scores(model, features, unseen_proba))
    return np.column_stack(columns)


def _fit_with_held_out_outputs(fit_to, rows, held_out):
    """Fit to all rows, and predict the held-out rows by a second fit without them.

    ``fit_to(positions)`` returns a baseline that is fitted to the rows at these positions. The
    results are those of :meth:`TableBaseline.fit`.
    """
    positions = np.arange(len(rows))
    baseline = fit_to(positions)
    if len(held_out) == 0:
        return baseline, np.empty((0, 1))
    without_held_out = fit_to(np.setdiff1d(positions, held_out))
    return baseline, without_held_out.outputs(rows.take(held_out))


def _token_counts(rows, n_tokens):
    """Count how often each token occurs in each text; sparse, (n_rows, n_tokens)."""
    row_ends = np.append(0, np.cumsum(rows.lengths))
    shape = len(rows), n_tokens
    counts = csr_matrix((np.ones(row_ends[-1]), rows.steps, row_ends), shape=shape)
    counts.sum_duplicates()
    return counts
