"""Optimizers, and the parameters that decay."""

import torch

from ..nn import DecoderBlock, EncoderBlock
from ._muon import Muon

_NORMS = (
    torch.nn.LayerNorm,
    torch.nn.RMSNorm,
    torch.nn.GroupNorm,
    torch.nn.modules.batchnorm._NormBase,
)
_POSITION = "position"


def decay_groups(module, weight_decay):
    """Parameters that decay, then the others, as groups of torch's optimizers."""
    # All with two or more axes decay, but for embeddings of positions, which have "position" in
    # their name or in that of their class. Biases, gains and parameters of normalisations do
    # not. Parameters without gradient are in neither group; empty groups are left out.
    spared = {
        id(parameter)
        for part in module.modules()
        if isinstance(part, _NORMS) or _POSITION in type(part).__name__.lower()
        for parameter in part.parameters(recurse=False)
    }
    decaying, others = [], []
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            stays = parameter.ndim < 2 or id(parameter) in spared or _POSITION in name.lower()
            (others if stays else decaying).append(parameter)
    groups = [
        {"params": decaying, "weight_decay": weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def make_optimizers(plan, module):
    """The optimizers of a plan, for a module; each parameter is in one of them."""
    groups = decay_groups(module, plan.weight_decay)
    if not groups:
        raise ValueError(
            f"module={type(module).__name__} has no parameter that requires a gradient: there "
            "is nothing to train."
        )
    if plan.optimizer == "lbfgs":
        # It has no groups: the decay is added to the loss, see `decay_penalty`.
        parameters = [parameter for group in groups for parameter in group["params"]]
        return [torch.optim.LBFGS(parameters, line_search_fn="strong_wolfe")]
    if plan.optimizer == "adam":
        return [torch.optim.Adam(groups, lr=plan.learning_rate, fused=True)]
    if plan.optimizer == "adamw":
        return [torch.optim.AdamW(groups, lr=plan.learning_rate, fused=True)]
    inner = _matrices_of_blocks(module)
    if not inner:
        raise ValueError(
            f"optimizer='muon' is for the matrices of encoder and decoder blocks, but "
            f"module={type(module).__name__} has none that require a gradient: pass 'adamw'."
        )
    ids = {id(matrix) for matrix in inner}
    for group in groups:
        group["params"] = [p for p in group["params"] if id(p) not in ids]
    muon = Muon(inner, lr=plan.learning_rate, weight_decay=plan.weight_decay)
    rest = [group for group in groups if group["params"]]
    if not rest:
        return [muon]
    return [muon, torch.optim.AdamW(rest, lr=plan.learning_rate, fused=True)]


def _matrices_of_blocks(module):
    """The matrices that Muon changes, each once."""
    blocks = (
        part for part in module.modules() if isinstance(part, EncoderBlock | DecoderBlock)
    )
    found = {id(p): p for block in blocks for p in block.parameters()}
    return [p for p in found.values() if p.ndim == 2 and p.requires_grad]


def decay_penalty(module, weight_decay):
    """Half of the decay times the squares of what decays, whose gradient the decay is."""
    return sum(
        0.5 * group["weight_decay"] * parameter.square().sum()
        for group in decay_groups(module, weight_decay)
        for parameter in group["params"]
    )
