"""The baseline of series: ridge regression on random convolutions, as MiniRocket.

A *kernel* has nine weights, 2 at three of the nine positions and -1 at the other six; there are
84 of them. At a *dilation* d, a kernel's positions are d steps apart. A *feature* of a series
is the share of the time in which its convolution exceeds a *bias*, which is a quantile of the
same convolution of a training series (Dempster, Schmidt and Webb 2021).
"""

import functools
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from .._labels import split_outputs

_WIDTH, _N_KERNELS, _N_FEATURES = 9, 84, 10_000
# The three positions of each kernel that have weight 2. Kernels of even number come first,
# since `margin` is applied to one half of the kernels at a time.
_ALL_TRIPLES = list(combinations(range(_WIDTH), 3))
_HIGH_POSITIONS = _ALL_TRIPLES[0::2] + _ALL_TRIPLES[1::2]
# Most numbers (steps times series times kernels) that are convolved at once.
_BLOCK_SIZE = 2**21


@dataclass(frozen=True, eq=False)
class RandomConvolutions:
    """About 10 000 features of a series, as in MiniRocket (Dempster, Schmidt and Webb 2021)."""

    # A dict for each dilation, the smallest first: `dilation`; `margin`, the number of steps at
    # each end that one half of the kernels ignores; `used` (84, n_channels), True for the
    # channels that a kernel adds up; and `biases` (84, n_biases).
    groups: list

    @classmethod
    def from_stored(cls, **fields):
        """Build from the fields of a stored file; in 0.2.0 `groups` was called "parts"."""
        return cls(fields["groups"] if "groups" in fields else fields["parts"])

    @classmethod
    def learn(cls, sequences, random_state):
        """Choose dilations, channels and biases by training series (T_i, n_channels)."""
        lengths, n_channels = [len(series) for series in sequences], sequences[0].shape[1]
        dilations, counts = _dilations(max(lengths))
        # Levels of the quantiles are multiples of the golden ratio, modulo 1, which are spread
        # evenly.
        golden_ratio = (np.sqrt(5) + 1) / 2
        levels = np.arange(1, _N_KERNELS + 1) * golden_ratio
        groups = []
        for dilation, n_biases in zip(dilations, counts, strict=True):
            used = _draw_channels(n_channels, random_state)
            convolve = _cached_convolutions(sequences, dilation, used)
            biases = np.empty((_N_KERNELS, n_biases), dtype=np.float32)
            for j in range(n_biases):
                drawn = random_state.randint(len(sequences), size=_N_KERNELS)
                for k, (i, level) in enumerate(zip(drawn, levels % 1, strict=True)):
                    biases[k, j] = _quantile(convolve(i).by_kernel(k)[:, 0], level)
                levels = levels + _N_KERNELS * golden_ratio
            # Half of the kernels ignore steps whose window reaches beyond the ends of a series.
            # They do so only if some steps are left even in the shortest series.
            margin = int(4 * dilation * (min(lengths) > 8 * dilation))
            group = {
                "dilation": int(dilation),
                "margin": margin,
                "used": used,
                "biases": biases,
            }
            groups.append(group)
        return cls(groups)

    def features(self, sequences):
        """Compute features (n, n_features) of series (T_i, n_channels); all are float32."""
        lengths = np.array([len(series) for series in sequences])
        n_features = sum(group["biases"].size for group in self.groups)
        features = np.empty((len(sequences), n_features), dtype=np.float32)
        for length in np.unique(lengths):
            same_length = np.flatnonzero(lengths == length)
            n_blocks = -(-len(same_length) * length * _N_KERNELS // _BLOCK_SIZE)
            for block in np.array_split(same_length, n_blocks):
                stacked = np.stack([sequences[i] for i in block], axis=1)
                features[block] = self._features_of_block(stacked)
        return features

    def _features_of_block(self, block):
        """Compute the features (n, n_features) of series of one length, (T, n, n_channels)."""
        features = []
        for i, group in enumerate(self.groups):
            convolutions = _Convolutions(block, group["dilation"], group["used"])
            margin = group["margin"] * (len(block) > 2 * group["margin"])
            for k, biases in enumerate(group["biases"]):
                # The half of the kernels that ignores the ends alternates between dilations.
                n_ignored = margin if (k >= _N_KERNELS // 2) != i % 2 else 0
                values = convolutions.by_kernel(k)[n_ignored : len(block) - n_ignored]
                is_above = values[None] > biases[:, None, None]  # (n_biases, n_steps, n)
                n_above = np.add.reduce(is_above, axis=1, dtype=np.int32)
                features.append(n_above / np.float32(len(values)))
        return np.concatenate(features).T


def _dilations(longest):
    """Return the distinct dilations for series of `longest` steps, and numbers of biases.

    Dilations grow exponentially, from 1 to the one at which a kernel is as long as the series.
    The number of a dilation's biases per kernel is proportional to the number of exponents that
    are rounded to it.
    """
    n_biases = round(_N_FEATURES / _N_KERNELS)
    max_exponent = np.log2(max(1, (longest - 1) / (_WIDTH - 1)))
    exponential = 2 ** np.linspace(0, max_exponent, min(n_biases, 32))
    dilations, counts = np.unique(exponential.astype(int), return_counts=True)
    return dilations, counts * n_biases // len(exponential)


def _draw_channels(n_channels, random_state):
    """Draw the channels that each kernel adds up: a mask (n_kernels, n_channels)."""
    # The number of channels is log-uniform, from one to all of them, and at most nine.
    max_exponent = np.log2(min(n_channels, _WIDTH) + 1)
    n_used = (2 ** random_state.uniform(0, max_exponent, (_N_KERNELS, 1))).astype(int)
    order = np.argsort(random_state.uniform(size=(_N_KERNELS, n_channels)), axis=1)
    return order < n_used


def _cached_convolutions(sequences, dilation, used):
    """Return a function of `i` that prepares the convolutions of the i-th series once."""
    return functools.cache(lambda i: _Convolutions(sequences[i][:, None], dilation, used))


def _quantile(values, level):
    """Compute a quantile as np.quantile does, which takes ten times as long for few numbers."""
    ordered = np.sort(values)
    position = level * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


class _Convolutions:
    """Convolutions of series of one length, (T, n, n_channels), by each kernel at a dilation.

    `used` (n_kernels, n_channels) is True for the channels that a kernel adds up.
    """

    # Numbers are added in one fixed order for each series, so that its features do not depend
    # on the other series: a count of values above a bias must not change with rounding.

    def __init__(self, block, dilation, used):
        """Store the series `block` (T, n, n_channels)."""
        self.block, self.dilation, self.used = block, dilation, used
        # If all kernels add up all channels, the shifted series are the same for all kernels.
        self.common_shifts = self._shifts(range(block.shape[2])) if used.all() else None

    def by_kernel(self, k):
        """Return the convolution by the k-th kernel, (T, n)."""
        shifts = self.common_shifts
        if shifts is None:
            shifts = self._shifts(np.flatnonzero(self.used[k]))
        shifted, total = shifts
        # The weights are 2 at a, b and c, and -1 elsewhere.
        a, b, c = _HIGH_POSITIONS[k]
        return 3 * (shifted[a] + shifted[b] + shifted[c]) - total

    def _shifts(self, channels):
        """Add up channels, and shift the sum to each of the nine positions of a kernel.

        Returns the shifted sums, a list of nine arrays (T, n), and their sum (T, n).
        """
        half_width, length = (_WIDTH - 1) // 2 * self.dilation, len(self.block)
        added = functools.reduce(np.add, (self.block[:, :, channel] for channel in channels))
        padded = np.pad(added, ((half_width, half_width), (0, 0)))
        shifted = [padded[j * self.dilation :][:length] for j in range(_WIDTH)]
        return shifted, functools.reduce(np.add, shifted)


@dataclass(frozen=True, eq=False)
class LeftOutRidge:
    """A ridge regression on standardised features, for several outputs."""

    center: np.ndarray  # (n_features,)
    scale: np.ndarray  # (n_features,)
    coef: np.ndarray  # (n_features, n_outputs)
    intercept: np.ndarray  # (n_outputs,)
    # Predictions are multiplied by the sharpness (n_outputs,). For classes it is the inverse
    # temperature that makes them logits, and for numbers it is 1.
    sharpness: np.ndarray

    def outputs(self, features):
        """Return predictions, or logits of classes; (n, n_outputs)."""
        predictions = (features - self.center) / self.scale @ self.coef + self.intercept
        return predictions.astype(np.float64) * self.sharpness


def fit_left_out_ridge(features, targets, weights, n_classes=None):
    """Fit a ridge regression with the penalty that has the smallest leave-one-out loss.

    Parameters
    ----------
    features : ndarray of shape (n_rows, n_features)
        They are standardised before the fit.
    targets : ndarray of shape (n_rows, n_columns)
        Numbers, or indicators (0 or 1) of the classes of all outputs, side by side.
    weights : ndarray of shape (n_rows,)
        Weights of the rows.
    n_classes : tuple of int, default=None
        Number of classes of each output, whose loss is the log-loss. None stands for numbers,
        whose loss is the squared error.

    Returns
    -------
    ridge : LeftOutRidge
        Fitted to all rows.
    left_out : ndarray of shape (n_rows, n_columns)
        Leave-one-out predictions or logits.
    """
    n_features, share = features.shape[1], (weights / weights.sum())[:, None]
    center = (share * features).sum(axis=0)
    scale = np.sqrt((share * (features - center) ** 2).sum(axis=0)) + 1e-6
    intercept = (share * targets).sum(axis=0)
    # Least squares with weights: rows are multiplied by the square roots of the weights. With
    # the singular value decomposition U S V', each penalty takes only matrix products.
    root = np.sqrt(weights / weights.mean())[:, None]
    u, s, vt = _thin_svd(root * (features - center) / scale)
    projected = u.T @ (root * (targets - intercept))
    min_loss = np.inf
    for penalty in np.logspace(-4, 1, 21) * n_features:
        shrinkage = s**2 / (s**2 + penalty)
        # The limit keeps the divisor positive for a row that is fitted exactly.
        leverage = np.minimum((u**2 @ shrinkage)[:, None] + share, 1 - 1e-6)
        residual = targets - intercept - u @ (shrinkage[:, None] * projected) / root
        left_out = targets - residual / (1 - leverage)
        sharpness, loss = _left_out_loss(left_out, targets, share, n_classes)
        if loss < min_loss:
            min_loss, best = loss, (shrinkage, sharpness, left_out * sharpness)
    shrinkage, sharpness, left_out = best
    coef = vt.T @ ((shrinkage / s)[:, None] * projected).astype(vt.dtype)
    return LeftOutRidge(center, scale, coef, intercept, sharpness), left_out


def _left_out_loss(left_out, targets, share, n_classes):
    """Return the sharpness (n_columns,) of leave-one-out predictions, and their mean loss.

    `left_out` and `targets` are (n_rows, n_columns). `share` (n_rows, 1) are the weights of
    rows, which sum to 1. Losses of several outputs are added up.
    """
    if n_classes is None:
        sharpness = np.ones(left_out.shape[1])
        return sharpness, float((share * (left_out - targets) ** 2).sum())
    factors, losses = [], []
    values_of_outputs = split_outputs(left_out, n_classes)
    indicators_of_outputs = split_outputs(targets, n_classes)
    for values, indicators in zip(values_of_outputs, indicators_of_outputs, strict=True):
        factor, loss = _sharpen(values, indicators, share[:, 0])
        factors.append(factor)
        losses.append(loss)
    return np.repeat(factors, n_classes), sum(losses)


def _thin_svd(matrix):
    """Compute U (n, r), s (r,) and V' (r, m), the thin singular value decomposition.

    It is computed from the eigenvectors of the smaller one of the two product matrices, which
    takes less time than an SVD.
    """
    if matrix.shape[0] > matrix.shape[1]:
        v, s, ut = _thin_svd(matrix.T)
        return ut.T, s.T, v.T
    eigenvalues, u = np.linalg.eigh((matrix @ matrix.T).astype(np.float64))
    is_nonzero = eigenvalues > max(eigenvalues[-1], 1e-300) * 1e-6  # the others are rounding
    u, s = u[:, is_nonzero], np.sqrt(eigenvalues[is_nonzero])
    return u, s, u.T.astype(matrix.dtype) @ matrix / s[:, None].astype(matrix.dtype)


def _sharpen(values, indicators, share):
    """Return the factor of leave-one-out values that minimises the log-loss, and this loss.

    `values` and `indicators` (n_rows, n_classes) are those of one output. `share` (n_rows,) are
    the weights of rows, which sum to 1. The loss of half a row, which belongs to all classes in
    equal parts, is added: without it, the factor of separable classes would be infinite.
    """

    def loss(log_sharpness):
        logs = log_softmax(np.exp(log_sharpness) * values, axis=1)
        return -share @ (indicators * logs).sum(axis=1) - 0.5 * logs.mean() / len(logs)

    minimum = minimize_scalar(loss, bounds=(-2, 5), method="bounded", options={"xatol": 0.02})
    return float(np.exp(minimum.x)), float(minimum.fun)


@dataclass(frozen=True, eq=False)
class SeriesBaseline:
    """Ridge regression on random convolutions of series."""

    convolutions: RandomConvolutions
    ridge: LeftOutRidge

    @classmethod
    def fit(cls, rows, targets, weights, loss, held_out, reader, random_state):
        """Fit as :meth:`TableBaseline.fit`, to SequenceRows of numbers, by least squares.

        Held-out rows are predicted by leave-one-out formulas, not by a second fit.
        """
        sequences = _series(rows)
        convolutions = RandomConvolutions.learn(sequences, random_state)
        if loss.n_classes is not None:
            pairs = zip(loss.n_classes, targets.T, strict=True)
            targets = np.hstack([np.eye(n)[positions] for n, positions in pairs])
        features = convolutions.features(sequences)
        ridge, left_out = fit_left_out_ridge(features, targets, weights, loss.n_classes)
        return cls(convolutions, ridge), left_out[held_out]

    def outputs(self, rows):
        """Return predictions, or logits of classes; (n_rows, n_columns)."""
        return self.ridge.outputs(self.convolutions.features(_series(rows)))


def _series(rows):
    """Split SequenceRows into arrays (T_i, n_channels); missing values become 0, the mean."""
    steps = np.nan_to_num(rows.steps)
    return np.split(steps, rows.starts[1:])
