"""Forecasting by candidates, attention over them, and a transformer."""

from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._base import parameters, warn_user
from .._validation import TRUE_FALSE_AUTO, is_one_of
from ..training._architecture import check_series_parts
from ..training._fit_network import FittedNetwork, NetworkParameters, NetworkSettings
from ._calibration import Calibration
from ._candidate_attention import CandidateAttention
from ._classical import Classical, LastSeason
from ._combination import (
    CANDIDATES,
    CombinedForecast,
    add_candidate,
    check_candidates,
    fit_combined,
    fit_transformer,
    new_candidates,
    quick_candidates,
    window_lengths,
)
from ._feature_effects import FeatureBasis, FeatureEffects
from ._forecaster import Forecaster
from ._origins import Forecasts, Origins, ensemble_mad
from ._output_forms import to_library
from ._own_analogs import OwnAnalogs
from ._panel_ridge import PanelRidge
from ._panels import over_groups
from ._ridges import WindowRidge
from ._season_length import choose_lookback, list_seasons, min_series_length
from ._stored_forms import STORED_FORMS
from ._transform import choose_transform
from ._transformer_candidate import Scaling, TransformerCandidate
from ._trees import Trees
from ._window_regressor import WindowRegressor

# Corrections of the classical candidates are learned if these have this weight.
_MIN_CLASSICAL_WEIGHT = 1 / 3
# Trees are slow if all series together have at least 5000 steps. A transformer is a candidate
# if a series has at least 20 000. With either, 0.25 of long series is validated, not 0.6.
_MIN_STEPS_OF_SLOW_TREES, _MIN_STEPS_OF_TRANSFORMER, _SHARE_IF_SLOW = 5000, 20_000, 0.25
# Candidates of these names learn effects of features themselves.
_FEATURE_KINDS = "trees", "transformer"
# Reasons why candidates cannot be fitted, other than series that are too short.
_OTHER_REASONS = {"features": "no features are known beforehand: pass X"}


