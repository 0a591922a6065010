"""Members: what a kernel is learned for, from which batches, and how rows are read with it."""

from dataclasses import dataclass

import numpy as np

from ._averages import AverageMember, AveragePairs, LocalLines
from ._batches import PatchBatches, RandomBatches
from ._descend import descend
from ._kernel import LearnedKernel, Pairs
from ._leave_one_out import leave_one_out
from ._ridge import RidgeMember

# Up to so many rows members are learned on batches drawn at random, and in several ways.
FEW_ROWS = 2500
# Rows that a kernel is learned from, at most.
_MOST_LEARNED_FROM = 20_000
_JITTER = 0.3
# Deviations of a feature's columns from its scale are normal with this precision before the
# rows are seen.
_COLUMN_PRECISION = 0.05
_SAMPLED = 4000


@dataclass(frozen=True)
class KernelRidge:
    """Kernel ridge regression, learned by its exact leave-one-out errors.

    Parameters
    ----------
    batch : int
        Largest number of rows in a batch.
    share : float
        Largest share of the rows in a batch.
    rate : float
    n_steps : int
        Unless the user says otherwise.
    precision : float
        How firmly scales are held where they start.
    noise : float
        To start with.
    rough, linear, constant : bool
        Parts of the kernel.
    most_at_random : int
        Rows up to which batches are drawn at random from all of them; beyond, in patches.
    """

    batch: int = 512
    share: float = 0.8
    rate: float = 0.2
    n_steps: int = 20
    precision: float = 0.0
    noise: float = 0.1
    rough: bool = True
    linear: bool = False
    constant: bool = True
    most_at_random: int = FEW_ROWS

    def fit(self, training, judged, loss, rng, options):
        """Learn the kernel from all rows but those judged, and solve with all rows.

        Parameters
        ----------
        training : TrainingRows
        judged : ndarray of int
        loss : callable
            See :class:`SquaredLoss`.
        rng : numpy.random.Generator
        options : Options

        Returns
        -------
        member : RidgeMember
        left_out : ndarray of shape (n_judged, n_outputs)
        """
        batch = _Learning(training, judged, rng)
        kernel = LearnedKernel.start(
            training.features, batch.variances, training.X.shape[1], options.formula, rng,
            jitter=_JITTER, constant=float(self.constant and options.learns),
            rough=self.rough and options.learns, linear=self.linear and options.learns,
            noise=self.noise,
        )  # fmt: skip
        kernel, free = options.fix(kernel)
        if free.any():
            size = max(2, min(self.batch, int(self.share * len(batch.rows))))
            many = len(training) > self.most_at_random
            draw = PatchBatches(batch.coordinates, rng) if many else RandomBatches(
                len(batch.rows), size, rng
            )  # fmt: skip
            start = kernel
            n_steps = options.n_steps(self.n_steps)

            def gradient_at(kernel):
                rows, n_judged = draw.draw(kernel)
                dtype = kernel.precision
                targets, weights = batch.targets[rows].astype(dtype), batch.weights[rows]
                counted = np.where(np.arange(len(rows)) < n_judged, weights, 0)
                counted = counted / counted.sum()
                gradient = leave_one_out(
                    Pairs(kernel, [z[rows].astype(dtype) for z in batch.coordinates]),
                    targets, weights,
                    lambda errors: loss(errors, targets, counted),
                )[1]  # fmt: skip
                named, values = kernel.named(gradient), kernel.named()
                named["deviation"] += 2 * _COLUMN_PRECISION * values["deviation"] / len(rows)
                held = values["scale"] - start.named()["scale"]
                named["scale"] += 2 * self.precision * held / len(rows)
                return gradient

            kernel = descend(kernel, gradient_at, n_steps, self.rate, free)
        return RidgeMember.fit(kernel, training, rng, judged)


# Rows that averages are taken over: for a prediction, and to learn from.
_MOST_AVERAGED, _KEYS, _QUERIES = 50_000, 2048, 256
_AVERAGE_RATE, _AVERAGE_STEPS = 0.1, 80
# Features along which local lines run, at most: their moments are as many squared.
_MOST_SLOPES = 16
# Where there are more keys than learned from, nearer ones do: logarithms of what scales are
# multiplied by, on trial.
_SHARPER = (0.0, 0.15, 0.3, 0.45, 0.6, 0.8)


