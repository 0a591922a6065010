"""The style of all pictures, and axes to draw on in it."""

import contextlib
import functools
import math

import numpy as np
import pandas as pd
from sklearn.utils._optional_dependencies import check_matplotlib_support

INK, GREY = "#25313d", "#8a949e"
# The colours of Okabe and Ito (2008), which readers with colour blindness can distinguish.
BLUE, ORANGE, RED = "#0072b2", "#e69f00", "#d55e00"
COLORS = (BLUE, ORANGE, "#009e73", "#cc79a7", "#56b4e9", RED)
WEIGHTS = "Blues"
# By how much axes grow, in general, once the layout is made.
_GROWS = 1.1

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

    They are the user's, or those of a new figure of this size in inches; an array if several.
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
                f"ax={own!r} is not an Axes of matplotlib: pass "
                f"{'one' if wanted == 1 else 'some'}, such as from plt.subplots(), or None for "
                "a new figure."
            )
        if projection not in (None, own.name):
            raise ValueError(
                f"ax has the projection {own.name!r}: pass axes made with "
                f"projection={projection!r}, or None for a new figure."
            )
    if axes.size != wanted:
        raise ValueError(
            f"ax has {axes.size} axes, but {grid[0]} x {grid[1]} are needed: pass an array of "
            "so many axes, or None for a new figure."
        )
    return axes.item() if wanted == 1 else axes.reshape(grid)


