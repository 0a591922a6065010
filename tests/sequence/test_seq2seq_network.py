"""The network of layers, its masks and caches, its loss and its search."""

import functools

import numpy as np
import pytest
import slow_decoding
import torch
from torch.nn.functional import cross_entropy

from sklearn_attention.nn import KeyValueCache
from sklearn_attention.sequence import _seq2seq_network
from sklearn_attention.sequence._seq2seq_network import (
    Seq2SeqNetwork,
    beam_search,
    cross_weights,
    log_likelihoods,
    pair_loss,
    pair_training,
)
from sklearn_attention.text import pad
from sklearn_attention.text._special import END, PADDING, START
from sklearn_attention.training._network import torch_seed

SHAPE = {"d_model": 16, "n_heads": 4, "n_layers": 2, "d_feedforward": 24}
SOURCES = [[5, 6, 7, 8, END], [9, 5, END], [7, END]]
MORE_SOURCES = [*SOURCES, [4, 4, 4, 4, 4, END], [8, 6, END]]
TARGETS = [[START, 6, 5, END], [START, 8, 8, 4, 7, 6, END], [START, END]]


def make_network(norm="pre", positions="sinusoidal", shared=False, seed=0, **options):
    sizes = {"n_source": 10, "n_target": 10 if shared else 9, **SHAPE, **options}
    with torch_seed(seed):
        network = Seq2SeqNetwork(
            shared=shared, positions=positions, max_length=16, dropout=0.0, norm=norm,
            activation="relu", **sizes,
        )  # fmt: skip
    return network.double().eval()


def ids(sequences):
    return torch.from_numpy(pad(sequences)[0])


@pytest.mark.parametrize("shared", [False, True])
def test_is_encoder_and_decoder_of_embeddings_times_the_root_of_their_width(shared):
    network = make_network(shared=shared)
    source, target = ids(SOURCES), ids(TARGETS)[:, :-1]
    table, own = network.embed_target.weight, network.embed_source.weight
    assert (own is table) == shared
    encoded, _ = network.encoder(4 * own[source], padding=source != PADDING)
    expected, _ = network.decoder(4 * table[target], encoded, source_padding=source != PADDING)
    found, _ = network.decode(target, network.encode(source), source != PADDING)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(network.scores(found), expected @ table.T)


def test_loss_is_that_of_all_real_tokens():
    network = make_network()
    source, target = ids(SOURCES), ids(TARGETS)
    x, _ = network.decode(target[:, :-1], network.encode(source), source != PADDING)
    for smoothing in (0.0, 0.1):
        expected = cross_entropy(
            network.scores(x).mT, target[:, 1:], ignore_index=PADDING,
            label_smoothing=smoothing,
        )  # fmt: skip
        found = pair_loss(network, source, target, label_smoothing=smoothing)
        torch.testing.assert_close(found, expected)
    logs = log_likelihoods(network, source, target)
    assert [len(x) for x in logs] == [3, 6, 1]
    torch.testing.assert_close(
        -torch.cat(logs).mean().double(), pair_loss(network, source, target)
    )


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_padding_changes_nothing(positions):
    network = make_network(positions=positions)
    together = log_likelihoods(network, ids(SOURCES), ids(TARGETS))
    weights = cross_weights(network, ids(SOURCES), ids(TARGETS))
    for i, logs in enumerate(together):
        alone = ids(SOURCES[i : i + 1]), ids(TARGETS[i : i + 1])
        torch.testing.assert_close(logs, *log_likelihoods(network, *alone))
        torch.testing.assert_close(weights[i], *cross_weights(network, *alone))
        torch.testing.assert_close(weights[i].sum(-1), torch.ones_like(weights[i][..., 0]))


@pytest.mark.parametrize(
    ("positions", "kernel"), [("learned", "gaussian"), ("rotary", "positive_features")]
)
def test_the_cache_changes_nothing(positions, kernel):
    network = make_network(positions=positions, kernel=kernel)
    source, target = ids(SOURCES), ids(TARGETS)
    encoded, real = network.encode(source), source != PADDING
    expected, _ = network.decode(target, encoded, real)
    cache = KeyValueCache(2)
    found = [
        network.decode(target[:, [t]], encoded, real, cache=cache)[0]
        for t in range(target.shape[1])
    ]
    torch.testing.assert_close(torch.cat(found, dim=1), expected)


@pytest.mark.parametrize("most_tokens", [1, 30])
def test_the_loss_of_pairs_held_out_is_the_mean_over_tokens(most_tokens, monkeypatch):
    """Whatever the blocks: pairs of many tokens count for more than those of few."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 12, (12, 2))
    sources = [np.append(rng.integers(4, 9, n), END) for n, _ in lengths]
    targets = [np.array([START, *rng.integers(4, 9, n), END]) for _, n in lengths]
    network = make_network()
    with torch.no_grad():  # no token is as likely as another
        network.embed_target.weight *= 5
    held_out = np.array([1, 3, 4, 8, 10])
    logs = [
        log_likelihoods(
            network, *(torch.from_numpy(part[i])[None] for part in (sources, targets))
        )
        for i in held_out
    ]
    monkeypatch.setattr(_seq2seq_network, "MOST_TOKENS", most_tokens)
    held_out = [[part[i] for i in held_out] for part in (sources, targets)]
    training = pair_training((sources, targets), held_out, "cpu", 0.1)
    with torch.no_grad():
        found = training["validate"](network)
    expected = -torch.cat([own for (own,) in logs]).mean().item()
    assert found == pytest.approx(expected, rel=1e-6)  # in single precision


@functools.cache
def make_trained():
    """A network that has learned a little: what it writes differs from source to source."""
    network = make_network(n_target=11, d_model=8, n_heads=2, d_feedforward=16)
    with torch_seed(0):
        lengths = torch.randint(1, 7, (24, 2)).tolist()
        pairs = [[torch.randint(4, 10, (n,)).tolist() for n in pair] for pair in lengths]
    source = torch.from_numpy(pad([[*x, END] for x, _ in pairs])[0])
    target = torch.from_numpy(pad([[START, *y, END] for _, y in pairs])[0])
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(30):
        optimizer.zero_grad()
        pair_loss(network, source, target).backward()
        optimizer.step()
    return network.eval()


def search(network, sources=MORE_SOURCES, n_beams=1, length_penalty=1.0, max_length=8):
    source = torch.from_numpy(pad(sources)[0])
    found = beam_search(
        network, source, n_beams=n_beams, length_penalty=length_penalty, max_length=max_length
    )
    return [ids.tolist() for ids in found]


@pytest.mark.parametrize(
    ("n_beams", "length_penalty"), [(1, 1.0), (5, 1.0), (3, 2.5), (2, 0.0)]
)
def test_beams(n_beams, length_penalty):
    network = make_trained()
    expected = [
        slow_decoding.beams(network, source, n_beams, length_penalty, 8)
        for source in MORE_SOURCES
    ]
    assert search(network, n_beams=n_beams, length_penalty=length_penalty) == expected


def test_more_beams_than_prefixes():
    # One token: a prefix of each length, however many beams there are.
    network = make_network(n_source=6, n_target=5, d_model=8, n_heads=2, n_layers=1)
    sources = [[4, 5, END], [5, END]]
    expected = [slow_decoding.beams(network, source, 7, 2.5, 5) for source in sources]
    found = search(network, sources, n_beams=7, length_penalty=2.5, max_length=5)
    assert found == expected
