"""Attention for scikit-learn: kernel smoothing, learned kernels and transformers.

All estimators share one formula: a prediction is a weighted average of stored values,
and the weights come from a kernel that compares the query with the stored keys.
"""

import lazy_loader

__version__ = "0.3.0.dev0"

# Names of __init__.pyi are loaded on first use, so that importing the package costs nothing and
# loads neither torch nor matplotlib.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
