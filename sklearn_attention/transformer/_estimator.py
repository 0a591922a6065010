"""What the regressor and the classifier share: parameters, network, and how it is learned."""

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state

from .._validation import check_choice, check_positive
from ..text import TOKENIZERS
from ..training import NetworkEstimator
from ._forms import FORMS
from ._reader import RowReader

POOLINGS = ("cls", "last", "mean")
POSITIONS = ("learned", "rotary", "sinusoidal")
# "auto" makes about so many batches of the rows, of sizes between these.
_BATCHES, _SMALLEST_BATCH, _LARGEST_BATCH = 12, 16, 256


class TransformerEstimator(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, RowReader, NetworkEstimator
):
    """Base class of estimators that encode rows by a transformer."""

    def __init__(
        self,
        tokens="auto",
        *,
        tokenizer="words",
        max_tokens=None,
        max_length=None,
        pooling="auto",
        d_model=64,
        n_heads=4,
        n_layers=2,
        d_feedforward=None,
        attention_kernel="scaled_dot_product",
        positions="sinusoidal",
        norm="pre",
        activation="gelu",
        dropout=0.0,
        validation_fraction=0.1,
        patience=None,
        optimizer="adamw",
        learning_rate=2e-3,
        schedule="one_cycle",
        weight_decay=0.01,
        batch_size="auto",
        max_epochs=30,
        max_steps=None,
        autocast=False,
        warm_start=False,
        checkpoint=None,
        random_state=0,
        device="auto",
    ):
        self.tokens = tokens
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self.max_length = max_length
        self.pooling = pooling
        self.d_model = d_model
        self.n_heads = n_heads
        self.n_layers = n_layers
        self.d_feedforward = d_feedforward
        self.attention_kernel = attention_kernel
        self.positions = positions
        self.norm = norm
        self.activation = activation
        self.dropout = dropout
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.max_steps = max_steps
        self.autocast = autocast
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.device = device

    def transform(self, X):
        """The vectors that stand for rows, from which predictions are made linearly.

        Parameters
        ----------
        X : table, sequences or texts
            Rows, of the form of those in `fit`.

        Returns
        -------
        X_new : ndarray of shape (n_queries, d_model)
            Tokens after the last layer, pooled.
        """
        rows, dtype = self._read_input(X)
        return self._ask(rows)[1].astype(dtype)

    def attention_maps(self, X):
        """Weights of the attention as rows are encoded.

        Parameters
        ----------
        X : table, sequences or texts
            Rows, of the form of those in `fit`.

        Returns
        -------
        weights : ndarray of shape (n_queries, n_layers, n_heads, n_tokens, n_tokens)
            What each token (second axis from the end) averages; rows sum to 1. With
            ``pooling="cls"`` the token [CLS] comes first; then features in their order, or
            steps. Sequences that are shorter than the longest have 0 behind their end.
        """
        rows, _ = self._read_input(X)
        from ._learning import attention_maps  # torch takes a second to load

        return attention_maps(self._network, rows)

    def _ask(self, rows):
        """What the network says of rows, and their vectors."""
        from ._learning import ask

        return ask(self._network, rows)

    def _learn(self, rows, targets, sample_weight, loss, n_outputs, task_data, strata=None):
        """Learn a network that says targets of rows.

        Parameters
        ----------
        rows : TableRows or SequenceRows
        targets : ndarray of shape (n_rows,) or (n_rows, n_outputs)
        sample_weight : ndarray of shape (n_rows,)
            Greater than 0.
        loss : {"squared_error", "log_loss"}
        n_outputs : int
        task_data : dict
            As for callbacks.
        strata : ndarray of int of shape (n_rows,), default=None
            Classes, held out in proportion.
        """
        from . import _learning  # torch takes a second to load

        row_loss = getattr(_learning, loss)
        weights = (sample_weight / sample_weight.mean()).astype(np.float32)
        training, held_out = self._split(len(rows), strata)
        parts = [(rows.take(of), targets[of], weights[of]) for of in (training, held_out)]
        self.batch_size_ = self._choose_batch_size(len(training))
        judge = _learning.mean_loss_of(*parts[1], row_loss) if len(held_out) else None
        self._fit_network(
            self._network_shape(n_outputs), _learning.loss_of(*parts[0], row_loss),
            len(training), task_data=task_data,
            validation_loss=judge, lengths=_learning.padded_lengths(parts[0][0]),
            data=[*rows.arrays(), targets, weights, training],
            n_tokens=int(np.ceil(rows.lengths.mean())),
        )  # fmt: skip

    def _split(self, n_rows, strata):
        """Positions of rows to learn from, and of those to judge by."""
        if self.validation_fraction is None:
            return np.arange(n_rows), np.arange(0)
        import torch

        from ..training import hold_out  # which loads torch

        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        parts = hold_out(
            n_rows, self.validation_fraction, chronological=False,
            generator=torch.Generator().manual_seed(seed),
            strata=None if strata is None else torch.from_numpy(strata),
        )  # fmt: skip
        return [part.numpy() for part in parts]

    def _choose_batch_size(self, n_rows):
        if self.batch_size != "auto":
            return self.batch_size
        return int(np.clip(n_rows // _BATCHES, _SMALLEST_BATCH, _LARGEST_BATCH))

    def _plan(self):
        return super()._plan(batch_size=self.batch_size_)

    @staticmethod
    def _network_kind():
        from ._network import RowEncoder

        return RowEncoder

    def _network_shape(self, n_outputs):
        features = self.tokens_ == "features"
        positions = None if features else self.positions
        paired = {"sinusoidal": self.d_model, "rotary": self.d_model // self.n_heads}
        if paired.get(positions, 0) % 2:
            raise ValueError(
                f"d_model={self.d_model!r} with n_heads={self.n_heads!r} does not fit "
                f"positions={positions!r}, which come in pairs: pass an even width, of tokens "
                "for 'sinusoidal', of heads for 'rotary'."
            )
        pooling = self.pooling
        if pooling == "auto":
            pooling = "cls" if features else "mean"
        return {
            "form": self.tokens_,
            "tokens": self._token_arguments(),
            "n_outputs": n_outputs,
            "pooling": pooling,
            "max_length": None if features else self.max_length_,
            **self._transformer_shape(widening=2),
            "positions": positions,
        }

    @property
    def _n_features_out(self):
        return self.shape_["d_model"]

    def _check_parameters(self):
        check_choice("tokens", self.tokens, ("auto", *FORMS))
        check_choice("tokenizer", self.tokenizer, TOKENIZERS)
        check_choice("pooling", self.pooling, ("auto", *POOLINGS))
        if self.positions is not None:
            check_choice("positions", self.positions, POSITIONS)
        for name in ("max_tokens", "max_length"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name), integer=True)
        self._check_transformer()
        self._check_validation("rows to judge by")
        self.batch_size_ = self._choose_batch_size(1)
        self._plan()
