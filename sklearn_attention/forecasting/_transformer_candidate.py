"""A transformer as a candidate, on top of a linear map or of the level of each series.

Forecasts: a base plus the outputs of a transformer of patches of the window (PatchTST: Nie,
Nguyen, Sinthong and Kalagnanam 2023, A time series is worth 64 words, ICLR) with their
features. The base is a `WindowRidge`, or the level of the series without other candidates.

Learns: the values minus the base, in standard deviations of the series, from origins whose
targets come before the validation origins. `settings` say how it is trained.

Costs: the training of the network, minutes where all other candidates take seconds. With
`tried`, the candidate is first trained for 300 steps to see whether it helps.
"""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone

from .._column_stats import mean_and_scale
from ..training._fit_network import FittedNetwork, fit_network
from ._ridges import WindowRidge
from ._table import means, stds

# Beside other candidates a transformer is trained on at least 100 windows.
_MIN_WINDOWS = 100
# A brief training has 300 steps.
_TRIAL_STEPS = 300
# A patch has 8 steps, or fewer if a window would have less than 4 patches.
_MAX_PATCH_LENGTH, _MIN_PATCHES = 8, 4


@dataclass(frozen=True, eq=False)
class Scaling:
    """Units in which a network has windows and features, and in which it forecasts.

    Attributes
    ----------
    lookback : int
        Number of steps in a window.
    level, unit : ndarray of shape (n_series,)
        Mean and standard deviation of each training series.
    center, scale : ndarray of shape (n_features,)
        Mean and standard deviation of each feature.
    """

    lookback: int
    level: np.ndarray
    unit: np.ndarray
    center: np.ndarray
    scale: np.ndarray

    @classmethod
    def from_origins(cls, origins, lookback):
        """Measure series and features before the last of the `origins` of each series."""
        table = origins.table
        ends = np.ones(len(table), dtype=np.int64)
        np.maximum.at(ends, origins.series, origins.n_known)
        past = [values[:end] for values, end in zip(table.observations, ends, strict=True)]
        rows = np.flatnonzero(table.step - table.starts[table.series] < ends[table.series])
        center, scale = mean_and_scale(table.features[rows])
        return cls(lookback, means(past), stds(past), center, scale)

    def units(self, origins):
        """Return level and unit of the series at each origin; (n_origins, 2).

        Those of a new series are measured by the values known at the origin.
        """
        level = origins.series_units(self.level, means)
        return np.column_stack([level, origins.series_units(self.unit, stds)])


