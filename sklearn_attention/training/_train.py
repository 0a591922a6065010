"""The training loop: any module, on rows held in memory."""

import contextlib
import dataclasses
import math
import numbers
import time

import torch

from .._base import warn_user
from .._validation import check_positive
from ..kernels import Kernel
from ..nn._random import draw_from
from ._batches import shuffled_batches
from ._checkpoint import Checkpoint, fingerprint
from ._network import torch_threads
from ._optimizers import computes_bfloat16, make_optimizers
from ._training import Training, batch_sizes, pace, resolve_plan


@dataclasses.dataclass
class History:
    """History of a training, epoch by epoch.

    It is the result of :func:`train`; :class:`~sklearn_attention.inspection.TrainingDisplay`
    draws it.

    Attributes
    ----------
    loss : list of float
        Mean of the training loss over the rows in each epoch. The loss of a row is that at the
        parameters before its step.
    validation_loss : list of float
        Validation loss after each epoch; empty if there is none.
    learning_rate : list of float
        Learning rate of the last step of each epoch.
    seconds : list of float
        Duration of each epoch, with its validation.
    n_steps : int
        Number of steps in all complete epochs.
    best_epoch : int or None
        The epoch, counted from 0, after which the validation loss was smallest. None if there
        is no validation loss, or no epoch has ended.
    stopped : str or None
        Reason why the training ended: "max_epochs", "max_steps", "patience", "callback" or
        "interrupted". None while it runs.
    """

    loss: list[float] = dataclasses.field(default_factory=list)
    validation_loss: list[float] = dataclasses.field(default_factory=list)
    learning_rate: list[float] = dataclasses.field(default_factory=list)
    seconds: list[float] = dataclasses.field(default_factory=list)
    n_steps: int = 0
    best_epoch: int | None = None
    stopped: str | None = None

    @property
    def ends_too_early(self):
        """True if the budget ended while the validation loss was falling."""
        # The loss was falling if the last epoch was the best one, and the second half of the
        # epochs gained more than 1 % of the first epoch's loss. The last few epochs alone tell
        # little: learning rates that fall to 0 flatten the end of every curve.
        losses, half = self.validation_loss, len(self.validation_loss) // 2
        budget_ended = self.stopped in ("max_epochs", "max_steps")
        if not budget_ended or not half or self.best_epoch != len(losses) - 1:
            return False
        return min(losses[:half]) - losses[-1] > 0.01 * losses[0]


