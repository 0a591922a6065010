"""Masks query by query and key by key, and what cannot be one."""

import pytest
import torch

from sklearn_attention.nn import _masks as module

ALLOWED = torch.tensor([[True, False, True], [False, False, False]])
LOGITS = torch.tensor([[0.5, -torch.inf, -2.0], [-torch.inf, -torch.inf, -torch.inf]])


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (ALLOWED.int(), r"own=torch.int32 of shape \(2, 3\) is not valid"),
        ("all", "own='all' is not valid: pass a tensor of bool"),
        (ALLOWED[:, :2], r"own of shape \(2, 2\) does not fit .* = \(4, 5, 2, 3\)"),
        (ALLOWED.expand(2, 1, 2, 3), r"own of shape \(2, 1, 2, 3\) does not fit"),
    ],
)
def test_what_is_no_mask(mask, message):
    with pytest.raises(ValueError, match=message):
        module.check_mask("own", mask, (4, 5, 2, 3))


def test_joined_masks_allow_what_both_allow():
    other = torch.tensor([True, True, False])
    assert module.join_masks(None, None) is None
    assert module.join_masks(ALLOWED, None) is ALLOWED
    assert module.join_masks(None, other) is other
    assert module.join_masks(ALLOWED, other).tolist() == [[True, False, False], [False] * 3]
    found = module.join_masks(LOGITS, other)
    assert found[0].tolist() == [0.5, -torch.inf, -torch.inf]
    assert torch.isneginf(found[1]).all()
