"""The parameter `training` of estimators that train a network."""

import numbers

from sklearn.base import BaseEstimator

from .._validation import check_in_open_interval, is_one_of
from ._plan import Plan

# "auto": so many steps, in no more epochs than this.
_STEPS, _MOST_EPOCHS = 1000, 64
# "auto": about so many batches of the rows, of sizes from this on.
_BATCHES, _SMALLEST_BATCH = 12, 8
_LEAST_PATIENCE = 8
# "auto": the share that is held out, but at least so many, and none of fewer than these.
_HELD_OUT, _FEWEST_HELD_OUT, _FEWEST = 0.1, 10, 40


class Training(BaseEstimator):
    """Parameters of the training of a network that are rarely tuned first.

    A parameter of all estimators that train a network, whose own parameters can be searched by
    names such as ``training__weight_decay``.

    Parameters
    ----------
    optimizer : {"auto", "adamw", "muon", "adam", "lbfgs"}, default="auto"
        As for :class:`Plan`, like `schedule`, `warm_up`, `weight_decay` and `clip_norm`. "auto"
        is "muon" for language models and translators, otherwise "adamw".
    schedule : {"one_cycle", "cosine", "constant"}, default="one_cycle"
        Course of the learning rate.
    warm_up : float, default=0.1
        Share of the steps in which the learning rate rises.
    weight_decay : float, default=0.01
        Decay of matrices.
    clip_norm : float, default=1.0
        Longest gradient; None clips none.
    max_steps : int, default=None
        Gradient steps at most; None if only the epochs count. Where `max_epochs` is "auto",
        there are as many epochs as these take.
    validation_fraction : float, "auto" or None, default="auto"
        Share of what is learned from that is held out: the weights kept are those after the
        epoch with the least loss on it. Rows, pairs and texts are drawn at random, classes in
        proportion; of fewer than 40 texts of a language model it is stretches of their tokens.
        "auto" is a tenth, at least 10, and nothing of fewer than 40; None holds nothing out,
        and keeps the last weights. The parameter `X_val` of ``fit`` takes the place of all
        this. Forecasters hold out none: the validation origins serve.
    patience : int, "auto" or None, default="auto"
        Stop after so many epochs without a smaller loss on what is held out; None never does.
        "auto" is a quarter of the epochs, but at least 8.
    autocast : bool, default=False
        Whether to train in bfloat16 where torch considers it safe. A device without
        instructions for that is slow, with a warning.
    checkpoint : str or path-like, default=None
        File from which an interrupted training continues, to the same weights. Fits of other
        data or parameters, such as those of a search, may name the same file: they take it
        once the training in it has ended; until then they start afresh, with a warning, and
        are not saved.
    verbose : bool or "auto", default="auto"
        Whether a line on stderr shows the progress, except in workers of joblib. "auto" shows
        it after 5 seconds, but not in searches and other meta-estimators, nor with callbacks.

    Examples
    --------
    >>> from sklearn_attention import Training, TransformerClassifier
    >>> model = TransformerClassifier(training=Training(weight_decay=0.1))
    >>> model.set_params(training__patience=5)
    TransformerClassifier(training=Training(patience=5, weight_decay=0.1))
    """

    def __init__(
        self,
        *,
        optimizer="auto",
        schedule="one_cycle",
        warm_up=0.1,
        weight_decay=0.01,
        clip_norm=1.0,
        max_steps=None,
        validation_fraction="auto",
        patience="auto",
        autocast=False,
        checkpoint=None,
        verbose="auto",
    ):
        self.optimizer = optimizer
        self.schedule = schedule
        self.warm_up = warm_up
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.max_steps = max_steps
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.autocast = autocast
        self.checkpoint = checkpoint
        self.verbose = verbose

    def plan(
        self,
        n_samples,
        *,
        learning_rate,
        batch_size,
        max_epochs,
        optimizer,
        largest_batch,
        fewest_epochs,
    ):
        """The plan by which so many rows are learned from.

        Parameters
        ----------
        n_samples : int
        learning_rate : float
        batch_size : int, (int, int) or "auto"
            "auto" is a twelfth of the rows, but 8 at least and `largest_batch` at most.
        max_epochs : int or "auto"
            "auto" is enough for 1000 steps, but `fewest_epochs` at least and 64 at most, or for
            `max_steps` where they are given.
        optimizer : str
            Value for "auto".
        largest_batch, fewest_epochs : int

        Returns
        -------
        plan : Plan

        Raises
        ------
        ValueError
            If a parameter is not valid.
        """
        if is_one_of(batch_size, "auto"):
            batch_size = max(min(n_samples // _BATCHES, largest_batch), _SMALLEST_BATCH)
        if is_one_of(max_epochs, "auto") and self.max_steps is not None:
            max_epochs = None
        elif is_one_of(max_epochs, "auto"):
            most = max(batch_size) if isinstance(batch_size, tuple | list) else batch_size
            epochs = -(-_STEPS * most // n_samples) if isinstance(most, int) else 1
            max_epochs = min(max(epochs, fewest_epochs), _MOST_EPOCHS)
        if not isinstance(self.verbose, bool) and not is_one_of(self.verbose, "auto"):
            raise ValueError(
                f"training.verbose={self.verbose!r} is not valid: pass True, False or 'auto'."
            )
        names = "optimizer", "schedule", "warm_up", "weight_decay", "clip_norm", "max_steps"
        options = {name: getattr(self, name) for name in (*names, "patience", "autocast")}
        options |= {"optimizer": optimizer} if is_one_of(self.optimizer, "auto") else {}
        if is_one_of(self.patience, "auto"):
            # One that is not valid is refused by the plan.
            epochs = max_epochs if isinstance(max_epochs, numbers.Integral) else _MOST_EPOCHS
            options["patience"] = max(epochs // 4, _LEAST_PATIENCE)
        return Plan(
            learning_rate=learning_rate, batch_size=batch_size, max_epochs=max_epochs, **options
        )

    def share_held_out(self, n_samples):
        """Share of so many rows that is held out.

        Parameters
        ----------
        n_samples : int

        Returns
        -------
        share : float or None

        Raises
        ------
        ValueError
            If it is not valid, or does not suit the patience.
        """
        share = self.validation_fraction
        if is_one_of(share, "auto"):
            enough = n_samples >= _FEWEST
            share = max(_HELD_OUT, _FEWEST_HELD_OUT / n_samples) if enough else None
        elif share is not None:
            check_in_open_interval("training.validation_fraction", share, 0, 1)
            if n_samples < 2:
                raise ValueError(
                    f"training.validation_fraction={share!r} leaves nothing to learn from: "
                    "pass more than one, or None."
                )
        if share is None and not is_one_of(self.patience, None, "auto"):
            raise ValueError(
                f"training.patience={self.patience!r} needs something held out, but "
                f"training.validation_fraction={self.validation_fraction!r} holds out none of "
                f"{n_samples}: pass a number between 0 and 1, or patience=None."
            )
        return share
