"""What the regressor and the classifier share: parameters, network, and how it is learned."""

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from .._validation import check_choice, check_positive
from ..text import TOKENIZERS
from ..training import NetworkEstimator
from ._forms import FORMS
from ._reader import RowReader

POOLINGS = ("cls", "last", "mean")


class TransformerEstimator(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, RowReader, NetworkEstimator
):
    """Base class of estimators that encode rows by a transformer."""

    _widening, _largest_batch, _fewest_epochs = 2, 256, 10

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
        dropout=0.0,
        learning_rate=2e-3,
        batch_size="auto",
        max_epochs="auto",
        architecture=None,
        training=None,
        warm_start=False,
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
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.architecture = architecture
        self.training = training
        self.warm_start = warm_start
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
        X_new : ndarray of shape (n_queries, width)
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
        judge = _learning.mean_loss_of(*parts[1], row_loss) if len(held_out) else None
        self._fit_network(
            self._network_shape(n_outputs), _learning.loss_of(*parts[0], row_loss),
            len(training), task_data=task_data,
            validation_loss=judge, lengths=_learning.padded_lengths(parts[0][0]),
            data=[*rows.arrays(), targets, weights, training],
            n_tokens=int(np.ceil(rows.lengths.mean())),
        )  # fmt: skip

    @property
    def _learned_positions(self):
        return self._parts()[0].positions == "learned"

    @staticmethod
    def _network_kind():
        from ._network import RowEncoder

        return RowEncoder

    def _network_shape(self, n_outputs):
        features = self.tokens_ == "features"
        pooling = self.pooling
        if pooling == "auto":
            pooling = "cls" if features else "mean"
        return {
            "form": self.tokens_,
            "tokens": self._token_arguments(),
            "n_outputs": n_outputs,
            "pooling": pooling,
            "max_length": None if features else self.max_length_,
            **self._transformer_shape(ordered=not features),
        }

    @property
    def _n_features_out(self):
        return self.shape_["d_model"] + (self.shape_["d_position"] or 0)

    def _check_parameters(self):
        check_choice("tokens", self.tokens, ("auto", *FORMS))
        check_choice("tokenizer", self.tokenizer, TOKENIZERS)
        check_choice("pooling", self.pooling, ("auto", *POOLINGS))
        for name in ("max_tokens", "max_length"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name), integer=True)
        # The shape of the network is checked once it is known whether tokens have an order.
        self._check_training()
