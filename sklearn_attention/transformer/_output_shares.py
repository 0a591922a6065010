"""Shares of several outputs in the loss of a network that learns them together."""

import torch

# Of the constant's loss: by how much more an output has lost its share, which is kept at least.
_EXCESS, _LEAST = 0.1, 0.02
# So much more is left of every loss, so that none counts for all.
_FLOOR = 0.01


class OutputShares:
    """Shares of outputs in the loss, smaller for those that are worse than a constant."""

    # s_k is in proportion to min(1, 1 - 10 (h_k / c_k - 1)) with the loss h_k of an output on
    # rows held out and c_k that of the constant from which the network starts; .02 at least,
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
        shares = (1 - excess / _EXCESS).clamp(_LEAST, 1)
        self.shares = (shares / shares.mean()).float()


def overall(losses, constant):
    """One number for the losses of several outputs, (n_rows, n_outputs) in sums over rows."""
    # The sum of a single output; of several the geometric mean of the ratios to the loss of the
    # constant. Ratios above 1 count as 1: such an output gets little weight.
    if losses.shape[1] == 1:
        return losses.sum()
    left = losses.sum(dim=0) / constant.sum(dim=0).clamp(min=1e-12)
    return (left.clamp(max=1) + _FLOOR).log().mean().exp()
