"""How much each of several outputs counts while a network learns them together."""

import torch

# Of the constant's loss: gains below it are no evidence, so that outputs may learn late.
_DOUBT = 0.05
_LEAST = 0.01


class OutputShares:
    r"""Shares of outputs in the loss: how much of what is learned holds on rows held out.

    .. math:: s_k \propto \frac{c_k - h_k + c_k/20}{c_k - l_k + c_k/20}

    with :math:`h_k` the loss of an output on rows held out, :math:`l_k` that in training over
    the last epoch, and :math:`c_k` that of the constant from which the network starts; .01 at
    least and 1 at most, divided by their mean. An output of noise is memorised: it has the
    largest gradients, and would cost the others what they share.
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
            learned = (self._total / self._weight).cpu().double()
            losses = torch.stack([held_out.double(), learned]) / constant.clamp(min=1e-12)
            held, gained = (1 - losses).clamp(min=-_DOUBT) + _DOUBT
            # Nothing is gained in training while the loss is more than the constant's.
            shares = (held / gained.clamp(min=_DOUBT)).clamp(_LEAST, 1)
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
