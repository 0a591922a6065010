"""The one style of all pictures, and axes to draw on in it."""

import contextlib

import numpy as np
import pandas as pd
from sklearn.utils._optional_dependencies import check_matplotlib_support

INK, GREY = "#25313d", "#8a949e"
# The colours of Okabe and Ito (2008), which readers tell apart whatever cones they have.
BLUE, ORANGE, GREEN, PURPLE, SKY, RED = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00",
)  # fmt: skip
COLORS = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED)
# Of weights, and of weights that may be negative.
WEIGHTS, SIGNED = "Blues", "PuOr"

STYLE = {
    "axes.edgecolor": GREY,
    "axes.prop_cycle": f"cycler('color', {list(COLORS)})",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "axes.titleweight": "bold",
    "font.size": 11.0,
    "image.cmap": WEIGHTS,
    "legend.fontsize": "small",
    "legend.frameon": False,
}


@contextlib.contextmanager
def canvas(display, ax=None, *, size=(6.4, 4.0), grid=(1, 1), **subplot_kw):
    """Axes to draw on in :data:`STYLE`, which the display keeps as `ax_` and `figure_`.

    Parameters
    ----------
    display : object
        Whose attributes are set.
    ax : Axes, array of Axes or None
        Axes of the user; None for those of a new figure.
    size : tuple of float
        Width and height of a new figure, in inches.
    grid : tuple of int
        Rows and columns of axes. Several are an array of this shape.
    **subplot_kw
        What axes of a new figure are like.

    Yields
    ------
    ax : Axes, or ndarray of Axes

    Raises
    ------
    ValueError
        If the user's axes are not as many.
    """
    check_matplotlib_support(f"{type(display).__name__}.plot")
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        if ax is None:
            _, ax = plt.subplots(
                *grid, figsize=size, layout="constrained", squeeze=grid == (1, 1),
                subplot_kw=subplot_kw,
            )  # fmt: skip
        elif grid != (1, 1):
            axes = np.asarray(ax, dtype=object)
            if axes.size != grid[0] * grid[1]:
                raise ValueError(
                    f"ax has {axes.size} axes, but {grid[0]} x {grid[1]} are drawn on: pass so "
                    "many, or None."
                )
            ax = axes.reshape(grid)
        yield ax
    display.ax_ = ax
    display.figure_ = (ax.flat[0] if isinstance(ax, np.ndarray) else ax).figure


def write_plainly(axis):
    """Write numbers along a logarithmic axis as they are, and few of them.

    Parameters
    ----------
    axis : Axis
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def write_dates(ax, times):
    """Write dates along the axis below as shortly as they can be told apart.

    Parameters
    ----------
    ax : Axes
    times : Index
        What is drawn over. Numbers are left as they are.
    """
    if not isinstance(times, pd.DatetimeIndex):
        return
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(maxticks=8)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
