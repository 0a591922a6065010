"""Training: how parameters are learned from batches.

:func:`train` fits any torch module to rows in memory, as a :class:`Plan` says.
:func:`fit_network` does so for estimators, which hold a :class:`FittedNetwork`;
:class:`Architecture` and :class:`Training` are parameters of theirs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
