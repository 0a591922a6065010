"""A fit that fails changes nothing."""

import functools


def keeps_state_on_failure(method):
    """Decorate a method that fits: if it raises, the estimator is as it was before.

    Parameters
    ----------
    method : callable
        ``fit`` or ``partial_fit``; it assigns attributes and mutates none in place.

    Returns
    -------
    method : callable
    """

    @functools.wraps(method)
    def fit_or_nothing(estimator, *args, **kwargs):
        before = vars(estimator).copy()
        try:
            return method(estimator, *args, **kwargs)
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise

    return fit_or_nothing
