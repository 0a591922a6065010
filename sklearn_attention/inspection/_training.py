"""Losses during training."""

from typing import Any, Self

import numpy as np

from ._pipelines import last_step, unfit
from ._style import BLUE, GREY, INK, ORANGE, Display


class TrainingDisplay(Display):
    """Picture of the training and validation losses of a network, by epoch.

    Use it to see whether a network was trained long enough, or too long.

    Make one by :meth:`from_estimator`. A dashed line marks the epoch whose weights were kept.

    Parameters
    ----------
    history : dict
        As `training_history_`: ``"loss"`` and ``"validation_loss"``, lists with a number for
        each epoch, the second maybe empty, ``"best_epoch"``, ``"n_steps"`` and ``"seconds"``.

    Attributes
    ----------
    figure_ : Figure
    ax_ : Axes

    Examples
    --------
    >>> from sklearn_attention.inspection import TrainingDisplay
    >>> history = {"loss": [2.0, 1.0, 0.6, 0.5], "validation_loss": [1.9, 1.2, 1.1, 1.3]}
    >>> display = TrainingDisplay(history | {"best_epoch": 2}).plot()
    >>> display.ax_.get_xlabel()
    'epoch'
    """

    def __init__(self, history: dict[str, Any]) -> None:
        self.history = history

    @classmethod
    def from_estimator(cls, estimator, X=None, y=None, *, ax=None, **kwargs) -> Self:
        """Draw the training of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            One with `training_history_`.
        X, y : None
            Ignored; all displays have them.
        ax : Axes, default=None
            Axes to draw on; None makes a figure.
        **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : TrainingDisplay

        Raises
        ------
        ValueError
            If the estimator has trained no network.
        """
        estimator, _ = last_step(estimator)
        history = getattr(estimator, "training_history_", None)
        if not history or not len(history["loss"]):
            remedy = "one with training_history_, such as TransformerClassifier"
            raise unfit(estimator, "has trained no network", remedy)
        return cls(history).plot(ax=ax, **kwargs)

    def _draw(self, ax):
        loss, validation = self.history["loss"], self.history.get("validation_loss")
        epochs, best = np.arange(1, len(loss) + 1), self.history.get("best_epoch")
        style = {"lw": 1.8, "marker": "o" if len(loss) < 30 else "", "ms": 4}
        ax.plot(epochs, loss, color=GREY, label="training", **style)
        if validation is not None and len(validation):
            ax.plot(epochs, validation, color=BLUE, label="validation", **style)
            if best is not None:
                ax.axvline(best + 1, color=INK, lw=1, ls="--")
                ax.plot(best + 1, validation[best], "o", color=ORANGE, label="kept")
        ax.set(xlabel="epoch", ylabel="loss")
        ax.xaxis.get_major_locator().set_params(integer=True)
