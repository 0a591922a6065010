"""Attention for scikit-learn: kernel smoothing, learned kernels and transformers.

One idea carries the package: a prediction is a weighted average of remembered values,
and the weights come from a kernel that compares the query with the remembered keys.
"""

import importlib

__version__ = "0.1.0.dev0"

# Public name -> module. Resolved on first use, so that importing the package costs
# nothing and loads neither torch nor matplotlib.
_PUBLIC = {
    "AdaptiveBandwidth": "bandwidth",
    "Architecture": "training",
    "Columns": "_columns",
    "ConditionalKernelDensity": "smoothing",
    "KernelAttentionClassifier": "kernel_attention",
    "KernelAttentionRegressor": "kernel_attention",
    "KernelForecaster": "forecasting",
    "LocalPolynomialCV": "smoothing",
    "LocalPolynomialRegressor": "smoothing",
    "NadarayaWatsonCV": "smoothing",
    "NadarayaWatsonClassifier": "smoothing",
    "NadarayaWatsonRegressor": "smoothing",
    "PositiveRandomFeatures": "kernel_approximation",
    "ProductKernelDensity": "smoothing",
    "RandomFourierFeatures": "kernel_approximation",
    "Training": "training",
    "TransformerClassifier": "transformer",
    "TransformerForecaster": "forecasting",
    "TransformerLanguageModel": "sequence",
    "TransformerRegressor": "transformer",
    "TransformerSeq2Seq": "sequence",
    "attend": "attention",
    "attention_weights": "attention",
}
_SUBPACKAGES = (
    "attention",
    "bandwidth",
    "datasets",
    "forecasting",
    "inspection",
    "kernel_approximation",
    "kernel_attention",
    "kernels",
    "nn",
    "sequence",
    "smoothing",
    "text",
    "training",
    "transformer",
)

__all__ = ["__version__", *sorted(_PUBLIC), *_SUBPACKAGES]


def __getattr__(name):
    if name in _PUBLIC:
        module = importlib.import_module(f".{_PUBLIC[name]}", __name__)
        value = getattr(module, name)
        globals()[name] = value
        return value
    if name in _SUBPACKAGES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
