"""Which of several series is drawn, and over which times."""

import pandas as pd


def place_of(series, names):
    """Place of a series among others.

    Parameters
    ----------
    series : object
        Its name; None is for the only one.
    names : list
        Of all series.

    Returns
    -------
    place : int

    Raises
    ------
    ValueError
        If there is no such series, or None is asked for of several.
    """
    if series is None and len(names) == 1:
        return 0
    if series not in names:
        raise ValueError(
            f"series={series!r} is none of the series: pass one of {list(names)[:5]}."
        )
    return list(names).index(series)


def plain_times(index):
    """Times that matplotlib takes: dates in the place of periods.

    Parameters
    ----------
    index : Index

    Returns
    -------
    index : Index
    """
    return index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index
