"""Plans of trainings: optimizer, learning rate, batches, and when to stop."""

import dataclasses
import math
from collections.abc import Sequence

from .._blocks import check_memory
from .._validation import check_choice, check_flag, check_in_interval, check_positive

OPTIMIZERS = ("adam", "adamw", "lbfgs", "muon")
SCHEDULES = ("constant", "cosine", "one_cycle")
# Where the one-cycle policy starts and ends, and between which values the momentum moves.
_START, _END = 1 / 25, 1 / 25e4
_MOST_MOMENTUM, _LEAST_MOMENTUM = 0.95, 0.85


@dataclasses.dataclass(frozen=True)
class Plan:
    r"""Plan of a training; every value is checked as it is made.

    Parameters
    ----------
    optimizer : {"adamw", "muon", "adam", "lbfgs"}, default="adamw"
        "muon" steps along the orthogonal factor of the momentum of each matrix of an encoder
        or decoder block (Jordan et al. 2024), and is "adamw" for all other parameters.
        "lbfgs" is L-BFGS with a line search for the strong Wolfe conditions, on all rows at
        once: a step is an epoch, of up to 20 iterations. For it, `learning_rate`,
        `schedule`, `warm_up`, `clip_norm` and `batch_size` have no meaning.
    learning_rate : float, default=1e-3
        Highest learning rate.
    schedule : {"one_cycle", "cosine", "constant"}, default="one_cycle"
        Course of the learning rate, see Notes.
    warm_up : float, default=0.1
        Share of the steps, in [0, 1), in which the learning rate rises; "constant" has none.
    weight_decay : float, default=0.01
        Decay of matrices only, embeddings of positions excepted. With "adamw" and "muon" they
        shrink by this times the learning rate in every step. With the others half of this
        times their sum of squares is added to the loss.
    clip_norm : float, default=1.0
        Longest gradient, of all parameters together; None clips none.
    batch_size : int or (int, int), default=64
        Most rows in a batch; those of an epoch are divided evenly among the fewest batches.
        With a pair, sizes grow from the first to the second, by the same factor for the same
        share of the training.
    max_epochs : int, default=50
        Passes over all rows; None if only the steps count.
    max_steps : int, default=None
        Number of steps; None if only the epochs count. The training ends at the first limit.
    patience : int, default=None
        Stop after so many epochs without a better validation loss; None never does.
    autocast : bool, default=False
        Whether the training loss is computed in bfloat16 where torch considers it safe. A
        device without instructions for that is slow, with a warning.

    Raises
    ------
    ValueError
        If a value is not valid.

    Notes
    -----
    With :math:`r` the share of the warm-up that is over and :math:`f` the share of what
    follows, in units of `learning_rate`:

    * "one_cycle" [1]_: :math:`\frac{1}{25} + \frac{24}{25} c(r)`, then
      :math:`c(1 - f)` down to 1/250 000, where :math:`c(t) = (1 - \cos \pi t)/2`. The
      momentum (that of Muon, the first beta of Adam) goes the other way, 0.95 to 0.85 and back.
    * "cosine" [2]_: :math:`r`, then :math:`c(1 - f)`.
    * "constant": 1.

    References
    ----------
    .. [1] Smith, L. N. and Topin, N. (2019). Super-convergence: very fast training of neural
       networks using large learning rates. Proc. SPIE 11006.
    .. [2] Loshchilov, I. and Hutter, F. (2017). SGDR: stochastic gradient descent with warm
       restarts. ICLR.

    Examples
    --------
    >>> from sklearn_attention.training import Plan
    >>> Plan(learning_rate=2e-3, batch_size=(32, 256), max_epochs=20).schedule
    'one_cycle'
    """

    optimizer: str = "adamw"
    learning_rate: float = 1e-3
    schedule: str = "one_cycle"
    warm_up: float = 0.1
    weight_decay: float = 0.01
    clip_norm: float | None = 1.0
    batch_size: int | tuple[int, int] = 64
    max_epochs: int | None = 50
    max_steps: int | None = None
    patience: int | None = None
    autocast: bool = False

    def __post_init__(self):
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_choice("schedule", self.schedule, SCHEDULES)
        check_flag("autocast", self.autocast)
        if self.max_epochs is None and self.max_steps is None:
            raise ValueError(
                "max_epochs=None and max_steps=None would never end: pass one of them."
            )
        checked = {
            "learning_rate": check_positive("learning_rate", self.learning_rate),
            "warm_up": check_in_interval("warm_up", self.warm_up, 0, 1, closed_right=False),
            "weight_decay": check_in_interval(
                "weight_decay", self.weight_decay, 0, math.inf, closed_right=False
            ),
            "batch_size": _check_batch_size(self.batch_size),
        }
        if self.clip_norm is not None:
            checked["clip_norm"] = check_positive("clip_norm", self.clip_norm)
        for name in ("max_epochs", "max_steps", "patience"):
            value = getattr(self, name)
            if value is not None:
                checked[name] = check_positive(name, value, integer=True)
        # Plain numbers, so that plans that mean the same are equal and print alike.
        for name, value in checked.items():
            object.__setattr__(self, name, value)


