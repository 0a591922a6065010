"""Pairs held out, in blocks, against one pair after the other."""

import numpy as np
import pytest
import torch

from sklearn_attention.sequence import _pair_batches
from sklearn_attention.sequence._pair_batches import PairBatches
from sklearn_attention.sequence._seq2seq_network import Seq2SeqNetwork, log_likelihoods
from sklearn_attention.text._special import END, START


@pytest.mark.parametrize("most_tokens", [1, 30, 10_000])
def test_the_loss_of_pairs_held_out_is_the_mean_over_tokens(most_tokens, monkeypatch):
    """Whatever the blocks: pairs of many tokens count for more than those of few."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 12, (12, 2))
    sources = [np.append(rng.integers(4, 9, n), END) for n, _ in lengths]
    targets = [np.array([START, *rng.integers(4, 9, n), END]) for _, n in lengths]
    torch.manual_seed(0)
    network = Seq2SeqNetwork(
        9, 9, shared=False, d_model=8, n_heads=2, n_layers=1, d_feedforward=8, max_length=16,
        dropout=0.0, norm="pre", activation="relu", positions="sinusoidal",
    )  # fmt: skip
    with torch.no_grad():  # no token is as likely as another
        network.embed_target.weight *= 5
    network.double().eval()
    held_out = np.array([1, 3, 4, 8, 10])
    logs = [
        log_likelihoods(
            network, *(torch.from_numpy(part[i])[None] for part in (sources, targets))
        )
        for i in held_out
    ]
    monkeypatch.setattr(_pair_batches, "MOST_TOKENS", most_tokens)
    pairs = PairBatches(
        sources, targets, "cpu", np.setdiff1d(np.arange(12), held_out), held_out
    )
    with torch.no_grad():
        found = pairs.held_out_loss()(network)
    expected = -torch.cat([own for (own,) in logs]).mean().item()
    assert found == pytest.approx(expected, rel=1e-6)  # in single precision
