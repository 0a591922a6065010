"""How a network is trained: optimizer, learning rate, batches, and when to stop."""

import copy
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._base import parameters
from .._validation import (
    check_choice,
    check_flag,
    check_in_interval,
    check_in_open_interval,
    check_positive,
    is_one_of,
)

OPTIMIZERS, SCHEDULES = ("adam", "adamw", "muon"), ("constant", "one_cycle")
# "auto" for `max_epochs`: as many epochs as have this number of steps, up to a maximum.
_N_STEPS, _MAX_EPOCHS = 1000, 64
# "auto" for `validation_fraction`: the minimum number of rows of which a tenth is held out, and
# the minimum number of rows held out.
_MIN_ROWS, _MIN_HELD_OUT = 40, 10
# Maximum learning rate: the largest number in single precision, which weights have.
_MAX_RATE = float(np.finfo(np.float32).max)


@parameters
class Training(BaseEstimator):
    r"""Parameters of the training of a network.

    Pass it as `training` to an estimator that trains a network.

    All estimators that train a network have one as a parameter, whose own parameters can be
    searched by names such as ``training__weight_decay``. What is "auto" here is the estimator's
    choice. The highest learning rate, the size of batches and the number of epochs are
    parameters of the estimator itself: `learning_rate`, `batch_size` and `max_epochs`.

    Parameters
    ----------
    optimizer : {"auto", "adamw", "muon", "adam"}, default="auto"
        "muon" steps along the orthogonal factor of the momentum of each matrix of an encoder
        or decoder block (Jordan et al. 2024), and is "adamw" for all other parameters. "auto"
        is "muon" for language models and translators, otherwise "adamw".
    schedule : {"one_cycle", "constant"}, default="one_cycle"
        How the learning rate changes during the training; see Notes.
    warm_up : float, default=0.1
        Share of the steps, in [0, 1), in which the learning rate rises. The schedule "constant"
        does not use it.
    weight_decay : float, default=0.01
        Decay of matrices, except those of ``nn.LearnedPositions``. With "adamw" and "muon",
        `weight_decay` times the learning rate times the matrix is subtracted from each matrix
        in every step. With "adam", half of `weight_decay` times the sum of the squares of all
        matrices is added to the loss.
    clip_norm : float, default=1.0
        Largest norm of the gradient of all parameters together; longer gradients are shortened
        to it. None shortens none.
    max_steps : int, default=None
        Number of steps; None if only the epochs count. With `max_epochs` as well, the training
        ends at the first limit.
    validation_fraction : float, "auto" or None, default="auto"
        For estimators, the fraction of the rows, pairs or texts that is held out. The weights
        are kept from the epoch after which the loss of what is held out was smallest. It is
        drawn at random, the same fraction from each class. If a language model has fewer than
        40 texts, stretches of their tokens are held out. "auto" is a tenth, but at least 10 of
        them, and nothing if there are fewer than 40. None holds nothing out, and keeps the last
        weights. If `X_val` is passed to ``fit``, nothing is held out. Forecasters hold nothing
        out, since they have validation origins.
    patience : int, "auto" or None, default="auto"
        Number of epochs after which the training stops if the loss of held-out rows has fallen
        by less than 1 % in them. None never stops it. "auto" is a quarter of the epochs, but at
        least 8.
    autocast : bool, default=False
        Whether the training loss is computed in bfloat16 where torch considers it safe. A
        device without instructions for that is slow, with a warning.
    checkpoint : str or path-like, default=None
        File to which the state is written after each epoch, and from which an interrupted
        training continues, to the same weights. Fits of other data or parameters, such as those
        of a search, may name the same file. They take it once the training in it has ended;
        until then such a fit starts afresh, with a warning, and is not saved.
    verbose : bool or "auto", default="auto"
        For estimators, whether a line on stderr shows the progress, except in workers of
        joblib. "auto" shows it after 5 seconds, but not in searches and other meta-estimators,
        nor with callbacks.

    Notes
    -----
    The learning rate of "one_cycle" [1]_, in units of `learning_rate`, first rises as
    :math:`\frac{1}{25} + \frac{24}{25} c(r)`, and then falls as :math:`c(1 - f)` down to
    1/250 000. Here :math:`r` is the share of the warm-up's steps that are over, :math:`f` that
    of the later steps, and :math:`c(t) = (1 - \cos \pi t)/2`. The momentum (of Muon, or the
    first beta of Adam) goes the other way, from 0.95 to 0.85 and back. The rate of "constant"
    is always 1.

    References
    ----------
    .. [1] Smith, L. N. and Topin, N. (2019). Super-convergence: very fast training of neural
       networks using large learning rates. Proc. SPIE 11006.

    Examples
    --------
    >>> from sklearn_attention import Training, TransformerClassifier
    >>> model = TransformerClassifier(training=Training(weight_decay=0.1))
    >>> model.set_params(training__patience=5)
    TransformerClassifier(training=Training(patience=5, weight_decay=0.1))
    """

    _: KW_ONLY
    optimizer: str = "auto"
    schedule: str = "one_cycle"
    warm_up: float = 0.1
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    max_steps: int | None = None
    validation_fraction: float | str | None = "auto"
    patience: int | str | None = "auto"
    autocast: bool = False
    checkpoint: Any = None
    verbose: bool | str = "auto"


