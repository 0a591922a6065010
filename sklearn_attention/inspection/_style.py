"""The style of all pictures, and axes to draw on in it."""

import contextlib
import math
from typing import Self

import numpy as np
import pandas as pd
from sklearn.utils._optional_dependencies import check_matplotlib_support

INK, GREY = "#25313d", "#8a949e"
# The colours of Okabe and Ito (2008), which readers with colour blindness can distinguish.
BLUE, ORANGE, RED = "#0072b2", "#e69f00", "#d55e00"
COLORS = (BLUE, ORANGE, "#009e73", "#cc79a7", "#56b4e9", RED)
WEIGHTS = "Blues"

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


class Display:
    """Base class of displays, which draw on axes that are passed or on a figure of their own.

    A subclass has a method `_draw(ax)`. What it draws with a label stands in a legend.
    """

    _figure_size = 6.4, 4.0  # inches

    def plot(self, ax=None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on; None makes a figure.

        Returns
        -------
        self : Display
        """
        with canvas(self, ax, size=self._figure_size) as axes:
            self._draw(axes)
            # Users' names may contain dollars, between which matplotlib would read a formula.
            for label in (axes.xaxis.label, axes.yaxis.label):
                label.set_parse_math(False)
            write_legend(axes, outside=ax is None)
        return self


@contextlib.contextmanager
def canvas(display, ax=None, *, size=(6.4, 4.0), grid=(1, 1)):
    """Yield axes to draw on in :data:`STYLE`, which the display keeps as `ax_` and `figure_`.

    These are `ax` if it is passed, else the axes of a new figure of `size` inches. They are an
    array if `grid`, the numbers of rows and columns, has several.
    """
    check_matplotlib_support(f"{type(display).__name__}.plot")
    import matplotlib.pyplot as plt

    if ax is not None:
        ax = _given_axes(ax, grid)
    with plt.rc_context(STYLE):
        if ax is None:
            _, ax = plt.subplots(
                *grid, figsize=size, layout="constrained", squeeze=grid == (1, 1)
            )
        yield ax
    display.ax_ = ax
    display.figure_ = (ax.flat[0] if isinstance(ax, np.ndarray) else ax).figure


def _given_axes(ax, grid):
    """Check axes that were passed; return one, or an array of the shape of the grid."""
    from matplotlib.axes import Axes

    axes, n_axes = np.asarray(ax, dtype=object), grid[0] * grid[1]
    for each in axes.flat:
        if not isinstance(each, Axes):
            raise ValueError(
                f"ax={each!r} is not an Axes of matplotlib: pass "
                f"{'one' if n_axes == 1 else 'some'}, such as from plt.subplots(), or None for "
                "a new figure."
            )
    if axes.size != n_axes:
        raise ValueError(
            f"ax has {axes.size} axes, but {grid[0]} x {grid[1]} are needed: pass an array of "
            "that many axes, or None for a new figure."
        )
    return axes.item() if n_axes == 1 else axes.reshape(grid)


def write_plainly(axis):
    """Write a few numbers along a logarithmic axis, without powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 300 * low else (1,)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def write_dates(ax, times):
    """Write dates along the x-axis as short as they can be; leave numbers as they are."""
    if not isinstance(times, pd.DatetimeIndex):
        return
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(maxticks=8)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def write_names(axis, names):
    """Write names along an axis at 0, 1, 2 ..., but leave out names that have no room.

    If `names` is None, a few of these numbers are written in place of names.
    """
    from matplotlib.ticker import MaxNLocator

    axis.set_tick_params(length=0, labelsize="small")
    if names is None:
        axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
        return
    names = [printable_name(str(name), 20) for name in names]
    along_x = axis.axis_name == "x"
    room = size_in_points(axis.axes)[0 if along_x else 1]
    # A line of small text needs 13 points.
    shown = range(0, len(names), math.ceil(13 * len(names) / room))
    is_upright = along_x and max(map(len, names)) > 2
    axis.set_ticks(
        shown, [names[i] for i in shown], rotation=90 if is_upright else 0, parse_math=False
    )


def format_number(number, form):
    """Format a number with a typographic minus sign."""
    return f"{number:{form}}".replace("-", "\u2212")


def format_numbers(numbers, reference=None, sign=""):
    """Format numbers with equally many decimals, and with a plus sign if `sign` is "+".

    There are as many decimals as the largest absolute number of `reference` needs for three
    digits. Without a reference, or if it has only zeros, it is the largest of `numbers`.
    """
    sizes = (np.abs(x).max(initial=0.0) for x in (reference, numbers) if x is not None)
    size = next(filter(None, sizes), 1.0)
    decimals = max(0, 2 - math.floor(math.log10(size)))
    form = f"{sign},.{decimals}f" if decimals <= 6 and size < 1e9 else f"{sign}.2e"
    return [format_number(number, form) for number in numbers]


def write_bar_names(ax, names):
    """Write the names of horizontal bars, and turn the y-axis so that the first bar is on top.

    The text is as large as the distance between bars allows.
    """
    distance = size_in_points(ax)[1] / max(len(names), 1)
    size = min(STYLE["font.size"], 0.8 * distance)
    names = [printable_name(str(name), 60) for name in names]
    ax.set_yticks(range(len(names)), names, fontsize=size, parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(names) - 0.4, -0.6)


def draw_waterfall(ax, base, moves, names, texts):
    """Draw horizontal bars, each of which begins where the one above it ends.

    Parameters
    ----------
    ax : Axes
        Axes to draw on.
    base : float
        Beginning of the first bar.
    moves : sequence of float
        Signed lengths of the bars.
    names : list of str
        Names of the bars, which are written on the left.
    texts : list of str
        What each bar adds, which is written on the right.

    Returns
    -------
    artists : list of Text
        The artists of `texts`.
    """
    ends = base + np.cumsum(moves)
    colors = [BLUE if move >= 0 else ORANGE for move in moves]
    ax.barh(range(len(moves)), moves, 0.7, ends - moves, color=colors)
    ax.vlines(ends[:-1], range(len(moves) - 1), range(1, len(moves)), color=GREY, lw=0.8)
    ax.grid(axis="y", color=GREY, alpha=0.2)
    ax.set_axisbelow(True)
    write_bar_names(ax, names)
    ax.use_sticky_edges = False  # so that bars do not touch the ends of the axis
    ax.margins(x=0.05)
    ax.locator_params(axis="x", nbins=5)
    right = ax.secondary_yaxis("right")
    right.spines["right"].set_visible(False)
    right.set_yticks(range(len(texts)), texts, fontsize="small", parse_math=False)
    right.tick_params(length=0)
    return right.get_yticklabels()


def write_legend(ax, *, outside):
    """Write a legend of what has a label: above the axes if `outside`, else on them."""
    handles, labels = ax.get_legend_handles_labels()
    if not labels:
        return
    if outside:
        figure = ax.get_figure(root=True)
        # A column has the sample of a line, spaces, and characters about 5.5 points wide.
        column_width = 40 + 5.5 * max(map(len, labels))
        n_columns = max(1, int(72 * figure.get_figwidth() / column_width))
        legend = figure.legend(handles, labels, loc="outside upper left", ncols=n_columns)
    else:
        legend = ax.legend(frameon=True, framealpha=0.9, edgecolor="none")
    for text in legend.get_texts():
        text.set_parse_math(False)


def size_in_points(ax):
    """Return the width and the height of axes in points."""
    return np.array([ax.bbox.width, ax.bbox.height]) * 72 / ax.get_figure(root=True).dpi


def printable_name(name, longest=25):
    """Write a name on one line, with at most `longest` characters.

    Characters that cannot be printed are escaped, and a name of blanks has visible ones.
    """
    if name.isspace():
        name = name.replace(" ", "\u2423")
    name = "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)
    if len(name) > longest:
        half = longest // 2
        name = f"{name[:half]}…{name[half + 1 - longest :]}"
    return name
