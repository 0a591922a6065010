"""The one style of all pictures, and axes to draw on in it."""

import contextlib
import functools
import math

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
# Characters of a name along an axis.
_LONGEST_NAME = 20

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

    if ax is not None:
        ax = _given_axes(ax, grid, subplot_kw.get("projection"))
    with plt.rc_context(STYLE):
        if ax is None:
            _, ax = plt.subplots(
                *grid, figsize=size, layout="constrained", squeeze=grid == (1, 1),
                subplot_kw=subplot_kw,
            )  # fmt: skip
        yield ax
    display.ax_ = ax
    display.figure_ = (ax.flat[0] if isinstance(ax, np.ndarray) else ax).figure


def _given_axes(ax, grid, projection):
    """Axes that a user passed, one or an array of the shape of the grid."""
    from matplotlib.axes import Axes

    axes, wanted = np.asarray(ax, dtype=object), grid[0] * grid[1]
    for own in axes.flat:
        if not isinstance(own, Axes):
            raise ValueError(
                f"ax={own!r} is no Axes of matplotlib: pass {'one' if wanted == 1 else 'some'}"
                ", such as from plt.subplots(), or None for a new figure."
            )
        if projection not in (None, own.name):
            raise ValueError(
                f"ax has the projection {own.name!r}: pass axes made with "
                f"projection={projection!r}, or None for a new figure."
            )
    if axes.size != wanted:
        raise ValueError(
            f"ax has {axes.size} axes, but {grid[0]} x {grid[1]} are drawn on: pass so many, "
            "or None."
        )
    return axes.item() if wanted == 1 else axes.reshape(grid)


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


def write_names(axis, names):
    """Write names along an axis, at 0, 1, 2 ..., so that they never touch.

    Names along x stand upright where there is no room for them side by side. Where there is
    none even so, as along y, only every second, third ... is written. Names of more than twenty
    characters are shortened in the middle. All this follows the size of the axes when drawn.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path
    from matplotlib.ticker import FuncFormatter

    names, font = [_plain_name(str(name)) for name in names], FontProperties(size="small")
    axis.set_tick_params(length=0, labelsize="small")
    size = font.get_size_in_points()
    widths = (text_to_path.get_text_width_height_descent(n, font, False)[0] for n in names)
    level = max(widths, default=0.0) + 0.6 * size
    axis.set_major_locator(_apart(len(names), level, 1.4 * size))
    axis.set_major_formatter(FuncFormatter(functools.partial(_name_at, names)))


def _apart(n, level, upright):
    """Locator of names that need so many points side by side, and upright or in lines."""
    from matplotlib.ticker import Locator

    class Apart(Locator):
        def __call__(self):
            axis = self.axis
            low, high = sorted(axis.get_view_interval())
            box = axis.axes.bbox
            along_x = axis.axis_name == "x"
            points = (
                72 / axis.get_figure(root=True).dpi * (box.width if along_x else box.height)
            )
            cell, needed = points / max(high - low, 1e-9), upright
            if along_x:
                turned = n > 1 and level > cell
                needed = upright if turned else level
                axis.set_tick_params(labelrotation=90 if turned else 0)
            step = max(1, math.ceil(needed / max(cell, 1e-9)))
            return np.arange(0, n, step)

        def __reduce__(self):  # so that pictures can be pickled
            return _apart, (n, level, upright), vars(self)

    return Apart()


def _name_at(names, place, _=None):
    return names[round(place)] if 0 <= place < len(names) else ""


def _plain_name(name):
    """A name on one line, its blanks to be seen if there is nothing else, and not too long."""
    if name.isspace():
        name = name.replace(" ", "\u2423")
    name = "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)
    if len(name) > _LONGEST_NAME:
        half = _LONGEST_NAME // 2
        name = f"{name[:half]}…{name[1 - half :]}"
    return name.replace("$", r"\$")  # else matplotlib reads a formula
