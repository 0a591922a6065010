"""Weights of a blend, of one series or of many."""

import pandas as pd
import pytest
from numpy.testing import assert_allclose

from sklearn_attention.inspection import BlendDisplay


def test_a_blend_is_drawn_by_weight(candidates, kernel_attention, encoder):
    display = BlendDisplay.from_estimator(candidates)
    widths = [bar.get_width() for bar in display.ax_.patches]
    expected = candidates.candidate_weights_.iloc[0].sort_values(ascending=False)
    assert_allclose(widths, expected[expected != 0][:15])
    parts = BlendDisplay.from_estimator(kernel_attention).weights.columns
    assert list(parts) == list(kernel_attention.blend_weights_)
    assert BlendDisplay.from_estimator(encoder).weights.shape == (1, 2)


def test_weights_of_many_series_are_points():
    weights = pd.DataFrame({"a": [0.2, 0.6], "b": [0.8, 0.4]}, index=["x", "y"])
    display = BlendDisplay(weights).plot()
    assert [bar.get_width() for bar in display.ax_.patches] == pytest.approx([0.6, 0.4])
    assert_allclose(display.ax_.lines[0].get_xdata(), [0.8, 0.4])
