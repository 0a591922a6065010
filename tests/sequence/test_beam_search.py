"""Decoding in batches with caches against one prefix at a time."""

import functools
import math

import pytest
import slow_decoding
import torch
from slow_cases import slow_but

from sklearn_attention.sequence._beam_search import beam_search
from sklearn_attention.sequence._seq2seq_network import Seq2SeqNetwork, pair_loss
from sklearn_attention.text import pad
from sklearn_attention.text._special import END, START
from sklearn_attention.training._network import torch_seed

SOURCES = [[5, 6, 7, 8, END], [9, 5, END], [7, END], [4, 4, 4, 4, 4, END], [8, 6, END]]


@functools.cache
def make_network(seed):
    """A network that has learned a little: what it writes differs from source to source."""
    with torch_seed(seed):
        network = Seq2SeqNetwork(
            10, 11, shared=False, d_model=8, n_heads=2, n_layers=2, d_feedforward=16,
            positions="sinusoidal", max_length=12, dropout=0.0, norm="pre", activation="relu",
        ).double()  # fmt: skip
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


def search(network, sources=SOURCES, n_beams=1, length_penalty=1.0, max_length=8):
    source = torch.from_numpy(pad(sources)[0])
    return beam_search(
        network, source, n_beams=n_beams, length_penalty=length_penalty, max_length=max_length
    )


@pytest.mark.parametrize("seed", slow_but([0], range(3)))
def test_one_beam_is_greedy(seed):
    network = make_network(seed)
    expected = [slow_decoding.greedy(network, source, 8) for source in SOURCES]
    assert search(network) == expected


def test_answers_of_greedy_search_differ_in_length():
    answers = [tuple(a) for seed in range(3) for a in search(make_network(seed))]
    assert len(set(map(len, answers))) > 3


@pytest.mark.parametrize(
    ("seed", "n_beams", "length_penalty"),
    [(0, 2, 0.0), (0, 3, 2.5), (0, 5, 1.0), (1, 2, 1.0), (1, 3, 0.0), (1, 5, 2.5),
     (2, 2, 2.5), (2, 3, 1.0), (2, 5, 0.0)],
)  # fmt: skip
def test_beams(seed, n_beams, length_penalty):
    network = make_network(seed)
    expected = [
        slow_decoding.beams(network, source, n_beams, length_penalty, 8) for source in SOURCES
    ]
    assert search(network, n_beams=n_beams, length_penalty=length_penalty) == expected


def test_more_beams_than_tokens():
    network = make_network(0)
    expected = [slow_decoding.beams(network, source, 9, 1.0, 2) for source in SOURCES]
    assert search(network, n_beams=9, max_length=2) == expected


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("length_penalty", [0.0, 2.5])
def test_more_beams_than_prefixes(seed, length_penalty):
    # One token: a prefix of each length, however many beams there are.
    with torch_seed(seed):
        network = Seq2SeqNetwork(
            6, 5, shared=False, d_model=8, n_heads=2, n_layers=1, d_feedforward=16,
            positions="sinusoidal", max_length=12, dropout=0.0, norm="pre", activation="relu",
        ).double().eval()  # fmt: skip
    sources = [[4, 5, END], [5, END]]
    expected = [
        slow_decoding.beams(network, source, 6, length_penalty, 5) for source in sources
    ]
    found = search(network, sources, n_beams=6, length_penalty=length_penalty, max_length=5)
    assert found == expected


def test_many_beams_find_the_likeliest_target():
    # With as many beams as there are targets of three tokens, nothing is missed.
    network = make_network(1)
    source = SOURCES[0]
    likeliest, best = None, -math.inf
    waiting = [([], 0.0)]
    while waiting:
        prefix, score = waiting.pop()
        for token, log in enumerate(slow_decoding.next_logs(network, source, prefix)):
            if token == END or (len(prefix) == 2 and log > -math.inf):
                if score + log > best:
                    likeliest, best = [*prefix, token][: 3 if token != END else -1], score + log
            elif log > -math.inf:
                waiting.append(([*prefix, token], score + log))
    assert search(network, [source], n_beams=500, length_penalty=0.0, max_length=3) == [
        likeliest
    ]
