"""Forecasting by candidates, attention over them, and a transformer."""

import numpy as np
import pandas as pd
from sklearn.base import is_regressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._validation import check_choice
from ..training._architecture import check_series_parts
from ..training._fit_network import FittedNetwork, NetworkParameters, fit_network
from ..training._report import Report
from ..training._settings import NetworkDefaults
from ._candidate_attention import CandidateAttention, fit_attention
from ._classical import Classical
from ._combination import PANEL, disagreement
from ._combined_forecast import CANDIDATES, CombinedForecast, fit_combined
from ._feature_basis import FeatureBasis
from ._feature_effects import FeatureEffects
from ._feature_ridge import FeatureRidge
from ._forecaster import Forecaster
from ._inputs import read_request
from ._logarithms import Transform, choose_transform
from ._lookback import choose_lookback
from ._origins import evenly_spread, split_at_ends
from ._own_analogs import OwnAnalogs
from ._profiles import SeasonalProfiles
from ._ridges import WindowRidge
from ._scaling import Scaling
from ._season import seasons_of
from ._transformer_candidate import TransformerCandidate, linear_base
from ._window_regressor import WindowRegressor

NETWORK = NetworkDefaults(foreign=("validation_fraction", "patience"))
# A patch has so many steps, or as many as leave so many patches.
_PATCH, _FEWEST_PATCHES = 8, 4
# Share of the windows that a transformer without candidates is calibrated on, and how many.
_HELD_OUT, _MOST_CALIBRATED = 0.2, 250
# Weight of the classical candidates from which on attention over them is learned.
_LEAST_CLASSICAL = 1 / 3


