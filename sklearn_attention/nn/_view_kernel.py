"""A kernel of rows seen in several views, with a length-scale for every feature."""

import math

import torch

# Mean squared distance in one feature, of coordinates of about unit variance, below which it
# counts as this.
_LEAST_DISTANCE = 0.01


class ViewKernel:
    r"""Sum of radial kernels, each of the rows in one view, with learned length-scales.

    .. math:: K(x, x') = c + \sum_h e^{2 s_h}\,
              k\Bigl(\bigl\lVert e^{a_h + b_h} \odot (\phi_h(x) - \phi_h(x')) \bigr\rVert\Bigr)

    with :math:`k(0) = 1`. A head :math:`h` looks at one view. Every feature has a log-scale
    in :math:`a_h`; the columns of a feature that has several (bins, levels) deviate from it
    by :math:`b_h`.

    Rows are lists of tensors, (n, n_columns) for each head.

    Parameters
    ----------
    features : list of LongTensor
        For each head, the feature that each column belongs to.
    kernel : RadialKernel
        From :mod:`sklearn_attention.kernels`.
    parameters : dict of str to Tensor
        ``scale`` (n_heads, n_features), ``column`` (columns of all heads), ``amplitude``
        (n_heads,), ``noise`` () and ``ridge`` (), all logarithms.
    constant : float, default=0.0
        The constant :math:`c`.
    """

    def __init__(self, features, kernel, parameters, constant=0.0):
        self.features, self.kernel, self.constant = features, kernel, constant
        self.parameters = parameters
        self._widths = [len(feature) for feature in features]
        several = [torch.bincount(f, minlength=self.n_features) > 1 for f in features]
        # A feature of one column has one scale, not two.
        self._deviates = [s[f] for s, f in zip(several, features, strict=True)]

    @property
    def n_features(self):
        """Number of features."""
        return self.parameters["scale"].shape[1]

    @property
    def n_heads(self):
        """Number of heads."""
        return len(self.features)

    @classmethod
    def start(cls, features, spreads, n_features, kernel, *, jitter, generator, constant=1.0):
        """A kernel before learning: all features count alike, but for a random jitter.

        Parameters
        ----------
        features : list of LongTensor
        spreads : list of Tensor
            Variance of every column of each head.
        n_features : int
        kernel : RadialKernel
        jitter : float
            Standard deviation of the random part of the log-scales.
        generator : torch.Generator
        constant : float, default=1.0

        Returns
        -------
        kernel : ViewKernel
        """
        scale = torch.zeros((len(features), n_features), dtype=spreads[0].dtype)
        for head, (feature, spread) in enumerate(zip(features, spreads, strict=True)):
            # Twice the variance is the mean squared distance; all features together have 1.
            distance = torch.zeros(n_features, dtype=spread.dtype).index_add_(
                0, feature, 2 * spread
            )
            # What hardly varies in these rows may vary in others: it gets no larger scale.
            used = (distance > _LEAST_DISTANCE).sum().clamp_min(1)
            distance = distance.clamp_min(_LEAST_DISTANCE) * used
            scale[head] = -0.5 * torch.log(distance)
        noise = torch.randn(scale.shape, generator=generator, dtype=scale.dtype)
        one = scale.new_zeros(())
        parameters = {
            "scale": scale + jitter * noise,
            "column": scale.new_zeros(sum(len(feature) for feature in features)),
            "amplitude": scale.new_full((len(features),), -0.5 * math.log(len(features))),
            "noise": one + math.log(0.1),
            "ridge": one.clone(),
        }
        return cls(features, kernel, parameters, constant)

    def to(self, dtype, device=None):
        """The same kernel in another precision or on another device."""
        parameters = {k: v.detach().to(device, dtype) for k, v in self.parameters.items()}
        features = [feature.to(device) for feature in self.features]
        return ViewKernel(features, self.kernel, parameters, self.constant)

    def scaled(self, rows):
        """Rows in length-scales: what the kernel measures distances between."""
        columns = self.parameters["column"].split(self._widths)
        scaled = []
        for head, x in enumerate(rows):
            log_scale = self.parameters["scale"][head][self.features[head]]
            log_scale = log_scale + columns[head] * self._deviates[head]
            scaled.append(x * torch.exp(log_scale))
        return scaled

    def matrix(self, queries, keys=None):
        """The kernel between queries and keys; None compares the queries with themselves.

        Parameters
        ----------
        queries, keys : list of Tensor
            Scaled rows.

        Returns
        -------
        values : Tensor of shape (n_queries, n_keys)
        """
        peak = self._log_peak(queries[0])
        amplitude = 2 * self.parameters["amplitude"] - peak
        total = self.constant
        for head in range(self.n_heads):
            squared = _squared(queries[head], None if keys is None else keys[head])
            total = total + torch.exp(amplitude[head]) * self.kernel.profile(squared)
        return total

    def log_matrix(self, queries, keys):
        """Logarithm of the sum over heads, without the constant.

        Parameters
        ----------
        queries, keys : list of Tensor
            Scaled rows.

        Returns
        -------
        log_values : Tensor of shape (n_queries, n_keys)
        """
        return self.log_sum(self.distances(queries, keys))

    def distances(self, queries, keys):
        """Squared distances in length-scales, of every head.

        Parameters
        ----------
        queries, keys : list of Tensor
            Scaled rows.

        Returns
        -------
        squared : list of Tensor of shape (n_queries, n_keys)
        """
        return [_squared(*pair) for pair in zip(queries, keys, strict=True)]

    def log_sum(self, squared):
        """What :meth:`log_matrix` returns, from squared distances.

        Parameters
        ----------
        squared : list of Tensor of shape (n_queries, n_keys)

        Returns
        -------
        log_values : Tensor of shape (n_queries, n_keys)
        """
        total = None
        compact = math.isfinite(self.kernel.support)
        for amplitude, distances in zip(self.parameters["amplitude"], squared, strict=True):
            values = 2 * amplitude + self.kernel.log_profile(distances)
            if total is None:
                total = values
            elif compact:
                total = _log_add(total, values)
            else:
                total = torch.logaddexp(total, values)
        return total

    def _log_peak(self, like):
        return self.kernel.log_profile(like.new_zeros(()))


def _log_add(a, b):
    """Logarithm of a sum, with a gradient of 0 where both parts are 0."""
    nothing = torch.isneginf(a) & torch.isneginf(b)
    total = torch.logaddexp(a.masked_fill(nothing, 0.0), b.masked_fill(nothing, 0.0))
    return total.masked_fill(nothing, -torch.inf)


def _squared(queries, keys):
    """Squared distances, (n_queries, n_keys), as one product of augmented coordinates."""
    own = keys is None
    keys = queries if own else keys
    one_q, one_k = queries.new_ones((len(queries), 1)), keys.new_ones((len(keys), 1))
    left = torch.cat([-2 * queries, (queries * queries).sum(1, keepdim=True), one_q], dim=1)
    right = torch.cat([keys, one_k, (keys * keys).sum(1, keepdim=True)], dim=1)
    squared = left @ right.T
    if own:
        # Rounding must not part a row from itself, where some kernels have a kink.
        squared.fill_diagonal_(0.0)
    return squared.clamp_min(0.0) if squared.requires_grad else squared.clamp_min_(0.0)
