"""Weights of the parts of a blend."""

import numpy as np
import pandas as pd

from .._validation import check_positive
from ._errors import named
from ._pipelines import last_step
from ._style import BLUE, INK, canvas, write_bars


class BlendDisplay:
    """Weights of the parts that a model blends: readouts, candidates, simple models.

    Make one by :meth:`from_estimator`. Bars are means over series or outputs; if there are
    several, points mark the weights of each.

    Parameters
    ----------
    weights : DataFrame of shape (n_series, n_parts)
        Weights, a row for each series or output.

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes

    Examples
    --------
    >>> from sklearn_attention import TransformerForecaster
    >>> from sklearn_attention.datasets import make_periodic_series
    >>> from sklearn_attention.inspection import BlendDisplay
    >>> model = TransformerForecaster(12).fit(make_periodic_series("square", 300))
    >>> display = BlendDisplay.from_estimator(model)
    >>> bool(abs(display.weights.sum(axis=1).iloc[0] - 1) < 1e-9)
    True
    """

    def __init__(self, weights):
        self.weights = weights

    @classmethod
    @named
    def from_estimator(cls, estimator, X=None, y=None, *, ax=None, **kwargs):
        """Draw the weights of a fitted estimator.

        Parameters
        ----------
        estimator : TransformerForecaster, TransformerRegressor, TransformerClassifier, \
KernelAttentionRegressor or KernelAttentionClassifier
            Fitted.
        X, y : None
            Ignored; all displays have them.
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : BlendDisplay
        """
        estimator, _ = last_step(estimator)
        if hasattr(estimator, "candidate_weights_"):
            weights = estimator.candidate_weights_
        elif hasattr(estimator, "blend_weights_"):
            trees = np.atleast_1d(estimator.boosting_share_)
            parts = {
                name: np.broadcast_to(own, trees.shape)
                for name, own in estimator.blend_weights_.items()
            }
            weights = pd.DataFrame(parts | ({"boosted trees": trees} if trees.any() else {}))
        elif hasattr(estimator, "transformer_weight_"):
            weights = pd.DataFrame(
                {
                    "transformer": np.atleast_1d(estimator.transformer_weight_),
                    "baseline": np.atleast_1d(estimator.baseline_weight_),
                }
            )
        else:
            raise ValueError(
                f"estimator is {type(estimator).__name__}, which blends nothing: pass "
                "TransformerForecaster, TransformerRegressor, KernelAttentionRegressor or a "
                "classifier of these."
            )
        return cls(weights).plot(ax=ax, **kwargs)

    @named
    def plot(self, ax=None, *, most=15):
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        most : int, default=15
            Number of parts to show, those with the largest weights.

        Returns
        -------
        self : BlendDisplay
        """
        check_positive("most", most, integer=True)
        means = self.weights.mean().sort_values(ascending=False, kind="stable")
        means = means[means != 0][:most]
        with canvas(self, ax, size=(6.4, 1.1 + 0.32 * len(means))) as ax:
            ax.barh(range(len(means)), means, color=BLUE, height=0.7, alpha=0.85)
            if len(self.weights) > 1:
                for place, name in enumerate(means.index):
                    own = self.weights[name]
                    ax.plot(own, np.full(len(own), place), "|", color=INK, alpha=0.4, ms=9)
            write_bars(ax, [str(name) for name in means.index])
            ax.axvline(0, color=INK, lw=0.8)
            ax.set_xlabel("weight")
        return self
