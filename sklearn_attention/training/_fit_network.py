"""Networks of estimators: their parameters, the fit, and the fitted network as plain values."""

import dataclasses
import importlib
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._base import parameters, warn_user
from .._validation import check_flag, is_one_of
from ._architecture import Architecture, transformer_shape
from ._training import Training, batch_sizes, filled, resolve_plan, share_held_out

# Parameters that are objects with parameters of their own, sizes of the network, and parameters
# of the training besides those of `Training`.
_NESTED = {"architecture": Architecture, "training": Training}
_SIZES = "d_model", "n_heads", "n_layers", "dropout"
_PLAN_OPTIONS = "learning_rate", "batch_size", "max_epochs"


@dataclass(frozen=True)
class NetworkSettings:
    """Validated parameters of an estimator with a network, in which "auto" is replaced."""

    architecture: Architecture
    training: Training
    plan_options: dict  # keywords of `resolve_plan` that do not depend on the rows
    sizes: dict  # keywords of `transformer_shape`
    random_state: object
    device: object
    start: object  # the FittedNetwork of the last fit if this fit continues it, or None

    @classmethod
    def of(
        cls,
        estimator,
        *,
        positions="sinusoidal",
        activation="gelu",
        widening=4,
        optimizer="adamw",
        largest_batch=64,
        fewest_epochs=1,
        foreign=("patch_length", "instance_norm"),
    ):
        """Validate the parameters of an estimator, and replace values "auto" in them.

        Parameters
        ----------
        estimator : estimator
            An estimator with NetworkParameters.
        positions, activation, optimizer : str
            Values that "auto" stands for.
        widening : int
            Default width of hidden layers, as a multiple of the width of tokens.
        largest_batch, fewest_epochs : int
            Arguments of :func:`resolve_plan`.
        foreign : tuple of str
            Names of parameters that have no meaning for this estimator; a ValueError is raised
            if they are set.
        """
        is_warm = check_flag("warm_start", estimator.warm_start)
        architecture = _nested(estimator, "architecture", foreign)
        plan_options = {name: getattr(estimator, name) for name in _PLAN_OPTIONS}
        plan_options |= {"largest_batch": largest_batch, "fewest_epochs": fewest_epochs}
        settings = cls(
            architecture=filled(architecture, positions=positions, activation=activation),
            training=filled(_nested(estimator, "training", foreign), optimizer=optimizer),
            plan_options=plan_options,
            sizes={name: getattr(estimator, name) for name in _SIZES} | {"widening": widening},
            random_state=estimator.random_state,
            device=estimator.device,
            start=getattr(estimator, "network_", None) if is_warm else None,
        )
        # Errors in parameters are raised here, although the number of rows is not known yet.
        settings.plan(1)
        check_random_state(estimator.random_state)
        return settings

    def shape(self, *, ordered=True):
        """Validate and return the arguments of the encoder, as `transformer_shape` does."""
        return transformer_shape(self.architecture, **self.sizes, ordered=ordered)

    def plan(self, n_rows, *, validates=True):
        """Resolve the plan of a training on `n_rows` rows, or raise ValueError."""
        return resolve_plan(self.training, n_rows, validates=validates, **self.plan_options)

    def count_epochs(self, n_rows):
        """Return the maximum number of epochs of a training on `n_rows` rows."""
        return len(batch_sizes(self.plan(n_rows), n_rows))

    def seed(self):
        """Draw a seed for torch's generators."""
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def split(self, n_rows, strata=None):
        """Split rows at random; return positions of those to learn from, and of those held out.

        `strata` (n_rows,) are classes; the same fraction of the rows of each class is held out.
        """
        fraction = share_held_out(self.training, n_rows)
        if fraction is None:
            return np.arange(n_rows), np.arange(0)
        import torch  # takes a second to load

        from ._batches import hold_out
        from ._network import torch_threads

        strata = None if strata is None else torch.from_numpy(strata)
        with torch_threads(1):
            generator = torch.Generator().manual_seed(self.seed())
            split = hold_out(n_rows, fraction, generator=generator, strata=strata)
        return [rows.numpy() for rows in split]


