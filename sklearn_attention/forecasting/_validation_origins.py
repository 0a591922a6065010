"""The origins that candidates are compared at."""

import numpy as np

from ._combination import PANEL
from ._origins import evenly_spread
from ._training import Training

_BLOCKS = 5
# Validation origins of all series together about, and of each at least and at most.
_ABOUT, _FEWEST, _MOST = 400, 6, 100
# Series are long from so many horizons on: then so large a share of them is validated, and so
# many horizons where there are many of them, whose recent errors tell enough.
_LONG, _SHARE, _PANEL_SPAN = 10, 0.6, 6
# Steps there have to be before a validation origin.
_LEAST_KNOWN = 4


def make_training(observations, horizon, lookback, scale, share=_SHARE):
    """Training series with validation origins in five blocks of time.

    Parameters
    ----------
    observations : Table
    horizon : int
    lookback : int
        Steps that most candidates look back; origins have as many before them if there are.
    scale : ndarray of shape (n_series,)
        Unit of each series.
    share : float, default=0.6
        Of a long series that validation origins span.

    Returns
    -------
    training : Training

    Notes
    -----
    Blocks are counted from the end of each series. The last origins of a long series are one
    horizon before its end, and its first so that they span that share of it, in panels six
    horizons. Of a short series it is half a horizon and three horizons; where the series ends
    within a horizon the steps that there are count.
    """
    lengths = observations.lengths
    per_series = int(np.clip(_ABOUT / len(lengths), _FEWEST, _MOST))
    series, known, block = [], [], []
    for i, n in enumerate(lengths):
        before = max(min(lookback, n // 3), _LEAST_KNOWN)
        if n >= _LONG * horizon:
            span = _PANEL_SPAN * horizon if len(lengths) >= PANEL else int(share * n)
            nearest, farthest = horizon, min(span, n - before)
        else:
            nearest, farthest = max(1, horizon // 2), min(3 * horizon, n - before)
        nearest = min(nearest, farthest)
        if nearest < 1:
            continue  # too short to be validated
        width = farthest - nearest + 1
        gaps = nearest + evenly_spread(width, per_series)
        series.append(np.full(len(gaps), i))
        known.append(n - gaps)
        block.append((gaps - nearest) * _BLOCKS // width)
    parts = [np.concatenate([np.empty(0, dtype=np.int64), *part]) for part in (series, known)]
    validation = observations.at_ends(horizon).at(*parts)
    block = np.concatenate([np.empty(0, dtype=np.int64), *block])
    return Training(observations.origins(horizon), validation, block, scale)
