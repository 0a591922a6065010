"""A transformer encoder for classes."""

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils import compute_sample_weight
from sklearn.utils.validation import column_or_1d

from .._base import keeps_state_on_failure
from .._labels import check_labels
from ._estimator import TransformerEstimator


class TransformerClassifier(ClassifierMixin, TransformerEstimator):
    r"""Classification of tables, sequences and texts by a transformer encoder.

    As :class:`TransformerRegressor`, with probabilities

    .. math:: P(c \mid x) \propto \exp(w_c^\top h(x) + b_c)

    of the vector :math:`h(x)` that the encoder makes of a row, learned by their log-loss.

    Parameters
    ----------
    tokens, tokenizer, max_tokens, max_length, pooling, baseline
        As for :class:`TransformerRegressor`: what rows have, and how tokens become one vector.
    d_model, n_heads, n_layers, dropout, architecture
        As there: the encoder.
    class_weight : dict, "balanced" or None, default=None
        What rows of each class count besides their `sample_weight`; "balanced" is in inverse
        proportion to how often a class occurs.
    learning_rate, batch_size, max_epochs, training, warm_start
        As there: how it is learned. Rows are held out of each class in proportion.
    random_state, device
        As there.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    tokens_, scales_, vocabulary_, columns_, max_length_
        As for :class:`TransformerRegressor`.
    batch_size_, network_, shape_, training_history_
        As there.
    n_features_in_ : int
        Number of features, of tables only.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if they are all strings.

    See Also
    --------
    TransformerRegressor : The same for numbers, where the method is described.
    KernelAttentionClassifier : Remembers the rows of a table, and learns how to compare them.

    Examples
    --------
    >>> from sklearn_attention import TransformerClassifier
    >>> texts = ["good", "not bad", "very good", "bad", "not good", "very bad"] * 10
    >>> liked = ["yes", "yes", "yes", "no", "no", "no"] * 10
    >>> model = TransformerClassifier(d_model=16, max_epochs=30).fit(texts, liked)
    >>> model.predict(["very good", "not good"])
    array(['yes', 'no'], dtype='<U3')
    """

    def __init__(
        self,
        tokens="auto",
        *,
        tokenizer="lower_words",
        max_tokens=None,
        max_length=None,
        pooling="auto",
        baseline="auto",
        class_weight=None,
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
        super().__init__(
            tokens=tokens,
            tokenizer=tokenizer,
            max_tokens=max_tokens,
            max_length=max_length,
            pooling=pooling,
            baseline=baseline,
            class_weight=class_weight,
            d_model=d_model,
            n_heads=n_heads,
            n_layers=n_layers,
            dropout=dropout,
            learning_rate=learning_rate,
            batch_size=batch_size,
            max_epochs=max_epochs,
            architecture=architecture,
            training=training,
            warm_start=warm_start,
            random_state=random_state,
            device=device,
        )

    @keeps_state_on_failure
    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Learn the encoder.

        Parameters
        ----------
        X : table, sequences or texts
            Training rows, as for :meth:`TransformerRegressor.fit`.
        y : array-like of shape (n_samples,)
            Classes.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts, 0 or more.

        Returns
        -------
        self : TransformerClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            If data or parameters are not valid. The estimator then is as it was before.
        """
        self._check_parameters()
        shape = np.asarray(y).shape
        if len(shape) == 2 and shape[1] > 1:
            raise ValueError(
                f"y of shape {shape} has several outputs: fit a classifier for each, as "
                "sklearn.multioutput.MultiOutputClassifier does."
            )
        rows, y, weights = self._learn_input(X, y, sample_weight)
        y = check_labels(column_or_1d(y, warn=True))
        classes = self._learn_classes(y)
        weights = weights * compute_sample_weight(self.class_weight, y)
        classes, weights = classes[weights > 0], weights[weights > 0]
        self._learn(
            rows, classes, weights, "log_loss", len(self.classes_),
            {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}, strata=classes,
        )  # fmt: skip
        return self

    def _learn_classes(self, y):
        """Numbers of the classes, which stay those of the last fit where it is gone on with."""
        if not self._goes_on:
            self.classes_, classes = np.unique(y, return_inverse=True)
            return classes
        fresh = np.setdiff1d(y, self.classes_)
        if len(fresh):
            raise ValueError(
                f"y has classes {fresh.tolist()} that the last fit did not have, which "
                "warm_start=True goes on from: pass warm_start=False."
            )
        return np.searchsorted(self.classes_, y)

    def predict_log_proba(self, X):
        """Logarithm of the probability of each class.

        Parameters
        ----------
        X : table, sequences or texts
            Rows, of the form of those in `fit`.

        Returns
        -------
        log_probabilities : ndarray of shape (n_queries, n_classes)
        """
        rows, dtype = self._read_input(X)
        return log_softmax(self._outputs(rows), axis=1).astype(dtype)

    def predict_proba(self, X):
        """Probability of each class.

        Parameters
        ----------
        X : table, sequences or texts
            Rows, of the form of those in `fit`.

        Returns
        -------
        probabilities : ndarray of shape (n_queries, n_classes)
            Rows sum to 1.
        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X):
        """Most probable class of each row.

        Parameters
        ----------
        X : table, sequences or texts
            Rows, of the form of those in `fit`.

        Returns
        -------
        y : ndarray of shape (n_queries,)
            Classes; of equally probable ones the first.
        """
        best = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[best]