def _nested(estimator, name, foreign):
    """Return the parameter "architecture" or "training" of an estimator.

    If it is None, an object with default parameters is returned. Raises ValueError if it is of
    another class, or if one of its `foreign` parameters is not the default.
    """
    kind, nested = _NESTED[name], getattr(estimator, name)
    if nested is None:
        return kind()
    if not isinstance(nested, kind):
        raise ValueError(f"{name}={nested!r} is not valid: pass {kind.__name__}(...), or None.")
    for parameter, default in kind().get_params(deep=False).items():
        value = getattr(nested, parameter)
        if parameter in foreign and value is not default and not is_one_of(value, default):
            raise ValueError(
                f"{name}.{parameter}={value!r} has no meaning for {type(estimator).__name__}: "
                "leave it out."
            )
    return nested


@parameters
class NetworkParameters:
    """Mixin of estimators with a :class:`FittedNetwork` in `network_`: their parameters."""

    _: KW_ONLY
    d_model: int = 64
    n_heads: int = 4
    n_layers: int = 2
    dropout: float = 0.0
    learning_rate: float = 2e-3
    batch_size: Any = "auto"
    max_epochs: int | str = "auto"
    architecture: Any = None
    training: Any = None
    warm_start: bool = False
    random_state: int | np.random.RandomState | None = 0
    device: str = "auto"

    def set_params(self, **params) -> Self:
        """Set parameters, also those of `architecture` and `training` where these are None.

        Parameters
        ----------
        **params : dict
            Names and values of parameters, such as ``training__weight_decay=0.1``.

        Returns
        -------
        self : estimator
        """
        for name, kind in _NESTED.items():
            sets_nested = any(key.startswith(f"{name}__") for key in params)
            if sets_nested and getattr(self, name) is None and params.get(name) is None:
                setattr(self, name, kind())
        return super().set_params(**params)

    @property
    def training_history_(self):
        """History of the training; None if no network was trained."""
        check_is_fitted(self, "network_")
        return self.network_ and self.network_.history

    @property
    def module_(self):
        """The fitted network, a torch.nn.Module in evaluation mode, on its device."""
        if getattr(self, "network_", None) is None:
            check_is_fitted(self, "network_")
            raise AttributeError(
                f"{type(self).__name__} was fitted without a network: its documentation says "
                "which parameters make one."
            )
        return self.network_.module(self.device)


def resolve_device(device):
    """Return the torch device that ``device`` stands for; "auto" prefers CUDA."""
    import torch

    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"device={device!r} is not a device: pass 'auto', 'cpu' or 'cuda'."
        ) from error
    if resolved.type == "meta":
        raise ValueError(f"device={device!r} computes nothing: pass 'auto', 'cpu' or 'cuda'.")
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device!r} is not available here: pass 'auto' or 'cpu'.")
    return resolved


@dataclass(frozen=True, eq=False)
class FittedNetwork:
    """A trained network of this package as plain values: kind, shape, weights, history."""

    kind: str  # name of the class, after the name of its module
    shape: dict  # the arguments of the class
    weights: dict  # arrays by name
    batch_size: int
    # ``loss``, ``learning_rate``, ``seconds`` and, if there is one, ``validation_loss`` of each
    # epoch; ``n_steps``, ``best_epoch`` and ``stopped``.
    history: dict
    # The module on the last device that was asked for; pickles do not contain it.
    _built: dict = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self):
        return vars(self) | {"_built": {}}

    def module(self, device="auto"):
        """Return the torch module in evaluation mode, the same at each call for one device."""
        from ._network import build_network, load_weights

        device = resolve_device(device)
        # If several threads build a module at once, each uses its own, and one is stored.
        network = self._built.get(device)
        if network is None:
            network = build_network(_class_of(self.kind), self.shape, 0)
            load_weights(network, self.weights)
            network = network.to(device).eval()
            for old_device in [*self._built]:
                self._built.pop(old_device, None)
            self._built[device] = network
        return network


