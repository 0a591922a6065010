"""A transformer on top of a linear map, as a candidate."""

import numpy as np

from ._lookback import choose_lookback, least_length
from ._ridges import WindowRidge

# Windows that a transformer is worth training on as a candidate.
_FEWEST_WINDOWS = 100


class TransformerCandidate:
    """The transformer of a forecaster, on top of a linear map, as a candidate.

    Parameters
    ----------
    forecaster : TransformerForecaster
        Keeps the network.
    context, task_data
        Of the fit.
    """

    names = ("transformer",)

    def __init__(self, forecaster, context, task_data):
        self.forecaster, self.context, self.task_data = forecaster, context, task_data

    def fit(self, training):
        """Learn from what came before the validation origins, and forecast these.

        Parameters
        ----------
        training : Training

        Returns
        -------
        held_out : ndarray of shape (n_validation, 1, horizon)
            NaN where nothing came before.
        """
        forecaster, origins = self.forecaster, training.origins
        longest = origins.table.lengths.max()
        sizes = forecaster.lookback, forecaster.horizon_, forecaster.season_length_
        n_windows = 0
        if longest >= least_length(forecaster.horizon_):
            forecaster.lookback_ = choose_lookback(longest, *sizes)
            before = origins.known + origins.horizon <= training.earliest()[origins.series]
            origins = origins.take(before & (origins.known >= forecaster.lookback_))
            n_windows = len(origins)
        if n_windows < _FEWEST_WINDOWS:
            forecaster._forget_network()
            return np.full((len(training.validation), 1, origins.horizon), np.nan)
        ridge = WindowRidge(forecaster.lookback_)
        ridge.fit(training)
        forecaster.ridge_ = ridge
        base = linear_base(ridge, origins)
        forecaster._fit_network(origins, base, self.context, self.task_data)
        return forecaster._transformer(training.validation)[:, None]


def linear_base(ridge, origins):
    """Forecasts of a linear map, the last value where it has none; (n_origins, horizon).

    Parameters
    ----------
    ridge : WindowRidge
    origins : Origins
    """
    found = ridge.forecast(origins)[:, 0]
    return np.where(np.isnan(found), origins.past(1), found)
