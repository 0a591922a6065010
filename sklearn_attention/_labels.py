"""Classes: their indicators, which are averaged, and the names of those that win."""

import numbers
from collections.abc import Iterable

import numpy as np
from sklearn.base import RegressorMixin, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ._partitions import is_partitioned, reduce_rows, to_memory
from ._validation import (
    check_numeric_target,
    is_one_of,
    read_weights,
    refuse_other_arrays,
    types_of,
)


class ClassLabels:
    """Mixin of classifiers that store `values_`, the indicators of `classes_`."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def predict(self, X) -> np.ndarray:
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Rows, of the form of those in `fit`.

        Returns
        -------
        y : ndarray of shape (n_queries,) or (n_queries, n_outputs)
            Classes; of equally probable ones the first. Objects where outputs have classes
            of several types, such as texts and numbers.
        """
        found = self.predict_proba(X)
        return winners(found if isinstance(self.classes_, list) else [found], self.classes_)

    def score(self, X, y, sample_weight=None) -> float:
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
        if y is None:
            raise ValueError("y=None is not valid: pass the class of each row.")
        if not isinstance(self.classes_, list):
            # Once: every use of predictions in partitions would compute them again.
            y, found, weights = to_memory(y, self.predict(X), sample_weight)
            y, weights = read_labels(y), read_weights(weights, len(found))
            if y.shape[1:] not in ((), (1,)):
                raise ValueError(
                    f"y has shape {y.shape}, which is not one label for each row: pass y of "
                    "shape (n_samples,)."
                )
            y = check_labels(y)
            return accuracy_score(y, found, sample_weight=weights)
        y, weights = read_labels(y), read_weights(sample_weight, len(X))
        expected = len(X), len(self.classes_)
        if y.shape != expected:
            raise ValueError(
                f"y has shape {y.shape}, but the classes of {expected[1]} outputs are known "
                f"from the fit: pass y of shape {expected}."
            )
        return float(np.average((self.predict(X) == y).all(axis=1), weights=weights))


class NumericTargets(RegressorMixin):
    """Mixin of regressors, whose `score` names targets and weights that are not valid."""

    def score(self, X, y, sample_weight=None) -> float:
        """R2 of the predictions, the mean over outputs.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Rows, of the form of those in `fit`.
        y : array-like of shape (n_queries,) or (n_queries, n_outputs)
            Their targets.
        sample_weight : array-like of shape (n_queries,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
        """
        # Once: every use of predictions in partitions would compute them again.
        y, found, weights = to_memory(y, self.predict(X), sample_weight)
        weights = read_weights(weights, len(found))
        return r2_score(check_numeric_target(y), found, sample_weight=weights)


def explained(values, predictions, weights):
    """Share of the variance that predictions explain, the mean over outputs; NaN if one is."""
    values, predictions, weights = to_memory(values, predictions, weights)
    kept = slice(None) if weights is None else weights > 0
    if np.isnan(predictions[kept]).any():
        return float("nan")
    weights = None if weights is None else weights[kept]
    return float(r2_score(values[kept], predictions[kept], sample_weight=weights))


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
    outputs = zip(outputs_of(y), classes_of_outputs(classes), strict=True)
    columns = [labels[:, None] == known for labels, known in outputs]
    return np.concatenate(columns, axis=1).astype(dtype, copy=False)


def winners(scores, classes):
    """Names of the classes of highest score, from one array for each output."""
    pairs = zip(classes_of_outputs(classes), scores, strict=True)
    columns = [_taken(known, score.argmax(axis=-1)) for known, score in pairs]
    if len({*map(frozenset, map(types_of, classes_of_outputs(classes)))}) > 1:
        # An array of another type would make texts or numbers of some of them.
        columns = [names.astype(object) for names in columns]
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


