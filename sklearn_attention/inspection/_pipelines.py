"""The last step of a pipeline, and rows as it sees them."""

from sklearn.pipeline import Pipeline


def last_step(estimator, X):
    """The estimator that predicts, and the rows that reach it.

    Parameters
    ----------
    estimator : estimator
        A fitted one, or a fitted pipeline that ends with one.
    X : array-like or frame
        Rows, as the whole takes them.

    Returns
    -------
    estimator : estimator
    X : array-like or frame
    """
    if isinstance(estimator, Pipeline):
        return estimator[-1], estimator[:-1].transform(X)
    return estimator, X