def filled(settings, **defaults):
    """Copy an Architecture or a Training, with values of `defaults` where it has "auto"."""
    settings = copy.copy(settings)
    for name, value in defaults.items():
        if is_one_of(getattr(settings, name), "auto"):
            setattr(settings, name, value)
    return settings


@dataclass(frozen=True)
class TrainingPlan:
    """Validated values of a training, in which "auto" is resolved for a number of rows."""

    learning_rate: float
    batch_size: int
    max_epochs: int | None
    max_steps: int | None
    optimizer: str
    schedule: str
    warm_up: float
    weight_decay: float
    clip_norm: float | None
    patience: int | None
    autocast: bool


def resolve_plan(
    training,
    n_samples,
    *,
    learning_rate,
    batch_size,
    max_epochs,
    validates,
    largest_batch=64,
    fewest_epochs=1,
):
    """Resolve the automatic settings of a Training for `n_samples` rows, and validate them.

    `learning_rate`, `batch_size` and `max_epochs` are parameters of the estimator.
    `largest_batch` is the maximum of an automatic `batch_size`, `fewest_epochs` the minimum of
    an automatic `max_epochs`. `validates` says whether there is a validation loss, without
    which an automatic `patience` is None.
    """
    check_flag("training.verbose", training.verbose, "auto")
    learning_rate = check_positive("learning_rate", learning_rate)
    if learning_rate > _MAX_RATE:
        raise ValueError(
            f"learning_rate={learning_rate!r} is not valid: pass a positive number up to "
            f"{_MAX_RATE:.4g}, as weights are in single precision."
        )
    if is_one_of(batch_size, "auto"):
        batch_size = max(min(n_samples // 12, largest_batch), 8)
    batch_size = check_positive("batch_size", batch_size, integer=True)
    if max_epochs is None and training.max_steps is None:
        raise ValueError(
            "max_epochs=None and max_steps=None would never end: pass one of them."
        )
    max_steps = _check_count("max_steps", training.max_steps)
    if is_one_of(max_epochs, "auto"):
        n_epochs = max(-(-_N_STEPS * batch_size // n_samples), fewest_epochs)
        max_epochs = min(n_epochs, _MAX_EPOCHS) if max_steps is None else None
    max_epochs = _check_count("max_epochs", max_epochs)
    patience = training.patience
    if is_one_of(patience, "auto"):
        patience = max((max_epochs or _MAX_EPOCHS) // 4, 8) if validates else None
    clip_norm, optimizer = training.clip_norm, training.optimizer
    if is_one_of(optimizer, "auto"):
        optimizer = "adamw"
    return TrainingPlan(
        learning_rate=learning_rate,
        batch_size=batch_size,
        max_epochs=max_epochs,
        max_steps=max_steps,
        optimizer=str(check_choice("optimizer", optimizer, OPTIMIZERS)),
        schedule=str(check_choice("schedule", training.schedule, SCHEDULES)),
        warm_up=check_in_interval("warm_up", training.warm_up, 0, 1, closed_right=False),
        weight_decay=check_in_interval("weight_decay", training.weight_decay, 0, _MAX_RATE),
        clip_norm=None if clip_norm is None else check_positive("clip_norm", clip_norm),
        patience=_check_count("patience", patience),
        autocast=check_flag("autocast", training.autocast),
    )


def _check_count(name, value):
    """Return a positive integer as an int, or None; raise ValueError for another value."""
    return None if value is None else check_positive(name, value, integer=True)


def share_held_out(training, n_samples):
    """Return the fraction of `n_samples` rows that is held out; None if none are.

    Raises ValueError if the fraction is not valid, or if `patience` needs rows held out and
    there are none.
    """
    fraction = training.validation_fraction
    if is_one_of(fraction, "auto"):
        has_enough = n_samples >= _MIN_ROWS
        fraction = max(0.1, _MIN_HELD_OUT / n_samples) if has_enough else None
    elif fraction is not None:
        check_in_open_interval("training.validation_fraction", fraction, 0, 1)
        if n_samples < 2:
            raise ValueError(
                f"training.validation_fraction={fraction!r} leaves no rows to learn from: pass "
                "more rows, or training.validation_fraction=None."
            )
    if fraction is None and not is_one_of(training.patience, None, "auto"):
        raise ValueError(
            f"training.patience={training.patience!r} needs rows that are held out, but "
            f"training.validation_fraction={training.validation_fraction!r} holds out none of "
            f"{n_samples}: pass a validation_fraction between 0 and 1, or patience=None."
        )
    return fraction


class _Epochs(Sequence):
    """Sizes of the batches of each epoch, as a sequence of lists.

    They are the same in all epochs, except that `n_steps` may end the last one early.
    """

    def __init__(self, sizes, n_steps):
        """Store the sizes of a complete epoch, and the number of steps of all epochs."""
        self._sizes, self.n_steps, self.largest = sizes, n_steps, max(sizes)

    def __len__(self):
        return -(-self.n_steps // len(self._sizes))

    def __getitem__(self, i):
        epoch = range(len(self))[i]
        if isinstance(i, slice):
            return [self[k] for k in epoch]
        return self._sizes[: self.n_steps - epoch * len(self._sizes)]


def batch_sizes(plan, n_samples):
    """Return the sizes of the batches of all epochs, a sequence of lists."""
    n_batches = -(-n_samples // plan.batch_size)
    # Batches have about equal sizes, since the gradient of a small last batch would be noise
    # that counts as much as the others.
    size, n_larger = divmod(n_samples, n_batches)
    sizes = [size + 1] * n_larger + [size] * (n_batches - n_larger)
    n_steps = min((plan.max_epochs or math.inf) * n_batches, plan.max_steps or math.inf)
    return _Epochs(sizes, n_steps)


def pace(plan, step, n_steps):
    """Return the learning rate and the momentum of a step, counted from 0.

    The momentum is None if it does not change. `Training` has the formulas.
    """
    if plan.schedule == "constant":
        return plan.learning_rate, None
    # The last step of the warm-up has the highest rate.
    peak = max(0.0, plan.warm_up * n_steps - 1)
    if step < peak:
        height, base = _half_cosine(step / peak), 1 / 25
    else:
        fallen = (step - peak) / (n_steps - 1 - peak) if step > peak else 0.0
        height, base = _half_cosine(1 - fallen), 1 / 25e4
    return plan.learning_rate * (base + (1 - base) * height), 0.95 - (0.95 - 0.85) * height


def _half_cosine(t):
    """Return a smooth curve that rises from 0 at t = 0 to 1 at t = 1."""
    return 0.5 - 0.5 * math.cos(math.pi * t)
