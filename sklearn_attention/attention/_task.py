"""From what users pass to tensors in units of the bandwidth, checked once."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from array_api_compat import is_torch_array
from scipy.sparse import issparse

from .._validation import check_bandwidth
from ..kernels import Kernel, as_kernel


@dataclass(frozen=True)
class Task:
    """One weighted average to compute; coordinates are in bandwidths, in float64.

    A key of weight 0 is not there at all: it is dropped before anything is computed.
    """

    kernel: Kernel
    queries: torch.Tensor  # (n, d)
    keys: torch.Tensor  # (m, d)
    values: torch.Tensor  # (m, p)
    weights: torch.Tensor  # (m,) relative to the largest
    log_weight_scale: float  # logarithm of what they are relative to
    own_key: torch.Tensor | None  # (n,) key to leave out, -1 for none; None: all stay
    query_scale: torch.Tensor | None  # (n,) what else divides a query's distances
    dtype: torch.dtype  # of the answer, and at least of the arithmetic

    def take(self, rows):
        """The same task for some of the queries."""
        own_key, scale = (
            None if field is None else field[rows] for field in (self.own_key, self.query_scale)
        )
        return replace(self, queries=self.queries[rows], own_key=own_key, query_scale=scale)

    def to(self, dtype):
        """The same task with its arithmetic in another precision."""
        tensors = ("queries", "keys", "values", "weights")
        return replace(self, **{name: getattr(self, name).to(dtype) for name in tensors})


@dataclass(frozen=True)
class Answer:
    """How to hand results back: in the library and precision they came in."""

    to_numpy: bool
    dtype: torch.dtype

    def __call__(self, tensor, dtype=None):
        tensor = tensor.to(dtype or self.dtype)
        return tensor.cpu().numpy() if self.to_numpy else tensor


def resolve_device(device):
    """The torch device that ``device`` stands for; "auto" prefers CUDA.

    Parameters
    ----------
    device : str or torch.device
        "auto", or anything torch understands.

    Returns
    -------
    device : torch.device
    """
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"device={device!r} is not a device: pass 'auto', 'cpu' or 'cuda'."
        ) from error
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device!r} is not available here: pass 'auto' or 'cpu'.")
    return resolved


def prepare(
    queries, keys, values, kernel, *, bandwidth, sample_weight, leave_one_out, device,
    query_scale=None,
):  # fmt: skip
    """Check everything, and express it as a :class:`Task`.

    Returns
    -------
    task : Task
    answer : Answer
    kept : torch.Tensor or None
        Positions of the keys that have weight; None if all have.
    """
    kernel = as_kernel(kernel)
    given = {"queries": queries, "keys": keys}
    if values is not None:
        given["values"] = values
    tensors = _to_tensors(given.items(), device)
    dtype = _answer_dtype(tensors)
    answer = Answer(not any(is_torch_array(x) for x in given.values()), dtype)
    queries, keys = (
        _check_table(x, name) for x, name in zip(tensors, ("queries", "keys"), strict=False)
    )
    n_keys, n_features = keys.shape
    if queries.shape[1] != n_features:
        raise ValueError(
            f"queries have {queries.shape[1]} features but keys have {n_features}: give "
            "both the same columns."
        )
    if n_keys == 0:
        raise ValueError("keys has 0 rows: an average needs at least one key.")
    own_key = _check_own_keys(leave_one_out, queries, n_keys)
    scale = _check_query_scale(query_scale, queries, kernel)
    values = tensors[2] if len(tensors) == 3 else keys.new_zeros((n_keys, 0))
    values = _check_values(values, n_keys)
    weights, log_scale, kept = _check_weights(sample_weight, keys)
    queries, keys = _in_bandwidths(queries.double(), keys.double(), kernel, bandwidth)
    if kept is not None:
        position = torch.full((n_keys,), -1, device=keys.device)
        position[kept] = torch.arange(len(kept), device=keys.device)
        if own_key is not None:
            own_key = torch.where(own_key >= 0, position[own_key], -1)
        keys, values, weights = keys[kept], values[kept], weights[kept]
    # Half precision is for storage: sums are computed in float32 at least.
    dtype = torch.float64 if answer.dtype == torch.float64 else torch.float32
    task = Task(
        kernel, queries, keys, values.double(), weights, log_scale, own_key, scale, dtype
    )
    return task, answer, kept


def _to_tensors(arrays, device):
    """Tensors on one device, from (name, array or tensor) pairs."""
    on_device = [x.device for _, x in arrays if is_torch_array(x)]
    target = on_device[0] if on_device and device == "auto" else resolve_device(device)
    return [_to_tensor(name, x).to(target) for name, x in arrays]


def _to_tensor(name, x):
    if is_torch_array(x):
        if x.requires_grad:
            raise TypeError(
                f"{name} is a tensor with requires_grad=True, but averages compute no "
                "gradients here: call a kernel of sklearn_attention.kernels directly."
            )
        return x
    if issparse(x):
        raise TypeError(f"{name} is sparse, which is not supported: pass {name}.toarray().")
    x = np.asarray(x)
    if x.dtype.kind not in "biuf" or x.dtype.itemsize > 8:
        try:
            if x.dtype.kind == "c":
                raise TypeError("complex numbers have no order")
            x = x.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} is not numeric ({error}): encode it first.") from error
    # torch wants the machine's own byte order, whole strides, and leave to write.
    x = np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("="))
    return torch.from_numpy(x) if x.flags.writeable else torch.tensor(x)


def _answer_dtype(tensors):
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return dtype if dtype.is_floating_point else torch.float64


def _check_table(x, name):
    if x.ndim != 2:
        raise ValueError(
            f"{name} must have shape (n_{name}, n_features), got {tuple(x.shape)}: use "
            "reshape(-1, 1) for a single feature."
        )
    return _check_finite(x, name)


def _check_values(values, n_keys):
    if values.ndim not in (1, 2) or len(values) != n_keys:
        raise ValueError(
            f"values must have shape ({n_keys},) or ({n_keys}, n_values), one row for each "
            f"key, got {tuple(values.shape)}."
        )
    return _check_finite(values.reshape(n_keys, -1), "values")


def _check_weights(sample_weight, keys):
    if sample_weight is None:
        return torch.ones(len(keys), dtype=torch.float64, device=keys.device), 0.0, None
    weights = _to_tensor("sample_weight", sample_weight).to(keys.device, torch.float64)
    if weights.shape != (len(keys),):
        raise ValueError(
            f"sample_weight must have shape ({len(keys)},), one weight for each key, got "
            f"{tuple(weights.shape)}."
        )
    _check_finite(weights, "sample_weight")
    if (weights < 0).any():
        raise ValueError(
            f"sample_weight has a negative value, {weights.min().item():g}: pass weights "
            "that are 0 or greater."
        )
    kept = weights.nonzero()[:, 0]
    if len(kept) == 0:
        raise ValueError("sample_weight is 0 for every key: leave at least one above 0.")
    # By a power of two, so that no digit is lost on the way.
    scale = 2.0 ** (math.frexp(weights.max().item())[1] - 1)
    return weights / scale, math.log(scale), None if len(kept) == len(weights) else kept


def _check_own_keys(leave_one_out, queries, n_keys):
    """Position of the key to leave out for each query, or None."""
    if isinstance(leave_one_out, (bool, np.bool_)):
        if not leave_one_out:
            return None
        if len(queries) != n_keys:
            raise ValueError(
                f"leave_one_out=True needs the keys themselves as queries, but there are "
                f"{len(queries)} queries and {n_keys} keys: pass the position of each "
                "query's own key instead."
            )
        return torch.arange(n_keys, device=queries.device)
    try:
        own_key = torch.as_tensor(leave_one_out, device=queries.device)
    except (TypeError, ValueError, RuntimeError):
        own_key = torch.empty(0, dtype=torch.bool)
    whole = not (own_key.is_floating_point() or own_key.is_complex())
    valid = own_key.shape == (len(queries),) and whole and own_key.dtype != torch.bool
    own_key = own_key.long() if valid else own_key
    if not valid or (len(own_key) and not (-1 <= own_key.min() and own_key.max() < n_keys)):
        raise ValueError(
            f"leave_one_out={leave_one_out!r} is not valid: pass True, False, or for each of "
            f"the {len(queries)} queries the position of a key, from 0 to {n_keys - 1}, or -1."
        )
    return own_key


def _check_query_scale(query_scale, queries, kernel):
    if query_scale is None:
        return None
    scale = _to_tensor("query_scale", query_scale).to(queries.device, torch.float64)
    if scale.shape != (len(queries),):
        raise ValueError(
            f"query_scale must have shape ({len(queries)},), one scale for each query, got "
            f"{tuple(scale.shape)}."
        )
    if not (torch.isfinite(scale).all() and (scale > 0).all()):
        raise ValueError("query_scale has values that are not finite and greater than 0.")
    if kernel.radial_form(queries.shape[1]) is None:
        raise ValueError(
            f"kernel={kernel!r} does not depend on the distance alone, which a scale of each "
            "query divides: choose a radial kernel such as 'gaussian'."
        )
    return scale


def _check_finite(x, name):
    if not torch.isfinite(x).all():
        kind = "NaN" if torch.isnan(x).any() else "infinity"
        raise ValueError(f"{name} contains {kind}: impute or drop those rows first.")
    return x


def _in_bandwidths(queries, keys, kernel, bandwidth):
    bandwidth = check_bandwidth(bandwidth, keys.shape[1])
    if not np.isscalar(bandwidth):
        bandwidth = torch.as_tensor(bandwidth, device=keys.device)
    if kernel.stationary:
        # A shift common to queries and keys changes nothing but the rounding. The median
        # is a value of the data, so codes of categories remain whole numbers.
        center = keys.median(dim=0).values
        queries, keys = queries - center, keys - center
    scaled = [kernel.rescale(x, bandwidth) for x in (queries, keys)]
    if not all(torch.isfinite(x).all() for x in scaled):
        raise ValueError(
            f"features divided by bandwidth={bandwidth!r} overflow: pass a larger bandwidth, "
            "or scale the features down."
        )
    return scaled
