"""A transformer as a candidate, on top of a linear map or of the level of each series."""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone

from .._column_stats import mean_and_scale
from ..training._fit_network import FittedNetwork, fit_network
from ._ridges import WindowRidge
from ._table import means, stds

# Fewest windows on which a transformer is trained in addition to other candidates.
_FEWEST_WINDOWS = 100
# Steps of a brief training.
_TRIAL_STEPS = 300
# A patch has so many steps, or as many as leave so many patches.
_PATCH, _FEWEST_PATCHES = 8, 4


@dataclass(frozen=True, eq=False)
class Scaling:
    """Units in which a network has windows and features, and in which it forecasts."""

    lookback: int
    level: np.ndarray  # (n_series,), mean of each training series
    unit: np.ndarray  # its standard deviation
    center: np.ndarray  # (n_features,)
    scale: np.ndarray

    @classmethod
    def of(cls, origins, lookback):
        """Measured before the last of some origins in each series."""
        table = origins.table
        ends = np.ones(len(table), dtype=np.int64)
        np.maximum.at(ends, origins.series, origins.n_known)
        past = [values[:end] for values, end in zip(table.observations, ends, strict=True)]
        rows = np.flatnonzero(table.step - table.starts[table.series] < ends[table.series])
        center, scale = mean_and_scale(table.features[rows])
        return cls(lookback, means(past), stds(past), center, scale)

    def units(self, origins):
        """Level and unit at each origin, (n_origins, 2); of unknown series those so far."""
        level = origins.series_units(self.level, means)
        return np.column_stack([level, origins.series_units(self.unit, stds)])


@dataclass(frozen=True, eq=False)
class TransformerCandidate:
    """A transformer that adds to a linear map of the window, or to the level of the series."""

    # Until it is trained it has the `settings` of the network, and for callbacks a context that
    # reports a `task`, and `attributes` of the estimator by the candidate that is fitted so
    # far. Where it is to be `tried`, it is only trained if a brief training shows that it
    # helps.

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
        """Learn from what came before the validation origins, and forecast these.

        Without a network, and NaN, where too little came before.
        """
        origins, tests = validation.origins, validation.tests
        before = (
            origins.n_known + origins.horizon <= validation.first_test_step()[origins.series]
        )
        origins = origins.take(before & (origins.n_known >= self.lookback))
        if len(origins) < _FEWEST_WINDOWS:
            return self, np.full((len(tests), 1, origins.horizon), np.nan)
        ridge, _ = WindowRidge(self.lookback).fit(validation)
        fitted = replace(self, ridge=ridge).learn(origins)
        return fitted, fitted.forecast(tests)

    def with_trial(self, validation):
        """The same, and forecasts after a brief training; None without."""
        brief = self.brief()
        return self, None if brief is None else brief.fit(validation)[1]

    def brief(self):
        """The same, to be trained briefly, where that is to show whether it helps; or None."""
        most = self.settings.training.max_steps
        if not self.tried or (most is not None and most <= _TRIAL_STEPS):
            return None
        brief = clone(self.settings.training).set_params(max_steps=_TRIAL_STEPS)
        return replace(self, settings=replace(self.settings, training=brief))

    def learn(self, origins):
        """The same with a network that has learned what the base leaves at some origins."""
        from ._network import ForecastNetwork, squared_error  # torch takes a second to load

        if len(origins) == 0:
            raise ValueError(
                f"horizon={origins.horizon!r} and lookback_={self.lookback!r} leave no windows "
                "to learn from: pass smaller ones, or longer series."
            )
        n, settings, shape = len(origins), self.settings, self._shape(origins)
        scaling = Scaling.of(origins, self.lookback)
        learned = replace(self, scaling=scaling, settings=None, task=None, attributes=None)
        units = scaling.units(origins)
        loss = squared_error(origins, learned._base(origins, units), units, scaling)
        with self.task("training", settings.n_epochs(n)) as report:
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
        """Forecasts at some origins; (n_origins, 1, horizon)."""
        units = self.scaling.units(origins)
        outputs = self._outputs(origins, units)
        return (self._base(origins, units) + units[:, 1:] * outputs)[:, None]

    def attention_maps(self, origins):
        """Weights (n_origins, n_layers, n_heads, n_tokens, n_tokens) of the attention."""
        return self._outputs(origins, self.scaling.units(origins), need_weights=True)

    def _outputs(self, origins, units, **options):
        from ._network import outputs_of

        network = self.network.module(self.device)
        return outputs_of(network, origins, units, self.scaling, **options)

    def _base(self, origins, units):
        """Forecasts that the network adds to, (n_origins, horizon or 1)."""
        if self.ridge is None:
            return units[:, :1]
        found = self.ridge.forecast(origins)[:, 0]
        return np.where(np.isnan(found), origins.past(1), found)

    def _shape(self, origins):
        """Arguments of the network."""
        architecture, features = self.settings.architecture, origins.past_features(1)
        patch_length = architecture.patch_length
        if patch_length == "auto":
            patch_length = max(1, min(_PATCH, self.lookback // _FEWEST_PATCHES))
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
