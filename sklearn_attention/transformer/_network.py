"""The network of an encoder: tokens, vectors and outputs of rows, its loss, rows held out."""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, huber_loss, mse_loss, pad

from .._blocks import check_memory
from ..nn import TokenEncoder
from ..nn._random import initialize
from ..text._special import UNKNOWN
from ..training._batches import blocks_by_length
from ..training._network import threads_of_pass

# Tokens, and pairs of them, that are computed at once where nothing is learned.
_MOST_TOKENS, _MOST_PAIRS = 2**15, 2**22


class NumericTokens(nn.Module):
    """A token for every numeric feature of a row, piecewise linear in the number."""

    # t_j = b_j + z_j v_j + sum_k min(max(u_j - k, 0), 1) w_jk with the standardised number z_j
    # and its place u_j among the quantiles: linear between two quantiles and continuous
    # (Gorishniy et al. 2022). The sum starts at 0. The token of a missing number is b_j + m_j,
    # with a learned m_j that starts at 0 too.

    def __init__(self, n_features, n_pieces, d_model):
        super().__init__()
        spread = d_model**-0.5
        self.bias = nn.Parameter(torch.empty(n_features, d_model).uniform_(-spread, spread))
        self.slope = nn.Parameter(torch.empty(n_features, d_model).uniform_(-spread, spread))
        self.pieces = nn.Parameter(torch.zeros(n_features, n_pieces, d_model))
        self.missing = nn.Parameter(torch.zeros(n_features, d_model))
        self.register_buffer("starts", torch.arange(n_pieces), persistent=False)

    def forward(self, standardised, places):
        """Tokens (B, n_features, d_model); both inputs are NaN where missing."""
        missing = standardised.isnan()[..., None]  # (B, n_features, 1)
        # Zeros in their place: the gradient of what is not chosen must not be NaN.
        z, u = standardised.nan_to_num(0.0), places.nan_to_num(0.0)
        ramps = (u[..., None] - self.starts).clamp(0, 1)  # (B, n_features, n_pieces)
        bent = torch.einsum("bjk,jkd->bjd", ramps, self.pieces)
        known = z[..., None] * self.slope + bent  # (B, n_features, d_model)
        return self.bias + torch.where(missing, self.missing, known)


class FeatureTokens(nn.Module):
    """A token for every feature of a table, in the order of the features."""

    # Numbers have NumericTokens, each level of a category a learned vector. Levels that are
    # missing, or unknown in training, have one vector per category, which starts at 0.

    def __init__(self, d_model, *, n_levels, n_pieces):
        super().__init__()
        numeric = [j for j, n in enumerate(n_levels) if n is None]
        categorical = [j for j, n in enumerate(n_levels) if n is not None]
        self.numeric = NumericTokens(len(numeric), n_pieces, d_model) if numeric else None
        self.levels = None
        if categorical:
            sizes = torch.tensor([n_levels[j] + 1 for j in categorical])
            # Where the vectors of each category begin, with that of what is unknown.
            starts = sizes.cumsum(0) - sizes
            self.levels = nn.Embedding(int(sizes.sum()), d_model)
            nn.init.uniform_(self.levels.weight, -(d_model**-0.5), d_model**-0.5)
            with torch.no_grad():
                self.levels.weight[starts] = 0.0
            self.register_buffer("starts", starts, persistent=False)
        order = torch.tensor(numeric + categorical).argsort()
        self.register_buffer("order", order, persistent=False)

    def forward(self, standardised, places, codes):
        """Tokens (B, n_features, d_model); codes (B, n_categorical), -1 if unknown."""
        parts = []
        if self.numeric is not None:
            parts.append(self.numeric(standardised, places))
        if self.levels is not None:
            parts.append(self.levels(codes + 1 + self.starts))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)[:, self.order]


class StepTokens(nn.Module):
    """A token for every step of a sequence of numbers, linear in its channels."""

    # A missing value counts as the mean of its channel, plus a learned vector of the channel,
    # which starts at 0.

    def __init__(self, d_model, *, n_channels):
        super().__init__()
        self.linear = initialize(nn.Linear(n_channels, d_model))
        self.missing = nn.Linear(n_channels, d_model, bias=False)
        nn.init.zeros_(self.missing.weight)

    def forward(self, steps):
        """Tokens (B, T, d_model) of sequences (B, T, n_channels), NaN if missing."""
        missing = steps.isnan()
        tokens = self.linear(steps.nan_to_num(0.0))
        return tokens + self.missing(missing.to(tokens.dtype)) if missing.any() else tokens


class TextTokens(nn.Module):
    r"""A learned vector for every token of a text, times :math:`\sqrt{d}` as in Vaswani et al.

    The vector of unknown tokens starts at 0, and stays there if none are unknown in training.
    """

    def __init__(self, d_model, *, n_tokens):
        super().__init__()
        self.table = nn.Embedding(n_tokens, d_model)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)
        with torch.no_grad():
            self.table.weight[UNKNOWN] = 0.0

    def forward(self, ids):
        """Tokens (B, T, d_model) of ids (B, T)."""
        return self.table(ids) * self.table.embedding_dim**0.5


