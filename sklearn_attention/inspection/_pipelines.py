"""The fitted estimator within a search or pipeline, the rows that reach it, and errors."""

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._blocks import own_copy


def unfit(estimator, fault, remedy):
    """Return the error for an estimator that a display cannot draw.

    `fault` says in the message what the estimator lacks, such as "has no attention", and
    `remedy` what to pass in its place.
    """
    kind = estimator if isinstance(estimator, type) else type(estimator)
    return ValueError(f"estimator is {kind.__name__}, which {fault}: pass {remedy}.")


def check_fitted(estimator):
    """Raise an error if the object is not a fitted estimator."""
    if isinstance(estimator, type):
        raise TypeError(f"estimator={estimator.__name__} is a class: pass a fitted instance.")
    if not hasattr(estimator, "fit"):
        raise TypeError(
            f"estimator is of type {type(estimator).__name__}: pass a fitted estimator."
        )
    check_is_fitted(estimator)


def last_step(estimator, X=None):
    """Return the last step of a fitted pipeline or search, and the rows X as they reach it.

    If X is None, so is the second result. An estimator that is neither is its own last step.
    """
    check_fitted(estimator)
    if hasattr(estimator, "best_estimator_"):
        return last_step(estimator.best_estimator_, X)
    if isinstance(estimator, Pipeline):
        return estimator[-1], None if X is None else estimator[:-1].transform(X)
    return estimator, X


def column_names(estimator, rows):
    """Return names of the columns that reach the last step, or None if they have none.

    `rows` are those that :func:`last_step` returns.
    """
    while hasattr(estimator, "best_estimator_"):
        estimator = estimator.best_estimator_
    if not isinstance(estimator, Pipeline):
        names = getattr(estimator, "feature_names_in_", None)
    elif hasattr(rows, "columns"):
        names = rows.columns
    else:
        try:
            names = estimator[:-1].get_feature_names_out()
        except AttributeError:  # of a step that has no names
            return None
    return names if names is None else [*map(str, names)]


def predicted_class(model, rows):
    """Return the class that is predicted for a single row, as a plain label."""
    (label,) = np.asarray(model.predict(rows)).tolist()
    return label


def need_both(X, y):
    """Raise an error if only one of rows and targets is given."""
    if (X is None) != (y is None):
        passed, lacking = ("y", "X") if X is None else ("X", "y")
        raise ValueError(f"{lacking}=None, but {passed} is given: pass both, or none.")


def remembered_rows(estimator):
    """Return the training rows that an estimator stores, and their targets.

    The rows are in the form that its `fit` takes. The targets are None if there are none.
    """
    check_fitted(estimator)
    if hasattr(estimator, "best_estimator_"):
        return remembered_rows(estimator.best_estimator_)
    name = type(estimator).__name__
    keys, columns = getattr(estimator, "keys_", None), getattr(estimator, "columns_", None)
    if keys is None or columns is None:
        raise ValueError(
            f"X=None, but {name} remembers no rows: pass the rows that it was fitted on."
        )
    values = getattr(estimator, "values_", None)
    # `own_copy` returns rows in Dask or in a memory map as they are, and copies all others.
    if own_copy(keys) is keys or (values is not None and own_copy(values) is values):
        raise ValueError(
            f"X=None, but {name} has its rows in Dask or in a memory map, which are not loaded "
            "for a plot: pass the rows to plot as X, such as a sample of them."
        )
    names = getattr(estimator, "feature_names_in_", None)
    if names is None and not columns.categorical:
        return np.asarray(keys), values
    frame = columns.decode(keys, as_frame=True)
    return frame.set_axis(range(frame.shape[1]) if names is None else names, axis=1), values
