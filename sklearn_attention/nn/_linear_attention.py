"""The weighted average with a kernel of finitely many features: linear in length.

A kernel is the scalar product of features phi(q) and phi(k), so that the sum over keys of
phi(k) v' is the same for all queries. Features are factors times exponentials (`FeatureForm`):
exponents (B, n_heads, T, n_features or 1) are shifted by their largest value among the keys, so
that no exponential overflows, and the shift is undone in the queries.
"""

import torch

from ._masks import empty_rows, mask_logits

# Number of tokens in a chunk: few enough for their features to stay in the processor's cache,
# and many enough for the products with the sums over all earlier tokens to take longer than
# reading these sums.
_CHUNK = 128
# The largest exponent if there is no key; minus infinity minus itself would be NaN.
_NO_KEY_EXPONENT = -1e30


def linear_attention(queries, keys, values, kernel, *, mask=None, causal=False):
    r"""Average the values of every head by the features of a kernel, in linear time.

    :math:`o_t = \phi(q_t)^\top \sum_s m_s \phi(k_s) v_s^\top / \phi(q_t)^\top \sum_s m_s
    \phi(k_s)` over all keys, or, if causal, over those up to step t, by the prefix sums of
    Katharopoulos et al. (2020). The mask is the same for all queries, (B, n_heads, 1, T_k).

    Averages (B, n_heads, T_q, d_value) are 0 in three cases: a query has no key; the sum of
    signed weights is below its sampling error (see `_divide`); weights are positive and causal,
    and their sum is negligible relative to those of later keys.
    """
    # From the exponents of each feature, the largest one among the keys so far is subtracted.
    # It is added to those of the queries, from which the largest of all features is subtracted.
    # Both cancel in the average, and if not causal, the sum of positive weights is at least 1.
    # Only the features of one chunk are in memory at a time, unless gradients are needed.
    with torch.autocast(queries.device.type, enabled=False):
        queries, keys = at_least_single(queries), at_least_single(keys)
        # A last column of ones makes the sum of the weights one more average.
        values_and_one = torch.cat(
            [values.to(keys.dtype), torch.ones_like(keys[..., :1])], dim=-1
        )
        memory = _Memory(kernel, values_and_one)
        masks = _split_mask(mask, keys.shape[2])
        key_chunks = keys.split(_CHUNK, 2), values_and_one.split(_CHUNK, 2), masks
        if causal:
            chunks = zip(queries.split(_CHUNK, 2), *key_chunks, strict=True)
            averages = [memory.average_and_absorb(*chunk) for chunk in chunks]
        else:
            for chunk in zip(*key_chunks, strict=True):
                memory.absorb(*chunk)
            averages = [memory.average(chunk) for chunk in queries.split(_CHUNK, 2)]
        return torch.cat(averages, dim=2).to(values.dtype)


def feature_weights(queries, keys, kernel, *, mask=None):
    """Compute the weights of :func:`linear_attention`, (B, n_heads, T_q, T_k), for any mask.

    Rows sum to 1, or are 0 where :func:`linear_attention` gives 0.
    """
    with torch.autocast(queries.device.type, enabled=False):
        form = kernel.feature_form(at_least_single(keys))
        exponents = form.exponents + form.offsets  # (B, n_heads, T_k, n_features or 1)
        if mask is not None:
            # A key that no query may attend to must not set the scale of the others.
            exponents = exponents.masked_fill(empty_rows(mask.mT), -torch.inf)
        shift = _largest(exponents)
        phi_k = _features(form.factors, exponents - shift)  # (B, n_heads, T_k, n_features)
        phi_q = _query_features(kernel, at_least_single(queries), shift)
        weights = phi_q @ phi_k.mT  # (B, n_heads, T_q, T_k)
        if mask is None:
            key_sums = phi_k.sum(2, keepdim=True)
        else:
            allowed = _as_factors(mask, weights.dtype)
            weights = weights * allowed
            key_sums = allowed.expand_as(weights) @ phi_k  # (B, n_heads, T_q, n_features)
        total = weights.sum(-1, keepdim=True)
        return _divide(weights, total, phi_q * key_sums if kernel.signed else None)


def at_least_single(x):
    """Return the tensor in single precision if it has half precision."""
    return x if x.dtype == torch.float64 else x.float()


