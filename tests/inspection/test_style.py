"""One style, in which displays draw on axes of their own or of the user's."""

import itertools
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from sklearn_attention.inspection import AttentionMapDisplay, KernelDisplay, _style


def test_several_axes_of_the_users(encoder):
    figure, axes = plt.subplots(2, 2)
    display = AttentionMapDisplay.from_estimator(encoder, ["very good"], ax=axes)
    assert (display.ax_ == axes).all()
    assert display.figure_ is figure
    with pytest.raises(ValueError, match="ax has 2 axes, but 2 x 2 are needed"):
        AttentionMapDisplay.from_estimator(encoder, ["very good"], ax=axes[0])


def test_the_style_ends_with_the_canvas():
    display, before = SimpleNamespace(), plt.rcParams["legend.frameon"]
    with _style.canvas(display, size=(3, 2)) as ax:
        assert not plt.rcParams["legend.frameon"]
        assert ax.plot(np.arange(3))[0].get_color() == "#0072b2"
    assert before
    assert plt.rcParams["legend.frameon"] is before
    assert display.ax_ is ax
    assert display.figure_.get_size_inches().tolist() == [3, 2]


def shown(axis):
    """What is written along an axis, between its ends."""
    axis.figure.canvas.draw()
    low, high = axis.get_view_interval()
    ticks = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    return [label.get_text() for place, label in ticks if low <= place <= high]


def test_dates_are_short_and_numbers_stay():
    _, (below, other) = plt.subplots(2)
    months = pd.date_range("2023-01-01", periods=24, freq="MS")
    below.plot(months, range(24))
    _style.write_dates(below, months)
    written = shown(below.xaxis)
    assert {"2023", "2024"} & set(written)
    assert 2 <= len(written) <= 8
    assert all(len(text) < len("2023-01") for text in written)
    before = other.xaxis.get_major_formatter()
    _style.write_dates(other, pd.RangeIndex(24))
    assert other.xaxis.get_major_formatter() is before


def test_names_are_seen_and_not_too_long():
    _, ax = plt.subplots()
    ax.imshow(np.eye(4))
    _style.write_names(ax.xaxis, [" ", "a\nb", "$x$", "abcdefghijklmnopqrstuvwxyz"])
    written = shown(ax.xaxis)
    assert written[:3] == ["\u2423", r"a\nb", "$x$"]
    assert len(written[3]) <= 20
    assert written[3].startswith("abcdef")
    assert written[3].endswith("uvwxyz")


def test_names_do_not_touch_on_small_axes():
    figure, ax = plt.subplots(figsize=(3, 3))
    ax.imshow(np.eye(40))
    names = [f"token {i}" for i in range(40)]
    _style.write_names(ax.xaxis, names)
    _style.write_names(ax.yaxis, names)
    figure.canvas.draw()
    for axis, along in ((ax.xaxis, "intervalx"), (ax.yaxis, "intervaly")):
        labels = [label for label in axis.get_majorticklabels() if label.get_text()]
        ends = sorted(sorted(getattr(label.get_window_extent(), along)) for label in labels)
        assert 5 < len(ends) < 40
        assert all(end < start for (_, end), (start, _) in itertools.pairwise(ends))


def test_legends_stand_above_or_on_the_users_axes():
    display = KernelDisplay.from_kernels(["gaussian", "epanechnikov"])
    (legend,) = display.figure_.legends
    display.figure_.canvas.draw()
    assert legend.get_window_extent().y0 >= display.ax_.bbox.y1
    assert legend.get_window_extent().x1 <= display.figure_.bbox.x1
    _, ax = plt.subplots()
    display = KernelDisplay.from_kernels(["gaussian"], ax=ax)
    assert not display.figure_.legends
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["gaussian"]


def test_dollars_in_names_are_no_formulas():
    display = KernelDisplay(np.arange(3.0), {"$a$ and $b": np.ones(3)}, xlabel="$c$").plot()
    (legend,) = display.figure_.legends
    texts = [display.ax_.xaxis.label, *legend.get_texts()]
    assert not any(text.get_parse_math() for text in texts)
    display.figure_.canvas.draw()