@dataclass(frozen=True)
class LocalAverage:
    """Weighted averages, or local lines, learned by their leave-one-out errors.

    Parameters
    ----------
    lines : bool
    """

    lines: bool = False

    def fit(self, training, judged, loss, rng, options):
        """Learn the kernel from all rows but those judged; see :class:`KernelRidge`."""
        batch = _Learning(training, judged, rng)
        kernel = LearnedKernel.start(
            training.features, batch.variances, training.X.shape[1], options.formula, rng,
            jitter=_JITTER, constant=0.0, rough=False, noise=1.0,
        )  # fmt: skip
        kernel, free = options.fix(kernel)
        free[-1] &= self.lines
        columns = self._columns(training, batch)
        if free.any():

            def gradient_at(kernel):
                keys = rng.permutation(len(batch.rows))[:_KEYS]
                own = rng.permutation(len(keys))[:_QUERIES]
                return _average_gradient(kernel, batch, columns, keys, own, loss)

            n_steps = options.n_steps(_AVERAGE_STEPS)
            kernel = descend(kernel, gradient_at, n_steps, _AVERAGE_RATE, free)
        support = np.arange(len(training))
        if len(training) > _MOST_AVERAGED:
            chosen = rng.choice(len(training), _MOST_AVERAGED, replace=False)
            support = np.union1d(chosen, judged)
        member = AverageMember(kernel, support, columns)
        if options.learns and len(support) > _KEYS:
            member = _sharpen(member, training, batch.rows, loss, rng)
        own = np.searchsorted(support, judged)
        own = own if len(support) > 1 else np.full(len(judged), -1)
        return member, member.predict(training, training.X[judged], own)

    def _columns(self, training, batch):
        """Columns of numbers along which lines run: those that go with the targets most."""
        standard = training.encodings[0]
        n_numbers = len(standard.center) if self.lines else 0
        if n_numbers <= _MOST_SLOPES:
            return np.arange(n_numbers)
        x, y = batch.coordinates[0][:, :n_numbers], batch.targets
        y = y - y.mean(axis=0)
        size = np.abs(x.T @ y).max(axis=1) / np.sqrt(np.square(x).sum(axis=0) + 1e-30)
        return np.sort(np.argsort(-size, kind="stable")[:_MOST_SLOPES])


@dataclass(frozen=True)
class Options:
    """Wishes of the user for every member.

    Parameters
    ----------
    formula : RadialKernel
    max_steps : int or "auto"
    scales : ndarray of shape (n_features,) or None
        Logarithms of inverse length-scales that are given; None to learn them.
    ridge : float or None
        What is given for it; None to learn it.
    """

    formula: object
    max_steps: object = "auto"
    scales: object = None
    ridge: object = None

    @property
    def learns(self):
        """Whether length-scales are learned."""
        return self.scales is None

    def n_steps(self, usual):
        """Number of steps."""
        return usual if self.max_steps == "auto" else int(self.max_steps)

    def fix(self, kernel):
        """The kernel with what is given, and which of its parameters are to be learned."""
        free, values = kernel.is_learned, kernel.values.copy()
        if self.scales is not None:
            free[:-1] = False
            kernel.named(values)["scale"][:] = self.scales
        if self.ridge is not None:
            free[-1] = False
            with np.errstate(divide="ignore"):
                values[-1] = 0.5 * np.log(self.ridge)
        return kernel.with_values(values), free


class _Learning:
    """Rows that a kernel is learned from: in single precision, without those judged."""

    def __init__(self, training, judged, rng):
        rows = np.arange(len(training))
        if len(judged) < len(training):
            rows = np.setdiff1d(rows, judged)
        if len(rows) > _MOST_LEARNED_FROM:
            rows = np.sort(rng.choice(rows, _MOST_LEARNED_FROM, replace=False))
        self.rows = rows
        self.coordinates = training.coordinates(rows, np.float32)
        self.targets = training.targets[rows].astype(np.float32)
        self.weights = training.weights[rows].astype(np.float32)
        self.variances = [z[:_SAMPLED].var(axis=0, dtype=np.float64) for z in self.coordinates]


def _average_gradient(kernel, batch, columns, keys, own, loss):
    at_keys = [z[keys] for z in batch.coordinates]
    at_queries = [z[own] for z in at_keys]
    targets, weights = batch.targets[keys], batch.weights[keys]
    left = own if len(keys) > 1 else None
    pairs = AveragePairs(kernel, at_queries, at_keys, weights, left)
    lines = LocalLines(
        pairs.weights, targets, at_queries[0][:, columns], at_keys[0][:, columns], kernel.noise
    )
    counted = weights[own] / weights[own].sum()
    slopes = -loss(targets[own] - lines.predictions, targets[own], counted)[1]
    gradient = pairs.gradient(lines.pull(slopes))
    gradient[-1] = 2 * kernel.noise * lines.ridge_slope(slopes)
    deviation = kernel.named()["deviation"]
    kernel.named(gradient)["deviation"] += 2 * _COLUMN_PRECISION * deviation / len(batch.rows)
    return gradient


def _sharpen(member, training, learned_from, loss, rng):
    """The member at the best of some temperatures, on rows that it has learned from."""
    known = np.intersect1d(learned_from, member.rows)
    asked = rng.choice(known, min(len(known), _QUERIES), replace=False)
    own = np.searchsorted(member.rows, asked)
    targets, weights = training.targets[asked], training.weights[asked]
    found = []
    for sharper in _SHARPER:
        values = member.kernel.values.copy()
        member.kernel.named(values)["scale"][:] += sharper
        trial = AverageMember(member.kernel.with_values(values), member.rows, member.columns)
        errors = targets - trial.predict(training, training.X[asked], own)
        found.append((loss(errors, targets, weights / weights.sum())[0], sharper, trial))
    return min(found, key=lambda trial: trial[:2])[2]