def write_plainly(axis):
    """Write a few numbers along a logarithmic axis, in plain notation."""
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
    """Write names along an axis at 0, 1, 2 ... so that none touch; for None a few numbers.

    They are turned (along x), thinned out, and shortened where there is no room for them.
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_tick_params(length=0, labelsize="small")
    if names is None:
        axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
        return
    width, height = axis.get_figure(root=True).get_size_inches() * 72
    side = height if axis.axis_name == "x" else width
    longest = int(np.clip(side / 4 / (0.6 * _points("small")), 8, 20))
    # matplotlib reads a formula between two dollars.
    names = [plain_name(str(name), longest).replace("$", r"\$") for name in names]
    level = max(_widths(names, "small"), default=0.0) + 0.6 * _points("small")
    axis.set_major_locator(_apart(len(names), level, 1.4 * _points("small")))
    axis.set_major_formatter(FuncFormatter(functools.partial(_name_at, names)))


def write_title(ax, title):
    """Write a small title, on two lines where one is too wide."""
    if max(_widths([title], "small")) > _size(ax)[0]:
        title = title.replace(", ", "\n")
    ax.set_title(title, fontsize="small", fontweight="normal")


def number_text(number, form):
    """Format a number with a typographic minus sign."""
    return f"{number:{form}}".replace("-", "\u2212")


def number_texts(numbers, reference=None, sign=""):
    """Write numbers with as many decimals as the largest of a reference has of three digits.

    The reference are the numbers themselves if it is None, or if it is 0 throughout.
    """
    sizes = (np.abs(x).max(initial=0.0) for x in (reference, numbers) if x is not None)
    size = next(filter(None, sizes), 1.0)
    decimals = max(0, 2 - math.floor(math.log10(size)))
    form = f"{sign},.{decimals}f" if decimals <= 6 and size < 1e9 else f"{sign}.2e"
    return [number_text(number, form) for number in numbers]


def write_bars(ax, names):
    """Write names of horizontal bars, the first above, as large as they fit.

    They take less than half of a figure, unless they are longer even in the smallest size.
    """
    names = [" ".join(str(name).split("\n")) for name in names]
    width, height = _GROWS * _size(ax)
    pitch = height / max(len(names), 1)
    for size in ("medium", "small", "x-small", "xx-small"):
        if max(_widths(names, size), default=0) < 0.6 * width and 1.2 * _points(size) < pitch:
            break
    ax.set_yticks(range(len(names)), names, fontsize=size, parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(names) - 0.4, -0.6)


def draw_waterfall(ax, base, moves, names, texts):
    """Draw horizontal bars that begin where the one above ends, the first one at the base.

    Texts, what each bar adds, are written at the ends of the bars, where the axis becomes
    longer for them, and returned.
    """
    ends = base + np.cumsum(moves)
    colors = [BLUE if move >= 0 else ORANGE for move in moves]
    bars = ax.barh(range(len(moves)), moves, 0.7, ends - moves, color=colors)
    ax.vlines(ends[:-1], range(len(moves) - 1), range(1, len(moves)), color=GREY, lw=0.8)
    write_bars(ax, names)
    # Where the layout is made later, names will take their room from the axes.
    width = _size(ax)[0]
    if ax.get_figure(root=True).get_layout_engine() is not None:
        width = _GROWS * width - max(_widths(names, ax.get_yticklabels()[0].get_fontsize()))
    # Limits that leave room for the texts change the unit in which the texts have a width.
    signs, places = np.where(np.less(moves, 0), -1, 1), np.array([base, *ends])
    rooms, span = np.array(_widths(texts, "small")) + 18, np.ptp(places) or 1.0
    length = span
    for _ in range(20):
        reached = np.concatenate([places, ends + signs * rooms * length / max(width, 1)])
        low, high = reached.min(), reached.max()
        length = np.clip(high - low, span, 5 * span)
    ax.set_xlim(low - 0.04 * (high - low), high)
    ax.locator_params(axis="x", nbins=5)
    return ax.bar_label(bars, texts, padding=6, fontsize="small")


def write_legend(ax, lines=0):
    """Write a legend above the data, and leave some lines free below: the axis gets longer."""
    handles, labels = ax.get_legend_handles_labels()
    (width, height), size = _size(ax), _points("small")
    column = max(_widths(labels, "small"), default=0.0) + 3.6 * size  # with its line and spaces
    n_columns = max(1, min(int(_GROWS * width / column), len(labels)))
    n_lines = math.ceil(len(labels) / n_columns)
    ax.legend(
        handles, labels, loc="upper left", ncols=n_columns, fontsize="small",
        borderaxespad=0.2, borderpad=0.2, labelspacing=0.4, columnspacing=1, handlelength=1.6,
        frameon=True, facecolor=ax.get_facecolor(), edgecolor="none", framealpha=0.9,
    )  # fmt: skip
    share = min((1.4 * (n_lines + lines) + 0.6) * size / (_GROWS * height), 0.6)
    forth = ax.yaxis.get_transform().transform
    back = ax.yaxis.get_transform().inverted().transform
    low, high = forth(np.array(ax.get_ylim(), dtype=np.float64))
    (top,) = back(np.array([high + (high - low) * share / (1 - share)]))
    if ax.get_autoscaley_on():
        # A limit of data rather than of the view, so that later drawings on these axes fit.
        ax.update_datalim([(0.0, top)], updatex=False)
        ax.autoscale_view(scalex=False)
    else:
        ax.set_ylim(top=float(top))


def _size(ax):
    """Width and height of axes in points."""
    return np.array([ax.bbox.width, ax.bbox.height]) * 72 / ax.get_figure(root=True).dpi


def _points(size):
    from matplotlib.font_manager import FontProperties

    return FontProperties(size=size).get_size_in_points()


def _widths(texts, size):
    """Widths of texts in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    measure, font = text_to_path.get_text_width_height_descent, FontProperties(size=size)
    texts = [text.replace("$", "S").replace("\n", " ") for text in texts]
    return [measure(text, font, False)[0] for text in texts]


def _apart(n, level, upright):
    """Locator of names that are so many points wide when level, and when upright."""
    from matplotlib.ticker import Locator

    class Apart(Locator):
        """Names as many as have room, turned where more then have."""

        turned = False

        def __call__(self):
            low, high = sorted(self.axis.get_view_interval())
            along_x = self.axis.axis_name == "x"
            cell = _size(self.axis.axes)[0 if along_x else 1] / max(high - low, 1e-9)
            turned = along_x and n > 1 and level > cell
            if turned != self.turned:  # setting it again would take time
                self.turned = turned
                self.axis.set_tick_params(labelrotation=90 if turned else 0)
            needed = level if along_x and not turned else upright
            return np.arange(0, n, max(1, math.ceil(needed / max(cell, 1e-9))))

        def __reduce__(self):  # so that pictures can be pickled
            return _apart, (n, level, upright), vars(self)

    return Apart()


def _name_at(names, place, _=None):
    return names[round(place)] if 0 <= place < len(names) else ""


def plain_name(name, longest=25):
    """Write a name on one line and not too long, with visible blanks if it has nothing else."""
    if name.isspace():
        name = name.replace(" ", "\u2423")
    name = "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)
    if len(name) > longest:
        half = longest // 2
        name = f"{name[:half]}…{name[half + 1 - longest :]}"
    return name
