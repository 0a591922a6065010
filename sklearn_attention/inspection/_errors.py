"""Errors that name the method that the user called."""

import functools
import re


def named(method):
    """Decorate a method of a display, so that its errors begin with its name."""

    @functools.wraps(method)
    def call(owner, *args, **kwargs):
        try:
            return method(owner, *args, **kwargs)
        except (TypeError, ValueError) as error:
            kind = owner if isinstance(owner, type) else type(owner)
            # Methods call one another: the outermost, which comes last, replaces other names.
            message = re.sub(rf"^{kind.__name__}\.\w+(: |\(\) )", "", str(error))
            error.args = (f"{kind.__name__}.{method.__name__}: {message}",)
            raise

    return call


def unfit(estimator, fault, remedy):
    """An error for an estimator that a display does not draw."""
    kind = estimator if isinstance(estimator, type) else type(estimator)
    return ValueError(f"estimator is {kind.__name__}, which {fault}: pass {remedy}.")
