"""The network of a forecaster against its parts."""

import numpy as np
import pytest
import torch
from forecasting_validation import make_walks

from sklearn_attention.forecasting import Origins, Table
from sklearn_attention.forecasting import _network as module
from sklearn_attention.forecasting._network import ForecastNetwork, outputs_of, squared_error
from sklearn_attention.forecasting._transformer_candidate import Scaling

LOOKBACK, HORIZON = 12, 3


def make(center="mean", relative=False, n_past=0, n_future=0):
    torch.manual_seed(0)
    return ForecastNetwork(
        LOOKBACK, HORIZON, n_past, n_future, patch_length=4, d_model=8, center=center,
        relative=relative, n_heads=2, n_layers=1, d_feedforward=16,
        kernel="scaled_dot_product", positions="sinusoidal", d_position=None, norm="pre",
        activation="gelu", dropout=0.0,
    ).eval()  # fmt: skip


def make_origins(n_features=0, known=()):
    series = make_walks([40, 30])
    features = None
    if n_features:
        rng = np.random.default_rng(0)
        features = [rng.normal(size=(len(own) + HORIZON, n_features)) for own in series]
    table = Table.from_arrays(
        series, features=features, future_columns=np.array(known, dtype=int)
    )
    return Origins.within(table, HORIZON, LOOKBACK)


@pytest.mark.parametrize("center", ["mean", "last"])
def test_windows_have_their_own_level_and_unit(center):
    past = torch.randn(5, LOOKBACK)
    with torch.no_grad():
        network = make(center)
        expected = network(past)[0]
        torch.testing.assert_close(network(3 * past + 7)[0], 3 * expected + 7)
        # Differences have no level.
        relative = make(center, relative=True)
        level = past.mean(dim=1) if center == "mean" else past[:, -1]
        torch.testing.assert_close(relative(past)[0], expected - level[:, None])
        plain = make(None)(past)[0]
        assert not torch.allclose(make(None)(3 * past + 7)[0], 3 * plain + 7, atol=1e-2)


@pytest.mark.parametrize("center", ["mean", "last"])
def test_units_of_windows(center):
    windows = 1e-12 * torch.randn(4, 20, 1, dtype=torch.float64)
    windows[1:] = torch.tensor([0.0, 0.1, 1e6 / 3])[:, None, None]
    level, scale = module._window_units(windows, center)
    expected = windows.mean(dim=1) if center == "mean" else windows[:, -1]
    np.testing.assert_allclose(level[:, 0], expected)
    # Windows that are constant, but for rounding, are not divided.
    np.testing.assert_allclose(scale[:, 0, 0], [windows[0].numpy().std(), 1, 1, 1])


@pytest.mark.parametrize("known", [None, (1,)])
def test_outputs_and_the_loss_are_those_of_scaled_windows(known, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 7)
    n_features = 0 if known is None else 2
    origins = make_origins(n_features, known or ())
    scaling = Scaling.from_origins(origins, LOOKBACK)
    network = make(n_past=n_features, n_future=len(known or ()))
    units = scaling.units(origins)
    found = outputs_of(network, origins, units, scaling)
    level, unit = units[:, :1], units[:, 1:]
    past = (origins.past(LOOKBACK) - level) / unit
    parts = [past]
    if n_features:
        parts.append((origins.past_features(LOOKBACK) - scaling.center) / scaling.scale)
    if known:
        parts.append((origins.future_features() - scaling.center[1]) / scaling.scale[1])
    parts = [torch.from_numpy(part).float() for part in parts]
    with torch.no_grad():
        np.testing.assert_allclose(found, network(*parts)[0].numpy(), rtol=1e-4, atol=1e-5)
    maps = outputs_of(network, origins, units, scaling, need_weights=True)
    assert maps.shape == (len(origins), 1, 2, network.n_tokens, network.n_tokens)
    base, rows = origins.past(1), np.array([0, 5, 11])
    loss = squared_error(origins, base, units, scaling)(network, torch.from_numpy(rows))
    aims = (origins.targets() - base) / unit
    assert loss.item() == pytest.approx(np.mean((found - aims)[rows] ** 2), rel=1e-4)
