"""How much each of several outputs counts while a network learns them together."""

import torch

# How fast an output loses its share as it is memorised.
_RATE = 10.0
_LEAST = 0.01


class OutputShares:
    r"""Shares of outputs in the loss, less of those that are memorised more than learned.

    .. math:: s_k \propto \exp\Bigl(-10\,\frac{(h_k - l_k)_+}{c_k}\Bigr)

    with :math:`h_k` the loss of an output on rows held out, :math:`l_k` that in training over
    the last epoch, and :math:`c_k` that of the constant from which the network starts. An
    output of noise has the largest gradients, and would cost the others what they share.
    """

    def __init__(self, n_outputs):
        self.shares = torch.ones(n_outputs)
        self._total, self._weight = 0.0, 0.0

    def mean(self, losses, weights):
        """The mean loss of a batch; `losses` (n_rows, n_outputs) are added to the epoch's."""
        if len(self.shares) > 1:
            self._total = self._total + (losses.detach() * weights[:, None]).sum(dim=0)
            self._weight = self._weight + weights.sum()
            losses = losses * self.shares.to(losses.device)
        return (losses.mean(dim=1) * weights).mean()

    def update(self, held_out, constant):
        """New shares after an epoch, by losses of shape (n_outputs,) on rows held out."""
        if len(self.shares) > 1:
            learned = (self._total / self._weight).cpu()
            memorised = (held_out - learned).clamp(min=0) / constant.clamp(min=1e-12)
            shares = (-_RATE * memorised).exp().clamp(min=_LEAST)
            self.shares = (shares / shares.mean()).float()
        self._total, self._weight = 0.0, 0.0


def overall(losses, constant):
    """One number for the losses of several outputs, (n_rows, n_outputs) in sums over rows.

    The sum of a single output; of several the geometric mean of what is left of the loss of
    the constant. More than the constant's counts as much: such an output gets little weight.
    """
    if losses.shape[1] == 1:
        return losses.sum()
    left = losses.sum(dim=0) / constant.sum(dim=0).clamp(min=1e-12)
    return (left.clamp(max=1) + _LEAST).log().mean().exp()
