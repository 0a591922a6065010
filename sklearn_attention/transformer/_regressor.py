"""A transformer encoder for numbers."""

from dataclasses import KW_ONLY
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._base import keeps_state_on_failure, parameters, with_callbacks
from .._labels import NumericTargets
from .._validation import check_numeric_target, check_probabilities
from ._estimator import TransformerEstimator
from ._task import SAME, Numbers, check_quantiles


@parameters
class TransformerRegressor(NumericTargets, TransformerEstimator):
    r"""Predict numbers from tables, sequences and texts by a transformer and a simpler model.

    Take it to predict one number for each sequence or short text. For tables
    :class:`KernelAttentionRegressor` is mostly more accurate, and for the next values of a
    series take :class:`TransformerForecaster`.

    By default the prediction is a weighted sum of those of a baseline (boosted trees for
    tables, random convolutions for series or TF-IDF for texts) and of a transformer encoder.
    ``baseline=False`` is only the encoder,

    .. math:: \hat y(x) = \mu + \sigma\,(W h(x) + b),\quad
              h(x) = \operatorname{pool}(\text{encoder}(t_1(x), \dots, t_n(x)))

    Rows become tokens, the encoder lets them attend to each other, and a linear map of their
    pooled vector is the prediction. The features of a table are tokens too, so that attention
    learns how they interact.

    Parameters
    ----------
    tokens : {"auto", "features", "steps", "text"}, default="auto"
        Tokens of a row:

        * "features": the features of a table, numbers or, in data frames, levels of
          categories; cells may be missing.
        * "steps": the steps of a sequence of numbers. X is of shape (n, T, d), steps before
          channels, or a list of arrays of shape (T_i, d) or (T_i,), of different lengths, or a
          table whose rows are series. Values may be missing.
        * "text": the tokens of a text; X is a list of texts, or of sequences of token ids.

        "auto" depends on X: "features" for tables, and for lists of lists of the same length;
        "text" for strings and, with a warning, lists of integers of different lengths; else
        "steps".
    tokenizer : str, default="auto"
        Kind of tokens of texts: "lower_words", "words", "characters", "byte_pairs" or "ids",
        see :func:`~sklearn_attention.text.learn_vocabulary`. Sequences of ids need none.
        "auto" is "lower_words", but "characters", with a warning, where most words occur only
        once, as in languages that are written without spaces. Words that occur only once in
        training count as unknown.
    max_tokens : int, default=None
        Largest size of the vocabulary of texts, with its four special tokens; the most frequent
        tokens are kept. None keeps all, or 8000 byte pairs.
    max_length : int, default=None
        Largest number of steps of a sequence, or tokens of a text, that are used. Longer ones
        are cut at their end, with a warning. None uses all; with learned positions, it uses as
        many as the longest sequence in `fit` has.
    pooling : {"auto", "mean", "last", "cls"}, default="auto"
        Vector of a row: the mean of its tokens, the last one, or that of a further, learned
        token [CLS]. "auto" is "cls" for features, otherwise "mean".
    baseline : bool or "auto", default="auto"
        Whether a simpler model is added to the transformer: for tables boosted trees
        (:class:`~sklearn.ensemble.HistGradientBoostingRegressor`), for texts a regression on
        TF-IDF [5]_, for sequences of numbers a ridge regression on random convolutions [4]_.
        The outputs of both (logits of classes) are summed with the weights that have the
        largest likelihood on rows held out; if none are held out, only the baseline predicts.
        With "auto" there is a baseline, except for tables of which no rows are held out.
    loss : {"squared_error", "absolute_error", "huber", "quantile"}, default="squared_error"
        Loss of the training, and of the choice of the baseline's weight. With "absolute_error"
        the transformer and the trees predict medians. "huber" is squared up to one standard
        deviation of the targets, and linear beyond. With "quantile" both predict the
        conditional `quantile`; sequences and texts then have no baseline, since their baselines
        predict means.
    quantile : float or array-like of shape (n_quantiles,), default=None
        Quantile to predict, between 0 and 1; only for ``loss="quantile"``. Several quantiles
        share the encoder. One of them must be 0.5, since `predict` returns the median;
        `predict_quantiles` returns all of them.
    max_rows : int, default=100_000
        Maximum number of rows that `fit` draws from partitions of Dask, of training rows and
        of validation rows; rows in memory are all used. A hash of their cells, target and
        weight chooses the rows, so that neither the partitions nor their order change the
        sample. A warning says how many of how many rows are drawn.
    d_model : int, default=64
        Width of the tokens.
    n_heads : int, default=4
        Number of heads of the attention, which divide the width.
    n_layers : int, default=2
        Number of blocks of the encoder.
    dropout : float, default=0.0
        Probability with which parts of the network are left out in training.
    learning_rate : float, default=2e-3
        Highest learning rate.
    batch_size : int or "auto", default="auto"
        Largest number of rows in a step. "auto" is a twelfth of the rows, but 8 at least and
        256 at most.
    max_epochs : int or "auto", default="auto"
        Number of passes over all rows. "auto" is enough for 1000 steps, but 10 at least and 64
        at most.
    architecture : Architecture, default=None
        Further parameters of the encoder; None is
        :class:`Architecture() <sklearn_attention.Architecture>`.
    training : Training, default=None
        Further parameters of the training, and of rows held out; None is
        :class:`Training() <sklearn_attention.Training>`.
    warm_start : bool, default=False
        Whether `fit` continues the last one, with its weights, vocabulary, levels and scales.
    random_state : int, RandomState instance or None, default=0
        Draws weights, rows that are held out, and the order of the others.
    device : str, default="auto"
        Where to compute; "auto" prefers CUDA.

    Attributes
    ----------
    encoder_ : FittedEncoder
        What was learned: ``reader``, ``task``, ``network``, ``baseline`` and both weights. What
        the reader has depends on the form of the rows: `columns` (the kind of each column, and
        the levels of categories); `scales` (``center`` and ``scale``, the mean and the standard
        deviation of each column or channel, and, for tables, ``knots``, the quantiles of each
        column); `vocabulary` (the vocabulary of texts, which
        :meth:`sklearn_attention.text.Vocabulary.from_state` reads); `max_length` (how many
        steps or tokens are used at most); and `patch_length` (the number of steps in a token).
        The task has `center` and `scale`, the mean and the standard deviation of the targets.
    tokens_ : {"features", "steps", "text"}
        Form of the tokens.
    quantiles_ : ndarray of shape (n_quantiles,)
        The quantiles that were learned, in order: those of `quantile`, the median for
        "absolute_error", and none for other losses.
    baseline_ : TableBaseline, SeriesBaseline, TextBaseline or None
        The simpler model, fitted to all rows.
    baseline_weight_, transformer_weight_ : float or ndarray of shape (n_outputs,)
        Factors of the outputs of the baseline and of the transformer in their sum, chosen by
        rows held out. There is one for each output; if several quantiles are learned, there is
        one for each quantile of each output, (n_outputs * n_quantiles,).
    training_history_ : dict
        For every epoch ``loss``, ``validation_loss``, ``learning_rate`` and ``seconds``; also
        ``n_steps``, ``best_epoch``, and the reason why it ``stopped``. With several outputs,
        the validation loss is the geometric mean of the ratios of their losses to those of a
        constant.
    network_ : FittedNetwork
        The transformer: its shape, its weights, and rows in a step, as plain values.
    n_features_in_ : int
        Number of features, of tables only.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if they are all strings.

    See Also
    --------
    TransformerClassifier : The same for classes.
    TransformerForecaster : Continues series.
    KernelAttentionRegressor : Averages over training rows, with a learned kernel.

    Notes
    -----
    The encoder is that of Vaswani et al. [1]_, with any kernel of the package; features become
    tokens as in the FT-Transformer [2]_. The token of a number is piecewise linear in it [3]_:

    .. math:: t_j = b_j + z_j\, v_j + \sum_k \min(\max(u_j - k, 0), 1)\, w_{jk}

    with :math:`z_j` the number in standard deviations from the mean, five at most, and
    :math:`u_j` its place among up to 33 quantiles. The token of a level is a learned vector.
    Missing numbers and levels have learned vectors as well, one for each feature; levels that
    did not occur in `fit` count as missing. If no cell of a feature was missing in `fit`, this
    vector is 0, and a missing number has :math:`z_j = u_j = 0`.

    With a baseline :math:`f` the prediction is :math:`w_1 f(x) + w_2 \hat y(x)`, in units of
    :math:`\sigma` from :math:`\mu`. The weights :math:`w_1` and :math:`w_2` are
    `baseline_weight_` and `transformer_weight_`. In their choice, errors of more than three
    times the baseline's median error count less. The weights of a quantile add up to 1.

    Several outputs share the encoder. An output that is predicted worse than by a constant, on
    rows held out, counts less in training: the network would memorise its noise, at the cost of
    the other outputs.

    Steps of a sequence are joined to patches that overlap by half. The token of a patch is
    linear in its numbers, which are standardised by channel. A missing value counts as the mean
    of its channel, and a learned vector is added to the token.

    The prediction of a sequence does not depend on the others: padding has no effect.
    KeyboardInterrupt ends the training, with a warning, and leaves a usable estimator.

    References
    ----------
    .. [1] Vaswani, A. et al. (2017). Attention is all you need. NeurIPS 30.
    .. [2] Gorishniy, Y., Rubachev, I., Khrulkov, V. and Babenko, A. (2021). Revisiting deep
       learning models for tabular data. NeurIPS 34.
    .. [3] Gorishniy, Y., Rubachev, I. and Babenko, A. (2022). On embeddings for numerical
       features in tabular deep learning. NeurIPS 35.
    .. [4] Dempster, A., Schmidt, D. F. and Webb, G. I. (2021). MiniRocket: a very fast (almost)
       deterministic transform for time series classification. KDD.
    .. [5] Salton, G. and Buckley, C. (1988). Term-weighting approaches in automatic text
       retrieval. Information Processing and Management 24.
    .. [6] Chernozhukov, V., Fernández-Val, I. and Galichon, A. (2010). Quantile and probability
       curves without crossing. Econometrica 78, 1093-1125.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn_attention import TransformerRegressor
    >>> X, y = make_friedman1(300, random_state=0)
    >>> model = TransformerRegressor(d_model=16, n_layers=1, max_epochs=10)
    >>> model.fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.8
    True

    The same on sequences of different lengths, whose mean is the target:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(rng.normal(), size=rng.integers(5, 15)) for _ in range(200)]
    >>> y = [x.mean() for x in X]
    >>> model = TransformerRegressor(d_model=16, n_layers=1, max_epochs=5).fit(X, y)
    >>> model.predict([np.ones(7)]).shape
    (1,)
    """

    quantiles_ = property(lambda self: self.encoder_.task.quantiles)

    _: KW_ONLY
    loss: str = "squared_error"
    quantile: ArrayLike | None = None

    @keeps_state_on_failure
    @with_callbacks
    def fit(
        self, X, y, sample_weight=None, *, X_val=None, y_val=None, sample_weight_val=None
    ) -> Self:
        """Learn the encoder.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), array-like of shape (n_samples, \
n_steps, n_channels), list of arrays, or list of texts
            Training rows, see `tokens`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the rows; weights below 1e-19 of the largest one count as 0.
        X_val, y_val : as X and y, default=None
            Rows to validate with, in place of some that are held out of X: they decide on the
            best epoch, and on the weight of a baseline.
        sample_weight_val : array-like of shape (n_validation,), default=None
            Non-negative weights of these rows.

        Returns
        -------
        self : TransformerRegressor
            The fitted estimator.

        Raises
        ------
        ValueError
            If data or parameters are not valid. The estimator then is as it was before.

        Warns
        -----
        UserWarning
            If partitions of Dask have more than `max_rows` rows.
        """
        settings = self._check_parameters()
        quantiles = check_quantiles(self.loss, self.quantile)
        training = X, y, sample_weight
        validation = X_val, y_val, sample_weight_val
        checks = {"multi_output": True, "y_numeric": True}
        reader, data = self._read_data(
            settings, check_numeric_target, training, validation, **checks
        )
        _, y_train, weights_train = data[0]
        if settings.start is None:
            task = Numbers.learn(self.loss, quantiles, y_train, weights_train)
        else:
            # A warm start keeps the scale of the targets of the last fit. `task.center` has the
            # mean of each target, and so the shape of a row of y.
            task = self.encoder_.task.with_loss(self.loss, quantiles)
            before, now = np.shape(task.center), y_train.shape[1:]
            if before != now:
                raise ValueError(
                    f"y has shape {y_train.shape}, but each row of y had shape {before} in "
                    "the last fit: pass targets of that shape, or warm_start=False."
                )
        examples = [task.examples(rows, targets, weights) for rows, targets, weights in data]
        # Callbacks of scikit-learn receive the data of the fit.
        task_data = {"X": X, "y": y_train, "metadata": {"sample_weight": sample_weight}}
        self._learn(settings, reader, task, examples, task_data)
        return self

    def predict(self, X) -> np.ndarray:
        """Predict the targets of rows.

        Parameters
        ----------
        X : table, sequences or texts
            Rows, of the form of those in `fit`.

        Returns
        -------
        y : ndarray of shape (n_queries,) or (n_queries, n_outputs)
            Predictions; the median if several quantiles are learned. They are float32 if both X
            and the targets in `fit` are, else float64.
        """
        return self._predict(*self._read(X))

    def predict_quantiles(self, X, quantiles=None) -> np.ndarray:
        """Predict quantiles of the conditional distribution of the targets.

        Parameters
        ----------
        X : table, sequences or texts
            Rows, of the form of those in `fit`.
        quantiles : array-like of shape (n_quantiles,), default=None
            Probabilities from `quantiles_`; None stands for all of them. Other quantiles have
            to be learned in a fit: each is an output of the network, and has trees of its own.

        Returns
        -------
        y : ndarray of shape (n_queries, n_quantiles) or (n_queries, n_quantiles, n_outputs)
            The quantiles. They do not cross, since the learned quantiles of each row are
            sorted. Sorting never makes the mean of their pinball losses larger (Chernozhukov et
            al., 2010).

        Raises
        ------
        ValueError
            If one of `quantiles` is not a probability, or was not learned.
        """
        check_is_fitted(self)
        learned = requested = self.quantiles_
        if quantiles is not None:
            requested = check_probabilities("quantiles", quantiles)
        if not len(learned):
            raise ValueError(
                f"quantiles={quantiles!r} cannot be predicted, since "
                f"loss={self.encoder_.task.loss.name!r} learns none: fit with loss='quantile' "
                f"and quantile={np.union1d(requested, 0.5).tolist()}."
            )
        is_same = np.abs(requested[:, None] - learned) < SAME  # (n_requested, n_learned)
        if not is_same.any(axis=1).all():
            raise ValueError(
                f"quantiles={quantiles!r} were not all learned, only {learned.tolist()} were: "
                f"fit with loss='quantile' and quantile={np.union1d(requested, 0.5).tolist()}."
            )
        return self._predictions(*self._read(X))[:, is_same.argmax(axis=1)]

    def _predict(self, rows, precision):
        """Predict means for rows of the reader, or medians if quantiles are learned."""
        predictions = self._predictions(rows, precision)
        median = 0 if predictions.shape[1] == 1 else self.quantiles_.tolist().index(0.5)
        return predictions[:, median]

    def _predictions(self, rows, precision):
        """Predict sorted quantiles (n_queries, n_quantiles) for rows of the reader.

        A mean counts as one quantile. Several targets are a third axis.
        """
        outputs = self.encoder_.outputs(rows, self.device)
        return self.encoder_.task.predictions(outputs, precision)
