"""Optimizers: which parameters each changes, which decay, and Muon."""

import collections

import torch

from ..nn import DecoderBlock, EncoderBlock, LearnedPositions


def decay_groups(module, weight_decay):
    """Group parameters for torch's optimizers: those that decay, then those that do not.

    All parameters with two or more axes decay, except learned positions. Biases, gains and
    parameters of normalisations do not. Parameters without gradient are in neither group; empty
    groups are left out.
    """
    kinds_without_decay = (
        LearnedPositions,
        torch.nn.LayerNorm,
        torch.nn.RMSNorm,
        torch.nn.GroupNorm,
        torch.nn.modules.batchnorm._NormBase,
    )
    layers = [layer for layer in module.modules() if isinstance(layer, kinds_without_decay)]
    ids_without_decay = {id(parameter) for layer in layers for parameter in layer.parameters()}
    with_decay, without_decay = [], []
    for parameter in module.parameters():
        if parameter.requires_grad:
            decays = parameter.ndim >= 2 and id(parameter) not in ids_without_decay
            (with_decay if decays else without_decay).append(parameter)
    groups = [
        {"params": with_decay, "weight_decay": weight_decay},
        {"params": without_decay, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def make_optimizers(plan, module):
    """Build the optimizers of a plan for a module; each parameter is in one of them."""
    groups = decay_groups(module, plan.weight_decay)
    if not groups:
        raise ValueError(
            f"module={type(module).__name__} has no parameter that requires a gradient, so "
            "that there is nothing to train: pass a module with at least one."
        )
    if plan.optimizer == "adam":
        return [torch.optim.Adam(groups, lr=plan.learning_rate, fused=True)]
    if plan.optimizer == "adamw":
        return [torch.optim.AdamW(groups, lr=plan.learning_rate, fused=True)]
    matrices = _matrices_of_blocks(module)
    if not matrices:
        raise ValueError(
            f"optimizer='muon' is for the matrices of encoder and decoder blocks, but "
            f"module={type(module).__name__} has none that require a gradient: pass 'adamw'."
        )
    ids = {id(matrix) for matrix in matrices}
    for group in groups:
        group["params"] = [p for p in group["params"] if id(p) not in ids]
    muon = Muon(matrices, lr=plan.learning_rate, weight_decay=plan.weight_decay)
    other_groups = [group for group in groups if group["params"]]
    if not other_groups:
        return [muon]
    return [muon, torch.optim.AdamW(other_groups, lr=plan.learning_rate, fused=True)]


def _matrices_of_blocks(module):
    """Return the matrices that Muon changes, each once: those of encoder and decoder blocks."""
    blocks = (m for m in module.modules() if isinstance(m, EncoderBlock | DecoderBlock))
    parameters = {id(p): p for block in blocks for p in block.parameters()}
    return [p for p in parameters.values() if p.ndim == 2 and p.requires_grad]


class Muon(torch.optim.Optimizer):
    r"""Muon (Jordan et al. 2024), which changes all matrices of one shape at once.

    With gradient G, learning rate :math:`\gamma`, decay :math:`\lambda` and momentum
    :math:`\mu`: :math:`B \leftarrow \mu B + (1 - \mu) G` and :math:`W \leftarrow (1 - \gamma
    \lambda) W - 0.2 \gamma \sqrt{\max(m, n)}\, \operatorname{orth}(\mu B + (1 - \mu) G)`, where
    :math:`\operatorname{orth}(U \Sigma V^\top) \approx U V^\top`. The factor makes
    steps as large as AdamW's, so that one learning rate suits both (Liu et al. 2025).
    """

    # The steps are those of torch.optim.Muon with adjust_lr_fn="match_rms_adamw", which changes
    # one matrix after the other and always computes in bfloat16. With that optimizer, losses of
    # language models and translators of default size differ by up to 0.1 %, and fits take 1.1
    # and 1.2 times the seconds; on processors without instructions for bfloat16, 1.5 and 1.6
    # times with AVX-512 and more than 6 times with AVX2.

    def __init__(self, params, *, lr, weight_decay=0.0, momentum=0.95):
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        """Change the matrices that have a gradient."""
        for group in self.param_groups:
            matrices_of_shape = collections.defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    matrices_of_shape[matrix.shape].append(matrix)
            for matrices in matrices_of_shape.values():
                self._step_together(matrices, group)

    def _step_together(self, matrices, group):
        """Change matrices of one shape, with the options of their group."""
        rate, momentum = group["lr"], group["momentum"]
        directions = []
        for matrix in matrices:
            state = self.state[matrix]
            if not state:
                state["momentum"] = torch.zeros_like(matrix)
            average = state["momentum"].lerp_(matrix.grad, 1 - momentum)
            directions.append(matrix.grad.lerp(average, momentum))
        steps = orthogonalize(torch.stack(directions))
        length = 0.2 * rate * max(matrices[0].shape) ** 0.5
        for matrix, step in zip(matrices, steps.to(matrices[0].dtype), strict=True):
            matrix.mul_(1 - rate * group["weight_decay"]).sub_(step, alpha=length)


def orthogonalize(matrices):
    """Compute orthogonal factors of matrices (B, m, n): the singular values become about 1.

    The result is in bfloat16 where products of such matrices are fast.
    """
    # Newton-Schulz steps x <- a x + (b A + c A A) x with A = x x', the quintic of Jordan et al.
    # After five steps singular values from 1/300 to 1 are between 0.65 and 1.25.
    a, b, c = 3.4445, -4.7750, 2.0315
    is_tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if is_tall else matrices
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp_min(1e-7)
    # bfloat16 is precise enough, unless a processor would have to emulate it.
    x = x.to(torch.bfloat16 if computes_bfloat16(x.device) else torch.float32)
    for _ in range(5):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if is_tall else x


def computes_bfloat16(device):
    """Return True if a device has instructions for bfloat16; others take many times longer."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return True
    capabilities = torch.cpu.get_capabilities().items()
    return any(is_able for name, is_able in capabilities if name.endswith("bf16"))
