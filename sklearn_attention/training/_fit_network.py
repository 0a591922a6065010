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

_NESTED = {"architecture": Architecture, "training": Training}


@dataclass(frozen=True)
class NetworkSettings:
    """Checked parameters of an estimator with a network; "auto" is filled in."""

    architecture: Architecture
    training: Training
    plan_options: dict  # keywords of `resolve_plan` that do not depend on the rows
    sizes: dict  # parameters of the shape
    random_state: object
    device: object
    start: object  # the FittedNetwork to go on from, or None

    @classmethod
    def of(
        cls,
        estimator,
        *,
        positions="sinusoidal",
        activation="gelu",
        widening=4,  # width of hidden layers in widths of tokens
        optimizer="adamw",
        largest_batch=64,
        fewest_epochs=1,
        foreign=("patch_length", "instance_norm"),
    ):
        """Those of an estimator; `foreign` ones are for others. ValueError if not valid."""
        warm = check_flag("warm_start", estimator.warm_start)
        names = "d_model", "n_heads", "n_layers", "dropout"
        settings = cls(
            filled(
                _nested(estimator, "architecture", foreign),
                positions=positions, activation=activation,
            ),
            filled(_nested(estimator, "training", foreign), optimizer=optimizer),
            {
                "learning_rate": estimator.learning_rate,
                "batch_size": estimator.batch_size,
                "max_epochs": estimator.max_epochs,
                "largest_batch": largest_batch,
                "fewest_epochs": fewest_epochs,
            },
            {name: getattr(estimator, name) for name in names} | {"widening": widening},
            estimator.random_state,
            estimator.device,
            getattr(estimator, "network_", None) if warm else None,
        )  # fmt: skip
        settings.plan(1)
        check_random_state(estimator.random_state)
        return settings

    def shape(self, *, ordered=True):
        """Arguments that all networks have, checked; positions are for tokens in an order."""
        return transformer_shape(self.architecture, **self.sizes, ordered=ordered)

    def plan(self, n_rows, *, validates=True):
        """Resolve the plan of a training on `n_rows` rows; raise ValueError if not valid."""
        return resolve_plan(self.training, n_rows, validates=validates, **self.plan_options)

    def n_epochs(self, n_rows):
        """Most epochs that so many rows are learned from."""
        return len(batch_sizes(self.plan(n_rows), n_rows))

    def seed(self):
        """A seed of torch's generators."""
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def split(self, n_rows, strata=None):
        """Positions of rows to learn from, and of those held out, which are drawn at random.

        `strata` (n_rows,) are classes, which are held out in proportion.
        """
        share = share_held_out(self.training, n_rows)
        if share is None:
            return np.arange(n_rows), np.arange(0)
        import torch  # takes a second to load

        from ._batches import hold_out
        from ._network import torch_threads

        with torch_threads(1):
            parts = hold_out(
                n_rows, share,
                generator=torch.Generator().manual_seed(self.seed()),
                strata=None if strata is None else torch.from_numpy(strata),
            )  # fmt: skip
        return [part.numpy() for part in parts]


def _nested(estimator, name, foreign):
    """An object that is a parameter, its defaults where it is None, checked."""
    kind, part = _NESTED[name], getattr(estimator, name)
    if part is None:
        return kind()
    if not isinstance(part, kind):
        raise ValueError(f"{name}={part!r} is not valid: pass {kind.__name__}(...), or None.")
    for parameter, default in kind().get_params(deep=False).items():
        value = getattr(part, parameter)
        if parameter in foreign and value is not default and not is_one_of(value, default):
            raise ValueError(
                f"{name}.{parameter}={value!r} has no meaning for {type(estimator).__name__}: "
                "leave it out."
            )
    return part


