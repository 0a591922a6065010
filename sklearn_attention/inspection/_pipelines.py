"""The estimator that predicts within searches and pipelines, and rows as it sees them."""

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


def last_step(estimator, X=None):
    """The estimator that predicts, and the rows that reach it.

    Parameters
    ----------
    estimator : estimator
        A fitted one, or a fitted pipeline that ends with one, or a search that found either.
    X : array-like or frame, default=None
        Rows, as the whole takes them.

    Returns
    -------
    estimator : estimator
    X : array-like, frame or None

    Raises
    ------
    NotFittedError
        If it is not fitted.
    """
    check_is_fitted(estimator)
    if hasattr(estimator, "best_estimator_"):
        return last_step(estimator.best_estimator_, X)
    if isinstance(estimator, Pipeline):
        return estimator[-1], None if X is None else estimator[:-1].transform(X)
    return estimator, X
