"""The baseline of series: ridge regression on random convolutions."""

import functools
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from .._labels import split_outputs

# Kernels have weight 2 at three of nine places, -1 at the others. Those of even number come
# first: they are computed at other times than the rest.
_WIDTH, _N_KERNELS, _N_FEATURES = 9, 84, 10_000
_PLACES = [places for first in (0, 1) for places in [*combinations(range(_WIDTH), 3)][first::2]]


@dataclass(frozen=True, eq=False)
class RandomConvolutions:
    """About 10 000 features of a series, as in MiniRocket (Dempster, Schmidt and Webb 2021)."""

    # A feature is the share of the time in which a convolution of the series, by one of 84
    # fixed kernels of 9 weights at increasing dilations, exceeds a quantile of the same
    # convolution of a training series. With several channels each kernel adds up a random few.

    # The parts are dicts: for each ``dilation`` the ``margin`` that half of the kernels leave
    # out, the channels that each kernel adds up, ``used`` (84, n_channels), and ``biases`` (84,
    # n_biases).

    parts: list

    @classmethod
    def of(cls, sequences, random_state):
        """Features whose quantiles are those of some series (T_i, n_channels)."""
        lengths, c = [*map(len, sequences)], sequences[0].shape[1]
        n_each = round(_N_FEATURES / _N_KERNELS)
        widest = np.log2(max(1, (max(lengths) - 1) / (_WIDTH - 1)))
        spread = 2 ** np.linspace(0, widest, min(n_each, 32))
        dilations, counts = np.unique(spread.astype(int), return_counts=True)
        golden, parts = (np.sqrt(5) + 1) / 2, []
        levels = np.arange(1, _N_KERNELS + 1) * golden
        for dilation, n_biases in zip(dilations, counts * n_each // len(spread), strict=True):
            # One channel, all of them, or any number between.
            most = np.log2(min(c, _WIDTH) + 1)
            n_used = (2 ** random_state.uniform(0, most, (_N_KERNELS, 1))).astype(int)
            order = np.argsort(random_state.uniform(size=(_N_KERNELS, c)), axis=1)
            used = order < n_used
            biases = np.empty((_N_KERNELS, n_biases), dtype=np.float32)
            convolved = _convolving(sequences, dilation, used)
            for j in range(n_biases):
                drawn = random_state.randint(len(sequences), size=_N_KERNELS)
                for k, (i, level) in enumerate(zip(drawn, levels % 1, strict=True)):
                    biases[k, j] = _quantile(convolved(i).by(k)[:, 0], level)
                levels = levels + _N_KERNELS * golden
            # Half of the kernels see whole windows only, where all series have some.
            margin = int(4 * dilation * (min(lengths) > 8 * dilation))
            part = {"dilation": int(dilation), "margin": margin, "used": used, "biases": biases}
            parts.append(part)
        return cls(parts)

    def features(self, sequences):
        """Features of series (T_i, n_channels) of float32; (n, n_features)."""
        lengths = np.array([len(sequence) for sequence in sequences])
        n_features = sum(part["biases"].size for part in self.parts)
        found = np.empty((len(sequences), n_features), dtype=np.float32)
        for length in np.unique(lengths):
            own = np.flatnonzero(lengths == length)
            # Two million numbers are convolved at once.
            for some in np.array_split(own, -(-len(own) * length * _N_KERNELS // 2**21)):
                found[some] = self._shares(np.stack([sequences[i] for i in some], axis=1))
        return found

    def _shares(self, block):
        """(n, n_features) of series of one length, (T, n, channels)."""
        found = []
        for i, part in enumerate(self.parts):
            convolved = _Convolved(block, part["dilation"], part["used"])
            margin = part["margin"] * (len(block) > 2 * part["margin"])
            for k, biases in enumerate(part["biases"]):
                cut = margin if (k >= _N_KERNELS // 2) != i % 2 else 0
                seen = convolved.by(k)[cut : len(block) - cut]
                above = seen[None] > biases[:, None, None]
                found.append(
                    np.add.reduce(above, axis=1, dtype=np.int32) / np.float32(len(seen))
                )
        return np.concatenate(found).T


def _convolving(sequences, dilation, used):
    """A function of a position, which convolves the series there once."""
    return functools.cache(lambda i: _Convolved(sequences[i][:, None], dilation, used))


def _quantile(values, level):
    """As np.quantile, which takes ten times as long for few numbers."""
    ordered = np.sort(values)
    place = level * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


class _Convolved:
    """Series of one length, (T, n, channels), convolved kernel by kernel."""

    # Sums are element by element in one order, so that results do not depend on the other
    # series: rounding must not change counts of values above a bias that some series attain.

    def __init__(self, block, dilation, used):
        self.block, self.dilation, self.used = block, dilation, used
        self.whole = used.all()
        self.shifted = self._shifted(range(block.shape[2])) if self.whole else None

    def by(self, k):
        """The convolution by kernel number `k`, (T, n)."""
        shifted = self.shifted if self.whole else self._shifted(np.flatnonzero(self.used[k]))
        (a, b, c), total = _PLACES[k], shifted[-1]
        return 3 * (shifted[a] + shifted[b] + shifted[c]) - total

    def _shifted(self, channels):
        """The series at each of the nine places, (T, n) each, and the sum of all."""
        reach, length = (_WIDTH - 1) // 2 * self.dilation, len(self.block)
        added = functools.reduce(np.add, (self.block[:, :, channel] for channel in channels))
        wide = np.pad(added, ((reach, reach), (0, 0)))
        places = [wide[j * self.dilation :][:length] for j in range(_WIDTH)]
        return [*places, functools.reduce(np.add, places)]


@dataclass(frozen=True, eq=False)
class LeftOutRidge:
    """Linear predictions from standardised features, (n_features, n_outputs).

    They are multiplied by the sharpness to be logits, by 1 for numbers.
    """

    center: np.ndarray
    scale: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    sharpness: np.ndarray

    def outputs(self, features):
        """Predictions, or logits of classes; (n, n_outputs)."""
        found = (features - self.center) / self.scale @ self.coef + self.intercept
        return found.astype(np.float64) * self.sharpness


def fit_left_out_ridge(features, targets, weights, n_classes=None):
    """Ridge regression of the least left-out loss, and left-out outputs (n, n_outputs)."""
    # Targets of classes are the indicators of the outputs, side by side; predictions then
    # become logits, and their loss is the log-loss. Otherwise it is the squared error.
    m, share = features.shape[1], (weights / weights.sum())[:, None]
    center = (share * features).sum(axis=0)
    scale = np.sqrt((share * (features - center) ** 2).sum(axis=0)) + 1e-6
    prior = (share * targets).sum(axis=0)
    root = np.sqrt(weights / weights.mean())[:, None]
    u, s, vt = _thin_svd(root * (features - center) / scale)
    seen, best = u.T @ (root * (targets - prior)), (np.inf,)
    for penalty in np.logspace(-4, 1, 21) * m:
        kept = s**2 / (s**2 + penalty)
        # A row that counts only as itself would have no left-out prediction.
        leverage = np.minimum((u**2 @ kept)[:, None] + share, 1 - 1e-6)
        residual = targets - prior - u @ (kept[:, None] * seen) / root
        left_out = targets - residual / (1 - leverage)
        sharpness, loss = np.ones(len(prior)), float((share * (left_out - targets) ** 2).sum())
        if n_classes is not None:
            parts = (split_outputs(part, n_classes) for part in (left_out, targets))
            found = [_sharpen(*pair, share[:, 0]) for pair in zip(*parts, strict=True)]
            factors, losses = zip(*found, strict=True)
            sharpness, loss = np.repeat(factors, n_classes), sum(losses)
        if loss < best[0]:
            best = loss, kept, sharpness, left_out * sharpness
    _, kept, sharpness, left_out = best
    coef = vt.T @ ((kept / s)[:, None] * seen).astype(vt.dtype)
    return LeftOutRidge(center, scale, coef, prior, sharpness), left_out


def _thin_svd(rows):
    """Singular value decomposition by the smaller matrix of products, which is fast."""
    if rows.shape[0] > rows.shape[1]:
        return tuple(part.T for part in _thin_svd(rows.T))[::-1]
    squares, u = np.linalg.eigh((rows @ rows.T).astype(np.float64))
    kept = squares > max(squares[-1], 1e-300) * 1e-6  # the others are rounding
    u, s = u[:, kept], np.sqrt(squares[kept])
    return u, s, u.T.astype(rows.dtype) @ rows / s[:, None].astype(rows.dtype)


def _sharpen(values, indicators, share):
    """The factor that makes left-out values the best logits of one output, and their loss.

    Half a row of all classes alike is added, without which the factor could grow for ever.
    """

    def loss(log_sharpness):
        logs = log_softmax(np.exp(log_sharpness) * values, axis=1)
        return -share @ (indicators * logs).sum(axis=1) - 0.5 * logs.mean() / len(logs)

    found = minimize_scalar(loss, bounds=(-2, 5), method="bounded", options={"xatol": 0.02})
    return float(np.exp(found.x)), float(found.fun)


@dataclass(frozen=True, eq=False)
class SeriesBaseline:
    """Ridge regression on random convolutions of series."""

    convolutions: RandomConvolutions
    ridge: LeftOutRidge

    @classmethod
    def fit(cls, rows, targets, weights, loss, held_out, reader, random_state):
        """As for :class:`TableBaseline`, of SequenceRows; the loss is least squares."""
        sequences = _series(rows)
        convolutions = RandomConvolutions.of(sequences, random_state)
        if loss.n_classes is not None:
            pairs = zip(loss.n_classes, targets.T, strict=True)
            targets = np.hstack([np.eye(n)[own] for n, own in pairs])
        features = convolutions.features(sequences)
        ridge, left_out = fit_left_out_ridge(features, targets, weights, loss.n_classes)
        return cls(convolutions, ridge), left_out[held_out]

    def outputs(self, rows):
        """Predictions, or logits of classes; (n_rows, n_outputs)."""
        return self.ridge.outputs(self.convolutions.features(_series(rows)))


def _series(rows):
    """Series as arrays of numbers, means in the place of missing values."""
    steps = np.nan_to_num(rows.steps)
    return np.split(steps, rows.starts[1:])
