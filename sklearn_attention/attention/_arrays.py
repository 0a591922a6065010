"""Arrays of what users pass, and results in the form and the type of what was passed.

Users pass arrays, lists, frames and tensors. Sums are computed from NumPy arrays in float64.
"""

import numpy as np
from array_api_compat import is_torch_array

from .._partitions import need_all_rows
from .._validation import as_numbers


def as_numpy(name, x):
    """Return a NumPy array of numbers as it is; convert anything else to one.

    So memory maps stay on disk. `name` is that of the user's parameter. Sample weights and
    query scales may be None.
    """
    is_array = isinstance(x, np.ndarray) and x.dtype.kind in "biuf"
    is_absent = x is None and name in ("sample_weight", "query_scale")
    return x if is_array or is_absent else to_array(name, x)


def to_array(name, x):
    """Convert numbers of any form, such as tensors, lists and frames, to an array.

    `name` is that of the user's parameter, for messages.
    """
    if x is None:
        raise ValueError(f"{name} is None: pass an array of numbers.")
    if is_torch_array(x):
        x = _tensor_to_array(name, x)
    need_all_rows(name, x, remedy=f"pass {name}.compute() if that fits")
    x = np.asarray(as_numbers(name, x, "encode it first"))
    if x.dtype.kind == "c":
        raise ValueError(
            f"{name} has complex numbers, which are not supported: pass real and imaginary "
            "parts as columns of their own."
        )
    # Trees and SciPy need the machine's own byte order, and no more than 64 bits.
    dtype = np.float64 if x.dtype.itemsize > 8 else x.dtype.newbyteorder("=")
    return np.ascontiguousarray(x, dtype=dtype)


def _tensor_to_array(name, x):
    """Convert a tensor in memory to an array; in float32 for bfloat16, which NumPy lacks."""
    if x.requires_grad:
        raise TypeError(
            f"{name} is a tensor with requires_grad=True, but this function computes no "
            f"gradients: pass {name}.detach(), or call a kernel of sklearn_attention.kernels, "
            "which has gradients."
        )
    if x.device.type != "cpu":
        raise TypeError(
            f"{name} is a tensor on {x.device}, but averages are computed on the CPU: pass "
            f"{name}.cpu()."
        )
    return (x.float() if str(x.dtype) == "torch.bfloat16" else x).numpy()


def as_passed(arrays, *tables):
    """Return a list of arrays, as tensors if one of the tables that were passed is a tensor."""
    if not any(map(is_torch_array, tables)):
        return arrays
    import torch

    return [torch.from_numpy(x) for x in arrays]


def result_dtype(arrays):
    """Return the type of results: the joint type if it is a float, or else float64.

    `arrays` are arrays or types.
    """
    dtype = np.result_type(*arrays)
    return dtype if dtype.kind == "f" else np.dtype(np.float64)


def in_precision(x, dtype):
    """Convert an array to a type; numbers that are too large for it become infinite."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(x, dtype=dtype)


def cast_fields(fields, formats):
    """Return fields of n queries in their formats, as a list of arrays (n, *shape).

    `formats` has for each field the shape at one query, and the type.
    """
    return [
        in_precision(x, dtype).reshape(len(x), *shape)
        for x, (shape, dtype) in zip(fields, formats, strict=True)
    ]


def precision_of(x):
    """Return the machine epsilon of the type in which a table was passed."""
    return np.finfo(x.dtype if x.dtype.kind == "f" else np.float64).eps