class TransformerForecaster(NetworkParameters, Forecaster):
    r"""Forecasting by attention over candidate forecasts, of which a transformer is one.

    .. math:: \hat y = \sum_c w_c\, f_c(x)

    Candidates :math:`f_c` are the forecasts of cheap methods: exponential smoothing and theta,
    seasonal profiles, linear maps of windows and of features, analogs, and where there are
    features a transformer. Weights :math:`w_c` are a softmax of their errors at origins in the
    past that they have not learned from, so that they can be read. In panels of 30 series or
    more a network learns to weigh the classical ones by what it sees of a series. With
    ``candidates=None`` the transformer forecasts alone.

    Parameters
    ----------
    horizon : int, default=1
        How many steps are forecast at once. Further ones are forecast from forecasts.
    lookback : int or "auto", default="auto"
        How many past steps windows have. "auto" lets ridges and analogs of several lengths
        compete; for the transformer it is three seasons, at least the horizon and 10, and at
        most a quarter of the longest series.
    season_length : float or "auto", default="auto"
        Steps in a season. "auto" goes by the frequency and by the autocorrelation.
    past_features : sequence of str or int, default=None
        Columns of X that are known only up to now, by name, or by position in arrays.
    missing : {"raise", "interpolate", "seasonal"}, default="raise"
        What is done about missing values between others.
    candidates : "auto", sequence of str and regressors, or None, default="auto"
        Which candidates there are, of "classical", "seasonal", "ridge", "analogs", "features"
        and any regressors of scikit-learn, which learn from windows what follows. "auto" is
        all that have a name, and a transformer where there are features. With "features" what
        known ones add to the series is taken out before candidates learn, where that explains
        differences over a season. None is the transformer alone.
    log : bool or "auto", default="auto"
        Whether candidates work on logarithms. "auto" tries both where no value is negative.
    bounds : (float, float), default=None
        What forecasts and intervals are clipped to; None for an open end.
    d_model : int, default=64
        Width of the tokens.
    n_heads : int, default=4
        Heads of the attention, which divide the width.
    n_layers : int, default=2
        Blocks of the encoder.
    dropout : float, default=0.0
        Probability with which parts of the network are left out in training.
    learning_rate : float, default=2e-3
        The highest.
    batch_size : int, (int, int) or "auto", default="auto"
        Windows in a step; a pair grows over the training. "auto" is a twelfth of them, but 8
        at least and 64 at most.
    max_epochs : int or "auto", default="auto"
        How often every window is seen. "auto" is enough for 1000 steps, but at most 64.
    architecture : Architecture, default=None
        What the network is made of besides; None is
        :class:`Architecture() <sklearn_attention.training.Architecture>`.
    training : Training, default=None
        How it is trained besides; None is
        :class:`Training() <sklearn_attention.training.Training>`.
    warm_start : bool, default=False
        Whether `fit` goes on from the weights of the last one.
    random_state : int, RandomState instance or None, default=0
        Draws weights and the order of windows.
    device : str, default="auto"
        Where to compute; "auto" prefers CUDA.

    Attributes
    ----------
    lookback_, horizon_, season_length_ : int
        Steps of the longest window, of what is forecast at once, and of a season.
    seasons_ : list of float
        All seasons that candidates know of.
    log_ : bool
        Whether candidates work on logarithms.
    shift_ : float
        What is added before logarithms are taken: 0 where values stay clear of zero, and
        otherwise a fifth of the median of positive ones.
    candidate_weights_ : DataFrame of shape (n_series, n_candidates)
        Weights of the candidates for each training series.
    transformer_weight_ : float
        Mean weight of the transformer among the candidates; 0 where it was not worth training.
    attention_share_ : float
        Share of the learned attention over candidates; 0 where fixed weights do better.
    combined_ : CombinedForecast
        The candidates.
    attention_ : CandidateAttention or None
        The learned attention over them.
    network_ : FittedNetwork or None
        The transformer.
    training_history_ : dict or None
        Of every epoch of the transformer the ``loss``, ``learning_rate`` and ``seconds``;
        ``n_steps``, and why the training ``stopped``.
    scale_ : ndarray of shape (n_series,)
        Of each training series the mean absolute difference between neighbours.
    observed_ : Table
        The series and features observed so far.
    calibration_ : dict
        Held-out ``errors``, in units of those of their series, which are the ``unit``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if they are all strings.

    See Also
    --------
    KernelForecaster : Averages what followed similar windows; nothing is trained.

    Notes
    -----
    Candidates are compared at validation origins in five blocks of time. Those that learn
    forecast a block by what does not overlap with it; classical ones know nothing but what
    came before each origin. Of a long series origins span 60 % of it, of a panel its last six
    horizons, of short series three. The temperature of the softmax, and how much a series goes
    by the errors of all of them, are chosen on blocks that did not choose the weights.

    The transformer cuts a window into patches [1]_, which with their features become the tokens
    of an encoder [2]_; known features of the horizon are further tokens. All tokens together
    are mapped linearly to the horizon. As a candidate it adds to a linear map of the window
    [3]_, and learns from what came before the validation origins. The loss is the mean squared
    error, in units of the series' standard deviations. KeyboardInterrupt ends the training,
    with a warning, and leaves a forecaster with the weights at that time.

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
    >>> model = TransformerForecaster(horizon=3, lookback=20).fit(series)
    >>> model.predict().round(1)
    2025-02-04    0.7
    2025-02-05    0.7
    2025-02-06    0.6
    Freq: D, Name: height, dtype: float64

    Regressors of scikit-learn compete with the classical methods:

    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> candidates = ["classical", KNeighborsRegressor()]
    >>> model = TransformerForecaster(horizon=3, candidates=candidates).fit(series)
    >>> model.candidate_weights_["KNeighborsRegressor"].round(1)
    height    1.0
    Name: KNeighborsRegressor, dtype: float64
    """

    def __init__(
        self,
        horizon=1,
        *,
        lookback="auto",
        season_length="auto",
        past_features=None,
        missing="raise",
        candidates="auto",
        log="auto",
        bounds=None,
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
            horizon,
            lookback=lookback,
            season_length=season_length,
            past_features=past_features,
            missing=missing,
        )
        self.candidates = candidates
        self.log = log
        self.bounds = bounds
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

    def attention_maps(self, X=None, *, history=None):
        """Weights of the attention of the transformer when forecasting the next steps.

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
        if self.network_ is None:
            raise ValueError(
                "attention_maps is of the transformer, which is not among the candidates, "
                "since there are no features, too few windows, or better forecasts without "
                "it: see candidate_weights_, or pass candidates=None."
            )
        return self._ask_network(self._ends(X, history)[0], need_weights=True)

    def explain(self, X=None, *, history=None):
        """Candidate forecasts of the next steps beside their weights.

        Parameters
        ----------
        X, history
            As for :meth:`predict`. What is explained is the first `horizon` steps after the
            end of each series.

        Returns
        -------
        candidates : DataFrame
            A row for each candidate with weight, the heaviest first: its "candidate" name,
            its "weight", and its forecast of each step, in columns 1, 2, ... With several
            series "series" is the one that is forecast.
        """
        check_is_fitted(self)
        self._require_candidates("explain")
        origins, series = self._ends(X, history)
        weights = self.combined_.weights_at(origins)
        forecasts = self.combined_.each(origins, weights.any(axis=0))
        forecasts = np.append(forecasts, self._further(origins), axis=1)
        parts = []
        for name, own, steps in zip(series, weights, self._decode(forecasts), strict=True):
            order = np.argsort(-own, kind="stable")[: np.sum(own > 0)]
            part = pd.DataFrame(steps[order], columns=range(1, self.horizon_ + 1))
            part.insert(0, "weight", own[order])
            part.insert(0, "candidate", [self._candidate_names[j] for j in order])
            if len(series) > 1:
                part.insert(0, "series", [name] * len(part))
            parts.append(part)
        return pd.concat(parts, ignore_index=True)

    @property
    def candidate_weights_(self):
        """Weights of the candidates; DataFrame of shape (n_series, n_candidates)."""
        self._require_candidates("candidate_weights_")
        names = self.observed_.names[: len(self.scale_)]
        index = pd.Index(names, tupleize_cols=False)
        return pd.DataFrame(self.combined_.weights, index=index, columns=self._candidate_names)

    @property
    def _candidate_names(self):
        return self.combined_.names + ["transformer"] * (self.network_ is not None)

    def _require_candidates(self, what):
        if self.candidates is None:
            raise AttributeError(f"{what} is of candidates, but candidates=None: pass 'auto'.")

    def _ends(self, X, history):
        """Origins at the ends of the series to forecast, and their names."""
        table, requested = read_request(self, X, history)
        if (requested.step < table.ends[requested.series]).all():
            raise ValueError(f"X={X!r} has no steps after the series: pass some to look at.")
        return self._encoded(table).at_ends(self.horizon_), table.names

    def _learn(self, observations, context, task_data):
        self.seasons_ = seasons_of(observations, self.season_length)
        self.log_, self.shift_ = False, 0.0
        self.attention_share_ = self.transformer_weight_ = 0.0
        self.attention_ = self.ridge_ = None
        if self.candidates is None:
            self.combined_, self.transformer_weight_ = None, 1.0
            self._learn_alone(observations, context, task_data)
            return
        transform, fitted = choose_transform(
            observations, self.horizon_, self.log, self.bounds, self._fit_candidates
        )
        self.log_, self.shift_ = transform.log, transform.shift
        observations = observations.with_values(list(map(self._encode, observations.values)))
        others = []
        if self.n_features_in_ and self.candidates == "auto":
            others = [TransformerCandidate(self, context, task_data)]
        else:
            self._forget_network()
        if fitted is None or others:
            fitted = self._fit_candidates(observations, self.log_, others)
        combined, combination, training = fitted
        held_out, self.combined_ = combination.held_out, combined
        if others:
            if self.network_ is not None:
                self.transformer_weight_ = float(combination.weights[:, -1].mean())
            if not self.transformer_weight_:
                self.combined_ = combined.without_last()
                self._forget_network()
        lookbacks = [getattr(own, "lookback", 1) for own in combined.candidates]
        self.lookback_ = max(lookbacks + ([self.ridge_.lookback] if self.ridge_ else []))
        classical = [own for own in combined.candidates if isinstance(own, Classical)]
        if (
            len(observations.values) >= PANEL
            and len(training.block)
            and self._share_of(classical) >= _LEAST_CLASSICAL
        ):
            task = context.subcontext(task_name="attention over candidates")
            task.call_on_fit_task_begin(estimator=self, **task_data)
            random_state = check_random_state(self.random_state)
            self.attention_, held_out = fit_attention(
                training, combination, classical[0], random_state
            )
            self.attention_share_ = self.attention_.share
            task.call_on_fit_task_end(estimator=self, **task_data)
        self._calibrate(
            training.validation, held_out,
            block=training.block, disagreement=combination.disagreement,
        )  # fmt: skip

    def _share_of(self, candidates):
        """Mean weight of some candidates, all their names together."""
        columns = self.combined_.weights.mean(axis=0)
        names = {name for one in candidates for name in one.names}
        pairs = zip(self.combined_.names, columns, strict=False)
        return sum(weight for name, weight in pairs if name in names)

    def _learn_alone(self, observations, context, task_data):
        """Train the transformer without candidates."""
        length = observations.lengths.max()
        self.lookback_ = choose_lookback(
            length, self.lookback, self.horizon_, self.season_length_
        )
        origins = observations.origins(self.horizon_, self.lookback_)
        train, holdout = split_at_ends(origins, _HELD_OUT)
        self._fit_network(train, None, context, task_data)
        holdout = holdout.take(evenly_spread(len(holdout), _MOST_CALIBRATED))
        self._calibrate(holdout, self._forecast(holdout))

    def _fit_candidates(self, observations, log, others=()):
        lookback = None if self.lookback == "auto" else int(self.lookback)
        kinds = CANDIDATES if self.candidates == "auto" else self.candidates
        sizes = self.horizon_, self.seasons_, lookback
        return fit_combined(observations, *sizes, log, kinds, others)

    @property
    def _transform(self):
        return Transform(self.log_, self.shift_, self.bounds)

    def _encode(self, values):
        return self._transform.encode(values)

    def _decode(self, values):
        return self._transform.decode(values)

    def _forecast(self, origins):
        if self.candidates is None:
            return self._transformer(origins)
        combined = self.combined_.forecast(origins, self._further(origins))
        return (
            combined if self.attention_ is None else self.attention_.forecast(origins, combined)
        )

    def _disagreement(self, origins):
        if self.candidates is None:
            return 0.0
        every = np.append(self.combined_.each(origins), self._further(origins), axis=1)
        return disagreement(every)

    def _further(self, origins):
        """Forecasts of the transformer if it is a candidate, (n_origins, 1 or 0, horizon)."""
        if self.network_ is None:
            return np.empty((len(origins), 0, self.horizon_))
        return self._transformer(origins)[:, None]

    def _transformer(self, origins):
        """Forecasts of the transformer and its base; (n_origins, horizon)."""
        level, unit = Scaling(**self.scaling_).units(origins)
        if self.ridge_ is not None:
            level = linear_base(self.ridge_, origins)
        return level + unit * self._ask_network(origins)

    def _forget_network(self):
        """Be without a transformer, after fits that may have had one."""
        self.network_ = self.ridge_ = None
        vars(self).pop("scaling_", None)

    def _fit_network(self, origins, base, context, task_data):
        """Train the transformer on what a base leaves, None for the level of the series."""
        from ._correction import squared_error  # torch takes a second to load
        from ._network import ForecastNetwork

        if len(origins) == 0:
            raise ValueError(
                f"horizon={self.horizon!r} and lookback_={self.lookback_!r} leave no windows "
                "to learn from: pass smaller ones, or longer series."
            )
        scaling = Scaling.of(origins, self.lookback_)
        if base is None:
            base = np.repeat(scaling.units(origins)[0], self.horizon_, axis=1)
        self.scaling_ = scaling._asdict()
        settings = NETWORK.settings(self)
        shape = self._network_shape(settings)
        task = context.subcontext(
            task_name="training", max_subtasks=settings.n_epochs(len(origins))
        )
        task.call_on_fit_task_begin(estimator=self, **task_data)
        self.network_ = fit_network(
            ForecastNetwork, shape, settings, squared_error(origins, base, scaling),
            len(origins), n_tokens=-(-self.lookback_ // shape["patch_length"]),
            report=Report(task, self, verbose=settings.training.verbose, **task_data),
            data=[*map(np.asarray, scaling), origins.series, origins.known,
                  *origins.table.values],
        )  # fmt: skip
        task.call_on_fit_task_end(estimator=self, **task_data)

    def _ask_network(self, origins, **options):
        from ._correction import ask_network

        return ask_network(self.module_, Scaling(**self.scaling_), origins, **options)

    @property
    def _max_subtasks(self):
        return None

    @property
    def _least_history(self):
        return self.lookback_ if self.candidates is None else 2

    def _network_shape(self, settings):
        architecture = settings.architecture
        patch_length = architecture.patch_length
        if patch_length == "auto":
            patch_length = max(1, min(_PATCH, self.lookback_ // _FEWEST_PATCHES))
        return {
            "lookback": self.lookback_,
            "horizon": self.horizon_,
            "n_past": len(self.scaling_["center"]),
            "n_future": len(self.known_columns_),
            "patch_length": int(patch_length),
            "center": architecture.instance_norm,
            "relative": self.candidates is not None,
            **settings.shape(),
        }

    def _check_parameters(self):
        super()._check_parameters()
        self._check_candidates()
        self._check_values()
        settings = NETWORK.settings(self)
        settings.shape()
        check_series_parts(settings.architecture)

    def _check_candidates(self):
        if self.candidates is None or self.candidates == "auto":
            return
        if isinstance(self.candidates, str) or not len(self.candidates):
            raise ValueError(
                f"candidates={self.candidates!r} is not valid: pass 'auto', None, or a list of "
                f"{list(CANDIDATES)} and regressors."
            )
        for kind in self.candidates:
            if isinstance(kind, type) or not hasattr(kind, "fit"):
                check_choice("candidates", kind, CANDIDATES)
            elif not is_regressor(kind):
                raise ValueError(f"candidates has {kind!r}, which is not a regressor.")

    def _check_values(self):
        if self.log not in (True, False, "auto"):
            raise ValueError(f"log={self.log!r} is not valid: pass True, False or 'auto'.")
        if self.bounds is None:
            return
        ends = () if np.ndim(self.bounds) == 0 else tuple(self.bounds)
        if len(ends) != 2 or (None not in ends and not ends[0] < ends[1]):
            raise ValueError(
                f"bounds={self.bounds!r} is not valid: pass a lower and a larger upper end, "
                "either of which may be None."
            )

    _held = (
        *Forecaster._held,
        FittedNetwork, CombinedForecast, Classical, SeasonalProfiles, WindowRidge, OwnAnalogs,
        FeatureRidge, WindowRegressor, FeatureBasis, FeatureEffects, CandidateAttention,
    )  # fmt: skip
