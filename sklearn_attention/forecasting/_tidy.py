"""Frames with a row for each observation: columns of series, times, values and features."""

import numpy as np
import pandas as pd

SERIES, TIME, TARGET = "unique_id", "ds", "y"


def is_tidy(data):
    """Whether something is a frame with columns that say which series and when.

    Parameters
    ----------
    data : object
        What the user passed.

    Returns
    -------
    tidy : bool
    """
    return isinstance(data, pd.DataFrame) and {SERIES, TIME} <= set(data.columns)


def split_tidy(frame, y=None, what="X"):
    """Features and series of a tidy frame.

    Parameters
    ----------
    frame : DataFrame
        With the columns "unique_id" and "ds"; further ones are features.
    y : Series or array, default=None
        The values; None for the column "y".
    what : str, default="X"
        What the frame is, for messages.

    Returns
    -------
    features : DataFrame or None
        As :func:`features_of` returns them; None if there are none.
    target : DataFrame
        The columns "unique_id", "ds" and "y".
    """
    if y is None:
        if TARGET not in frame:
            raise ValueError(
                f"{what} has the columns {SERIES!r} and {TIME!r}, but none of the values: name "
                f"that {TARGET!r}."
            )
        features, y = frame.drop(columns=TARGET), frame[TARGET]
    else:
        features = frame
    target = frame[[SERIES, TIME]].assign(**{TARGET: np.asarray(y)})
    features = features_of(features)
    return (features if features.shape[1] else None), target


def features_of(frame):
    """Features of a tidy frame, with an index of series, times, and the rows' own labels.

    Parameters
    ----------
    frame : DataFrame
        With the columns "unique_id" and "ds"; further ones are features.

    Returns
    -------
    features : DataFrame
    """
    labels = frame.index.to_flat_index() if frame.index.nlevels > 1 else frame.index
    index = pd.MultiIndex.from_arrays(
        [frame[SERIES], frame[TIME], labels], names=[SERIES, TIME, frame.index.name]
    )
    return frame.drop(columns=[SERIES, TIME]).set_axis(index)


def long_of(frame, what="X"):
    """The series of a tidy frame one below the other, each sorted in time.

    Parameters
    ----------
    frame : DataFrame
        With the columns "unique_id", "ds" and "y".
    what : str, default="X"
        What the frame is, for messages.

    Returns
    -------
    long : Series
        With an index of two levels.
    """
    _, frame = split_tidy(frame, what=what)
    if frame[SERIES].isna().any():
        raise ValueError(f"{what} has rows without {SERIES!r}: drop them.")
    return frame.sort_values([SERIES, TIME]).set_index([SERIES, TIME])[TARGET]


def tidy_answer(values, index, columns):
    """Forecasts as a tidy frame.

    Parameters
    ----------
    values : ndarray of shape (n_rows,) or (n_rows, n_columns)
    index : MultiIndex
        Series and times, and perhaps labels for the rows of the answer.
    columns : list or None
        What several numbers in each row are called; None for one, the forecast.

    Returns
    -------
    frame : DataFrame
        The columns "unique_id", "ds", and "forecast" or `columns`.
    """
    names = ["forecast"] if columns is None else columns
    frame = pd.DataFrame(values.reshape(len(index), -1), columns=names)
    for i, name in enumerate((SERIES, TIME)):
        frame.insert(i, name, index.get_level_values(i))
    return frame if index.nlevels == 2 else frame.set_axis(index.get_level_values(2))
