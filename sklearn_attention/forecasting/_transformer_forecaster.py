"""Forecasting with a transformer, on top of a linear base."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._validation import check_choice, check_positive
from ..training import NetworkEstimator, batch_sizes
from ._baselines import RidgeMap, fit_ridge, seasonal_naive
from ._forecaster import Forecaster
from ._gate import fit_gate
from ._measures import dividing, spread_of
from ._question import ask
from ._scaling import Scaling
from ._windows import evenly_spread

BASES = ("auto", "ridge", "seasonal")
POSITIONS = ("learned", "rotary", "sinusoidal")
_CENTERS = ("last", "mean")
_PATCH, _FEWEST_PATCHES = 8, 4
# Windows that linear maps are learned from, at most, and that the gate is set on.
_MOST_FITTED, _MOST_GATED = 100_000, 2000


class TransformerForecaster(NetworkEstimator, Forecaster):
    r"""Forecasting with a transformer encoder, on top of a linear base.

    .. math:: \hat y = \text{base}(x) + g \cdot u\, \text{transformer}(x / u)

    The base is ridge regression from a window of the past to all steps of the horizon, in
    closed form, or the last season again. The transformer learns what the base leaves over;
    the gate :math:`g`, between 0 and 1, is set on the last windows, which neither has learned
    from, and closes where the transformer adds nothing. With ``base=None`` the transformer
    forecasts alone.

    Parameters
    ----------
    horizon : int, default=1
        How many steps are forecast at once. Further ones are forecast from forecasts.
    lookback : int or "auto", default="auto"
        How many past steps a forecast is made from. "auto" is three seasons, at least the
        horizon and 10, and at most a quarter of the longest series.
    season_length : int or "auto", default="auto"
        Steps in a season. "auto" goes by the frequency, or by the autocorrelation.
    past_features : sequence of str or int, default=None
        Columns of X that are known only up to now, by name, or by position in arrays.
    missing : {"raise", "interpolate"}, default="raise"
        What is done about missing values between others.
    validation_fraction : float, default=0.2
        Share of the windows, the last ones, that are held out to set the gate and to calibrate
        intervals. The base is fitted to them too, after that.
    base : {"auto", "ridge", "seasonal"} or None, default="auto"
        What the transformer adds to. "auto" is whichever of the two has the smaller squared
        error on the windows held out. None is the transformer alone.
    patch_length : int or "auto", default="auto"
        Consecutive steps that make one token; 1 makes every step a token. "auto" is 8, or a
        quarter of the lookback if that is less.
    d_model : int, default=64
        Width of the tokens.
    n_heads : int, default=4
        Heads of the attention, which divide the width.
    n_layers : int, default=2
        Blocks of the encoder.
    d_feedforward : int, default=None
        Width of the hidden layer of each block; None is four times `d_model`.
    attention_kernel : str, Kernel or callable, default="scaled_dot_product"
        How tokens are compared; see :mod:`sklearn_attention.kernels`.
    positions : {"sinusoidal", "learned", "rotary"}, default="sinusoidal"
        How tokens know where they stand.
    d_position : int, default=None
        Width of positions that are appended to the tokens; None adds them instead.
    norm : {"pre", "post", "lecture"}, default="pre"
        Where layer normalisation stands; see :class:`~sklearn_attention.nn.EncoderBlock`.
    activation : {"gelu", "relu"}, default="gelu"
        Between the two layers of the feed-forward networks.
    dropout : float, default=0.0
        Probability with which parts of the network are left out in training.
    instance_norm : {"mean", "last"} or None, default="mean"
        Windows are seen relative to their mean, or last value, in units of their own standard
        deviation. None takes level and unit of the whole series instead.
    optimizer : {"adamw", "adam", "lbfgs"}, default="adamw"
        As for :class:`~sklearn_attention.training.Plan`, like all that follow.
    learning_rate : float, default=2e-3
        The highest.
    schedule : {"one_cycle", "cosine", "constant"}, default="one_cycle"
        How it moves.
    weight_decay : float, default=0.01
        Of matrices.
    batch_size : int or (int, int), default=64
        Windows in a step; a pair grows over the training.
    max_epochs : int, default=None
        How often every window is seen.
    max_steps : int, default=600
        Gradient steps. Whichever of the two ends first does.
    autocast : bool, default=False
        Whether to train in bfloat16 where torch considers it safe.
    warm_start : bool, default=False
        Whether `fit` starts from the weights of the last one.
    checkpoint : str or path-like, default=None
        File from which a training that was interrupted goes on, to the same weights.
    random_state : int, RandomState instance or None, default=0
        Draws weights and the order of windows.
    device : str, default="auto"
        Where to compute; "auto" prefers CUDA.

    Attributes
    ----------
    lookback_, horizon_, season_length_ : int
        Steps of a window, of what is forecast at once, and of a season.
    base_ : {"ridge", "seasonal"} or None
        What the transformer adds to.
    ridge_ : dict or None
        Of a ridge base: ``coef`` (lookback, horizon), from the steps of a window less its last
        value, and ``alpha``, the penalty.
    gate_ : float
        Share of the transformer's correction that is added; 0 where it did not help.
    training_history_ : dict
        Of every epoch the ``loss``, ``learning_rate`` and ``seconds``; ``n_steps``, and why
        the training ``stopped``.
    network_ : dict of str to ndarray
        Weights of the transformer.
    scale_, level_, unit_ : ndarray of shape (n_series,)
        Of each training series the mean absolute difference between neighbours, and of what
        is not held out of it the mean and the standard deviation.
    observed_ : dict
        The series and features observed so far, as plain arrays.
    calibration_ : dict
        Errors on the hold-out, in units of `scale_`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if they are all strings.

    See Also
    --------
    KernelForecaster : Averages what followed similar windows; nothing is trained.

    Notes
    -----
    A window is cut into patches [1]_, which with their features become the tokens of an encoder
    [2]_; known features of the horizon are further tokens. All tokens together are mapped
    linearly to the horizon. The loss is the mean squared error, in units of the series'
    standard deviations. Why there is a base: linear maps of windows equal most transformers at
    long horizons [3]_. It sees the series alone; features speak through the transformer.

    The gate is that of least squares on the windows held out, less its uncertainty, for which
    stretches of them are compared. It stays shut where fewer than three horizons of time, and
    three series, are held out.

    Of more than 100 000 windows evenly spread ones make the base. KeyboardInterrupt ends the
    training, with a warning, and leaves a forecaster with the weights at that time.

    References
    ----------
    .. [1] Nie, Y., Nguyen, N. H., Sinthong, P. and Kalagnanam, J. (2023). A time series is
       worth 64 words: long-term forecasting with transformers. ICLR.
    .. [2] Vaswani, A. et al. (2017). Attention is all you need. NeurIPS 30.
    .. [3] Zeng, A., Chen, M., Zhang, L. and Xu, Q. (2023). Are transformers effective for time
       series forecasting? AAAI.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_attention import TransformerForecaster
    >>> from sklearn_attention.datasets import make_periodic_series
    >>> days = pd.date_range("2024-01-01", periods=400, freq="D")
    >>> series = pd.Series(make_periodic_series("sine", 400), index=days, name="height")
    >>> model = TransformerForecaster(horizon=3, lookback=20, max_steps=20).fit(series)
    >>> model.predict().round(1)
    2025-02-04    0.7
    2025-02-05    0.7
    2025-02-06    0.6
    Freq: D, Name: height, dtype: float64
    """

    def __init__(
        self,
        horizon=1,
        *,
        lookback="auto",
        season_length="auto",
        past_features=None,
        missing="raise",
        validation_fraction=0.2,
        base="auto",
        patch_length="auto",
        d_model=64,
        n_heads=4,
        n_layers=2,
        d_feedforward=None,
        attention_kernel="scaled_dot_product",
        positions="sinusoidal",
        d_position=None,
        norm="pre",
        activation="gelu",
        dropout=0.0,
        instance_norm="mean",
        optimizer="adamw",
        learning_rate=2e-3,
        schedule="one_cycle",
        weight_decay=0.01,
        batch_size=64,
        max_epochs=None,
        max_steps=600,
        autocast=False,
        warm_start=False,
        checkpoint=None,
        random_state=0,
        device="auto",
    ):
        super().__init__(
            horizon,
            lookback=lookback,
            season_length=season_length,
            past_features=past_features,
            missing=missing,
            validation_fraction=validation_fraction,
        )
        self.base = base
        self.patch_length = patch_length
        self.d_model = d_model
        self.n_heads = n_heads
        self.n_layers = n_layers
        self.d_feedforward = d_feedforward
        self.attention_kernel = attention_kernel
        self.positions = positions
        self.d_position = d_position
        self.norm = norm
        self.activation = activation
        self.dropout = dropout
        self.instance_norm = instance_norm
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

    def attention_maps(self, X=None, *, history=None):
        """Weights of the attention when forecasting the next steps.

        Parameters
        ----------
        X, history
            As for :meth:`predict`. The windows are those that the series end with.

        Returns
        -------
        weights : ndarray of shape (n_series, n_layers, n_heads, n_tokens, n_tokens)
            What each token (second axis from the end) averages; rows sum to 1. Tokens are
            patches of the window, the earliest first, and then of known features.
        """
        check_is_fitted(self)
        question = ask(self, X, history)
        if not question.n_blocks:
            raise ValueError(f"X={X!r} has no steps after the series: pass some to look at.")
        batch = question.first_batch(self._measures_of(question))
        return self._ask_network(batch, need_weights=True)

    def _learn(self, train, holdout, context, task_data):
        from ._correction import squared_error  # torch takes a second to load

        self.scaling_ = _learn_scaling(train, self.known_columns_)._asdict()
        self._fit_base(train, holdout)
        task = context.subcontext(
            task_name="training", max_subtasks=len(batch_sizes(self._plan(), len(train)))
        )
        task.call_on_fit_task_begin(estimator=self, **task_data)
        scaling, shape = Scaling(**self.scaling_), self._network_shape()
        self._train_network(
            shape, squared_error(train, self._base_forecasts, scaling), len(train),
            context=task, task_data=task_data, data=[*scaling, *train.arrays()],
            n_tokens=-(-self.lookback_ // shape["patch_length"]),
        )  # fmt: skip
        task.call_on_fit_task_end(estimator=self, **task_data)
        self.gate_ = 1.0 if self.base_ is None else self._fit_gate(holdout)

    def _include_holdout(self, windows):
        if self.base_ == "ridge":
            self.ridge_ = _fit_ridge(windows, [self.ridge_["alpha"]])

    def _fit_base(self, train, holdout):
        self.base_, self.ridge_ = self.base, None
        if self.base in ("auto", "ridge"):
            self.ridge_ = _fit_ridge(train, None, holdout)
        if self.base == "auto":
            batch = holdout.batch(evenly_spread(len(holdout), _MOST_GATED))
            errors = {}
            for self.base_ in ("ridge", "seasonal"):
                errors[self.base_] = np.mean(self._missed(batch) ** 2)
            self.base_ = min(errors, key=errors.get)
        if self.base_ != "ridge":
            self.ridge_ = None

    def _fit_gate(self, holdout):
        rows = evenly_spread(len(holdout), _MOST_GATED)
        batch = holdout.batch(rows)
        origins, series = holdout.origins[rows], holdout.series[rows]
        return fit_gate(self._missed(batch), self._ask_network(batch), origins, series)

    def _missed(self, batch):
        """What the base leaves of windows, in units of their series."""
        return (batch.target - self._base_forecasts(batch)) / batch.unit[:, None]

    def _base_forecasts(self, batch):
        if self.base_ == "ridge":
            return RidgeMap(**self.ridge_).predict(batch.past)
        if self.base_ == "seasonal":
            season = min(self.season_length_, batch.past.shape[1])
            return seasonal_naive(batch.past, self.horizon_, season)
        return np.repeat(batch.level[:, None], self.horizon_, axis=1)

    def _forecast_windows(self, batch):
        forecasts = self._base_forecasts(batch)
        if self.gate_ == 0:
            return forecasts
        return forecasts + self.gate_ * batch.unit[:, None] * self._ask_network(batch)

    def _ask_network(self, batch, **options):
        from ._correction import ask_network

        return ask_network(self._network, Scaling(**self.scaling_), batch, **options)

    @staticmethod
    def _network_kind():
        from ._network import ForecastNetwork

        return ForecastNetwork

    @property
    def _max_subtasks(self):
        return 1

    def _network_shape(self):
        patch_length = self.patch_length
        if patch_length == "auto":
            patch_length = max(1, min(_PATCH, self.lookback_ // _FEWEST_PATCHES))
        return {
            "lookback": self.lookback_,
            "horizon": self.horizon_,
            "n_past": len(self.scaling_["center"]),
            "n_future": len(self.known_columns_),
            "patch_length": int(patch_length),
            "d_position": self.d_position,
            "center": self.instance_norm,
            "relative": self.base_ is not None,
            **self._transformer_shape(),
        }

    def _check_parameters(self):
        super()._check_parameters()
        if self.base is not None:
            check_choice("base", self.base, BASES)
        check_choice("positions", self.positions, POSITIONS)
        if self.instance_norm is not None:
            check_choice("instance_norm", self.instance_norm, _CENTERS)
        if self.patch_length != "auto":
            check_positive("patch_length", self.patch_length, integer=True)
        if self.d_position is not None:
            check_positive("d_position", self.d_position, integer=True)
        self._check_transformer()
        self._plan()

    def _check_heads(self):
        width = self.d_model + (self.d_position or 0)
        if width % self.n_heads:
            raise ValueError(
                f"n_heads={self.n_heads!r} does not divide the tokens' width {width}: pass a "
                "number that does."
            )


def _fit_ridge(windows, alphas, holdout=None):
    """A ridge base, as a dict; alphas=None chooses the penalty on the hold-out."""
    batch = windows.batch(evenly_spread(len(windows), _MOST_FITTED))
    options = {} if alphas is None else {"alphas": alphas}
    if holdout is not None:
        later = holdout.batch(evenly_spread(len(holdout), _MOST_FITTED))
        options["holdout"] = later.past, later.target, later.unit
    return fit_ridge(batch.past, batch.target, scale=batch.unit, **options)._asdict()


def _learn_scaling(windows, known):
    features = windows.batch(evenly_spread(len(windows), _MOST_GATED)).past_features
    if features is None:
        return Scaling(np.empty(0), np.empty(0), known)
    spread = dividing(spread_of(features, axis=(0, 1)))
    return Scaling(features.mean(axis=(0, 1)), spread, known)
