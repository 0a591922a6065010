"""The network of an encoder: what it learns from, and how it is asked."""

import numpy as np
import torch
from torch.nn.functional import cross_entropy, huber_loss, mse_loss, pad

from .._memory import check_memory
from ..nn import pinball_loss
from ..training import blocks_by_length, threads_of_pass

# Tokens, and pairs of them, that are seen at once where nothing is learned.
_MOST_TOKENS, _MOST_PAIRS = 2**15, 2**22
# Parts of the rows held out.
_N_PARTS = 5
_ERRORS = {"squared_error": mse_loss, "huber": huber_loss, "log_loss": cross_entropy}


def row_loss(loss):
    """Loss of a network, and the rows that it learns from.

    Parameters
    ----------
    loss : Loss
        "huber" is squared below a standard deviation, and absolute beyond. Those of a quantile
        are twice the pinball loss: of the median, the absolute error.

    Returns
    -------
    row_loss : callable
        ``row_loss(outputs, targets)`` returns the loss of each row, the mean over `targets` of
        shape (B, n_outputs). The outputs are of that shape too, or logits of all classes.
    """

    def of_rows(outputs, targets):
        if loss.quantile is not None:
            quantiles = outputs[..., None], targets, [loss.quantile]
            return 2 * pinball_loss(*quantiles, reduction="none").mean(dim=(1, 2))
        errors = _ERRORS[loss.name]
        if loss.n_classes is None:
            return errors(outputs, targets, reduction="none").mean(dim=1)
        pairs = zip(outputs.split(loss.n_classes, dim=1), targets.unbind(dim=1), strict=True)
        return torch.stack([errors(*pair, reduction="none") for pair in pairs]).mean(dim=0)

    return of_rows


def loss_of(rows, targets, weights, row_loss):
    """The loss of a network on some rows.

    Parameters
    ----------
    rows : TableRows or SequenceRows
    targets : ndarray of shape (n_rows, n_outputs)
    weights : ndarray of shape (n_rows,)
    row_loss : callable
        ``row_loss(outputs, targets)`` returns the loss of each row.

    Returns
    -------
    batch_loss : callable
        As for :func:`~sklearn_attention.training.train`.
    """

    def batch_loss(network, batch):
        chosen, device = batch.cpu().numpy(), batch.device
        inputs, real = _inputs(rows, chosen, device)
        losses = row_loss(
            network(*inputs, real=real)[0], torch.from_numpy(targets[chosen]).to(device)
        )
        return (losses * torch.from_numpy(weights[chosen]).to(device)).mean()

    return batch_loss


class HeldOutRows:
    """Rows held out: their mean loss, by which the best epoch is chosen, and honest outputs.

    What the chosen network says of these rows flatters it. So they are dealt into five parts,
    and the outputs of each are those of the epoch that is best for the four others.

    Parameters
    ----------
    rows, targets, weights, row_loss
        As for :func:`loss_of`.

    Attributes
    ----------
    outputs : Tensor of shape (n_rows, n_outputs)
        After the epochs so far.
    """

    def __init__(self, rows, targets, weights, row_loss):
        self._rows, self._targets, self._row_loss = rows, torch.from_numpy(targets), row_loss
        self._weights = torch.from_numpy(weights).double()
        self._parts = torch.arange(len(rows)) % _N_PARTS
        self.outputs, self._least = None, torch.full((_N_PARTS,), torch.inf).double()

    def __call__(self, network):
        """The mean loss of a network, once after each epoch."""
        outputs = torch.from_numpy(ask(network, self._rows)[0])
        losses = self._weights * self._row_loss(outputs, self._targets).double()
        self.outputs = outputs.clone() if self.outputs is None else self.outputs
        for number, least in enumerate(self._least.tolist()):
            own = self._parts == number
            of_others = losses[~own].sum()
            if of_others < least:
                self._least[number], self.outputs[own] = of_others, outputs[own]
        return float(losses.sum() / self._weights.sum())

    def state_dict(self):
        """State for a checkpoint."""
        return {"outputs": self.outputs, "least": self._least}

    def load_state_dict(self, state):
        """Go on from there."""
        self.outputs, self._least = state["outputs"], state["least"]


def padded_lengths(rows):
    """Lengths by which rows are put into batches.

    Parameters
    ----------
    rows : TableRows or SequenceRows

    Returns
    -------
    lengths : LongTensor of shape (n_rows,), or None
        None where all are equal, so that nothing is padded.
    """
    if (rows.lengths == rows.lengths[0]).all():
        return None
    return torch.from_numpy(rows.lengths)


@torch.no_grad()
def ask(network, rows):
    """What a network says of rows.

    Parameters
    ----------
    network : RowEncoder
        In evaluation mode, on the device to compute on.
    rows : TableRows or SequenceRows

    Returns
    -------
    outputs : ndarray of shape (n_rows, n_outputs)
    pooled : ndarray of shape (n_rows, d_model)
        The vectors of the rows.
    """
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
    """Weights of the attention of a network that sees rows.

    Parameters
    ----------
    network, rows
        As for :func:`ask`.

    Returns
    -------
    weights : ndarray of shape (n_rows, n_layers, n_heads, T, T)
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
