"""Tasks: the training values, the values to forecast and the measure of one cell of a table."""

from typing import NamedTuple

import numpy as np
import pandas as pd


class Fold(NamedTuple):
    """One origin: series up to it, and what follows each of them.

    Attributes
    ----------
    past : dict of Series or ndarray
        Every series up to the origin; arrays where the time between steps is unknown.
    future : dict of ndarray
        What follows; missing values are not scored.
    known : DataFrame or None
        Features of all times, of the past and of the steps to be forecast.
    """

    past: dict
    future: dict
    known: pd.DataFrame | None = None


class Task(NamedTuple):
    """A cell's data.

    Attributes
    ----------
    horizon : int
        Steps ahead.
    season : int
        Steps in the season of the naive forecast and of the units of errors.
    seasons : tuple of int
        The seasons that peers are told, shortest first; (1,) for none. Those longer than
        `season` are for models of all series together.
    folds : list of Fold
        In order of time.
    refit : bool
        Whether models learn anew in every fold. Otherwise they learn in the first one, and
        only observe what comes between; statistical models are fitted to each origin anyway.
    recent : int or None
        How many of the last observations a statistical model is fitted to; None for all.
    """

    horizon: int
    season: int
    seasons: tuple
    folds: list
    refit: bool = True
    recent: int | None = None

    def scales(self, season):
        """For each series, the mean absolute error of repeating what was `season` before."""
        first = self.folds[0].past
        return {name: naive_error(np.asarray(x), season) for name, x in first.items()}


def naive_error(values, season):
    missed = np.abs(values[season:] - values[:-season])
    missed = missed[~np.isnan(missed)]
    return missed.mean() if len(missed) and missed.mean() > 0 else np.nan


def read(data, name, **options):
    return pd.read_csv(data / "forecasting" / f"{name}.csv.gz", **options)
