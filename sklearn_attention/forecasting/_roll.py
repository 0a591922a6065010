"""Forecasting further than the horizon, on one's own forecasts."""

import numpy as np

from ._windows import WindowBatch


def ends_of(values, features, known, later, lookback, horizon):
    """The windows that series end with.

    Parameters
    ----------
    values : list of ndarray of shape (n_steps,)
        The series.
    features : list of ndarray of shape (n_steps, n_features) or None
        Their features.
    known : ndarray of int
        Columns that are known beforehand.
    later : ndarray of shape (n_series, n_later, n_known) or None
        Those columns after the end.
    lookback, horizon : int

    Returns
    -------
    batch : WindowBatch
        One window a series. Of a series shorter than `lookback` the first observation is
        repeated.
    """
    steps = [np.maximum(len(own) - lookback + np.arange(lookback), 0) for own in values]
    past = np.stack([own[rows] for own, rows in zip(values, steps, strict=True)])
    if features is None:
        return WindowBatch(past, None, None)
    past_features = np.stack([own[rows] for own, rows in zip(features, steps, strict=True)])
    future = later[:, :horizon] if len(known) else None
    return WindowBatch(past, past_features, future)


def inside(values, features, known, steps, lookback, horizon):
    """The windows that end just before some steps within a series.

    Parameters
    ----------
    values : ndarray of shape (n_steps,)
    features : ndarray of shape (n_steps, n_features) or None
    known : ndarray of int
        Columns that are known beforehand.
    steps : ndarray of int of shape (n_windows,)
        The first steps after each window.
    lookback, horizon : int

    Returns
    -------
    batch : WindowBatch
        Where a window would reach beyond the series, its first observation is repeated, and
        its first or last row of features.
    """
    before = np.maximum(steps[:, None] - lookback + np.arange(lookback), 0)
    if features is None:
        return WindowBatch(values[before], None, None)
    after = np.clip(steps[:, None] + np.arange(horizon), 0, len(values) - 1)
    future = features[:, known][after] if len(known) else None
    return WindowBatch(values[before], features[before], future)


def roll(answer, batch, known, later, n_blocks, horizon):
    """Forecast block after block, each from the last window of what has been forecast.

    Parameters
    ----------
    answer : callable
        ``answer(batch)`` returns forecasts (n_windows, horizon).
    batch : WindowBatch
        Where it begins.
    known : ndarray of int
        Columns of the features that are known beforehand. The others stay as they were last.
    later : ndarray of shape (n_windows, n_blocks * horizon, n_known) or None
        Known features of the steps to forecast.
    n_blocks, horizon : int

    Yields
    ------
    batch : WindowBatch
        The windows of a block.
    forecasts : ndarray of shape (n_windows, horizon)
    """
    for block in range(n_blocks):
        forecasts = answer(batch)
        yield batch, forecasts
        if block == n_blocks - 1:
            return
        lookback = batch.past.shape[1]
        past = np.concatenate([batch.past, forecasts], axis=1)[:, -lookback:]
        if batch.past_features is None:
            batch = batch._replace(past=past)
            continue
        passed = np.repeat(batch.past_features[:, -1:], horizon, axis=1)
        future = None
        if len(known):
            passed[:, :, known] = later[:, block * horizon : (block + 1) * horizon]
            future = later[:, (block + 1) * horizon : (block + 2) * horizon]
        features = np.concatenate([batch.past_features, passed], axis=1)[:, -lookback:]
        batch = batch._replace(past=past, past_features=features, future_features=future)
