import pytest
import torch

from sklearn_attention.training._bfloat16 import computes_bfloat16


@pytest.mark.parametrize("name", ["amx_bf16", "avx512_bf16", "bf16"])
@pytest.mark.parametrize("has", [False, True])
def test_processors_of_intel_amd_and_arm_tell(monkeypatch, name, has):
    able = {"avx2": True, name: has, "architecture": "x86_64"}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able)
    assert computes_bfloat16(torch.device("cpu")) == has


@pytest.mark.parametrize("has", [False, True])
def test_devices_of_cuda_tell(monkeypatch, has):
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation: including_emulation or has
    )
    assert computes_bfloat16(torch.device("cuda")) == has


def test_other_devices_do():
    assert computes_bfloat16(torch.device("mps"))
