"""Errors that begin with the method that was called."""

import functools
import re


def named(method):
    """Decorate a method of a display: its errors name it, not what it calls."""

    @functools.wraps(method)
    def call(owner, *args, **kwargs):
        try:
            return method(owner, *args, **kwargs)
        except (TypeError, ValueError) as error:
            kind = owner if isinstance(owner, type) else type(owner)
            # Of methods that call one another the outermost, which comes last, is named.
            message = re.sub(rf"^{kind.__name__}\.\w+(: |\(\) )", "", str(error))
            error.args = (f"{kind.__name__}.{method.__name__}: {message}",)
            raise

    return call
