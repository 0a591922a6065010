"""What all displays do alike: axes of the user's, or a figure of their own."""

import inspect
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from sklearn.linear_model import LinearRegression

from sklearn_attention import inspection
from sklearn_attention.inspection import (
    AttentionMapDisplay,
    BandwidthDisplay,
    DensityDisplay,
    ForecastDisplay,
    KernelDisplay,
    TrainingDisplay,
)

DISPLAYS = {
    BandwidthDisplay: lambda get: get("smoother"),
    DensityDisplay: lambda get: get("density"),
    ForecastDisplay: lambda get: get("analogs"),
    KernelDisplay: lambda get: get("averages"),
    TrainingDisplay: lambda get: get("encoder"),
}


@pytest.mark.parametrize("display", DISPLAYS, ids=lambda kind: kind.__name__)
def test_a_figure_of_its_own_or_axes_of_the_users(display, request):
    model = DISPLAYS[display](request.getfixturevalue)
    drawn = display.from_estimator(model)
    assert drawn.ax_.figure is drawn.figure_ is plt.gcf()
    assert not drawn.ax_.spines["right"].get_visible()
    assert drawn.plot() is drawn
    assert len(plt.get_fignums()) == 2
    figure, ax = plt.subplots()
    drawn = display.from_estimator(model, ax=ax)
    assert drawn.ax_ is ax
    assert drawn.figure_ is figure
    assert ax.has_data()
    assert len(plt.get_fignums()) == 3


def test_all_displays_are_drawn_here_or_beside():
    named = {name for name in inspection.__all__ if name.endswith("Display")}
    here = {kind.__name__ for kind in DISPLAYS}
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert here <= named
    assert named - here <= set(re.findall(r"\b(\w+Display)\.from_\w+\(", tests))


@pytest.mark.parametrize("name", [n for n in inspection.__all__ if n.endswith("Display")])
def test_all_have_one_signature(name):
    method = getattr(inspection, name).from_estimator
    parameters = list(inspect.signature(method).parameters.values())
    assert [p.name for p in parameters[:3]] == ["estimator", "X", "y"]
    assert [p.default for p in parameters[1:3]] == [None, None]
    named = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert named == {p.name for p in parameters[3:-1]}
    assert "ax" in named
    assert parameters[-1].name == "kwargs"
    assert parameters[-1].kind is inspect.Parameter.VAR_KEYWORD


@pytest.mark.parametrize(
    ("display", "message"),
    [
        (AttentionMapDisplay, r"LinearRegression, which has no attention: pass "),
        (BandwidthDisplay, r"LinearRegression, which has no bandwidths .*: pass "),
        (DensityDisplay, r"LinearRegression, .*: pass "),
        (KernelDisplay, r"LinearRegression, .*: pass "),
        (TrainingDisplay, r"LinearRegression, which has trained no network: pass "),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_others_are_refused_by_name(display, message):
    line = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match=message):
        display.from_estimator(line)
