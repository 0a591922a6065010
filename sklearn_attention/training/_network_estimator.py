"""What estimators share that train a network."""

import contextlib
import warnings
from abc import abstractmethod
from dataclasses import replace

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._base import AttentionEstimator
from .._validation import check_flag
from ._architecture import Architecture, transformer_shape
from ._epoch_tasks import EpochTasks
from ._plan import batch_sizes
from ._progress import Progress, progress_delay
from ._training import Training

_HISTORY = ("loss", "validation_loss", "learning_rate", "seconds", "n_steps", "best_epoch")

# Parameters that are objects with parameters of their own.
_NESTED = {"architecture": Architecture, "training": Training}


class NetworkEstimator(AttentionEstimator):
    """Base class of estimators whose fitted state is the weights of a torch network.

    A subclass has the parameters `d_model`, `n_heads`, `n_layers`, `dropout`, `learning_rate`,
    `batch_size`, `max_epochs`, `architecture`, `training`, `warm_start`, `random_state` and
    `device`. It says what its network is (:meth:`_network_kind`) and calls
    :meth:`_fit_network` in ``fit``.

    Attributes
    ----------
    batch_size_ : int or (int, int)
        Rows in a step.
    shape_ : dict
        Arguments the network is built with.
    network_ : dict of str to ndarray
        Its weights.
    module_ : torch.nn.Module
        The network itself, made of these.
    training_history_ : dict
        Of every epoch the ``loss``, ``learning_rate`` and ``seconds``, and the
        ``validation_loss`` if there is one; ``n_steps``, ``best_epoch``, and why the training
        ``stopped``.
    """

    # What "auto" stands for in the architecture; width of hidden layers in widths of tokens.
    _positions, _activation, _widening = "sinusoidal", "gelu", 4
    # The same of the training: optimizer, most rows in a batch, and fewest epochs.
    _optimizer, _largest_batch, _fewest_epochs = "adamw", 64, 1
    # Parameters of the architecture and the training that are for other estimators.
    _foreign = ("patch_length", "instance_norm")

    @staticmethod
    @abstractmethod
    def _network_kind():
        """The class of the network; imports it, and with it torch."""

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
        for name, kind in _NESTED.items():
            nested = any(key.startswith(f"{name}__") for key in params)
            if nested and getattr(self, name) is None and params.get(name) is None:
                setattr(self, name, kind())
        return super().set_params(**params)

    @property
    def _architecture(self):
        return self._nested("architecture")

    @property
    def _training(self):
        return self._nested("training")

    def _nested(self, name):
        """An object that is a parameter, its defaults where it is None, checked."""
        kind, part = _NESTED[name], getattr(self, name)
        if part is None:
            return kind()
        if not isinstance(part, kind):
            raise ValueError(
                f"{name}={part!r} is not valid: pass {kind.__name__}(...), or None."
            )
        for own, default in kind().get_params(deep=False).items():
            value = getattr(part, own)
            if own in self._foreign and value is not default and value != default:
                raise ValueError(
                    f"{name}.{own}={value!r} has no meaning for {type(self).__name__}: "
                    "leave it out."
                )
        return part

    def _plan(self, n_samples):
        """The plan by which so many rows are learned from, checked."""
        return self._training.plan(
            n_samples, learning_rate=self.learning_rate, batch_size=self.batch_size,
            max_epochs=self.max_epochs, optimizer=self._optimizer,
            largest_batch=self._largest_batch,
            fewest_epochs=self._fewest_epochs,
        )  # fmt: skip

    def _transformer_shape(self, *, ordered=True):
        """Arguments that all networks have, checked; positions are for tokens in an order."""
        names = "d_model", "n_heads", "n_layers", "dropout"
        return transformer_shape(
            self._architecture, **{name: getattr(self, name) for name in names},
            positions=self._positions, activation=self._activation, widening=self._widening,
            ordered=ordered,
        )  # fmt: skip

    def _check_network(self):
        """Raise ValueError unless the parameters of network and training are valid."""
        self._transformer_shape()
        self._check_training()

    def _check_training(self):
        """Raise ValueError unless nested parameters and those of the training are valid."""
        for name in _NESTED:
            self._nested(name)
        self._plan(1)
        check_random_state(self.random_state)
        check_flag("warm_start", self.warm_start)

    def _n_epochs(self, n_samples):
        """Most epochs that so many rows are learned from."""
        return len(batch_sizes(self._plan(n_samples), n_samples))

    def _fit_network(self, shape, batch_loss, n_samples, *, task_data, finish=None, **options):
        """Learn the weights, and tell callbacks that this is all of the fit.

        Parameters
        ----------
        shape, batch_loss, n_samples, task_data, **options
            As for :meth:`_train_network`.
        finish : callable, default=None
            Does what is left to do before callbacks are told that the fit has ended.
        """
        context = self._init_callback_context(max_subtasks=self._n_epochs(n_samples))
        context.call_on_fit_task_begin(estimator=self, **task_data)
        self._train_network(
            shape, batch_loss, n_samples, context=context, task_data=task_data, **options
        )
        if finish is not None:
            finish()
        context.call_on_fit_task_end(estimator=self, **task_data, reconstruction_attributes={})

    def _train_network(
        self,
        shape,
        batch_loss,
        n_samples,
        *,
        context,
        task_data,
        validation_loss=None,
        data=(),
        lengths=None,
        n_tokens,
    ):
        """Learn the weights, from scratch or from those of the last fit.

        Parameters
        ----------
        shape : dict
            Arguments of the network.
        batch_loss, n_samples, validation_loss, lengths
            As for :func:`train`.
        context : CallbackContext
            Whose subtasks are the epochs, :meth:`_n_epochs` at most.
        task_data : dict
            ``X``, ``y`` and ``metadata``, for callbacks.
        data : iterable of ndarray
            What the rows are, to tell a checkpoint from that of other data.
        n_tokens : int
            Tokens of a row that the network sees, by which threads are chosen.
        """
        from ..attention import resolve_device  # torch takes a second to load
        from ._network import (
            build_network,
            digest,
            load_weights,
            weights_of,
            worthwhile_threads,
        )
        from ._train import train

        start = getattr(self, "network_", None), getattr(self, "shape_", None)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        network = build_network(self._network_kind(), shape, seed)
        if self._goes_on:
            self._refuse_other_shape(start[1], shape)
            load_weights(network, start[0])
        network.to(resolve_device(self.device))
        self.shape_, self._memo = shape, {}

        def fitted():
            return {"network_": weights_of(network), "_memo": {}}

        file = self._training.checkpoint
        key = "" if file is None else digest(shape, *data)
        plan = self._plan(n_samples)
        if validation_loss is None:
            plan = replace(plan, patience=None)
        self.batch_size_ = plan.batch_size
        sizes = batch_sizes(plan, n_samples)
        with self._progress(sizes) as progress:
            history = train(
                network, batch_loss, n_samples, plan, random_state=seed,
                validation_loss=validation_loss, checkpoint=file, checkpoint_key=key,
                task=EpochTasks(context, self, fitted=fitted, progress=progress, **task_data),
                threads=worthwhile_threads(network, max(map(max, sizes)) * n_tokens),
                lengths=lengths,
            )  # fmt: skip
        self._warn_of_end(history)
        # A callback may have asked the estimator, which then remembers its last network.
        self.network_, self._memo = weights_of(network), {}
        self.training_history_ = {name: getattr(history, name) for name in _HISTORY}
        self.training_history_["stopped"] = history.stopped

    def _warn_of_end(self, history):
        """Warn of a training that was interrupted or too short; raise what ends a search."""
        if history.stopped == "interrupted":
            if not history.loss or hasattr(self, "_parent_callback_ctx"):
                # There is nothing worth keeping, or it is meant for all of a search.
                raise KeyboardInterrupt
            warnings.warn(
                f"The training was interrupted after {history.n_steps} steps: the estimator "
                "has the weights of that time, or the best before.",
                UserWarning,
                stacklevel=5,
            )
        if history.ends_too_early and not hasattr(self, "_parent_callback_ctx"):
            n_epochs, n_steps = len(history.loss), history.n_steps
            remedy = f"max_epochs={2 * n_epochs}"
            if history.stopped == "max_steps":
                remedy = f"training__max_steps={2 * n_steps}"
            warnings.warn(
                f"The validation loss was still falling in the last of {n_epochs} epochs: more "
                f"would probably help. Pass {remedy}, say.",
                UserWarning,
                stacklevel=5,
            )

    def _progress(self, sizes):
        """A line of progress, or None where nobody is to see one, as a context manager."""
        delay = progress_delay(self._training.verbose, self)
        if delay is None:
            return contextlib.nullcontext()
        return Progress(type(self).__name__, len(sizes), sum(map(len, sizes)), delay=delay)

    def _split(self, n_samples, strata=None):
        """Positions of rows to learn from, and of those held out, which are drawn at random.

        Parameters
        ----------
        n_samples : int
        strata : ndarray of int of shape (n_samples,), default=None
            Classes, held out in proportion.

        Returns
        -------
        training, held_out : ndarray of int
        """
        share = self._training.share_held_out(n_samples)
        if share is None:
            return np.arange(n_samples), np.arange(0)
        import torch

        from ..attention import torch_threads
        from ._hold_out import hold_out

        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        with torch_threads(1):
            parts = hold_out(
                n_samples, share,
                generator=torch.Generator().manual_seed(seed),
                strata=None if strata is None else torch.from_numpy(strata),
            )  # fmt: skip
        return [part.numpy() for part in parts]

    @property
    def _goes_on(self):
        """Whether a fit goes on from the last one."""
        return self.warm_start and getattr(self, "network_", None) is not None

    def _refuse_other_shape(self, before, now):
        """Raise ValueError where weights of the last fit do not fit a network."""
        for name, value in now.items():
            if name != "dropout" and before.get(name) != value:
                raise ValueError(
                    f"warm_start=True cannot go on with the weights of the last fit, whose "
                    f"{name} was {before.get(name)!r}, not {value!r}: pass what was passed "
                    "then, or warm_start=False."
                )

    @property
    def module_(self):
        """The fitted network, a torch.nn.Module in evaluation mode, on its device."""
        check_is_fitted(self)
        if self.network_ is None:
            raise AttributeError(f"{type(self).__name__} was fitted without a network.")
        return self._network

    @property
    def _network(self):
        """The network, on its device and in evaluation mode; kept once it is built."""
        if "network" not in self._memo:
            from ..attention import resolve_device
            from ._network import build_network, load_weights

            network = build_network(self._network_kind(), self.shape_, 0)
            load_weights(network, self.network_)
            self._memo["network"] = network.to(resolve_device(self.device)).eval()
        return self._memo["network"]