def train(
    module,
    batch_loss,
    n_samples,
    plan,
    *,
    learning_rate=1e-3,
    batch_size="auto",
    max_epochs="auto",
    random_state,
    validation_loss=None,
    task=None,
    checkpoint_key: str = "",
    threads=None,
    lengths=None,
) -> History:
    """Train the parameters of a module of torch.

    Estimators with a network call it in `fit`; call it to train a network of your own with the
    same early stopping and checkpoints.

    Parameters
    ----------
    module : torch.nn.Module
        Its parameters change in place, on one device. Afterwards it is in evaluation mode,
        and no parameter has a gradient.
    batch_loss : callable
        ``batch_loss(module, rows)`` returns the mean loss of a batch as a Tensor. `rows` is a
        LongTensor of positions, on the module's device, which select rows of the data.
    n_samples : int
        Number of rows.
    plan : Training
        How to train. If its `checkpoint` exists, that training is continued; it ends with the
        same parameters as without an interruption, bit for bit with one thread. If the training
        in the file is over, its result is returned at once, until another training takes the
        file.
    learning_rate : float, default=1e-3
        Highest learning rate.
    batch_size : int or "auto", default="auto"
        Largest number of rows in a batch. The rows of an epoch are divided evenly among as few
        batches as possible. "auto" is a twelfth of the rows, but at least 8 and at most 64.
    max_epochs : int, "auto" or None, default="auto"
        Number of passes over all rows; None if only the plan's `max_steps` counts. "auto" is
        None if `max_steps` is given, and else enough for 1000 steps, but at most 64.
    random_state : int
        Seeds the order of the rows, and the draws of :class:`~sklearn_attention.nn.Dropout`
        while the training lasts.
    validation_loss : callable, default=None
        ``validation_loss(module)`` returns a number, the smaller the better. It is called after
        each epoch, in evaluation mode and without gradients. If it is passed, the module ends
        with the parameters for which the number was smallest, whatever ends the training. If it
        has ``state_dict`` and ``load_state_dict``, its state is stored in the checkpoint.
    task : object, default=None
        Object with three methods. ``begin()`` is called before each epoch, ``step(history,
        n_steps)`` after each step, and ``end(history)`` after each epoch; the last one returns
        whether to stop.
    checkpoint_key : str, default=""
        Further identity of the training, such as a hash of the data.
    threads : int, default=None
        Threads that torch uses; None does not change that.
    lengths : LongTensor of shape (n_samples,), default=None
        Lengths of rows that are padded to the longest row of their batch; the rows of a batch
        then have similar lengths. None draws batches from all rows.

    Returns
    -------
    history : History
        Losses of all epochs, and how the training ended.

    Raises
    ------
    FloatingPointError
        If a loss or a gradient is not finite. The message says where, and the likely cause. The
        module then has its best parameters, or else those from before the epoch.
    ValueError
        If arguments do not fit one another, or the file is damaged or not a checkpoint.

    Warns
    -----
    UserWarning
        If the plan has `autocast`, and the device has no instructions for bfloat16.

    Notes
    -----
    KeyboardInterrupt ends the training with ``history.stopped == "interrupted"`` and usable
    parameters: the best, or else the last. A second interrupt, while they are put back, is
    raised. A checkpoint is that of the last complete epoch, from which the training can go on.
    A process that is killed while it writes a checkpoint leaves a file ``*.unfinished`` beside
    it.

    Trainings in several threads at once equal those one after the other, bit for bit. Layers
    of torch that draw, such as :class:`torch.nn.Dropout`, draw from torch's global generator,
    which is not seeded: use :class:`sklearn_attention.nn.Dropout`.

    Examples
    --------
    >>> import torch
    >>> from sklearn_attention import Training
    >>> from sklearn_attention.training import train
    >>> from sklearn_attention.training._network import torch_seed
    >>> x = torch.linspace(-1, 1, 64)[:, None]
    >>> with torch_seed(0):
    ...     line = torch.nn.Linear(1, 1)
    >>> def batch_loss(module, rows):
    ...     return (module(x[rows]) - 3 * x[rows]).square().mean()
    >>> history = train(
    ...     line, batch_loss, 64, Training(weight_decay=0.0), learning_rate=0.1, batch_size=16,
    ...     random_state=0,
    ... )
    >>> round(line.weight.item(), 2), history.stopped
    (3.0, 'max_epochs')
    """
    is_integer = isinstance(random_state, numbers.Integral)
    if not is_integer or isinstance(random_state, bool) or not 0 <= random_state < 2**63:
        raise ValueError(
            f"random_state={random_state!r} is not valid: pass an integer from 0 to 2**63 - 1."
        )
    n_samples = check_positive("n_samples", n_samples, integer=True)
    if not isinstance(plan, Training):
        raise ValueError(f"plan={plan!r} is not valid: pass Training(...).")
    validates = validation_loss is not None
    options = {"learning_rate": learning_rate, "batch_size": batch_size}
    options |= {"max_epochs": max_epochs, "validates": validates}
    resolved = resolve_plan(plan, n_samples, **options)
    if resolved.patience is not None and not validates:
        raise ValueError(
            f"patience={resolved.patience!r} needs a validation loss: pass validation_loss, or "
            "patience=None."
        )
    run = _Run(
        module, batch_loss, n_samples, resolved, int(random_state), validation_loss, lengths
    )
    if resolved.autocast and not computes_bfloat16(run.device):
        warn_user(
            f"autocast=True computes in bfloat16, which this {run.device.type} has no "
            "instructions for: the training may take many times as long. Pass autocast=False."
        )
    checkpoint = None
    if plan.checkpoint is not None:
        checkpoint = Checkpoint(plan.checkpoint, run.fingerprint(str(checkpoint_key)))
        if not checkpoint.restore(run.load_state_dict):
            # Another training is under way in the file.
            checkpoint = None
    limit = contextlib.nullcontext() if threads is None else torch_threads(threads)
    with limit, draw_from(run.generators), run.autocast(enabled=False):
        _run_epochs(run, task, checkpoint)
    return run.history


def _run_epochs(run, task, checkpoint):
    """Run epochs until there is a reason to stop; task and checkpoint may be None."""
    try:
        while run.history.stopped is None:
            if task is not None:
                task.begin()
            run.epoch(task)
            stop = task is not None and task.end(run.history)
            run.history.stopped = run.reason_to_stop() or ("callback" if stop else None)
            if checkpoint is not None:
                checkpoint.save(run.state_dict(), ended=run.history.stopped is not None)
    except KeyboardInterrupt:
        run.history.stopped = "interrupted"
    finally:
        run.finish()


