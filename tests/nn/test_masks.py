"""Masks query by query and key by key, and what cannot be one."""

import numpy as np
import pytest
import torch

from sklearn_attention.nn import _masks as module

ALLOWED = torch.tensor([[True, False, True], [False, False, False]])
LOGITS = torch.tensor([[0.5, -torch.inf, -2.0], [-torch.inf, -torch.inf, -torch.inf]])


@pytest.mark.parametrize("mask", [ALLOWED, LOGITS, ALLOWED.expand(4, 1, 2, 3)])
def test_masks_have_four_dimensions(mask):
    found = module.check_mask("mask", mask, (4, 5, 2, 3))
    assert found.ndim == 4
    assert torch.equal(found.broadcast_to(4, 5, 2, 3), mask.broadcast_to(4, 5, 2, 3))


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (ALLOWED.int(), r"own=torch.int32 of shape \(2, 3\) is not valid"),
        (ALLOWED[None], r"own=torch.bool of shape \(1, 2, 3\) is not valid"),
        ("all", "own='all' is not valid: pass a tensor of bool"),
        (ALLOWED[:, :2], r"own of shape \(2, 2\) does not fit \(4, 5, 2, 3\)"),
        (ALLOWED.expand(2, 1, 2, 3), r"own of shape \(2, 1, 2, 3\) does not fit"),
    ],
)
def test_what_is_no_mask(mask, message):
    with pytest.raises(ValueError, match=message):
        module.check_mask("own", mask, (4, 5, 2, 3))


@pytest.mark.parametrize(("n_steps", "n_before"), [(4, 0), (3, 2), (1, 5), (0, 2)])
def test_a_step_sees_itself_and_what_was_before(n_steps, n_before):
    found = module.causal_mask(n_steps, n_before=n_before)
    assert found.shape == (1, 1, n_steps, n_before + n_steps)
    assert found.dtype == torch.bool
    for step, key in np.ndindex(found.shape[2:]):
        assert found[0, 0, step, key] == (key <= step + n_before)


def test_joined_masks_allow_what_both_allow():
    other = torch.tensor([True, True, False])
    assert module.join_masks(None, None) is None
    assert module.join_masks(ALLOWED, None) is ALLOWED
    assert module.join_masks(None, other) is other
    assert module.join_masks(ALLOWED, other).tolist() == [[True, False, False], [False] * 3]
    found = module.join_masks(LOGITS, other)
    assert found[0].tolist() == [0.5, -torch.inf, -torch.inf]
    assert torch.isneginf(found[1]).all()


@pytest.mark.parametrize("mask", [ALLOWED, LOGITS], ids=["bool", "float"])
def test_empty_rows_are_found_and_opened(mask):
    empty = module.empty_rows(mask)
    assert empty.tolist() == [[False], [True]]
    opened = module.open_rows(mask, empty)
    assert opened.dtype == mask.dtype
    assert torch.equal(opened[0], mask[0])
    assert opened[1].tolist() == ([True] * 3 if mask.dtype == torch.bool else [0.0] * 3)
    assert not module.empty_rows(opened).any()
