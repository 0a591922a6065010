"""Length-scales and relevance of features."""

import numpy as np

from .._validation import check_positive
from ._errors import named
from ._grid import feature_names
from ._pipelines import last_step
from ._style import BLUE, INK, canvas, write_bars


class LengthScaleDisplay:
    """Relevance and length-scale of each feature in a kernel.

    Make one by :meth:`from_estimator`.

    Parameters
    ----------
    names : list of str
        Names of the features.
    relevance : ndarray of shape (n_features,)
        Relevance of each.
    length_scales : ndarray of shape (n_features,)
        In the features' own units; infinite for features without effect.
    label : str, default="relevance"
        Label of the axis of `relevance`.

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn_attention import KernelAttentionRegressor
    >>> from sklearn_attention.inspection import LengthScaleDisplay
    >>> X, y = make_friedman1(200, random_state=0)
    >>> model = KernelAttentionRegressor().fit(X, y)
    >>> display = LengthScaleDisplay.from_estimator(model, most=3)
    >>> sorted(text.get_text() for text in display.ax_.get_yticklabels())
    ['x0', 'x1', 'x2']
    """

    def __init__(self, names, relevance, length_scales, *, label="relevance"):
        self.names, self.relevance = names, relevance
        self.length_scales, self.label = length_scales, label

    @classmethod
    @named
    def from_estimator(cls, estimator, X=None, y=None, *, ax=None, **kwargs):
        """Draw relevance and length-scales of the features of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Kernel attention, for which relevance is a share of the squared distance, or a
            smoother or a density: `relevance_` if its bandwidths were searched, else the
            standard deviations of features divided by bandwidths.
        X, y : None
            Ignored; all displays have them.
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : LengthScaleDisplay
        """
        estimator, _ = last_step(estimator)
        if not hasattr(estimator, "bandwidth_") or not hasattr(estimator, "keys_"):
            raise ValueError(
                f"estimator is {type(estimator).__name__}, which has no bandwidths of "
                "features: pass kernel attention, a smoother or a density."
            )
        names = feature_names(estimator)
        scales = np.asarray(estimator.bandwidth_, dtype=np.float64)
        if hasattr(estimator, "feature_relevance_"):
            found, label = estimator.feature_relevance_, "share of the squared distance"
        elif hasattr(estimator, "relevance_"):
            found, label = estimator.relevance_, "relevance"
        else:
            label = "standard deviations / bandwidth"
            found = np.std(estimator.keys_.astype(np.float64), axis=0) / scales
        return cls(names, np.asarray(found), scales, label=label).plot(ax=ax, **kwargs)

    @named
    def plot(self, ax=None, *, most=20):
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        most : int, default=20
            Number of features to show, the most relevant ones.

        Returns
        -------
        self : LengthScaleDisplay
        """
        check_positive("most", most, integer=True)
        shown = np.argsort(-self.relevance, kind="stable")[:most]
        with canvas(self, ax, size=(6.4, 1.1 + 0.3 * len(shown))) as ax:
            ax.barh(range(len(shown)), self.relevance[shown], color=BLUE, height=0.7)
            for place, j in enumerate(shown):
                scale = self.length_scales[j]
                text = f"  {scale:.3g}" if np.isfinite(scale) else "  ∞"
                ax.text(self.relevance[j], place, text, va="center", color=INK, size="small")
            write_bars(ax, [self.names[j] for j in shown])
            ax.margins(x=0.2)
            ax.set_xlim(left=0)
            ax.set(xlabel=self.label, title="relevance, and length-scale")
        return self
