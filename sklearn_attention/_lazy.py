"""Names that are looked up on first use, so that importing a folder loads little."""

import importlib
import sys


def lazy_names(folder, modules):
    """The ``__getattr__`` and ``__dir__`` of a folder whose names come from its modules.

    Parameters
    ----------
    folder : str
        Its ``__name__``.
    modules : dict of str to str
        For each name the module that has it.

    Returns
    -------
    __getattr__, __dir__ : callable

    Examples
    --------
    In the folder's ``__init__.py``, where ``_fast.py`` has ``compute``::

        __getattr__, __dir__ = lazy_names(__name__, {"compute": "_fast"})
    """

    def __getattr__(name):
        if name not in modules:
            raise AttributeError(f"module {folder!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f".{modules[name]}", folder), name)
        setattr(sys.modules[folder], name, value)
        return value

    def __dir__():
        return sorted({*vars(sys.modules[folder]), *modules})

    return __getattr__, __dir__
