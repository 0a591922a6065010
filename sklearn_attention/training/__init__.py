"""Training: how parameters are learned from batches.

:func:`train` fits any torch module to rows in memory, as a
:class:`~sklearn_attention.Training` says, and returns its
:class:`History`; :func:`hold_out` chooses rows for validation.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
