"""The example on layer normalisation states its geometry, which these tests prove."""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.spatial import ConvexHull

EXAMPLE = Path(__file__).parents[1] / "examples" / "foundations" / "plot_layer_norm.py"


@pytest.mark.slow
def test_the_example_is_right(monkeypatch, capsys):
    monkeypatch.setattr(plt, "show", lambda: None)
    example = runpy.run_path(str(EXAMPLE))
    plt.close("all")
    keys = np.random.default_rng(0).normal(size=(20, 5)) + 1e3
    projected, scaled = example["layer_norm_steps"](keys)
    expected = torch.nn.functional.layer_norm(torch.from_numpy(keys), (5,), eps=0).numpy()
    assert_allclose(scaled, expected, rtol=1e-8)
    assert_allclose(projected, keys @ (np.eye(5) - 0.2), atol=1e-9)
    # Keys that no query selects are those within the convex hull.
    keys = np.random.default_rng(1).normal(size=(30, 3))
    is_corner = np.isin(np.arange(30), ConvexHull(keys).vertices)
    assert not is_corner.all()
    assert (example["is_unselectable"](keys) == ~is_corner).all()
    assert example["is_unselectable"](keys[[0, 0, 1]]).tolist() == [True, True, False]
    assert "8 numbers:  22% of 200 keys cannot win, 0% after" in capsys.readouterr().out