def fit_network(
    kind,
    shape,
    settings,
    batch_loss,
    n_rows,
    *,
    n_tokens,
    report,
    validate=None,
    data=(),
    lengths=None,
    attributes=lambda network: {"network_": network},
):
    """Train a network ``kind(**shape)``, from scratch or from ``settings.start``.

    Parameters
    ----------
    kind : type
        The class of the network.
    shape : dict
        Arguments of the class.
    settings : NetworkSettings
        Parameters of the network and of its training.
    batch_loss, lengths
        Arguments of `train`.
    validate : callable or None
        The argument `validation_loss` of `train`.
    n_rows : int
        Number of rows to learn from.
    n_tokens : int
        Number of tokens of a row, which decides on the number of threads.
    report : Report
        It passes the progress on to callbacks.
    data : sequence of ndarray
        Arrays that identify the training of a checkpoint.
    attributes : callable
        ``attributes(network)`` returns the fitted attributes, as a dict, that callbacks see
        during the training.

    Returns
    -------
    network : FittedNetwork
        The trained network.
    """
    from ._network import build_network, digest, load_weights, weights_of, worthwhile_threads
    from ._train import train

    # 1. Build the network, with new weights or those of the last fit.
    seed, start, training = settings.seed(), settings.start, settings.training
    plan = settings.plan(n_rows, validates=validate is not None)
    network, start_weights = build_network(kind, shape, seed), ()
    if start is not None:
        _refuse_other_shape(start.shape, shape)
        load_weights(network, start.weights)
        start_weights = start.weights.values()
    network.to(resolve_device(settings.device))
    # 2. Collect the arguments of `train`. The key identifies the training of a checkpoint.
    sizes, has_checkpoint = batch_sizes(plan, n_rows), training.checkpoint is not None
    options = {name: getattr(plan, name) for name in _PLAN_OPTIONS} | {
        "random_state": seed,
        "validation_loss": validate,
        "checkpoint_key": digest(shape, *data, *start_weights) if has_checkpoint else "",
        "threads": worthwhile_threads(network, sizes.largest * n_tokens),
        "lengths": lengths,
    }

    def fitted(history):
        name = f"{kind.__module__}.{kind.__qualname__}"
        return FittedNetwork(
            name, shape, weights_of(network), plan.batch_size, dataclasses.asdict(history)
        )

    # 3. Train the network, while callbacks see what is fitted so far.
    with report.training(
        sizes, lambda history: attributes(fitted(history)), verbose=settings.training.verbose
    ) as task:
        history = train(network, batch_loss, n_rows, training, task=task, **options)
    _warn_of_end(history, report.in_search)
    return fitted(history)


def _class_of(kind):
    """Return the class of a network by its name, or raise ValueError.

    Names come from files. A file must not run any code but that of this package.
    """
    from torch.nn import Module

    module, _, name = kind.rpartition(".")
    network_class = None
    if module.startswith(f"{__package__.partition('.')[0]}."):
        network_class = getattr(importlib.import_module(module), name, None)
    if not (isinstance(network_class, type) and issubclass(network_class, Module)):
        raise ValueError(
            f"kind={kind!r} in the file of an estimator is not a network of this package: load "
            "files only from sources that you trust, and if the file is damaged, fit the "
            "estimator again."
        )
    return network_class


def _refuse_other_shape(old_shape, shape):
    """Raise ValueError if weights of a network of the old shape do not fit the new one."""
    for name, value in shape.items():
        if name != "dropout" and old_shape.get(name) != value:
            raise ValueError(
                f"warm_start=True cannot continue with the weights of the last fit, whose "
                f"{name} was {old_shape.get(name)!r}, not {value!r}: pass what was passed "
                "then, or warm_start=False."
            )


def _warn_of_end(history, in_search):
    """Warn of a training that was interrupted or too short; raise interrupts of a search."""
    if history.stopped == "interrupted":
        if not history.loss or in_search:
            # There are no weights to keep, or the interrupt is meant for all of a search.
            raise KeyboardInterrupt
        warn_user(
            f"The training was interrupted after {history.n_steps} steps: the estimator keeps "
            "the best weights until then, or the last ones without validation rows. Fit again "
            "to train to the end.",
        )
    if history.ends_too_early and not in_search:
        n_epochs, n_steps = len(history.loss), history.n_steps
        remedy = f"max_epochs={2 * n_epochs}"
        if history.stopped == "max_steps":
            remedy = f"training__max_steps={2 * n_steps}"
        warn_user(
            f"The validation loss was still falling in the last of {n_epochs} epochs: more "
            f"would probably help. Pass {remedy}, for example.",
        )