class _Memory:
    """Sums over the keys so far of features times values, and the shift of their exponents.

    `values` (B, n_heads, T, d_value + 1) have a last column of ones.
    """

    def __init__(self, kernel, values):
        self.kernel = kernel
        batch = values.shape[:2]
        self.shift = values.new_full((*batch, 1, 1), _NO_KEY_EXPONENT)
        # The last column has the sum of the features.
        self.sums = values.new_zeros((*batch, kernel.n_features, values.shape[-1]))

    def absorb(self, keys, values, mask):
        """Add a chunk of keys and their values to the sums."""
        phi_k = self._key_features(keys, mask)
        self.sums = self.sums + phi_k.mT @ values

    def average(self, queries):
        """Compute averages over all keys so far, (B, n_heads, C, d_value)."""
        phi_q = _query_features(self.kernel, queries, self.shift)  # (B, n_heads, C, n_features)
        terms = phi_q * self.sums[..., -1:].mT if self.kernel.signed else None
        return _divide_by_last(phi_q @ self.sums, terms)

    def average_and_absorb(self, queries, keys, values, mask):
        """Add a chunk of keys, and compute averages over the keys up to each query's step."""
        phi_k = self._key_features(keys, mask)  # (B, n_heads, C, n_features)
        phi_q = _query_features(self.kernel, queries, self.shift)
        # Keys of earlier chunks are in the sums; within the chunk there are all pairs.
        within = (phi_q @ phi_k.mT).tril()  # (B, n_heads, C, C)
        sums = phi_q @ self.sums + within @ values
        terms = None
        if self.kernel.signed:
            terms = phi_q * (self.sums[..., -1:].mT + phi_k.cumsum(2))
        self.sums = self.sums + phi_k.mT @ values
        return _divide_by_last(sums, terms)

    def _key_features(self, keys, mask):
        """Return features of keys at the shift of all keys so far; bring the sums to it too."""
        form = self.kernel.feature_form(keys)
        exponents = form.exponents + form.offsets  # (B, n_heads, C, n_features or 1)
        if mask is not None:
            exponents = mask_logits(exponents, mask)
        shift = torch.maximum(self.shift, _largest(exponents))  # (B, n_heads, 1, ...)
        self.sums = self.sums * torch.exp(self.shift - shift).mT
        self.shift = shift
        return _features(form.factors, exponents - shift)


def _split_mask(mask, n_keys):
    """Split a mask (B, n_heads, 1, T_k) into one for each chunk of keys, (B, n_heads, C, 1)."""
    if mask is None:
        return [None] * -(-n_keys // _CHUNK)
    return mask.mT.expand(-1, -1, n_keys, -1).split(_CHUNK, 2)


def _features(factors, exponents):
    """Return factors times exponentials; factors may be None."""
    phi = torch.exp(exponents)
    return phi if factors is None else factors * phi


def _query_features(kernel, queries, shift):
    """Return features of queries, which undo the `shift` of the keys; the largest is 1."""
    form = kernel.feature_form(queries)
    exponents = form.exponents + shift
    with torch.no_grad():
        top = exponents.amax(-1, keepdim=True)
    return _features(form.factors, exponents - top)


@torch.no_grad()
def _largest(exponents):
    """Return the largest exponent of each feature, (B, n_heads, 1, n_features or 1)."""
    return exponents.amax(2, keepdim=True).clamp_min(_NO_KEY_EXPONENT)


def _as_factors(mask, dtype):
    """Return the factors of weights that a mask stands for, up to one factor per query."""
    if mask.dtype == torch.bool:
        return mask.to(dtype)
    largest = mask.amax(-1, keepdim=True).clamp_min(_NO_KEY_EXPONENT)
    return torch.exp(mask.to(dtype) - largest)


def _divide_by_last(sums, terms):
    """Divide sums by their last column, that of the weights."""
    return _divide(sums[..., :-1], sums[..., -1:], terms)


def _divide(sums, total, terms):
    """Divide sums by the sum of the weights, `total`; return 0 where that is nearly 0.

    `terms` (..., n_features) are what each feature adds to the total, None if all are positive.
    They are random and nearly independent, so the root of their sum of squares estimates the
    error of the total.
    """
    with torch.no_grad():
        # The reciprocal of a smaller total would overflow in the gradient.
        error_bound = torch.full_like(total, torch.finfo(total.dtype).tiny ** 0.5)
        if terms is not None:
            sampling_error = terms.square().sum(-1, keepdim=True).sqrt()
            error_bound = torch.maximum(error_bound, sampling_error)
        is_nonzero = total > error_bound
    return (sums / total.masked_fill(~is_nonzero, 1.0)).masked_fill(~is_nonzero, 0.0)
