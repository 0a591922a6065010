"""The network against torch.nn.Transformer, and its masks and caches."""

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch_weights import copy_decoder_layer, copy_encoder_layer, copy_linear, scatter

from sklearn_attention.nn import KeyValueCache
from sklearn_attention.sequence._seq2seq_network import (
    Seq2SeqNetwork,
    cross_weights,
    log_likelihoods,
    pair_loss,
)
from sklearn_attention.text import pad
from sklearn_attention.text._special import END, PADDING, START

SHAPE = {"d_model": 16, "n_heads": 4, "n_layers": 2, "d_feedforward": 24}
SOURCES = [[5, 6, 7, 8, END], [9, 5, END], [7, END]]
TARGETS = [[START, 6, 5, END], [START, 8, 8, 4, 7, 6, END], [START, END]]


def make_network(norm="pre", positions="sinusoidal", shared=False, **options):
    torch.manual_seed(0)
    network = Seq2SeqNetwork(
        10, 10 if shared else 9, shared=shared, positions=positions, max_length=12,
        dropout=0.0, norm=norm, activation="relu", **{**SHAPE, **options},
    )  # fmt: skip
    return network.double().eval()


def ids(sequences):
    return torch.from_numpy(pad(sequences)[0])


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_equals_torch(norm):
    network = make_network(norm)
    theirs = torch.nn.Transformer(
        16, 4, 2, 2, 24, dropout=0.0, batch_first=True, norm_first=norm == "pre",
        dtype=torch.float64,
    ).eval()  # fmt: skip
    if norm == "post":
        # Theirs always normalises once more at the end.
        theirs.encoder.norm = theirs.decoder.norm = None
    scatter(theirs)
    for stack, other, copy in [
        (network.encoder.blocks, theirs.encoder, copy_encoder_layer),
        (network.decoder.blocks, theirs.decoder, copy_decoder_layer),
    ]:
        for ours, layer in zip(stack.blocks, other.layers, strict=True):
            copy(ours, layer)
        if norm == "pre":
            copy_linear(stack.normalize, other.norm)
    source, target = ids(SOURCES), ids(TARGETS)[:, :-1]

    def embedded(table, sequences):
        x = table(sequences) * 16**0.5
        return network.encoder.positions(x)

    expected = theirs(
        embedded(network.embed_source, source),
        embedded(network.embed_target, target),
        tgt_mask=torch.nn.Transformer.generate_square_subsequent_mask(
            target.shape[1], dtype=torch.float64
        ),
        src_key_padding_mask=source == PADDING,
        memory_key_padding_mask=source == PADDING,
    )
    found, _ = network.decode(target, network.encode(source), source != PADDING)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(network.scores(found), expected @ network.embed_target.weight.T)


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


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_padding_changes_nothing(positions):
    network = make_network(positions=positions)
    together = log_likelihoods(network, ids(SOURCES), ids(TARGETS))
    weights = cross_weights(network, ids(SOURCES), ids(TARGETS))
    for i, logs in enumerate(together):
        alone = ids(SOURCES[i : i + 1]), ids(TARGETS[i : i + 1])
        torch.testing.assert_close(logs, *log_likelihoods(network, *alone))
        torch.testing.assert_close(weights[i], *cross_weights(network, *alone))
        torch.testing.assert_close(weights[i].sum(-1), torch.ones_like(weights[i][..., 0]))


def test_no_token_sees_those_after_it():
    network = make_network()
    source, target = ids(SOURCES[:1]), torch.tensor([[START, 4, 5, 6, 7]])
    rows = network.embed_target.weight[target].detach().requires_grad_()
    out, _ = network.decoder(rows * 4.0, network.encode(source))
    for t in range(5):
        (gradient,) = torch.autograd.grad(out[0, t, 0], rows, retain_graph=True)
        sizes = gradient[0].abs().sum(-1)
        assert (sizes[t + 1 :] == 0).all()
        assert (sizes[: t + 1] > 0).all()


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("kernel", ["scaled_dot_product", "gaussian", "positive_features"])
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


def test_a_shared_embedding_is_one():
    network = make_network(shared=True)
    assert network.embed_source is network.embed_target
    names = [name for name, _ in network.named_parameters()]
    assert sum("embed" in name for name in names) == 1