@parameters
class TransformerForecaster(NetworkParameters, Forecaster):
    r"""Forecast by averaging several methods, weighted by their errors in the past.

    Take it for one series or many, with or without exogenous features, if you want forecasts
    and intervals without choosing a method. :class:`KernelForecaster` is simpler, and shows
    which windows of the past a forecast comes from.

    .. math:: \hat y = \sum_c w_c\, f_c(x)

    Candidates :math:`f_c` are the forecasts of cheap methods: exponential smoothing and theta,
    linear maps of windows, analogs, and with features boosted trees. Weights :math:`w_c` are a
    softmax of their errors at past origins that they have not learned from. For a single series
    they are averaged with the weights of least error of the combination. In panels of 30 series
    or more, errors at past origins where the state of a series was similar count more (kernel
    attention over origins), and a ridge regression on all series corrects the classical
    forecasts.

    A transformer is a candidate only with features and in series of 20 000 steps or more, if a
    brief training shows that it helps, or if `candidates` names it. With ``candidates=None``
    the transformer forecasts alone; without features it is then mostly worse than the default.

    Parameters
    ----------
    horizon : int, default=1
        Number of steps to forecast at once. Further ones are forecast from forecasts. If no
        series has so many steps, fewer are forecast at once, and a warning says how many.
    lookback : int or "auto", default="auto"
        Number of past steps in a window. "auto" has ridges and analogs of several lengths as
        candidates; for the transformer it is three seasons, at least the horizon and 10, and
        at most a quarter of the longest series.
    season_length : float or "auto", default="auto"
        Steps in a season. "auto" chooses it by the frequency and by the autocorrelation.
    past_features : sequence of str or int, default=None
        Columns of X that are known only up to the origin, by name, or by position in arrays.
    missing : {"raise", "interpolate", "seasonal", "zero"}, default="raise"
        Treatment of missing values between others, and of steps that an index lacks: an error,
        values on the line between their neighbours, values as one season before and after, up
        to a trend, or 0.
    candidates : "auto", sequence of str and regressors, or None, default="auto"
        Candidates: "classical", "ridge", "analogs", "trees", "transformer", and any regressors
        of scikit-learn, which predict the steps after a window from it. With "features"
        effects of known features are subtracted before candidates learn, if they explain
        differences over a season; trees and the transformer learn them themselves. "auto" is
        the first three, and where there are features all that have a name, the transformer only
        if series are long and a brief training shows that it helps. None is only the
        transformer. Of named ones those that lack features or steps to learn from are left out,
        with a warning, and it is said where none of them uses the features of X.
    log : bool or "auto", default="auto"
        Whether candidates work on logarithms. "auto" tries both where no value is negative, and
        takes logarithms of fewer than 30 series unless errors without are 2 % less.
    bounds : "auto", (float, float) or None, default="auto"
        Bounds to which forecasts and intervals are clipped; None is an open end, or no bounds.
        "auto" is 0 from below for series without a negative value, both in training and up to
        the origin of the forecast.
    d_model : int, default=64
        Width of the tokens.
    n_heads : int, default=4
        Heads of the attention, which divide the width.
    n_layers : int, default=2
        Blocks of the encoder.
    dropout : float, default=0.0
        Probability with which parts of the network are left out in training.
    learning_rate : float, default=2e-3
        Highest learning rate.
    batch_size : int or "auto", default="auto"
        Largest number of windows in a step. "auto" is a twelfth of them, but 8 at least and 64
        at most.
    max_epochs : int or "auto", default="auto"
        Passes over all windows. "auto" is enough for 1000 steps, but at most 64.
    architecture : Architecture, default=None
        Further parameters of the network; None is
        :class:`Architecture() <sklearn_attention.Architecture>`.
    training : Training, default=None
        Further parameters of the training; None is
        :class:`Training() <sklearn_attention.Training>`.
    warm_start : bool, default=False
        Whether `fit` continues from the weights of the last one.
    random_state : int, RandomState instance or None, default=0
        Draws weights and the order of windows.
    device : str, default="auto"
        Where to compute; "auto" prefers CUDA.

    Attributes
    ----------
    lookback_, horizon_, season_length_ : int
        Steps of the longest window, of a forecast at once, and of a season.
    seasons_ : list of float
        All seasons that candidates use.
    log_ : bool
        Whether candidates work on logarithms.
    shift_ : float
        Constant added before logarithms are taken: 0 where values stay clear of zero, and
        otherwise a fifth of the median of positive ones.
    candidate_weights_ : DataFrame of shape (n_series, n_candidates)
        Weights of the candidates at the end of each training series, as observed so far.
    transformer_weight_ : float
        Mean weight of the transformer among the candidates; 0 where training it would not
        help.
    attention_share_ : float
        Share of the errors in similar states in the errors that weights are made of; 0 if
        weights do not depend on the state of a series.
    combined_ : CombinedForecast
        The candidates.
    attention_ : CandidateAttention or None
        The errors of candidates at past origins, and the states of the series there.
    correction_ : PanelRidge or None
        The correction of classical forecasts in a panel, with its ``share`` in the forecast.
    network_ : FittedNetwork or None
        The transformer.
    training_history_ : dict or None
        For every epoch of the transformer ``loss``, ``learning_rate`` and ``seconds``; also
        ``n_steps``, and the reason why it ``stopped``.
    scale_ : ndarray of shape (n_series,)
        Mean absolute difference between neighbours of each training series.
    observed_ : Table
        The series and features observed so far.
    calibration_ : Calibration
        Held-out ``scaled_residuals``; the ``unit`` of a series is the mean size of its own.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if they are all strings.
    columns_ : Columns
        Kinds of the features, and the levels of categories.

    See Also
    --------
    KernelForecaster : Averages the steps after similar windows, without training.
    sklearn.model_selection.TimeSeriesSplit : Folds for a search over parameters.

    Notes
    -----
    Candidates are compared at validation origins in five blocks of time. Those that learn
    forecast a block from steps that do not overlap with it; classical ones use only steps
    before each origin. Of a long series origins span 60 % of it, a quarter where the
    transformer, or trees of many steps, compete; of a panel its last six horizons, of short
    series three. Trees, and then the transformer, have the share of least error in a mixture
    with the others.

    The transformer cuts a window into patches [1]_, which with their features become the tokens
    of an encoder [2]_; known features of the horizon are further tokens. All tokens together
    are mapped linearly to the horizon. As a candidate it adds to a linear map of the window
    [3]_, and learns from steps before the validation origins. The loss is the mean squared
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

    _: KW_ONLY
    season_length: float | str = "auto"
    candidates: Any = "auto"
    log: bool | str = "auto"

    def attention_maps(self, X=None, *, history=None) -> np.ndarray:
        """Weights of the attention of the transformer when forecasting the next steps.

        Parameters
        ----------
        X, history
            As for :meth:`predict`. The windows are those that the series end with.

        Returns
        -------
        weights : ndarray of shape (n_series, n_layers, n_heads, n_tokens, n_tokens)
            Weights of the tokens (last axis) in the average of each token; rows sum to 1.
            Tokens are patches of the window, the earliest first, and then of known features.
        """
        check_is_fitted(self)
        if self.network_ is None:
            raise ValueError(
                "attention_maps needs the transformer, which is not among the candidates: "
                "there are no features, too few windows, or better forecasts without it. See "
                "candidate_weights_, or pass candidates=None to fit only the transformer."
            )
        transformer = self.combined_.on_device(self.device).transformer
        return transformer.attention_maps(self._ends(X, history)[0])

    @over_groups
    def explain(self, X=None, *, history=None) -> Any:
        """Candidate forecasts of the next steps, and their weights.

        Parameters
        ----------
        X, history
            As for :meth:`predict`. The forecast of the first `horizon` steps after the end of
            each series is explained.

        Returns
        -------
        candidates : DataFrame
            A row for each candidate with weight, the heaviest first: its "candidate" name,
            its "weight", and its forecast of each step, in columns 1, 2, ... With several
            series "series" is the one that is forecast.

        Notes
        -----
        The weighted sum of the candidates, of their logarithms if `log_`, is the forecast. With
        a `correction_`, of panels, it is the forecast before that, and after a jump that lasts
        the forecast without it.
        """
        check_is_fitted(self)
        self._require_candidates("explain")
        origins, plain, series = self._ends(X, history)
        forecasts, tables = self._forecasts(origins), []
        names = np.array(self.combined_.names, dtype=object)
        decoded = self.transform_.decode(forecasts.candidate_forecasts, plain)
        for name, weights, steps in zip(series, forecasts.weights, decoded, strict=True):
            order = np.argsort(-weights, kind="stable")[: np.sum(weights > 0)]
            table = pd.DataFrame(steps[order], columns=range(1, self._at_once + 1))
            table.insert(0, "weight", weights[order])
            table.insert(0, "candidate", names[order])
            if len(series) > 1 or self.observed_.form.named_rows:
                table.insert(0, "series", [name] * len(table))
            tables.append(table)
        return to_library(pd.concat(tables, ignore_index=True), self.observed_.form.library)

    @property
    def candidate_weights_(self):
        """Weights at the end of each training series; frame (n_series, n_candidates)."""
        self._require_candidates("candidate_weights_")
        is_training = self.observed_.training_index >= 0
        names = self.observed_.names[: is_training.sum()]
        weights = self.combined_.weights[self.observed_.training_index[is_training]]
        if self.attention_ is not None:
            table, _ = self._aligned(self.observed_)
            ends = Origins.at_ends(self._encoded(table), self._at_once)
            ends = ends.take(np.flatnonzero(is_training))
            weights = Forecasts.from_candidates(
                ends, self.combined_.on_device(self.device)
            ).weights
        index = pd.Index(names, tupleize_cols=False)
        return pd.DataFrame(weights, index=index, columns=self.combined_.names)

    @property
    def lookback_(self):
        """Steps of the longest window."""
        return max(getattr(candidate, "lookback", 1) for candidate in self.combined_.candidates)

    @property
    def log_(self):
        """True if candidates work on logarithms."""
        return self.transform_.log

    @property
    def shift_(self):
        """Constant added before logarithms are taken."""
        return self.transform_.shift

    @property
    def transformer_weight_(self):
        """Mean weight of the transformer among the candidates."""
        return self.combined_.mean_weight_of(TransformerCandidate)

    @property
    def attention_(self):
        """The attention over errors of candidates in similar states, or None."""
        return self.combined_.attention

    @property
    def attention_share_(self):
        """Share of errors in similar states in the errors that weights are made of."""
        return 0.0 if self.attention_ is None else self.attention_.panel_share

    @property
    def network_(self):
        """The transformer, a FittedNetwork, or None."""
        transformer = self.combined_.transformer
        return None if transformer is None else transformer.network

    def _require_candidates(self, what):
        """Raise if only the transformer was fitted; `what` needs several candidates."""
        if self._kept["alone"]:
            raise AttributeError(
                f"{what} needs several candidates, but only the transformer was fitted: pass "
                "candidates='auto'."
            )

    def _steps_at_once(self, length):
        # If the horizon exceeds the longest series, its errors cannot be measured.
        return self.horizon_ if self.horizon_ <= length else max(1, (length - 2) // 2)

    def _learn(self, table, report):
        self.seasons_, self.correction_ = list_seasons(table, self.season_length), None
        # 1. Decide which kinds of candidates the series are long enough for.
        kinds, feature_kinds, unfitted = self._usable_kinds(table)
        is_alone = not kinds and feature_kinds == ["transformer"]
        self._kept["alone"] = is_alone
        if not kinds and "trees" not in feature_kinds:
            self._warn_of_unfitted(unfitted, table, are_all=not is_alone)
        transformer = None
        if "transformer" in feature_kinds:
            transformer = self._new_transformer(table.lengths.max(), report.task, is_alone)
        # 2. A transformer alone is trained on the first origins, and calibrated on the last.
        if is_alone:
            self.combined_, held_out_origins = fit_transformer(
                transformer, table, self._at_once
            )
            self.calibration_ = Calibration.fit(
                self._forecasts(held_out_origins), season_length=self.season_length_
            )
            return
        # 3. Otherwise all candidates are fitted, and combined by their out-of-fold errors.
        fitted = self._fit_candidates(table, kinds, feature_kinds, transformer, unfitted)
        self.combined_, validation = fitted.combined, fitted.validation
        held_out = fitted.held_out
        # 4. In a panel a ridge regression on all origins corrects classical forecasts.
        classical_weight = self.combined_.mean_weight_of(Classical)
        if validation.is_panel and classical_weight >= _MIN_CLASSICAL_WEIGHT:
            self.correction_, held_out = PanelRidge.fit(
                validation,
                held_out,
                Classical(self.seasons_[0]),
                check_random_state(self.random_state),
            )
        # 5. Intervals are calibrated on the held-out forecasts.
        forecasts = Forecasts(
            validation.tests, held_out, ensemble_mad(fitted.candidate_forecasts)
        )
        self.calibration_ = Calibration.fit(
            forecasts, block=validation.block, season_length=self.season_length_
        )

    def _new_candidates(self, kinds, table):
        """Make the candidates of some kinds that the series of a table are long enough for."""
        return new_candidates(
            kinds, table, self._at_once, self.seasons_, self._lookback_or_none
        )

    @property
    def _lookback_or_none(self):
        """The lookback that the user gave; None if it is chosen."""
        return None if self.lookback == "auto" else int(self.lookback)

    def _usable_kinds(self, table):
        """Divide the kinds of candidates by how they are fitted.

        Returns
        -------
        kinds : list of str or regressor
            Kinds that are fitted together, and that the series are long enough for.
        feature_kinds : list of str
            "trees" and "transformer", if they are candidates. They learn the effects of
            features themselves, and are added one by one.
        unfitted : list of str or regressor
            Kinds that the user named, and that the series are too short for.
        """
        if self.candidates is None:
            return [], ["transformer"], []
        is_auto = isinstance(self.candidates, str)
        kinds = list(CANDIDATES if is_auto else self.candidates)
        feature_kinds = [k for k in kinds if isinstance(k, str) and k in _FEATURE_KINDS]
        kinds = [kind for kind in kinds if kind not in feature_kinds]
        if is_auto:
            return kinds, feature_kinds if self.n_features_in_ else [], []
        if kinds and self.n_features_in_ and not feature_kinds and "features" not in kinds:
            warn_user(
                f"candidates={self.candidates!r} use none of the {self.n_features_in_} "
                "features of X: add 'features', 'trees' or 'transformer'."
            )
        # The kind "features" has no candidate, and needs future covariates instead.
        unfitted = [
            kind
            for kind in kinds
            if not (
                len(table.future_columns)
                if kind == "features"
                else self._new_candidates([kind], table)
            )
        ]
        kinds = [kind for kind in kinds if kind not in unfitted]
        # Effects of features are subtracted for other candidates, and useless without any.
        return ([] if kinds == ["features"] else kinds), feature_kinds, unfitted

    def _fit_candidates(self, table, kinds, feature_kinds, transformer, unfitted):
        """Choose whether to take logarithms, fit all candidates, and return a Combination.

        Parameters
        ----------
        table : Table
        kinds, feature_kinds, unfitted : list
            Results of `_usable_kinds`.
        transformer : TransformerCandidate or None
            Candidate to be trained, if there is one.
        """
        is_auto = isinstance(self.candidates, str)
        lengths = window_lengths(table, self._at_once, self.seasons_[0], self._lookback_or_none)
        trees = [Trees(tuple(self.seasons_), is_auto)] if "trees" in feature_kinds else []
        is_slow = transformer or (trees and len(table.value) >= _MIN_STEPS_OF_SLOW_TREES)
        fit = partial(
            fit_combined,
            horizon=self._at_once,
            lookback=max(lengths, default=0),
            effect_season=self.seasons_[0] if "features" in kinds else None,
            share=_SHARE_IF_SLOW if is_slow else None,
        )
        # 1. Quick candidates decide whether to take logarithms. They need not be fitted again.
        candidates = self._new_candidates(kinds, table) or trees
        quick = quick_candidates(candidates)
        self.transform_, earlier = choose_transform(
            table, self.log, self.transform_, partial(fit, candidates=quick, attends=False)
        )
        if earlier is not None:
            candidates = [candidate for candidate in candidates if candidate not in quick]
        # 2. Fit the others on that scale, and add the trees and the transformer one by one.
        fitted = fit(self.transform_.encode(table), candidates=candidates, earlier=earlier)
        for candidate in [*(trees if kinds else ()), *([transformer] if transformer else ())]:
            fitted = add_candidate(fitted, candidate)
        # 3. Warn of candidates that the user named, and that have no forecasts.
        if not is_auto:
            if "transformer" in feature_kinds and transformer is None:
                unfitted = [*unfitted, "transformer"]
            ends = Origins.at_ends(fitted.validation.origins.table, self._at_once)
            without_forecast = fitted.combined.names_without_forecast(ends)
            are_all = len(without_forecast) == len(fitted.combined.names)
            unfitted = [*unfitted, *fitted.unfitted_names, *without_forecast]
            self._warn_of_unfitted(unfitted, table, are_all)
        return fitted

    def _warn_of_unfitted(self, unfitted, table, are_all=False):
        """Warn of candidates that cannot be fitted, or raise if these `are_all` candidates."""
        too_short = f"series of up to {table.lengths.max()} steps are too short for it"
        names = [kind if isinstance(kind, str) else type(kind).__name__ for kind in unfitted]
        reasons = "; ".join(
            f"{name!r}, since {_OTHER_REASONS.get(name, too_short)}" for name in names
        )
        if are_all:
            raise ValueError(
                f"candidates={self.candidates!r} leaves none that can be fitted: {reasons}. "
                "Pass candidates='auto', or others."
            )
        if unfitted:
            warn_user(f"candidates={self.candidates!r} is fitted without {reasons}.")

    def _new_transformer(self, length, task, is_alone):
        """Make a transformer that is not trained; None if the series are too short.

        Parameters
        ----------
        length : int
            Number of steps of the longest series.
        task : callable
            ``task(name, n)`` is a context that reports the training to callbacks.
        is_alone : bool
            Whether there are no other candidates. Then it is made for series of any length.
        """
        is_auto, min_length = isinstance(self.candidates, str), min_series_length(self._at_once)
        min_length = max(_MIN_STEPS_OF_TRANSFORMER, min_length) if is_auto else min_length
        if not is_alone and length < min_length:
            return None
        return TransformerCandidate(
            choose_lookback(length, self.lookback, self._at_once, self.season_length_),
            self.device,
            self._settings(),
            task,
            lambda fitted: {"combined_": CombinedForecast.from_transformer(fitted)},
            tried=is_auto,
        )

    def _forecasts(self, origins, levels=None):
        combined = self.combined_.on_device(self.device)
        forecasts = Forecasts.from_candidates(origins, combined, full=levels is not None)
        if self.correction_ is None:
            return forecasts
        return replace(forecasts, mean=self.correction_.forecast(origins, forecasts.mean))

    def __setstate__(self, state):
        super().__setstate__(state)
        if "attention_" in state:  # what 0.2.0 named so corrects forecasts
            self.correction_ = vars(self).pop("attention_")

    # On 572 breaks in real series errors are 0.80 with breaks of at least this ratio, and 1.01
    # with smaller ones.
    _min_break = 3.0
    _max_subtasks = None
    _sees_events = True

    @property
    def _least_history(self):
        return self.lookback_ if self._kept["alone"] else 2

    def _check_parameters(self):
        check_candidates(self.candidates)
        _check_log(self.log)
        settings = self._settings()
        settings.shape()
        check_series_parts(settings.architecture)

    def _settings(self):
        return NetworkSettings.of(self, foreign=("validation_fraction", "patience"))

    _held = (
        *Forecaster._held,
        FittedNetwork,
        CombinedForecast,
        Classical,
        WindowRidge,
        OwnAnalogs,
        LastSeason,
        Trees,
        WindowRegressor,
        FeatureBasis,
        FeatureEffects,
        CandidateAttention,
        TransformerCandidate,
        Scaling,
        PanelRidge,
        *STORED_FORMS,
    )


def _check_log(log):
    if not is_one_of(log, *TRUE_FALSE_AUTO):
        raise ValueError(f"log={log!r} is not valid: pass True, False or 'auto'.")
