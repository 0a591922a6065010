"""Frames with a row for each observation: columns of series, times, values and features."""

import numpy as np
import pandas as pd

from .._columns import frame_of, to_pandas
from ._time import as_index, kind_of

SERIES, TIME, TARGET = "unique_id", "ds", "y"
# Code that does something to each of the series of a form, from their name and what it does.
_LONG = "{}.groupby(level=0).apply(lambda s: s.droplevel(0).{})"
FILLED = {
    "dict": "{{name: s.{1} for name, s in {0}.items()}}", "long": _LONG, "long_frame": _LONG,
    "tidy": f"{{}}.set_index({TIME!r}).groupby({SERIES!r})[{TARGET!r}].apply(lambda s: s.{{}})"
    f".rename_axis({[SERIES, TIME]}).reset_index()",
}  # fmt: skip


def is_tidy(data):
    """True for a frame with columns of series and time."""
    return isinstance(data, pd.DataFrame) and {SERIES, TIME} <= set(data.columns)


def library_of(data):
    """Name of the library of a frame or a series; pandas for all else."""
    known = isinstance(data, pd.DataFrame | pd.Series)
    frame = None if known else frame_of(data, allow_series=True)
    return "pandas" if frame is None else frame.implementation.value


def dated(data):
    """A frame of another library with a column of times as one of pandas; all else as it is."""
    frame = to_pandas(data)
    if frame is data or TIME not in frame:
        return data
    return frame if is_tidy(frame) else frame.set_index(TIME)


def split_tidy(frame, y=None, what="X"):
    """Features, None if there are none, and the frame of the values, `y` or a column.

    `what` is what the frame was passed as, for messages.
    """
    features = frame
    if y is None:
        if TARGET not in frame:
            raise ValueError(
                f"{what} has the columns {SERIES!r} and {TIME!r}, but none of the values: name "
                f"that {TARGET!r}."
            )
        features, y = frame.drop(columns=TARGET), frame[TARGET]
    target = frame[[SERIES]].assign(**{TIME: as_index(frame[TIME]), TARGET: np.asarray(y)})
    features = features_of(features)
    return (features if features.shape[1] else None), target


def features_of(frame):
    """Features of a tidy frame, with an index of series, times, and the rows' own labels."""
    labels = frame.index.to_flat_index() if frame.index.nlevels > 1 else frame.index
    index = pd.MultiIndex.from_arrays(
        [frame[SERIES], frame[TIME], labels], names=[SERIES, TIME, frame.index.name]
    )
    return frame.drop(columns=[SERIES, TIME]).set_axis(index)


def long_of(frame, what="X"):
    """The series of a tidy frame one below the other, each sorted in time."""
    _, frame = split_tidy(frame, what=what)
    if frame[SERIES].isna().any():
        raise ValueError(f"{what} has rows without {SERIES!r}: drop them.")
    kind_of(pd.Index(frame[TIME]), what)
    return frame.sort_values([SERIES, TIME]).set_index([SERIES, TIME])[TARGET]
