"""The pinball loss against its definition."""

import numpy as np
import pytest
import torch

from sklearn_attention.transformer._learning import pinball


def test_pinball_weighs_what_is_above_and_below_a_quantile():
    missed, levels = torch.tensor([[-2.0], [0.0], [3.0]]), [0.1, 0.5, 0.8]
    found = pinball(missed, levels)
    for b, j in np.ndindex(3, 3):
        error = missed[b].item()
        expected = levels[j] * error if error > 0 else (levels[j] - 1) * error
        assert found[b, j].item() == pytest.approx(expected)