@parameters
class NetworkParameters:
    """Mixin of estimators that hold a :class:`FittedNetwork` in `network_`, with parameters."""

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
            Such as ``training__weight_decay=0.1``.

        Returns
        -------
        self : estimator
        """
        for name, kind in _NESTED.items():
            nested = any(key.startswith(f"{name}__") for key in params)
            if nested and getattr(self, name) is None and params.get(name) is None:
                setattr(self, name, kind())
        return super().set_params(**params)

    @property
    def training_history_(self):
        """History of the training; None where there was none."""
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
    """The torch device that ``device`` stands for; "auto" prefers CUDA."""
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

    # `kind` is the class with its module, `shape` its arguments. `history` has ``loss``,
    # ``learning_rate``, ``seconds`` and, if there is one, ``validation_loss`` of every epoch;
    # ``n_steps``, ``best_epoch`` and ``stopped``.

    kind: str
    shape: dict
    weights: dict
    batch_size: int
    history: dict
    # The module on the last device, which pickles do without.
    _built: dict = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self):
        return vars(self) | {"_built": {}}

    def module(self, device="auto"):
        """The torch module in evaluation mode, the same at each call for one device."""
        from ._network import build_network, load_weights

        device = resolve_device(device)
        # Threads may come at once: each has a module, whichever stays.
        network = self._built.get(device)
        if network is None:
            network = build_network(_class_of(self.kind), self.shape, 0)
            load_weights(network, self.weights)
            network = network.to(device).eval()
            for other in [*self._built]:
                self._built.pop(other, None)
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
    """Train a network ``kind(**shape)``, from scratch or from ``settings.start``."""
    # `batch_loss`, `lengths` and `validate` are those of `train`. `n_tokens` of a row decide on
    # threads. `data` are arrays that identify a checkpoint's training. `attributes` makes, of a
    # network, the attributes that the estimator of callbacks has during training.
    from ._network import build_network, digest, load_weights, weights_of, worthwhile_threads
    from ._train import train

    seed, start, training = settings.seed(), settings.start, settings.training
    plan = settings.plan(n_rows, validates=validate is not None)
    network = build_network(kind, shape, seed)
    if start is not None:
        _refuse_other_shape(start.shape, shape)
        load_weights(network, start.weights)
    network.to(resolve_device(settings.device))
    sizes, begin = batch_sizes(plan, n_rows), () if start is None else start.weights.values()

    def fitted(history):
        name = f"{kind.__module__}.{kind.__qualname__}"
        return FittedNetwork(
            name, shape, weights_of(network), plan.batch_size, dataclasses.asdict(history)
        )

    with report.training(
        sizes, lambda history: attributes(fitted(history)), verbose=settings.training.verbose
    ) as task:
        history = train(
            network, batch_loss, n_rows, training, learning_rate=plan.learning_rate,
            batch_size=plan.batch_size, max_epochs=plan.max_epochs, random_state=seed,
            validation_loss=validate, task=task, lengths=lengths,
            checkpoint_key="" if training.checkpoint is None else digest(shape, *data, *begin),
            threads=worthwhile_threads(network, sizes.largest * n_tokens),
        )  # fmt: skip
    _warn_of_end(history, report.in_search)
    return fitted(history)


def _class_of(kind):
    """The class of a network, which has to be one of this package: kinds come from files."""
    from torch.nn import Module

    module, _, name = kind.rpartition(".")
    own = module.startswith(f"{__package__.partition('.')[0]}.")
    found = getattr(importlib.import_module(module), name, None) if own else None
    if not (isinstance(found, type) and issubclass(found, Module)):
        raise ValueError(
            f"kind={kind!r} in the file of an estimator is not a network of this package: load "
            "files only from sources that you trust, and if the file is damaged, fit the "
            "estimator again."
        )
    return found


def _refuse_other_shape(before, now):
    """Raise ValueError where weights of the last fit do not fit a network."""
    for name, value in now.items():
        if name != "dropout" and before.get(name) != value:
            raise ValueError(
                f"warm_start=True cannot continue with the weights of the last fit, whose "
                f"{name} was {before.get(name)!r}, not {value!r}: pass what was passed "
                "then, or warm_start=False."
            )


def _warn_of_end(history, in_search):
    """Warn of a training that was interrupted or too short; raise what ends a search."""
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
