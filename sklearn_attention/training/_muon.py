"""Muon: steps along the orthogonal factor of the momentum of a matrix."""

import collections

import torch

from ._bfloat16 import computes_bfloat16

# The quintic of Jordan et al. Five times applied, it brings singular values from 1/300 to 1
# to between 0.65 and 1.25.
_COEFFICIENTS, _N_ITERATIONS = (3.4445, -4.7750, 2.0315), 5
# Root of the mean square of the entries of a step at a learning rate of 1: about AdamW's.
_STEP_SIZE = 0.2


class Muon(torch.optim.Optimizer):
    r"""Muon (Jordan et al. 2024) for matrices, all those of one shape at once.

    With gradient G, learning rate :math:`\gamma`, decay :math:`\lambda` and momentum
    :math:`\mu`: :math:`B \leftarrow \mu B + (1 - \mu) G` and :math:`W \leftarrow (1 - \gamma
    \lambda) W - 0.2 \gamma \sqrt{\max(m, n)}\, \operatorname{orth}(\mu B + (1 - \mu) G)`, where
    :math:`\operatorname{orth}(U \Sigma V^\top) \approx U V^\top`. By the factor, steps are as
    large as AdamW's, so one learning rate suits both (Liu et al. 2025).
    """

    # The steps are those of torch.optim.Muon with adjust_lr_fn="match_rms_adamw", in two thirds
    # of its time for small matrices.

    def __init__(self, params, *, lr, weight_decay=0.0, momentum=0.95):
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        """Change the matrices that have a gradient."""
        for group in self.param_groups:
            alike = collections.defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    alike[matrix.shape].append(matrix)
            for matrices in alike.values():
                self._step_alike(matrices, group)

    def _step_alike(self, matrices, group):
        """Change matrices of one shape."""
        rate, momentum = group["lr"], group["momentum"]
        directions = []
        for matrix in matrices:
            state = self.state[matrix]
            if not state:
                state["momentum"] = torch.zeros_like(matrix)
            average = state["momentum"].lerp_(matrix.grad, 1 - momentum)
            directions.append(matrix.grad.lerp(average, momentum))
        steps = orthogonalize(torch.stack(directions))
        length = _STEP_SIZE * rate * max(matrices[0].shape) ** 0.5
        for matrix, step in zip(matrices, steps.to(matrices[0].dtype), strict=True):
            matrix.mul_(1 - rate * group["weight_decay"]).sub_(step, alpha=length)


def orthogonalize(matrices):
    """Orthogonal factors of matrices (B, m, n), with singular values near 1.

    In bfloat16 where products of such matrices are fast.
    """
    a, b, c = _COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(1e-7)
    # Precise enough, unless a processor would have to emulate it.
    x = x.to(torch.bfloat16 if computes_bfloat16(x.device) else torch.float32)
    for _ in range(_N_ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