class RowEncoder(nn.Module):
    """A transformer encoder, whose tokens are pooled to one vector for each row."""

    # `tokens` are arguments of the tokens of a form, `shape` those of TokenEncoder. The vector
    # of a row is the mean of its tokens, the last one, or that of a further, learned token
    # before the first ("cls").

    def __init__(self, form, tokens, n_outputs, *, d_model, pooling, max_length, **shape):
        super().__init__()
        kinds = {"features": FeatureTokens, "steps": StepTokens, "text": TextTokens}
        self.tokens = kinds[form](d_model, **tokens)
        self.pooling = pooling
        self.cls = initialize(nn.Embedding(1, d_model)) if pooling == "cls" else None
        if pooling == "cls" and max_length is not None:
            max_length += 1
        self.encoder = TokenEncoder(d_model, max_length=max_length, **shape)
        # At first all rows have the mean of the targets, or equal classes.
        self.head = nn.Linear(self.encoder.width, n_outputs)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, *inputs, real=None, need_weights=False):
        """Outputs (B, n_outputs), vectors (B, width), and maps of each layer or None.

        Tokens that are not `real` (B, T) are padding. Maps are (B, n_heads, T, T), [CLS] first.
        """
        tokens = self.tokens(*inputs)  # (B, T, d_model)
        if self.cls is not None:
            tokens = torch.cat([self.cls.weight.expand(len(tokens), 1, -1), tokens], dim=1)
            if real is not None:
                real = torch.cat([torch.ones_like(real[:, :1]), real], dim=1)
        tokens, weights = self.encoder(tokens, padding=real, need_weights=need_weights)
        pooled = self._pool(tokens, real)  # (B, width)
        return self.head(pooled), pooled, weights

    def _pool(self, tokens, real):
        if self.pooling == "cls":
            return tokens[:, 0]
        if self.pooling == "last":
            if real is None:
                return tokens[:, -1]
            rows = torch.arange(len(tokens), device=tokens.device)
            return tokens[rows, real.sum(dim=1) - 1]
        if real is None:
            return tokens.mean(dim=1)
        kept = tokens.masked_fill(~real[..., None], 0.0)
        return kept.sum(dim=1) / real.sum(dim=1, keepdim=True)


def pinball(missed, quantiles):
    """Losses of quantiles (..., n_quantiles) by how far targets are above them."""
    tau = missed.new_tensor(quantiles)
    return torch.maximum(tau * missed, (tau - 1) * missed)


def row_losses(loss):
    """Function of outputs (B, n_columns) and targets (B, n_outputs): losses (B, n_outputs)."""
    # "huber" is squared below a standard deviation, and absolute beyond. Losses of a quantile
    # are twice the pinball loss: of the median, the absolute error. Outputs of classes are
    # logits side by side.

    def of_rows(outputs, targets):
        if loss.quantile is not None:
            return 2 * pinball(targets - outputs, loss.quantile)
        errors = {"squared_error": mse_loss, "huber": huber_loss}.get(loss.name, cross_entropy)
        if loss.n_classes is None:
            return errors(outputs, targets, reduction="none")
        pairs = zip(outputs.split(loss.n_classes, dim=1), targets.unbind(dim=1), strict=True)
        return torch.stack([errors(*pair, reduction="none") for pair in pairs], dim=1)

    return of_rows


def loss_of(rows, targets, weights, losses_of, shares):
    """The loss of a network on batches of some rows, for the training loop.

    `losses_of` is of :func:`row_losses`, `shares` OutputShares.
    """

    def batch_loss(network, batch):
        chosen, device = batch.cpu().numpy(), batch.device
        inputs, real = _inputs(rows, chosen, device)
        losses = losses_of(
            network(*inputs, real=real)[0], torch.from_numpy(targets[chosen]).to(device)
        )
        return shares.mean(losses, torch.from_numpy(weights[chosen]).to(device))

    return batch_loss


class OutputShares:
    """Shares of outputs in the loss, smaller for those that are worse than a constant."""

    # s_k is in proportion to min(1, 1 - 10 (h_k / c_k - 1)) with the loss h_k of an output on
    # rows held out and c_k that of the constant from which the network starts; 0.02 at least,
    # and divided by their mean. An output of noise is memorised: it has the largest gradients,
    # and would cost the others accuracy.

    def __init__(self, n_outputs):
        self.shares = torch.ones(n_outputs)

    def mean(self, losses, weights):
        """The mean loss of a batch of losses of shape (n_rows, n_outputs)."""
        return ((losses * self.shares.to(losses.device)).mean(dim=1) * weights).mean()

    def update(self, held_out, constant):
        """New shares after an epoch, by losses of shape (n_outputs,) on rows held out."""
        excess = held_out / constant.clamp(min=1e-12) - 1
        shares = (1 - excess / 0.1).clamp(0.02, 1)
        self.shares = (shares / shares.mean()).float()