class _Run:
    """State of a training: the module, its optimizers, generators and history.

    `last` has a copy of the weights after the last complete epoch. `best` has one after the
    epoch with the smallest validation loss, and is None if there is no such epoch.
    """

    def __init__(
        self, module, batch_loss, n_samples, plan, random_state, validation_loss, lengths
    ):
        """Prepare a training; arguments are those of `train`, but `plan` is a TrainingPlan."""
        self.module, self.plan, self.n_samples = module, plan, n_samples
        self.random_state, self.lengths = random_state, lengths
        self.batch_loss, self.validation_loss = batch_loss, validation_loss
        self.sizes = batch_sizes(plan, n_samples)
        self.optimizers = make_optimizers(plan, module)
        self.parameters = [p for group in self.groups for p in group["params"]]
        self.device = self.parameters[0].device
        self.shuffler = torch.Generator().manual_seed(random_state)
        # Dropout draws from another stream of numbers than the order of the rows.
        seed = int(torch.randint(2**62, (), generator=self.shuffler))
        devices = dict.fromkeys([torch.device("cpu"), self.device])
        self.generators = [torch.Generator(device).manual_seed(seed) for device in devices]
        self.history = History()
        self.last, self.best = _weights(module), None

    @property
    def groups(self):
        """Parameter groups of all optimizers, dicts with "params" and "lr"."""
        return [group for optimizer in self.optimizers for group in optimizer.param_groups]

    def fingerprint(self, key):
        """Collect the values that identify this training."""
        values = {"n_samples": self.n_samples, "random_state": self.random_state}
        values |= {"validation": self.validation_loss is not None, "checkpoint_key": key}
        return fingerprint(self.module, self.plan, **values)

    def state_dict(self):
        """Collect all values that later epochs depend on."""
        return {
            "last": self.last,
            "best": self.best,
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "shuffler": self.shuffler.get_state(),
            "random": self.random_states(),
            "history": dataclasses.asdict(self.history),
            "validation": self.validation_loss.state_dict() if self._keeps_state else None,
        }

    def load_state_dict(self, state):
        """Continue from a state that :meth:`state_dict` returned."""
        self.last, self.best = state["last"], state["best"]
        self.set_random_states(state["random"])
        for optimizer, optimizer_state in zip(
            self.optimizers, state["optimizers"], strict=True
        ):
            optimizer.load_state_dict(optimizer_state)
        self.shuffler.set_state(state["shuffler"])
        self.history = History(**state["history"])
        if self._keeps_state:
            self.validation_loss.load_state_dict(state["validation"])
        # This comes last, so that an error above leaves the module as it was.
        self.module.load_state_dict(self.last)

    def random_states(self):
        """Return the states of the generators of the processor and of the device."""
        return [generator.get_state() for generator in self.generators]

    def set_random_states(self, states):
        """Set the generators to states that :meth:`random_states` returned."""
        for generator, state in zip(self.generators, states, strict=True):
            generator.set_state(state)

    @property
    def _keeps_state(self):
        """Whether the validation loss has a state that belongs in the checkpoint."""
        return hasattr(self.validation_loss, "state_dict")

    def epoch(self, task=None):
        """Run an epoch: make a step with each batch, validate, and write the history."""
        start, history = time.perf_counter(), self.history
        sizes = self.sizes[len(history.loss)]
        batches = shuffled_batches(self.n_samples, sizes, self.shuffler, self.lengths)
        # 1. Make a step for each batch, and add up the losses of their rows.
        self.module.train()
        total = 0.0
        for step, rows in enumerate(batches):
            total += len(rows) * self._step(rows.to(self.device), step)
            if task is not None:
                task.step(history, history.n_steps + step + 1)
        # 2. Validate, if all numbers are finite.
        self.module.eval()
        norm = torch.nn.utils.get_total_norm(self.parameters).item()
        self._check_finite("length of all parameters", norm, len(sizes) - 1)
        last, best, best_epoch = _weights(self.module), self.best, history.best_epoch
        validation = self._validate()
        for value in validation:
            self._check_finite(
                "validation loss", value, len(sizes) - 1, lambda: self._validate()[0]
            )
        if validation and validation[0] < min(history.validation_loss, default=math.inf):
            best, best_epoch = last, len(history.loss)
        # 3. Write the history.
        history = History(
            loss=[*history.loss, total / sum(sizes)],
            validation_loss=history.validation_loss + validation,
            learning_rate=[*history.learning_rate, self.groups[0]["lr"]],
            seconds=[*history.seconds, time.perf_counter() - start],
            n_steps=history.n_steps + len(sizes),
            best_epoch=best_epoch,
        )
        # They are set in one statement, so that an interrupt finds all of the epoch or nothing.
        self.last, self.best, self.history = last, best, history

    def reason_to_stop(self):
        """Return the reason to stop, as `History` names it; None if another epoch follows."""
        history, plan = self.history, self.plan
        n_epochs = len(history.loss)
        if n_epochs == len(self.sizes):
            return "max_steps" if history.n_steps == plan.max_steps else "max_epochs"
        losses, patience = history.validation_loss, plan.patience
        if patience is not None and n_epochs > patience:
            # A gain of less than 1 % may be the noise of a loss that does not fall any more.
            best_before = min(losses[:-patience])
            if min(losses[-patience:]) >= best_before - 0.01 * abs(best_before):
                return "patience"
        return None

    def finish(self):
        """Remove gradients, restore the best weights, and set the module to evaluation mode."""
        for parameter in self.parameters:
            parameter.grad = None
        if self.best is not None:
            self.module.load_state_dict(self.best)
        self.module.eval()

    def _step(self, rows, step):
        """Change the parameters by the gradient on a batch; return the loss of the batch.

        `step` is the number of the step in its epoch, counted from 0.
        """
        plan = self.plan
        rate, momentum = pace(plan, self.history.n_steps + step, self.sizes.n_steps)
        for group in self.groups:
            group["lr"] = rate
            if momentum is not None and "betas" in group:
                group["betas"] = (momentum, group["betas"][1])
            elif momentum is not None:
                group["momentum"] = momentum
        loss, norm = self._gradient(rows)
        self._check_batch(loss, norm, step, rows)
        if plan.clip_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(self.parameters, plan.clip_norm, norm)
        for optimizer in self.optimizers:
            optimizer.step()
        return loss

    def _gradient(self, rows):
        """Set the gradients of the parameters; return the loss, and the gradient's norm."""
        for parameter in self.parameters:
            parameter.grad = None
        with self.autocast(enabled=self.plan.autocast):
            loss = self.batch_loss(self.module, rows)
        loss.backward()
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        return loss.item(), torch.nn.utils.get_total_norm(gradients)

    def _validate(self):
        """Return a list with the validation loss, or an empty list if there is none."""
        if self.validation_loss is None:
            return []
        with torch.no_grad():
            return [float(self.validation_loss(self.module))]

    def autocast(self, *, enabled):
        """Return a context that computes in bfloat16 if `enabled`, whatever the caller's does.

        The context has no cache of rounded weights. torch empties this cache only at the end of
        the outermost context, so that all steps would use the weights of the first one.
        """
        kind = self.device.type
        return torch.autocast(kind, torch.bfloat16, enabled=enabled, cache_enabled=False)

    def _check_batch(self, loss, norm, step, rows):
        """Raise FloatingPointError if the loss or the norm of the gradient is not finite."""
        norm = norm.item()
        what, value = ("loss", loss) if not math.isfinite(loss) else ("gradient", norm)
        self._check_finite(what, value, step, lambda: sum(map(float, self._gradient(rows))))

    def _check_finite(self, what, value, step, recompute=None):
        """Raise FloatingPointError, with the likely cause, if a value is not finite.

        The module then has the parameters from before the epoch. `recompute` returns a value
        that is not finite if even with these parameters there are no finite numbers.
        """
        if math.isfinite(value):
            return
        self.module.load_state_dict(self.last)
        raise FloatingPointError(
            f"the {what} in epoch {len(self.history.loss)}, step {step} is {value}: "
            f"{self._cause(recompute)}"
        )

    def _cause(self, recompute):
        """Describe why numbers are probably not finite; see `_check_finite`."""
        # Buffers are not checked: a mask may well be infinite.
        for name, _ in self.module.named_parameters():
            if not self.last[name].isfinite().all():
                return f"{name!r} was not finite before the epoch; start from finite numbers."
        self.module.eval()
        if recompute is not None and not math.isfinite(recompute()):
            return (
                "so it is for the parameters from before the epoch. Are there inputs or "
                f"targets that are not finite, or huge{self._doubtful_kernels()}?"
            )
        return f"is learning_rate={self.plan.learning_rate!r} too large? Pass a smaller one."

    def _doubtful_kernels(self):
        """Ask, as the end of a message, about the derivatives of kernels that users wrote."""
        package = __package__.partition(".")[0] + "."
        kernels = (getattr(layer, "kernel", None) for layer in self.module.modules())
        kernels = (kernel for kernel in kernels if isinstance(kernel, Kernel))
        names = {repr(k) for k in kernels if not type(k).__module__.startswith(package)}
        return "".join(f", or derivatives of kernel={name}" for name in sorted(names))


def _weights(module):
    """Copy the weights of a module, with its buffers, by name."""
    return {name: value.detach().clone() for name, value in module.state_dict().items()}
