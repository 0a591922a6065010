"""The network of an encoder: its loss, rows held out, outputs and maps."""

import numpy as np
import torch
from torch.nn.functional import cross_entropy, huber_loss, mse_loss, pad

from .._blocks import check_memory
from ..training._batches import blocks_by_length
from ..training._network import threads_of_pass
from ._output_shares import overall

# Tokens, and pairs of them, that are computed at once where nothing is learned.
_MOST_TOKENS, _MOST_PAIRS = 2**15, 2**22
# Parts of the rows held out.
_N_PARTS = 5
_ERRORS = {"squared_error": mse_loss, "huber": huber_loss, "log_loss": cross_entropy}


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
        errors = _ERRORS[loss.name]
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


class HeldOutRows:
    """Rows held out: their loss, which chooses the best epoch, and their unbiased outputs."""

    # Outputs of the chosen network for these rows are biased by the choice. So the rows are
    # divided into five parts, and the outputs (n_rows, n_columns) of each are those of the
    # epoch that is best for the four others. Arguments are those of `loss_of`.

    def __init__(self, rows, targets, weights, losses_of, shares):
        self._rows, self._targets = rows, torch.from_numpy(targets)
        self._losses_of, self._shares = losses_of, shares
        self._weights = torch.from_numpy(weights).double()
        self._parts = torch.arange(len(rows)) % _N_PARTS
        self.outputs, self._least = None, torch.full((_N_PARTS,), torch.inf).double()

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
