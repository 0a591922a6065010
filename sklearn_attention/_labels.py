"""Classes: their indicators, which are averaged, and the names of those that win."""

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ._partitions import in_memory, is_partitioned, partitions, reduced


class ClassLabels:
    """Mixin of classifiers that store `values_`, the indicators of `classes_`."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def predict(self, X):
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Rows, of the form of those in `fit`.

        Returns
        -------
        y : ndarray of shape (n_queries,) or (n_queries, n_outputs)
            Classes; of equally probable ones the first.
        """
        found = self.predict_proba(X)
        return winners(found if isinstance(self.classes_, list) else [found], self.classes_)

    def score(self, X, y, sample_weight=None):
        """Share of rows whose class is right, or with several outputs all of whose classes are.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Rows, of the form of those in `fit`.
        y : array-like of shape (n_queries,) or (n_queries, n_outputs)
            Their classes.
        sample_weight : array-like of shape (n_queries,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        if not isinstance(self.classes_, list):
            # Once: every use of predictions in partitions would compute them again.
            y, found, sample_weight = in_memory(y, self.predict(X), sample_weight)
            return accuracy_score(y, found, sample_weight=sample_weight)
        y = np.asarray(y)
        expected = len(X), len(self.classes_)
        if y.shape != expected:
            raise ValueError(
                f"y has shape {y.shape}, but the classes of {expected[1]} outputs are known: "
                f"pass y of shape {expected}."
            )
        return float(np.average((self.predict(X) == y).all(axis=1), weights=sample_weight))


def targets_at(estimator, rows):
    """Targets of some training rows of an estimator, as they were passed."""
    values = estimator.values_[rows]
    if not is_classifier(estimator):
        return values
    return winners(split_classes(values, estimator.classes_), estimator.classes_)


def classes_of_outputs(classes):
    """One array of classes for each output, also where there is only one."""
    return classes if isinstance(classes, list) else [classes]


def indicators(y, classes, dtype):
    """One column for each class of each output."""
    outputs = zip(y.T if y.ndim == 2 else [y], classes_of_outputs(classes), strict=True)
    columns = [labels[:, None] == known for labels, known in outputs]
    return np.concatenate(columns, axis=1).astype(dtype, copy=False)


def winners(scores, classes):
    """Names of the classes of highest score, from one array for each output."""
    pairs = zip(classes_of_outputs(classes), scores, strict=True)
    columns = [_taken(known, score.argmax(axis=-1)) for known, score in pairs]
    return np.stack(columns, axis=-1) if isinstance(classes, list) else columns[0]


def _taken(names, places):
    if is_partitioned(places):
        return places.map_blocks(names.take, dtype=names.dtype)
    return names[places]


def split_classes(columns, classes):
    """The part of each output in an array with a column for every class."""
    return split_outputs(columns, list(map(len, classes_of_outputs(classes))))


def split_outputs(columns, n_classes):
    """The part of each output in an array with as many columns as it has classes."""
    ends = np.cumsum(n_classes).tolist()
    return [columns[..., end - n : end] for n, end in zip(n_classes, ends, strict=True)]


def check_labels(y):
    """Labels of one output, (n_samples,), or of several as the columns of a table."""
    if is_partitioned(y):
        y = y[:, 0] if y.shape[1:] == (1,) else y
        if y.ndim != 1:
            raise ValueError(
                f"y has shape {y.shape}, several outputs in partitions of Dask, which is not "
                "supported: fit one classifier for each, or pass y.compute()."
            )
        labels = distinct(y)
        # So many as not to seem as many classes as rows where they are not.
        check_classification_targets(np.resize(labels, min(len(y), 2 * len(labels))))
        return y
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    return y


def distinct(y):
    """Sorted labels that occur, in memory."""
    if not is_partitioned(y):
        return np.unique(y)
    (labels,) = in_memory(reduced(np.unique, np.union1d, partitions(y)))
    return labels


def known_classes(y, classes=None):
    """Sorted classes of y, or those passed; a list of arrays for several outputs."""
    if y.ndim == 1:
        return distinct(y) if classes is None else np.unique(classes)
    return [np.unique(labels) for labels in (y.T if classes is None else classes)]