def class_factors(class_weight, y):
    """Weights of rows by their classes, (n_samples,), from the parameter `class_weight`."""
    if class_weight is None:
        return np.ones(len(y))
    if is_partitioned(y):
        raise ValueError(
            f"class_weight={class_weight!r} needs the labels in memory, but y is a collection "
            "of Dask: pass y.compute() as y, or a weight for each row as sample_weight."
        )
    dicts = class_weight if isinstance(class_weight, list) else [class_weight]
    valid = is_one_of(class_weight, "balanced") or all(isinstance(own, dict) for own in dicts)
    factors = compute_sample_weight(class_weight, y) if valid else np.zeros(0)
    if not valid or not (np.isfinite(factors) & (factors >= 0)).all():
        raise ValueError(
            f"class_weight={class_weight!r} is not valid: pass 'balanced', a dict with a "
            "number of 0 or more for each class, a list of dicts for several outputs, or None."
        )
    return factors


def times_class_weights(sample_weight, class_weight, y):
    """Weights of rows times those of their classes; None if there are neither."""
    if class_weight is None:
        return sample_weight
    weights = class_factors(class_weight, y)
    if sample_weight is not None:
        weights = weights * read_weights(sample_weight, len(y))
    if not weights.any():
        raise without_weight(class_weight)
    return weights


def without_weight(class_weight, name="y"):
    """The error of classes none of which has weight."""
    return ValueError(
        f"class_weight={class_weight!r} is zero for every row of {name}: leave at least one "
        "class above 0."
    )


def read_labels(y, name="y"):
    """Labels in an array, of objects where another would have them all of one type."""
    if y is None or is_partitioned(y):
        return y
    import pandas as pd

    refuse_other_arrays(name, y)
    in_cells = isinstance(y, list | tuple) or hasattr(y, "columns")
    cells = np.array(y, dtype=object) if in_cells else np.asarray(y)
    for cell in cells.flat if cells.dtype == object else ():
        if not isinstance(cell, str) and isinstance(cell, Iterable):
            raise ValueError(
                f"{name} has a label of type {type(cell).__name__}, such as {cell!r:.60}, "
                "which is not supported: pass a string, a number or a bool for each row."
            )
    if cells.ndim and pd.isna(cells).any():
        raise ValueError(f"{name} has missing labels (NaN, None or NA): drop those rows.")
    several = cells.shape[1:] > (1,) or len(types_of(cells.ravel())) > 1
    return cells if several or not in_cells else np.asarray(y)


def outputs_of(y):
    """Labels of each output; objects that are all numbers, or all flags, as such."""
    columns = list(y.T) if y.ndim == 2 else [y]
    if y.dtype != object or is_partitioned(y):
        return columns
    plain = {bool | np.bool_}, {numbers.Number}
    return [np.array(x.tolist()) if types_of(x) in plain else x for x in columns]


def refuse_unknown(y, classes, name, source, remedy):
    """Raise ValueError if labels have other outputs, or other classes, than those before."""
    outputs, known = outputs_of(y), classes_of_outputs(classes)
    if len(outputs) != len(known):
        raise ValueError(
            f"{name} has {len(outputs)} outputs, but {source} had {len(known)}: {remedy}."
        )
    pairs = zip(outputs, [{*names.tolist()} for names in known], strict=True)
    fresh = [x for own, old in pairs for x in distinct(own).tolist() if x not in old]
    if fresh:
        raise ValueError(f"{name} has classes {fresh} that {source} did not have: {remedy}.")


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
    outputs = outputs_of(y)
    for j, labels in enumerate(outputs):
        # Objects that are all numbers or all flags are no objects any more.
        if labels.dtype == object and types_of(labels) != {str}:
            types = types_of(labels[:1])
            odd = next((x for x in labels if types_of([x]) != types), labels[-1])
            output = f"[:, {j}]" if y.ndim == 2 else ""
            raise ValueError(
                f"y{output} mixes labels of different types, such as {labels[0]!r} and "
                f"{odd!r}: convert all of them to strings, by numpy.array(y, "
                f"dtype=object){output}.astype(str)."
            )
        check_classification_targets(labels)
    return outputs[0] if y.ndim == 1 else y


def distinct(y):
    """Sorted labels that occur, in memory."""
    return reduce_rows(_distinct, np.union1d, y)


def _distinct(y):
    return np.unique(read_labels(y))


def known_classes(y, classes=None):
    """Sorted classes of y, or those passed; a list of arrays for several outputs."""
    if y.ndim == 1:
        return distinct(y) if classes is None else np.unique(classes)
    return [np.unique(labels) for labels in (outputs_of(y) if classes is None else classes)]
