"""A transformer as a candidate: on top of a linear map, or of the level of each series."""

from dataclasses import dataclass, replace

import numpy as np

from ..training._fit_network import FittedNetwork, fit_network
from ._measures import dividing, spread_of
from ._origins import evenly_spread
from ._ridges import WindowRidge

# Windows that a transformer is worth training on beside other candidates.
_FEWEST_WINDOWS = 100
# Windows that the units of features are measured on.
_MOST_MEASURED = 5000
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
        last = np.zeros(len(table.values), dtype=np.int64)
        np.maximum.at(last, origins.series, origins.known)
        past = [own[:end] for own, end in zip(table.values, np.maximum(last, 1), strict=True)]
        few = origins.take(evenly_spread(len(origins), _MOST_MEASURED))
        features = few.past_features(lookback)
        center = scale = np.empty(0)
        if features is not None:
            center = features.mean(axis=(0, 1))
            scale = dividing(spread_of(features, axis=(0, 1)))
        return cls(lookback, _means(past), _deviations(past), center, scale)

    def units(self, origins):
        """Level and unit at each origin, (n_origins, 1); of unknown series those so far."""
        level = origins.units(self.level, _means)
        return level[:, None], origins.units(self.unit, _deviations)[:, None]

    def inputs(self, origins):
        """Windows, their features and known later ones in single precision, None for none."""
        level, unit = self.units(origins)
        past = (origins.past(self.lookback) - level) / unit
        return (
            past.astype(np.float32),
            self._standard(origins.past_features(self.lookback), slice(None)),
            self._standard(origins.future_features(), origins.table.known),
        )

    def _standard(self, features, columns):
        if features is None:
            return None
        return ((features - self.center[columns]) / self.scale[columns]).astype(np.float32)


def _means(values):
    return np.array([own.mean() for own in values])


def _deviations(values):
    return dividing(np.array([spread_of(own) for own in values]))


@dataclass(frozen=True, eq=False)
class TransformerCandidate:
    """A transformer that adds to a linear map of the window, or to the level of the series.

    Until it is trained it has the `settings` of the network and `begin(n_epochs)`, a context
    that gives the report of the training, and attributes of the estimator by what is fitted.
    """

    lookback: int
    device: str = "auto"
    settings: object = None
    begin: object = None
    scaling: Scaling | None = None
    ridge: WindowRidge | None = None
    network: FittedNetwork | None = None

    names = ("transformer",)

    def fit(self, training):
        """Learn from what came before the validation origins, and forecast these.

        Without a network, and NaN, where too little came before.
        """
        origins, validation = training.origins, training.validation
        before = origins.known + origins.horizon <= training.earliest()[origins.series]
        origins = origins.take(before & (origins.known >= self.lookback))
        if len(origins) < _FEWEST_WINDOWS:
            return self, np.full((len(validation), 1, origins.horizon), np.nan)
        ridge, _ = WindowRidge(self.lookback).fit(training)
        fitted = replace(self, ridge=ridge).learn(origins)
        return fitted, fitted.forecast(validation)

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
        own = replace(self, scaling=scaling, settings=None, begin=None)
        with self.begin(settings.n_epochs(n)) as (report, attributes):
            network = fit_network(
                ForecastNetwork, shape, settings,
                squared_error(origins, own._base(origins), scaling), n, report=report,
                n_tokens=-(-self.lookback // shape["patch_length"]),
                attributes=lambda network: attributes(replace(own, network=network)),
                data=[*map(np.asarray, vars(scaling).values()), origins.series, origins.known,
                      *origins.table.values],
            )  # fmt: skip
        return replace(own, network=network)

    def forecast(self, origins):
        """Forecasts at some origins; (n_origins, 1, horizon)."""
        unit = self.scaling.units(origins)[1]
        return (self._base(origins) + unit * self._outputs(origins))[:, None]

    def attention_maps(self, origins):
        """Weights (n_origins, n_layers, n_heads, n_tokens, n_tokens) of the attention."""
        return self._outputs(origins, need_weights=True)

    def _outputs(self, origins, **options):
        from ._network import outputs_of

        return outputs_of(self.network.module(self.device), self.scaling, origins, **options)

    def _base(self, origins):
        """Forecasts that the network adds to, (n_origins, horizon or 1)."""
        if self.ridge is None:
            return self.scaling.units(origins)[0]
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
            "n_future": len(origins.table.known),
            "patch_length": int(patch_length),
            "center": architecture.instance_norm,
            "relative": self.ridge is not None,
            **self.settings.shape(),
        }