class _Epochs(Sequence):
    """Sizes of the batches of each epoch: those listed, or the only ones again and again."""

    def __init__(self, listed, n_steps, n_epochs):
        self._listed, self.n_steps, self._n_epochs = listed, n_steps, n_epochs
        self.largest = max(map(max, listed))

    def __len__(self):
        return self._n_epochs

    def __getitem__(self, i):
        if len(self._listed) == len(self):
            return self._listed[i]
        place, (sizes,) = range(len(self))[i], self._listed
        if isinstance(i, slice):
            return [self[epoch] for epoch in place]
        return sizes[: self.n_steps - place * len(sizes)]


def batch_sizes(plan, n_samples):
    """Sizes of all batches to come: for each epoch, those of its steps."""
    n_samples = check_positive("n_samples", n_samples, integer=True)
    first, last = n_samples, n_samples
    if plan.optimizer != "lbfgs":
        pair = isinstance(plan.batch_size, tuple)
        first, last = plan.batch_size if pair else (plan.batch_size, plan.batch_size)
    most_epochs, most_steps = plan.max_epochs or math.inf, plan.max_steps or math.inf
    # Epochs whose batches do not grow are alike, but for a last one that is cut short.
    alike, epochs, n_steps = first == last, [], 0
    if not alike:
        most = min(most_epochs, most_steps)
        check_memory("a list of batches that grow", (most, 16), "pass a smaller max_epochs")
    while len(epochs) < (1 if alike else most_epochs) and n_steps < most_steps:
        sizes, left = [], n_samples
        while left and n_steps < most_steps:
            done = max((len(epochs) + 1 - left / n_samples) / most_epochs, n_steps / most_steps)
            most = round(first * (last / first) ** done)
            # Evenly: a last batch of few rows would be noise that counts like the others.
            sizes.append(math.ceil(left / math.ceil(left / most)))
            left -= sizes[-1]
            n_steps += 1
        epochs.append(sizes)
    if not alike:
        return _Epochs(epochs, n_steps, len(epochs))
    n_steps = min(most_epochs * len(epochs[0]), most_steps)
    return _Epochs(epochs, n_steps, -(-n_steps // len(epochs[0])))


def pace(plan, step, n_steps):
    """Learning rate of a step, counted from 0, and momentum; None leaves that unchanged."""
    if plan.schedule == "constant":
        return plan.learning_rate, None
    if plan.schedule == "cosine":
        rising = round(plan.warm_up * n_steps)
        if step < rising:
            return plan.learning_rate * (step + 1) / (rising + 1), None
        return plan.learning_rate * _wave(1 - (step - rising) / (n_steps - rising)), None
    top = max(0.0, plan.warm_up * n_steps - 1)
    if step < top:
        height, base = _wave(step / top), _START
    else:
        fallen = (step - top) / (n_steps - 1 - top) if step > top else 0.0
        height, base = _wave(1 - fallen), _END
    rate = plan.learning_rate * (base + (1 - base) * height)
    return rate, _MOST_MOMENTUM - (_MOST_MOMENTUM - _LEAST_MOMENTUM) * height


def _wave(t):
    return 0.5 - 0.5 * math.cos(math.pi * t)


def _check_batch_size(batch_size):
    if not isinstance(batch_size, (tuple, list)):
        return check_positive("batch_size", batch_size, integer=True)
    if len(batch_size) != 2:
        raise ValueError(f"batch_size={batch_size!r} is not valid: pass a number, or a pair.")
    first, last = (check_positive("batch_size", size, integer=True) for size in batch_size)
    if last < first:
        raise ValueError(
            f"batch_size={batch_size!r} would shrink: pass the smaller number first."
        )
    return first, last