@dataclass(frozen=True, eq=False)
class TransformerCandidate:
    """A transformer that adds to a linear map of the window, or to the level of the series.

    Attributes
    ----------
    lookback : int
    device : str
    settings : NetworkSettings or None
        How the network is built and trained. `settings`, `task` and `attributes` are None once
        it is trained.
    task : callable or None
        ``task(name, n)`` is a context that reports the training to callbacks.
    attributes : callable or None
        ``attributes(candidate)`` are the fitted attributes of the estimator, for callbacks,
        with the candidate trained so far.
    tried : bool
        Whether it is trained only if a brief training shows that it helps.
    scaling : Scaling or None
    ridge : WindowRidge or None
        The base; None for the level of the series.
    network : FittedNetwork or None
        None before training, and if there are too few windows.
    """

    lookback: int
    device: str = "auto"
    settings: object = None
    task: object = None
    attributes: object = None
    tried: bool = False
    scaling: Scaling | None = None
    ridge: WindowRidge | None = None
    network: FittedNetwork | None = None

    names = ("transformer",)

    def fit(self, validation):
        """Learn from targets before the validation origins, and forecast these.

        Returns the fitted candidate and forecasts (n_validation, 1, horizon). With fewer than
        100 windows it has no network, and forecasts are NaN.
        """
        origins, tests = validation.origins, validation.tests
        first_held_out = validation.first_test_step()[origins.series]
        is_before = origins.n_known + origins.horizon <= first_held_out
        origins = origins.take(is_before & (origins.n_known >= self.lookback))
        if len(origins) < _MIN_WINDOWS:
            return self, np.full((len(tests), 1, origins.horizon), np.nan)
        ridge, _ = WindowRidge(self.lookback).fit(validation)
        fitted = replace(self, ridge=ridge).learn(origins)
        return fitted, fitted.forecast(tests)

    def with_trial(self, validation):
        """Return the candidate, and forecasts of validation origins after a brief training.

        Forecasts are (n_validation, 1, horizon), or None if it is not to be tried.
        """
        brief = self.brief()
        return self, None if brief is None else brief.fit(validation)[1]

    def brief(self):
        """Return a candidate that is trained for 300 steps; None if it is not to be tried."""
        max_steps = self.settings.training.max_steps
        if not self.tried or (max_steps is not None and max_steps <= _TRIAL_STEPS):
            return None
        training = clone(self.settings.training).set_params(max_steps=_TRIAL_STEPS)
        return replace(self, settings=replace(self.settings, training=training))

    def learn(self, origins):
        """Train the network on the values after `origins` minus the base."""
        from ._network import ForecastNetwork, squared_error  # torch takes a second to load

        if len(origins) == 0:
            raise ValueError(
                f"horizon={origins.horizon!r} and lookback_={self.lookback!r} leave no windows "
                "to learn from: pass smaller ones, or longer series."
            )
        n, settings, shape = len(origins), self.settings, self._shape(origins)
        scaling = Scaling.from_origins(origins, self.lookback)
        learned = replace(self, scaling=scaling, settings=None, task=None, attributes=None)
        units = scaling.units(origins)
        loss = squared_error(origins, learned._base(origins, units), units, scaling)
        with self.task("training", settings.count_epochs(n)) as report:
            network = fit_network(
                ForecastNetwork,
                shape,
                settings,
                loss,
                n,
                report=report,
                n_tokens=-(-self.lookback // shape["patch_length"]),
                attributes=lambda network: self.attributes(replace(learned, network=network)),
                data=[
                    *map(np.asarray, vars(scaling).values()),
                    origins.series,
                    origins.n_known,
                    *origins.table.observations,
                ],
            )
        return replace(learned, network=network)

    def forecast(self, origins):
        """Forecast; (n_origins, 1, horizon)."""
        units = self.scaling.units(origins)
        outputs = self._outputs(origins, units)
        return (self._base(origins, units) + units[:, 1:] * outputs)[:, None]

    def attention_maps(self, origins):
        """Compute weights of the attention.

        The shape is (n_origins, n_layers, n_heads, n_tokens, n_tokens).
        """
        return self._outputs(origins, self.scaling.units(origins), need_weights=True)

    def _outputs(self, origins, units, **options):
        """Compute outputs (n_origins, horizon) of the network, or weights of its attention."""
        from ._network import outputs_of

        network = self.network.module(self.device)
        return outputs_of(network, origins, units, self.scaling, **options)

    def _base(self, origins, units):
        """Compute the base, to which the network adds; (n_origins, horizon or 1).

        Where the ridge has no forecast, it is the last value.
        """
        if self.ridge is None:
            return units[:, :1]
        forecasts = self.ridge.forecast(origins)[:, 0]
        return np.where(np.isnan(forecasts), origins.past(1), forecasts)

    def _shape(self, origins):
        """Make the arguments of the network."""
        architecture, features = self.settings.architecture, origins.past_features(1)
        patch_length = architecture.patch_length
        if patch_length == "auto":
            patch_length = max(1, min(_MAX_PATCH_LENGTH, self.lookback // _MIN_PATCHES))
        return {
            "lookback": self.lookback,
            "horizon": origins.horizon,
            "n_past": 0 if features is None else features.shape[2],
            "n_future": len(origins.table.future_columns),
            "patch_length": int(patch_length),
            "center": architecture.instance_norm,
            "relative": self.ridge is not None,
            **self.settings.shape(),
        }
