"""Features of series: how often what random convolutions see is large."""

import functools
from dataclasses import dataclass
from itertools import combinations

import numpy as np

# Kernels have weight 2 at three of nine places, -1 at the others. Those of even number come
# first: they are computed at other times than the rest.
_WIDTH = 9
_PLACES = [*combinations(range(_WIDTH), 3)]
_PLACES = [*_PLACES[::2], *_PLACES[1::2]]
_N_KERNELS = len(_PLACES)
_N_FEATURES, _MOST_DILATIONS = 10_000, 32
# Numbers that are convolved at once.
_BLOCK = 2**21
_GOLDEN = (np.sqrt(5) + 1) / 2


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
        spread = 2 ** np.linspace(0, widest, min(n_each, _MOST_DILATIONS))
        dilations, counts = np.unique(spread.astype(int), return_counts=True)
        levels, parts = np.arange(1, _N_KERNELS + 1) * _GOLDEN, []
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
                levels = levels + _N_KERNELS * _GOLDEN
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
            for some in np.array_split(own, -(-len(own) * length * _N_KERNELS // _BLOCK)):
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