def overall(losses, constant):
    """One number for the losses of several outputs, (n_rows, n_outputs) in sums over rows."""
    # The sum of a single output; of several the geometric mean of the ratios to the loss of the
    # constant. Ratios above 1 count as 1: such an output gets little weight.
    if losses.shape[1] == 1:
        return losses.sum()
    left = losses.sum(dim=0) / constant.sum(dim=0).clamp(min=1e-12)
    # So much is left of every loss that none counts for all.
    return (left.clamp(max=1) + 0.01).log().mean().exp()


class HeldOutLoss:
    """Rows held out: their loss, which chooses the best epoch, and their unbiased outputs."""

    # Outputs of the chosen network for these rows are biased by the choice. So the rows are
    # divided into five parts, and the outputs (n_rows, n_columns) of each are those of the
    # epoch that is best for the four others. Arguments are those of `loss_of`.

    def __init__(self, rows, targets, weights, losses_of, shares):
        self._rows, self._targets = rows, torch.from_numpy(targets)
        self._losses_of, self._shares = losses_of, shares
        self._weights = torch.from_numpy(weights).double()
        self._parts = torch.arange(len(rows)) % 5
        self.outputs, self._least = None, torch.full((5,), torch.inf).double()

    def __call__(self, network):
        """The loss of a network, once after each epoch, by :func:`overall`."""
        outputs = torch.from_numpy(outputs_of(network, self._rows)[0])
        losses, constant = (
            self._weights[:, None] * self._losses_of(found, self._targets).double()
            for found in (outputs, torch.zeros_like(outputs))
        )
        self.outputs = outputs.clone() if self.outputs is None else self.outputs
        for number, least in enumerate(self._least.tolist()):
            own = self._parts == number
            of_others = overall(losses[~own], constant[~own])
            if of_others < least:
                self._least[number], self.outputs[own] = of_others, outputs[own]
        total = self._weights.sum()
        self._shares.update(losses.sum(dim=0) / total, constant.sum(dim=0) / total)
        return float(overall(losses, constant) / (total if losses.shape[1] == 1 else 1.0))

    def state_dict(self):
        """State for a checkpoint."""
        shares = self._shares.shares
        return {"outputs": self.outputs, "least": self._least, "shares": shares}

    def load_state_dict(self, state):
        """Go on from there."""
        self.outputs, self._least = state["outputs"], state["least"]
        self._shares.shares = state["shares"]


def padded_lengths(rows):
    """Lengths by which rows are put into batches; None where nothing is padded."""
    if (rows.lengths == rows.lengths[0]).all():
        return None
    return torch.from_numpy(rows.lengths)


@torch.no_grad()
def outputs_of(network, rows):
    """Outputs (n_rows, n_outputs) of a network, and vectors (n_rows, d_model)."""
    device = next(network.parameters()).device
    found = []
    blocks = blocks_by_length(rows.lengths, _MOST_TOKENS, _MOST_PAIRS)
    with threads_of_pass(network, max(rows.lengths[block].sum() for block in blocks)):
        for block in blocks:
            inputs, real = _inputs(rows, block, device)
            found.append(network(*inputs, real=real)[:2])
    order = np.concatenate(blocks)
    outputs, pooled = (torch.cat(parts).cpu().numpy() for parts in zip(*found, strict=True))
    back = np.argsort(order)
    return outputs[back], pooled[back]


@torch.no_grad()
def attention_maps(network, rows):
    """Weights of the attention of a network, (n_rows, n_layers, n_heads, T, T).

    0 where a row has ended.
    """
    device = next(network.parameters()).device
    blocks = blocks_by_length(rows.lengths, _MOST_TOKENS, _MOST_PAIRS)
    longest = int(rows.lengths.max())
    found = []
    for block in blocks:
        inputs, real = _inputs(rows, block, device)
        maps = torch.stack(network(*inputs, real=real, need_weights=True)[2], dim=1)
        shape = len(rows), *maps.shape[1:3], longest, longest
        check_memory(
            "all attention maps together", shape, "pass some rows at a time", itemsize=4
        )
        if real is not None:
            # A [CLS] before the first token is real.
            real = pad(real, (maps.shape[-1] - real.shape[1], 0), value=True)
            maps = maps * real[:, None, None, :, None]
        found.append(maps.cpu().numpy())  # (B, n_layers, n_heads, T, T)
    longest = max(maps.shape[-1] for maps in found)
    shape = len(rows), *found[0].shape[1:3], longest, longest
    weights = np.zeros(shape, dtype=found[0].dtype)
    for block, maps in zip(blocks, found, strict=True):
        weights[block, :, :, : maps.shape[-1], : maps.shape[-1]] = maps
    return weights


def _inputs(rows, chosen, device):
    """A batch of rows as tensors on a device."""
    inputs, real = rows.batch(chosen)
    tensors = tuple(torch.from_numpy(part).to(device) for part in inputs)
    return tensors, None if real is None else torch.from_numpy(real).to(device)
