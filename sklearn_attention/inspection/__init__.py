"""Pictures of what estimators have learned, and of what carries their predictions.

Displays are like those of scikit-learn: ``from_estimator`` computes and draws, the data stay as
attributes, ``plot`` draws them again, and ``ax_`` and ``figure_`` are matplotlib's. They need
matplotlib, the extra ``plot``, and leave its global state as it was. :data:`STYLE` is theirs,
for pictures of one's own: ``plt.rc_context(STYLE)``.
"""

from .._lazy import lazy_names

_LAZY = {
    "AttentionMapDisplay": "_attention_map",
    "BacktestDisplay": "_backtest",
    "BandwidthDisplay": "_bandwidth",
    "BlendDisplay": "_blend",
    "CoverageDisplay": "_coverage",
    "DensityDisplay": "_density",
    "ExplanationDisplay": "_explanation",
    "ForecastDisplay": "_forecast",
    "KernelDisplay": "_kernel",
    "LayerNormDisplay": "_layer_norm",
    "LengthScaleDisplay": "_length_scales",
    "STYLE": "_style",
    "SmoothDisplay": "_smooth",
    "TrainingDisplay": "_training",
    "attention_rollout": "_attention_map",
    "layer_norm_decomposition": "_layer_norm_geometry",
    "unselectable_keys": "_layer_norm_geometry",
}

__all__ = [*_LAZY]

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
