"""Arrays, lists, frames and tensors that become NumPy arrays, and results in the same form."""

import numpy as np
import pandas as pd
import pytest
import torch

from sklearn_attention.attention._arrays import (
    as_numpy,
    as_passed,
    cast_fields,
    precision_of,
    result_dtype,
    to_array,
)

NUMBERS = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    "convert", [list, np.array, pd.DataFrame, torch.tensor, lambda x: np.array(x, dtype=">f4")]
)
def test_numbers_of_any_form_become_the_same_array(convert):
    x = to_array("keys", convert(NUMBERS))
    assert x.dtype.isnative
    assert x.flags.c_contiguous
    np.testing.assert_array_equal(x, NUMBERS)


def test_half_precision_of_torch_and_long_doubles_of_numpy_keep_their_values():
    assert to_array("keys", torch.tensor(NUMBERS, dtype=torch.bfloat16)).dtype == np.float32
    assert to_array("keys", np.array(NUMBERS, dtype=np.longdouble)).dtype == np.float64


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (None, ValueError, "keys is None"),
        (np.array([1j]), ValueError, "complex numbers"),
        (torch.ones(2, requires_grad=True), TypeError, r"pass keys\.detach"),
    ],
)
def test_what_cannot_be_an_array_of_numbers_is_refused(x, error, message):
    with pytest.raises(error, match=message):
        to_array("keys", x)


def test_arrays_stay_as_they_are_and_weights_may_be_missing():
    x = np.arange(6).reshape(2, 3).T
    assert as_numpy("keys", x) is x
    assert as_numpy("sample_weight", None) is None
    with pytest.raises(ValueError, match="values is None"):
        as_numpy("values", None)


def test_results_are_tensors_where_one_table_was_a_tensor():
    result = np.ones(2)
    assert as_passed([result], NUMBERS, None)[0] is result
    (tensor,) = as_passed([result], NUMBERS, torch.ones(2))
    assert isinstance(tensor, torch.Tensor)


def test_results_have_the_joint_type_if_that_is_a_float():
    single, integer = np.ones(1, dtype=np.float32), np.ones(1, dtype=np.int8)
    assert result_dtype([single, single]) == np.float32
    assert result_dtype([single, np.float64]) == np.float64
    assert result_dtype([integer]) == np.float64


def test_precision_is_that_of_the_type_that_was_passed():
    assert precision_of(np.ones(1, dtype=np.float32)) == np.finfo(np.float32).eps
    assert precision_of(np.ones(1, dtype=int)) == np.finfo(float).eps


def test_fields_get_their_shape_at_a_query_and_their_type():
    pairs = np.arange(6.0).reshape(3, 2, 1)
    fields = cast_fields([np.full(3, 1e300), pairs], [((), "f4"), ((2,), "f8")])
    assert np.isinf(fields[0]).all()
    assert fields[0].dtype == np.float32
    np.testing.assert_array_equal(fields[1], pairs[:, :, 0])
