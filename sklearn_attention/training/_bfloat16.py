"""Devices on which bfloat16 is fast."""

import torch


def computes_bfloat16(device):
    """True if a device has instructions for bfloat16; others take many times as long."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return True
    able = torch.cpu.get_capabilities().items()
    return any(value for name, value in able if name.endswith("bf16"))
