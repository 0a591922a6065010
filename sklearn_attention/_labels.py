"""Targets: classes as indicator columns and back, class weights, and scores.

Smoothers average the indicators of classes. Each class of each output has a column, which is 1
for rows of the class and 0 for others, so that averages are probabilities.
"""

import numbers
from collections.abc import Iterable

import numpy as np
from sklearn.base import RegressorMixin, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ._partitions import is_partitioned, reduce_rows, to_memory
from ._sample_weight import read_weights
from ._validation import basic_types, check_numeric_target, is_one_of, refuse_other_arrays


class ClassLabels:
    """Mixin of classifiers that store `values_`, the indicators of `classes_`."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def predict(self, X) -> np.ndarray:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Rows, of the form of those in `fit`.

        Returns
        -------
        y : ndarray of shape (n_queries,) or (n_queries, n_outputs)
            Classes; if several are equally probable, the first one. An array of objects if
            outputs have classes of several types, such as texts and numbers.
        """
        probabilities = self.predict_proba(X)
        several = isinstance(self.classes_, list)
        return best_classes(probabilities if several else [probabilities], self.classes_)

    def score(self, X, y, sample_weight=None) -> float:
        """Compute the accuracy; with several outputs all classes of a row have to be right.

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
        # Predictions in partitions are computed once here; each use would compute them again.
        y, predictions, weights = to_memory(y, self.predict(X), sample_weight)
        y, weights = read_labels(y), read_weights(weights, len(predictions))
        if not isinstance(self.classes_, list):
            if y.shape[1:] not in ((), (1,)):
                raise ValueError(
                    f"y has shape {y.shape}, which is not one label for each row: pass y of "
                    "shape (n_samples,)."
                )
            y = check_labels(y)
            return accuracy_score(y, predictions, sample_weight=weights)
        expected = len(predictions), len(self.classes_)
        if y.shape != expected:
            raise ValueError(
                f"y has shape {y.shape}, but the classes of {expected[1]} outputs are known "
                f"from the fit: pass y of shape {expected}."
            )
        return float(np.average((predictions == y).all(axis=1), weights=weights))


class NumericTargets(RegressorMixin):
    """Mixin of regressors whose `score` raises errors that name invalid targets and weights."""

    def score(self, X, y, sample_weight=None) -> float:
        """Compute R2 of the predictions, averaged over outputs.

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
        # Predictions in partitions are computed once here; each use would compute them again.
        y, predictions, weights = to_memory(y, self.predict(X), sample_weight)
        weights = read_weights(weights, len(predictions))
        return r2_score(check_numeric_target(y), predictions, sample_weight=weights)


def r2_or_nan(values, predictions, weights):
    """Compute R2, averaged over outputs; NaN if a row of positive weight has no prediction."""
    values, predictions, weights = to_memory(values, predictions, weights)
    has_weight = slice(None) if weights is None else weights > 0
    if np.isnan(predictions[has_weight]).any():
        return float("nan")
    weights = None if weights is None else weights[has_weight]
    return float(r2_score(values[has_weight], predictions[has_weight], sample_weight=weights))


def targets_at(estimator, rows):
    """Return the targets of training rows of an estimator as the user passed them."""
    values = estimator.values_[rows]
    if not is_classifier(estimator):
        return values
    return best_classes(split_classes(values, estimator.classes_), estimator.classes_)


def classes_of_outputs(classes):
    """Return a list with an array of classes for each output, also if there is only one."""
    return classes if isinstance(classes, list) else [classes]


def indicators(y, classes, dtype):
    """Return an indicator column for each class of each output, (n_rows, n_classes)."""
    outputs = zip(outputs_of(y), classes_of_outputs(classes), strict=True)
    columns = [labels[:, None] == names for labels, names in outputs]
    return np.concatenate(columns, axis=1).astype(dtype, copy=False)


def best_classes(scores, classes):
    """Return the names of the classes of highest score.

    `scores` is a list with an array (..., n_classes) for each output. If `classes` is a list,
    the names have a last axis for outputs.
    """
    outputs = classes_of_outputs(classes)
    pairs = zip(outputs, scores, strict=True)
    columns = [_take_names(names, score.argmax(axis=-1)) for names, score in pairs]
    if len({frozenset(basic_types(names)) for names in outputs}) > 1:
        # If labels of several types were stacked as they are, numbers would become texts.
        columns = [names.astype(object) for names in columns]
    return np.stack(columns, axis=-1) if isinstance(classes, list) else columns[0]


def _take_names(names, positions):
    if is_partitioned(positions):
        return positions.map_blocks(names.take, dtype=names.dtype)
    return names[positions]


def split_classes(columns, classes):
    """Split an array with a column for each class (..., n_columns) into a list, by outputs."""
    return split_outputs(columns, list(map(len, classes_of_outputs(classes))))


def split_outputs(columns, n_classes):
    """Split an array (..., n_columns) into a list with an array for each output.

    `n_classes` has the number of columns of each output.
    """
    ends = np.cumsum(n_classes).tolist()
    return [columns[..., end - n : end] for n, end in zip(n_classes, ends, strict=True)]


