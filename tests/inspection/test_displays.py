"""What all displays do alike: axes of the user's, or a figure of their own."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from sklearn_attention import inspection
from sklearn_attention.inspection import (
    AttentionMapDisplay,
    BandwidthDisplay,
    BlendDisplay,
    DensityDisplay,
    ForecastDisplay,
    KernelDisplay,
    LengthScaleDisplay,
    SmoothDisplay,
    TrainingDisplay,
)

DISPLAYS = {
    BandwidthDisplay: lambda get: get("smoother"),
    BlendDisplay: lambda get: get("candidates"),
    DensityDisplay: lambda get: get("density"),
    ForecastDisplay: lambda get: get("analogs"),
    KernelDisplay: lambda get: get("averages"),
    LengthScaleDisplay: lambda get: get("averages"),
    TrainingDisplay: lambda get: get("encoder"),
}
with_each = pytest.mark.parametrize("display", DISPLAYS, ids=lambda kind: kind.__name__)


@with_each
def test_a_figure_of_its_own(display, request):
    drawn = display.from_estimator(DISPLAYS[display](request.getfixturevalue))
    assert drawn.ax_.figure is drawn.figure_ is plt.gcf()
    assert not drawn.ax_.spines["right"].get_visible()
    assert drawn.plot() is drawn
    assert len(plt.get_fignums()) == 2


@with_each
def test_axes_of_the_users(display, request):
    figure, ax = plt.subplots()
    drawn = display.from_estimator(DISPLAYS[display](request.getfixturevalue), ax=ax)
    assert drawn.ax_ is ax
    assert drawn.figure_ is figure
    assert ax.has_data()
    assert plt.get_fignums() == [figure.number]


def test_several_axes_of_the_users(encoder):
    figure, axes = plt.subplots(2, 2)
    display = AttentionMapDisplay.from_estimator(encoder, ["very good"], ax=axes)
    assert (display.ax_ == axes).all()
    assert display.figure_ is figure
    with pytest.raises(ValueError, match="ax has 2 axes, but 2 x 2 are drawn on"):
        AttentionMapDisplay.from_estimator(encoder, ["very good"], ax=axes[0])


def test_all_displays_are_drawn_here_or_beside():
    named = {name for name in inspection.__all__ if name.endswith("Display")}
    here = {kind.__name__ for kind in DISPLAYS}
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert here <= named
    assert named - here <= set(re.findall(r"\b(\w+Display)\.from_\w+\(", tests))


def test_not_fitted_is_said(curve):
    from sklearn.exceptions import NotFittedError

    from sklearn_attention import NadarayaWatsonRegressor

    with pytest.raises(NotFittedError):
        BandwidthDisplay.from_estimator(NadarayaWatsonRegressor())


def test_the_style_is_for_everybody():
    with plt.rc_context(inspection.STYLE):
        _, ax = plt.subplots()
        (line,) = ax.plot(np.arange(3))
    assert line.get_color() == "#0072b2"


def test_searches_and_pipelines_are_opened(curve):
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from sklearn_attention import LocalPolynomialRegressor

    model = make_pipeline(StandardScaler(), LocalPolynomialRegressor())
    grid = {"localpolynomialregressor__degree": [0, 1]}
    search = GridSearchCV(model, grid, cv=2).fit(*curve)
    found = search.best_estimator_[-1]
    assert BandwidthDisplay.from_estimator(search).bandwidth == found.bandwidth_[0]
    display = SmoothDisplay.from_estimator(search, *curve)
    np.testing.assert_allclose(display.curve, search.predict(display.grid[:, None]))
