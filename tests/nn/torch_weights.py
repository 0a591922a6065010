"""Our layers with the weights of torch's own, to compare the two."""

import torch

# A small transformer.
SHAPE = {"d_model": 16, "n_heads": 4, "d_feedforward": 24}


def their_options(norm, activation, bias=True, dtype=torch.float32):
    """The same in torch's words."""
    return {
        "d_model": 16, "nhead": 4, "dim_feedforward": 24, "dropout": 0.0,
        "norm_first": norm == "pre", "activation": activation, "bias": bias, "dtype": dtype,
        "batch_first": True,
    }  # fmt: skip


def copy_linear(ours, theirs):
    with torch.no_grad():
        ours.weight.copy_(theirs.weight)
        if theirs.bias is not None:
            ours.bias.copy_(theirs.bias)


def copy_attention(ours, theirs):
    """From torch.nn.MultiheadAttention."""
    packed = theirs.in_proj_weight.chunk(3)
    biases = (None,) * 3 if theirs.in_proj_bias is None else theirs.in_proj_bias.chunk(3)
    with torch.no_grad():
        for part, weight, bias in zip(
            (ours.query, ours.key, ours.value), packed, biases, strict=True
        ):
            part.weight.copy_(weight)
            if bias is not None:
                part.bias.copy_(bias)
    copy_linear(ours.out, theirs.out_proj)


def copy_encoder_layer(ours, theirs):
    """From torch.nn.TransformerEncoderLayer."""
    copy_attention(ours.attention, theirs.self_attn)
    copy_linear(ours.feedforward.widen, theirs.linear1)
    copy_linear(ours.feedforward.narrow, theirs.linear2)
    copy_linear(ours.around_attention.normalize, theirs.norm1)
    copy_linear(ours.around_feedforward.normalize, theirs.norm2)


def copy_decoder_layer(ours, theirs):
    """From torch.nn.TransformerDecoderLayer."""
    copy_attention(ours.attention, theirs.self_attn)
    copy_attention(ours.cross_attention, theirs.multihead_attn)
    copy_linear(ours.feedforward.widen, theirs.linear1)
    copy_linear(ours.feedforward.narrow, theirs.linear2)
    copy_linear(ours.around_attention.normalize, theirs.norm1)
    copy_linear(ours.around_cross_attention.normalize, theirs.norm2)
    copy_linear(ours.around_feedforward.normalize, theirs.norm3)


def scatter(module, seed=0):
    """Every parameter at random, also those that start at 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.copy_(0.3 * noise + (parameter == 1))
    return module


def tokens(*shape, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=dtype)


def padding_of(lengths, n_tokens):
    """True for the first so many tokens of each sequence."""
    return torch.arange(n_tokens) < torch.tensor(lengths)[:, None]
