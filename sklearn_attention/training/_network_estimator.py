"""What estimators share that train a network."""

import warnings

from sklearn.utils import check_random_state

from .._base import AttentionEstimator
from .._validation import check_in_interval, check_in_open_interval, check_positive
from ..kernels import as_kernel
from ._epoch_tasks import EpochTasks
from ._plan import Plan, batch_sizes

_HISTORY = ("loss", "validation_loss", "learning_rate", "seconds", "n_steps", "best_epoch")


class NetworkEstimator(AttentionEstimator):
    """Base class of estimators whose fitted state is the weights of a torch network.

    A subclass has the parameters `warm_start`, `checkpoint`, `random_state` and `device`, and
    those of :class:`Plan` that it offers, by the same names. It says what its network is
    (:meth:`_network_kind`) and calls :meth:`_train_network` in ``fit``.

    Attributes
    ----------
    shape_ : dict
        Arguments the network is built with.
    network_ : dict of str to ndarray
        Its weights.
    training_history_ : dict
        Of every epoch the ``loss``, ``learning_rate`` and ``seconds``, and the
        ``validation_loss`` if there is one; ``n_steps``, ``best_epoch``, and why the training
        ``stopped``.
    """

    @staticmethod
    def _network_kind():
        """The class of the network; imports it, and with it torch."""
        raise NotImplementedError

    def _plan(self, **chosen):
        """How to train, checked; what is chosen comes in the place of parameters."""
        offered = self.get_params(deep=False) | chosen
        return Plan(
            **{name: offered[name] for name in Plan.__dataclass_fields__ if name in offered}
        )

    def _check_transformer(self):
        """Raise ValueError unless the parameters of the transformer are valid."""
        for name in ("d_model", "n_heads", "n_layers"):
            check_positive(name, getattr(self, name), integer=True)
        if self.d_feedforward is not None:
            check_positive("d_feedforward", self.d_feedforward, integer=True)
        self._check_heads()
        check_in_interval("dropout", self.dropout, 0, 1, closed_right=False)
        as_kernel(self.attention_kernel)

    def _check_heads(self):
        if self.d_model % self.n_heads:
            raise ValueError(
                f"n_heads={self.n_heads!r} does not divide d_model={self.d_model!r}: pass a "
                "number that does."
            )

    def _check_validation(self, needed):
        """Raise ValueError unless what is held out suits; the patience needs `needed`."""
        if self.validation_fraction is not None:
            check_in_open_interval("validation_fraction", self.validation_fraction, 0, 1)
        elif self.patience is not None:
            raise ValueError(
                f"patience={self.patience!r} needs {needed}, but validation_fraction=None: "
                "pass a number between 0 and 1, or patience=None."
            )

    def _transformer_shape(self, widening=4):
        """Arguments that all networks have, by the parameters of the estimator.

        Parameters
        ----------
        widening : int, default=4
            Width of hidden layers, in widths of tokens, where `d_feedforward` is None.
        """
        return {
            "d_model": int(self.d_model),
            "n_heads": int(self.n_heads),
            "n_layers": int(self.n_layers),
            "d_feedforward": int(self.d_feedforward or widening * self.d_model),
            "kernel": self.attention_kernel,
            "positions": self.positions,
            "norm": self.norm,
            "activation": self.activation,
            "dropout": float(self.dropout),
        }

    def _fit_network(self, shape, batch_loss, n_samples, *, task_data, **options):
        """Learn the weights, and tell callbacks that this is all of the fit.

        Parameters
        ----------
        shape, batch_loss, n_samples, task_data, **options
            As for :meth:`_train_network`.
        """
        n_epochs = len(batch_sizes(self._plan(), n_samples))
        context = self._init_callback_context(max_subtasks=n_epochs)
        context.call_on_fit_task_begin(estimator=self, **task_data)
        self._train_network(
            shape, batch_loss, n_samples, context=context, task_data=task_data, **options
        )
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
            Whose subtasks are the epochs, ``len(batch_sizes(plan, n_samples))`` at most.
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
        if self.warm_start and start[1] == shape:
            load_weights(network, start[0])
        network.to(resolve_device(self.device))
        self.shape_, self._memo = shape, {}

        def fitted():
            return {"network_": weights_of(network), "_memo": {}}

        key = "" if self.checkpoint is None else digest(shape, *data)
        plan = self._plan()
        most = max(map(max, batch_sizes(plan, n_samples)))
        history = train(
            network, batch_loss, n_samples, plan, random_state=seed,
            validation_loss=validation_loss, checkpoint=self.checkpoint, checkpoint_key=key,
            task=EpochTasks(context, self, fitted=fitted, **task_data),
            threads=worthwhile_threads(network, most * n_tokens), lengths=lengths,
        )  # fmt: skip
        if history.stopped == "interrupted":
            warnings.warn(
                f"The training was interrupted after {history.n_steps} steps: the estimator "
                "has the weights of that time, or the best before.",
                UserWarning,
                stacklevel=4,
            )
        # A callback may have asked the estimator, which then remembers its last network.
        self.network_, self._memo = weights_of(network), {}
        self.training_history_ = {name: getattr(history, name) for name in _HISTORY}
        self.training_history_["stopped"] = history.stopped

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
