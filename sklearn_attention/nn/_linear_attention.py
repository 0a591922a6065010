"""The weighted average with a kernel of finitely many features: linear in length."""

import torch

from ._masks import empty_rows, mask_logits

# Tokens taken at a time: few enough for their features to stay in the cache, and many enough
# for the products with the sums over all earlier ones to outweigh reading these.
_CHUNK = 128
# Stands for the largest exponent of no key at all; minus infinity less itself would be NaN.
_NOTHING = -1e30


def linear_attention(queries, keys, values, kernel, *, mask=None, causal=False):
    r"""Average the values of every head by the features of a kernel, in linear time.

    :math:`o_t = \phi(q_t)^\top \sum_s m_s \phi(k_s) v_s^\top / \phi(q_t)^\top \sum_s m_s
    \phi(k_s)` over all keys, or, if causal, over those up to step t, by the prefix sums of
    Katharopoulos et al. (2020). The mask is the same for all queries, (B, n_heads, 1, T_k).
    """
    # Averages are 0 where a query has no key, where the sum of signed weights is not above the
    # root of the sum of squares of what each feature adds to it, and, of positive weights with
    # a causal mask, where their sum is negligible relative to those of later keys.
    # Features are on a logarithmic scale (FeatureForm): the largest exponent of each feature
    # among the keys so far is subtracted, and added in the queries, where the largest of all
    # features is subtracted. Both cancel in the average; without a causal mask the sum of
    # positive weights is then at least 1. Only the features of one chunk are in memory at a
    # time, unless gradients are needed.
    with torch.autocast(queries.device.type, enabled=False):
        queries, keys = at_least_single(queries), at_least_single(keys)
        # A last column of ones makes the sum of the weights one more average.
        whole = torch.cat([values.to(keys.dtype), torch.ones_like(keys[..., :1])], dim=-1)
        memory = _Memory(kernel, whole)
        of_keys = keys.split(_CHUNK, 2), whole.split(_CHUNK, 2), _cut_mask(mask, keys.shape[2])
        if causal:
            chunks = zip(queries.split(_CHUNK, 2), *of_keys, strict=True)
            averages = [memory.average_and_absorb(*chunk) for chunk in chunks]
        else:
            for chunk in zip(*of_keys, strict=True):
                memory.absorb(*chunk)
            averages = [memory.average(chunk) for chunk in queries.split(_CHUNK, 2)]
        return torch.cat(averages, dim=2).to(values.dtype)


def feature_weights(queries, keys, kernel, *, mask=None):
    """Weights by which :func:`linear_attention` averages, (B, n_heads, T_q, T_k), for any mask.

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
    """The tensor in single precision if it was in half."""
    return x if x.dtype == torch.float64 else x.float()


class _Memory:
    """Sums of keys and values, feature by feature."""

    def __init__(self, kernel, values):
        self.kernel = kernel
        batch = values.shape[:2]
        self.shift = values.new_full((*batch, 1, 1), _NOTHING)
        # The last column holds the sum of the features.
        self.sums = values.new_zeros((*batch, kernel.n_features, values.shape[-1]))

    def absorb(self, keys, values, mask):
        """Add some keys and their values."""
        phi_k = self._key_features(keys, mask)
        self.sums = self.sums + phi_k.mT @ values

    def average(self, queries):
        """Averages over all keys so far, (B, n_heads, C, d_value)."""
        phi_q = _query_features(self.kernel, queries, self.shift)  # (B, n_heads, C, n_features)
        terms = phi_q * self.sums[..., -1:].mT if self.kernel.signed else None
        return _divide_by_last(phi_q @ self.sums, terms)

    def average_and_absorb(self, queries, keys, values, mask):
        """Averages over all keys so far and those up to the step of each query."""
        phi_k = self._key_features(keys, mask)  # (B, n_heads, C, n_features)
        phi_q = _query_features(self.kernel, queries, self.shift)
        within = (phi_q @ phi_k.mT).tril()  # (B, n_heads, C, C)
        averages = phi_q @ self.sums + within @ values
        terms = None
        if self.kernel.signed:
            terms = phi_q * (self.sums[..., -1:].mT + phi_k.cumsum(2))
        self.sums = self.sums + phi_k.mT @ values
        return _divide_by_last(averages, terms)

    def _key_features(self, keys, mask):
        """Features at a scale that suits all keys so far, to which the sums are brought too."""
        form = self.kernel.feature_form(keys)
        exponents = form.exponents + form.offsets  # (B, n_heads, C, n_features or 1)
        if mask is not None:
            exponents = mask_logits(exponents, mask)
        shift = torch.maximum(self.shift, _largest(exponents))  # (B, n_heads, 1, ...)
        self.sums = self.sums * torch.exp(self.shift - shift).mT
        self.shift = shift
        return _features(form.factors, exponents - shift)


def _cut_mask(mask, n_keys):
    """The mask of each chunk of keys, (B, n_heads, C, 1)."""
    if mask is None:
        return [None] * -(-n_keys // _CHUNK)
    return mask.mT.expand(-1, -1, n_keys, -1).split(_CHUNK, 2)


def _features(factors, exponents):
    phi = torch.exp(exponents)
    return phi if factors is None else factors * phi


def _query_features(kernel, queries, shift):
    """Features of queries, the largest of a query 1, for keys from which `shift` is taken."""
    form = kernel.feature_form(queries)
    exponents = form.exponents + shift
    with torch.no_grad():
        top = exponents.amax(-1, keepdim=True)
    return _features(form.factors, exponents - top)


@torch.no_grad()
def _largest(exponents):
    """The largest of each feature in all keys, (B, n_heads, 1, n_features or 1)."""
    return exponents.amax(2, keepdim=True).clamp_min(_NOTHING)


def _as_factors(mask, dtype):
    """A mask as what weights are multiplied by, up to a factor for each query."""
    if mask.dtype == torch.bool:
        return mask.to(dtype)
    return torch.exp(mask.to(dtype) - mask.amax(-1, keepdim=True).clamp_min(_NOTHING))


def _divide_by_last(averages, terms):
    return _divide(averages[..., :-1], averages[..., -1:], terms)


def _divide(sums, total, terms):
    """Sums divided by the sum of the weights, 0 where that is not safely above 0."""
    # `terms` are the summands of the features, None for positive ones. They are random and
    # nearly independent, so the root of their sum of squares estimates the error of their sum.
    with torch.no_grad():
        # The reciprocal of what is smaller would overflow in the gradient.
        least = torch.full_like(total, torch.finfo(total.dtype).tiny ** 0.5)
        if terms is not None:
            least = torch.maximum(least, terms.square().sum(-1, keepdim=True).sqrt())
        usable = total > least
    return (sums / total.masked_fill(~usable, 1.0)).masked_fill(~usable, 0.0)
