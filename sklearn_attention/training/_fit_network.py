"""A network that is learned from rows, and held as plain arrays."""

import importlib
from dataclasses import dataclass, field, replace

from sklearn.utils.validation import check_is_fitted

from .._base import warn_user
from ._plan import batch_sizes
from ._settings import NESTED

_HISTORY = (
    "loss", "validation_loss", "learning_rate", "seconds", "n_steps", "best_epoch", "stopped",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class FittedNetwork:
    """A network of this package that has been trained, as plain values.

    Parameters
    ----------
    kind : str
        The class of the network, with its module.
    shape : dict
        Arguments it is built with.
    weights : dict of str to ndarray
    batch_size : int or (int, int)
        Rows in a step of the training.
    history : dict
        Of every epoch the ``loss``, ``learning_rate`` and ``seconds``, and the
        ``validation_loss`` if there is one; ``n_steps``, ``best_epoch``, and why the training
        ``stopped``.

    Examples
    --------
    >>> from sklearn_attention import TransformerLanguageModel
    >>> model = TransformerLanguageModel(d_model=8, n_layers=1, max_epochs=2).fit(["a b"])
    >>> model.network_.shape["d_model"], len(model.network_.history["loss"])
    (8, 2)
    """

    kind: str
    shape: dict
    weights: dict
    batch_size: int | tuple
    history: dict
    # The module on the last device, which pickles do without.
    _built: dict = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self):
        return vars(self) | {"_built": {}}

    def module(self, device="auto"):
        """The network itself.

        Parameters
        ----------
        device : str, default="auto"
            Where to compute; "auto" prefers CUDA.

        Returns
        -------
        module : torch.nn.Module
            In evaluation mode; the same at each call for one device.
        """
        from ..attention._read import resolve_device
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


class NetworkParameters:
    """Mixin of estimators that hold a :class:`FittedNetwork`, in `network_`.

    Their parameters are `d_model`, `n_heads`, `n_layers`, `dropout`, `learning_rate`,
    `batch_size`, `max_epochs`, `architecture`, `training`, `warm_start`, `random_state` and
    `device`.
    """

    def set_params(self, **params):
        """Set parameters, also those of `architecture` and `training` where these are None.

        Parameters
        ----------
        **params : dict
            Such as ``training__weight_decay=0.1``.

        Returns
        -------
        self : estimator
        """
        for name, kind in NESTED.items():
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
            raise AttributeError(f"{type(self).__name__} was fitted without a network.")
        return self.network_.module(self.device)


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
    """Learn the weights of a network, from scratch or from ``settings.start``.

    Parameters
    ----------
    kind : type
        The class of the network.
    shape : dict
        Its arguments.
    settings : NetworkSettings
    batch_loss, lengths
        As for :func:`train`; `validate` is its `validation_loss`.
    n_rows, n_tokens : int
        Rows to learn from, and tokens of a row, by which threads are chosen.
    report : Report
    data : iterable of ndarray
        By which the checkpoint of a training is told from that of other data.
    attributes : callable, optional
        From a network to the attributes that callbacks give to the estimator during training.

    Returns
    -------
    network : FittedNetwork
    """
    from ..attention._read import resolve_device
    from ._network import build_network, digest, load_weights, weights_of, worthwhile_threads
    from ._train import train

    seed, plan, start = settings.seed(), settings.plan(n_rows), settings.start
    plan = plan if validate is not None else replace(plan, patience=None)
    network = build_network(kind, shape, seed)
    if start is not None:
        _refuse_other_shape(start.shape, shape)
        load_weights(network, start.weights)
    network.to(resolve_device(settings.device))
    file, sizes = settings.training.checkpoint, batch_sizes(plan, n_rows)

    def fitted(history):
        found = {name: getattr(history, name) for name in _HISTORY}
        name = f"{kind.__module__}.{kind.__qualname__}"
        return FittedNetwork(name, shape, weights_of(network), plan.batch_size, found)

    with report.of_training(sizes, lambda history: attributes(fitted(history))):
        history = train(
            network, batch_loss, n_rows, plan, random_state=seed, validation_loss=validate,
            checkpoint=file, checkpoint_key="" if file is None else digest(shape, *data),
            task=report, lengths=lengths,
            threads=worthwhile_threads(network, max(map(max, sizes)) * n_tokens),
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
        raise ValueError(f"kind={kind!r} is no network of this package.")
    return found


def _refuse_other_shape(before, now):
    """Raise ValueError where weights of the last fit do not fit a network."""
    for name, value in now.items():
        if name != "dropout" and before.get(name) != value:
            raise ValueError(
                f"warm_start=True cannot go on with the weights of the last fit, whose "
                f"{name} was {before.get(name)!r}, not {value!r}: pass what was passed "
                "then, or warm_start=False."
            )


def _warn_of_end(history, in_search):
    """Warn of a training that was interrupted or too short; raise what ends a search."""
    if history.stopped == "interrupted":
        if not history.loss or in_search:
            # There is nothing worth keeping, or it is meant for all of a search.
            raise KeyboardInterrupt
        warn_user(
            f"The training was interrupted after {history.n_steps} steps: the estimator "
            "has the weights of that time, or the best before.",
        )
    if history.ends_too_early and not in_search:
        n_epochs, n_steps = len(history.loss), history.n_steps
        remedy = f"max_epochs={2 * n_epochs}"
        if history.stopped == "max_steps":
            remedy = f"training__max_steps={2 * n_steps}"
        warn_user(
            f"The validation loss was still falling in the last of {n_epochs} epochs: more "
            f"would probably help. Pass {remedy}, say.",
        )