def class_weights_of_rows(class_weight, y):
    """Return the class weight of each row, (n_samples,), for the parameter `class_weight`."""
    if class_weight is None:
        return np.ones(len(y))
    if is_partitioned(y):
        raise ValueError(
            f"class_weight={class_weight!r} needs the labels in memory, but y is a collection "
            "of Dask: pass y.compute() as y, or a weight for each row as sample_weight."
        )
    dicts = class_weight if isinstance(class_weight, list) else [class_weight]
    is_balanced = is_one_of(class_weight, "balanced")
    valid = is_balanced or all(isinstance(weights, dict) for weights in dicts)
    weights = compute_sample_weight(class_weight, y) if valid else np.zeros(0)
    if not valid or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(
            f"class_weight={class_weight!r} is not valid: pass 'balanced', a dict with a "
            "number of 0 or more for each class, a list of dicts for several outputs, or None."
        )
    return weights


def multiply_class_weights(sample_weight, class_weight, y):
    """Multiply weights of rows by those of their classes; None if there are neither."""
    if class_weight is None:
        return sample_weight
    weights = class_weights_of_rows(class_weight, y)
    if sample_weight is not None:
        weights = weights * read_weights(sample_weight, len(y))
    if not weights.any():
        raise zero_class_weights_error(class_weight)
    return weights


def zero_class_weights_error(class_weight, name="y"):
    """Return the error for class weights that are 0 for every row of the labels `name`."""
    return ValueError(
        f"class_weight={class_weight!r} is zero for every row of {name}: leave at least one "
        "class above 0."
    )


def read_labels(y, name="y"):
    """Convert labels to an array; raise ValueError for missing and unsupported ones.

    Labels of several types, and a list or a frame with several columns, become objects, so that
    their types are not changed. None and Dask collections are returned as they are.
    """
    if y is None or is_partitioned(y):
        return y
    import pandas as pd

    refuse_other_arrays(name, y)
    # In an array of texts, numbers of a list or a frame would become texts.
    may_mix_types = isinstance(y, list | tuple) or hasattr(y, "columns")
    cells = np.array(y, dtype=object) if may_mix_types else np.asarray(y)
    for cell in cells.flat if cells.dtype == object else ():
        if not isinstance(cell, str) and isinstance(cell, Iterable):
            raise ValueError(
                f"{name} has a label of type {type(cell).__name__}, such as {cell!r:.60}, "
                "which is not supported: pass a string, a number or a bool for each row."
            )
    if cells.ndim and pd.isna(cells).any():
        raise ValueError(f"{name} has missing labels (NaN, None or NA): drop those rows.")
    has_several_types = cells.shape[1:] > (1,) or len(basic_types(cells.ravel())) > 1
    return cells if has_several_types or not may_mix_types else np.asarray(y)


def outputs_of(y):
    """Return a list of the labels of each output.

    Objects that are all numbers, or all bools, become an array of that type.
    """
    columns = list(y.T) if y.ndim == 2 else [y]
    if y.dtype != object or is_partitioned(y):
        return columns
    convertible = {bool | np.bool_}, {numbers.Number}
    return [np.array(x.tolist()) if basic_types(x) in convertible else x for x in columns]


def refuse_new_classes(y, classes, name, source, remedy):
    """Raise ValueError if labels have another number of outputs than classes, or new classes.

    `name` is that of the labels in messages, `source` says where the classes come from, and
    `remedy` what the user can do.
    """
    outputs, known = outputs_of(y), classes_of_outputs(classes)
    if len(outputs) != len(known):
        raise ValueError(
            f"{name} has {len(outputs)} outputs, but {source} had {len(known)}: {remedy}."
        )
    new = []
    for labels, names in zip(outputs, known, strict=True):
        names = {*names.tolist()}
        new += [label for label in distinct_labels(labels).tolist() if label not in names]
    if new:
        raise ValueError(f"{name} has classes {new} that {source} did not have: {remedy}.")


def check_labels(y):
    """Validate labels, and return them as (n_samples,) or, for several outputs, as a table."""
    if is_partitioned(y):
        y = y[:, 0] if y.shape[1:] == (1,) else y
        if y.ndim != 1:
            raise ValueError(
                f"y has shape {y.shape}, several outputs in partitions of Dask, which is not "
                "supported: fit one classifier for each, or pass y.compute()."
            )
        labels = distinct_labels(y)
        # scikit-learn warns if most rows have a class of their own. The distinct labels are
        # repeated, so that it does not take them for all rows.
        check_classification_targets(np.resize(labels, min(len(y), 2 * len(labels))))
        return y
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    outputs = outputs_of(y)
    for j, labels in enumerate(outputs):
        # `outputs_of` has converted objects that are all numbers or all bools.
        if labels.dtype == object and basic_types(labels) != {str}:
            types = basic_types(labels[:1])
            different = next((x for x in labels if basic_types([x]) != types), labels[-1])
            output = f"[:, {j}]" if y.ndim == 2 else ""
            raise ValueError(
                f"y{output} mixes labels of different types, such as {labels[0]!r} and "
                f"{different!r}: convert all of them to strings, by numpy.array(y, "
                f"dtype=object){output}.astype(str)."
            )
        check_classification_targets(labels)
    return outputs[0] if y.ndim == 1 else y


def distinct_labels(y):
    """Return the sorted distinct labels of one output, in memory."""
    return reduce_rows(_distinct_in_memory, np.union1d, y)


def _distinct_in_memory(y):
    return np.unique(read_labels(y))


def sorted_classes(y, classes=None):
    """Return the sorted classes of labels y, or the sorted `classes` if they are not None.

    If y has several outputs, the result is a list with an array for each, as is `classes`.
    """
    if y.ndim == 1:
        return distinct_labels(y) if classes is None else np.unique(classes)
    return [np.unique(labels) for labels in (outputs_of(y) if classes is None else classes)]
