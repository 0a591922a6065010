"""A glance at many bandwidths: one feature, counted into bins."""

import numpy as np
import torch
from scipy import fft

from .._blocks import blocks
from ._leave_one_out import Scores
from ._polynomial import solve
from ._threads import one_thread_per_operation

# Kernels narrower than this many bins are not what the bins make of them.
_NARROW = 2
_SCALES_AT_ONCE = 20


def binned_scores(x, values, kernel, scales, sample_weight=None, *, degree=0, n_bins=2048):
    """Leave-one-out errors of a smoother of a single feature, approximately.

    Rows are shared between the two nearest of `n_bins` places, where sums of weights are
    convolutions [1]_: dozens of bandwidths take the time of one exact pass.

    Parameters
    ----------
    x : ndarray of shape (n_samples,)
        The feature.
    values : ndarray of shape (n_samples, n_values)
        Values of the rows.
    kernel : RadialKernel
        A positive kernel.
    scales : ndarray of shape (n_scales,)
        Bandwidths.
    sample_weight : ndarray of shape (n_samples,), default=None
        Positive weights of rows and of errors.
    degree : {0, 1, 2}, default=0
        Degree of the local polynomials.
    n_bins : int, default=2048
        Number of places.

    Returns
    -------
    scores : Scores
        Infinite where a row has no neighbour or the kernel is narrower than two bins.

    References
    ----------
    .. [1] Fan, J. and Marron, J. S. (1994). Fast implementations of nonparametric curve
       estimators. Journal of Computational and Graphical Statistics 3, 35-56.
    """
    weight = np.ones(len(x)) if sample_weight is None else sample_weight
    values = values - np.average(values, axis=0, weights=weight)
    step = np.ptp(x) / (n_bins - 1) or 1.0
    place = (x - x.min()) / step
    left = np.minimum(place.astype(int), n_bins - 2)
    share = place - left
    columns = np.column_stack([np.ones(len(x)), values]) * weight[:, None]
    binned = [
        np.bincount(left, column * (1 - share), n_bins)
        + np.bincount(left + 1, column * share, n_bins)
        for column in columns.T
    ]
    length = fft.next_fast_len(2 * n_bins)
    transformed = fft.rfft(np.array(binned), length)
    lags = np.arange(length, dtype=np.float64)
    lags = np.where(lags > n_bins, lags - length, lags) * step
    extent = np.sqrt(np.average((x - np.average(x, weights=weight)) ** 2, weights=weight))
    extent = extent if extent > 0 else np.inf
    places = _Places(place, values, weight, n_bins)
    found = []
    for part in blocks(len(scales), _SCALES_AT_ONCE):
        u = lags / scales[part, None]
        lagged = kernel.profile(u**2)
        # A lag is where the row lies behind the bin: terms are of where it lies before.
        unit = np.minimum(kernel.spread, extent / scales[part, None])
        powers = [(-u / unit) ** k for k in range(2 * degree + 1)]
        sums = [
            fft.irfft(
                transformed[: None if k <= degree else 1, None] * fft.rfft(lagged * power),
                length,
            )[:, :, :n_bins]
            for k, power in enumerate(powers)
        ]
        found.append(places.score(sums, lagged))
    found = np.concatenate(found, axis=1)
    return Scores(*np.where(scales > _NARROW * step / kernel.spread, found, np.inf))


class _Places:
    """Rows of one bin as one place: their number, weight, mean and squares about it."""

    def __init__(self, place, values, weight, n_bins):
        bins = np.rint(place).astype(int)
        count = np.bincount(bins)
        used = count > 0
        self.weight = np.bincount(bins, weight)[used]
        self.own = self.weight / count[used]
        totals = [np.bincount(bins, weight * column)[used] for column in values.T]
        squares = [np.bincount(bins, weight * column**2)[used] for column in values.T]
        self.mean = np.array(totals) / self.weight
        self.within = np.sum(squares - self.mean**2 * self.weight, axis=0)
        middle = np.bincount(bins, weight * place)[used] / self.weight
        self.left = np.minimum(middle.astype(int), n_bins - 2)
        self.share = middle - self.left

    def score(self, sums, lagged):
        """Errors and trace for each scale, from sums at the bins: (3, n_scales)."""
        left, share = self.left, self.share
        here = [part[:, :, left] * (1 - share) + part[:, :, left + 1] * share for part in sums]
        own = np.outer(lagged[:, 0], (1 - share) ** 2 + share**2)
        own += np.outer(lagged[:, 1], 2 * share * (1 - share))
        with np.errstate(divide="ignore", invalid="ignore"):
            prediction, effect = _fit(here)
            leverage = effect * own * self.own / here[0][0]
            rest = 1 - leverage
            # What is left of the convolution's rounding is no weight.
            seen = (rest > 1e-9).all(axis=1)
            between = np.sum((prediction - self.mean[:, None]) ** 2, axis=0)
            squares = self.within + self.weight * between
            total = len(self.mean) * self.weight.sum()
            fitted = np.sum(squares, axis=1) / total
            left_out = np.sum(squares / rest**2, axis=1) / total
            trace = np.sum(leverage * self.weight / self.own, axis=1)
        return np.where(seen, [left_out, fitted, trace], np.inf)


def _fit(sums):
    """Predictions at all places, and what leverages are multiplied by, from moments.

    Parameters
    ----------
    sums : list of ndarray of shape (1 + n_values or 1, n_scales, n_places)
        Sums of weights times the k-th power of the local coordinate, and of these times
        the values.
    """
    degree = len(sums) // 2
    if degree == 0:
        return sums[0][1:] / sums[0][0], 1.0
    averages = [torch.as_tensor(part / sums[0][0]) for part in sums]
    size = range(degree + 1)
    gram = torch.stack([averages[i + j][0] for i in size for j in size], dim=-1)
    cross = torch.stack([averages[i][1:] for i in size], dim=-1).movedim(0, -1)
    known = torch.isfinite(gram).all(dim=-1)
    gram = torch.where(known[..., None], gram, 1.0).flatten(0, 1)
    with one_thread_per_operation():
        solution = solve(gram.reshape(-1, degree + 1, degree + 1), cross.flatten(0, 1))
    effect = 1 + (solution.pull * solution.mean).sum(dim=1)
    value = torch.where(known[..., None], solution.value.reshape(*known.shape, -1), torch.nan)
    return value.movedim(-1, 0).numpy(), effect.reshape(known.shape).numpy()
