"""Learning length-scales: by leave-one-out errors on batches, of either way to read."""

import torch

from ..nn import leave_one_out_errors, local_average, without_own
from ._descend import descend

# Rows solved in a step. Where there are more rows, a batch is made of anchors, each with its
# nearest rows, and of rows at random: rows far from one another would never show how far
# apart rows may be. The loss then is that of the anchors.
_BATCH, _ANCHORS, _NEIGHBORS = 512, 128, 3
# Deviations of a feature's columns from its scale, and scales from their start, are normal
# with these precisions before the rows are seen.
_COLUMN_PRECISION = 0.05
# Noise that rounding makes, as a share of the diagonal.
_LEAST_NOISE = 1e-5
# Rows of less weight have too much noise to be told in single precision.
_LEAST_WEIGHT = 1e-6
_QUERIES, _KEYS = 128, 2048
_REFINE_STEPS, _REFINE_QUERIES, _REFINE_PAIRS = 25, 256, 2**20
# One row must not decide where the descent goes: neither by a large error nor by a
# probability of almost 0.
_LARGEST_SQUARE, _LEAST_PROBABILITY = 25.0, 1e-3
_SOLVING_RATE, _ATTENDING_RATE, _REFINE_RATE = 0.1, 0.05, 0.15


def learn_solving(
    kernel, rows, targets, weights, *, n_steps, share, precision, generator, fixed=()
):
    """Learn a kernel by the leave-one-out errors of its interpolation.

    Parameters
    ----------
    kernel : ViewKernel
        Its scales, amplitudes and noise change in place.
    rows : list of Tensor
        Coordinates for each head.
    targets : Tensor of shape (n, n_outputs)
        Of about unit variance.
    weights : Tensor of shape (n,)
        Of mean 1.
    n_steps : int
    share : float
        Largest share of the rows in a batch.
    precision : float
        How firmly the scales are held where they start.
    generator : torch.Generator
    fixed : collection of str, default=()
        Parameters of the kernel that stay what they are.
    """
    n = len(targets)
    size = max(2, min(_BATCH, int(share * n)))
    start = kernel.parameters["scale"].clone()
    learned = _learned(kernel, ("scale", "column", "amplitude", "noise"), fixed)
    dtype = targets.dtype
    near = n > 4 * _BATCH

    def errors_of(batch):
        matrix = kernel.matrix(kernel.scaled([x[batch].to(dtype) for x in rows]))
        known = weights[batch].clamp_min(_LEAST_WEIGHT)
        noise = torch.exp(2 * kernel.parameters["noise"]) / known
        noise = noise + _LEAST_NOISE * float(matrix.detach().diagonal().mean())
        return leave_one_out_errors(matrix + torch.diag(noise), targets[batch].to(dtype))

    def loss_at(step):
        nonlocal dtype
        draw = _local_batch if near else _random_batch
        batch = draw(kernel, rows, size, generator)
        try:
            errors = errors_of(batch)
        except torch.linalg.LinAlgError:
            # Length-scales so different that single precision loses the small distances.
            dtype = torch.float64
            errors = errors_of(batch)
        judged = slice(0, _ANCHORS) if near else slice(None)
        squared = errors[judged].square().mean(1)
        loss = (weights[batch][judged] * squared).sum() / weights[batch][judged].sum()
        held = _COLUMN_PRECISION * kernel.parameters["column"].square().sum()
        held = held + precision * (kernel.parameters["scale"] - start).square().sum()
        return loss + held / size

    descend(learned, loss_at, n_steps, _SOLVING_RATE)


def learn_attending(
    kernel, rows, targets, weights, *, slopes=None, loss="squared", n_steps, generator, fixed=()
):
    """Learn a kernel by the leave-one-out errors of the average that it weights.

    Parameters
    ----------
    kernel, rows, targets, weights, n_steps, generator, fixed
        As for :func:`learn_solving`.
    slopes : Tensor of shape (n, n_slopes), default=None
        Coordinates along which local lines run; None for averages.
    loss : {"squared", "log"}, default="squared"
        "log" for targets that are indicators of classes.
    """
    n = len(targets)
    log_weights = torch.log(weights)
    lines = ("ridge",) if slopes is not None else ()
    learned = _learned(kernel, ("scale", "column", "amplitude", *lines), fixed)

    def loss_at(step):
        keys = _random(n, _KEYS, generator)
        own = _random(len(keys), _QUERIES, generator)
        queries = keys[own]
        scaled = kernel.scaled([x[keys] for x in rows])
        read = _read(
            kernel, kernel.distances([x[own] for x in scaled], scaled), targets[keys],
            log_weights[keys], own,
            None if slopes is None else slopes[queries],
            None if slopes is None else slopes[keys],
        )  # fmt: skip
        held = _COLUMN_PRECISION * kernel.parameters["column"].square().sum() / n
        return _loss(read, targets[queries], weights[queries], loss) + held

    descend(learned, loss_at, n_steps, _ATTENDING_RATE)


def refine_attending(
    kernel, rows, targets, weights, *, slopes=None, loss="squared", own, generator, fixed=()
):
    """Fit temperature and amplitude of every head, and the ridge, to all keys at once.

    What was learned from few keys looks too far.

    Parameters
    ----------
    kernel, rows, targets, weights, slopes, loss, generator, fixed
        As for :func:`learn_attending`; the rows are all keys.
    own : LongTensor of shape (n_queries,)
        Keys that may be asked for.
    """
    # Where there are more keys than learned from, nearer ones do: down to about 0.6 times.
    shift = kernel.parameters["scale"].new_full((kernel.n_heads, 1), 0.5)
    if "scale" in fixed:
        shift.zero_()
    start = kernel.parameters["scale"]
    with torch.no_grad():
        scaled = kernel.scaled(rows)
    log_weights = torch.log(weights)
    n_queries = max(16, min(_REFINE_QUERIES, _REFINE_PAIRS // len(targets)))
    lines = ("ridge",) if slopes is not None else ()
    learned = _learned(kernel, ("amplitude", *lines), fixed)
    learned += [] if "scale" in fixed else [shift]

    def loss_at(step):
        queries = own[_random(len(own), n_queries, generator)]
        with torch.no_grad():
            squared = kernel.distances([x[queries] for x in scaled], scaled)
        squared = [d * torch.exp(2 * s) for d, s in zip(squared, shift, strict=True)]
        read = _read(
            kernel, squared, targets, log_weights, queries,
            None if slopes is None else slopes[queries], slopes,
        )  # fmt: skip
        return _loss(read, targets[queries], weights[queries], loss)

    descend(learned, loss_at, _REFINE_STEPS, _REFINE_RATE)
    kernel.parameters["scale"] = start + shift


def _learned(kernel, names, fixed):
    return [kernel.parameters[name] for name in names if name not in fixed]


def _read(kernel, squared, values, log_weights, own, at_queries, at_keys):
    logits = without_own(kernel.log_sum(squared) + log_weights, own)
    # A compact kernel may reach nobody: such a query says nothing about the scales.
    nobody = torch.isneginf(logits).all(1, keepdim=True)
    weights = torch.softmax(logits.masked_fill(nobody, 0.0), dim=1) * ~nobody
    ridge = torch.exp(kernel.parameters["ridge"])
    return local_average(weights, values, at_queries, at_keys, ridge)[0]


def _loss(read, targets, weights, loss):
    if loss == "log":
        each = -(targets * torch.log(read.clamp_min(_LEAST_PROBABILITY))).sum(1)
    else:
        each = (read - targets).square().clamp_max(_LARGEST_SQUARE).mean(1)
    return (weights * each).sum() / weights.sum()


def _random_batch(kernel, rows, size, generator):
    return _random(len(rows[0]), size, generator)


def _random(n, size, generator):
    rows = torch.randperm(n, generator=generator)
    return rows[:size] if size < n else rows


@torch.no_grad()
def _local_batch(kernel, rows, size, generator):
    """Anchors first, then the rows nearest to each, then others at random."""
    shuffled = torch.randperm(len(rows[0]), generator=generator)
    anchors = shuffled[:_ANCHORS]
    scaled = kernel.scaled(rows)
    likeness = kernel.matrix([x[anchors] for x in scaled], scaled)
    likeness[:, anchors] = -torch.inf
    near = torch.unique(likeness.topk(_NEIGHBORS, dim=1).indices).cpu()
    taken = torch.zeros(len(shuffled), dtype=torch.bool)
    taken[anchors] = taken[near] = True
    others = shuffled[~taken[shuffled]]
    return torch.cat([anchors, near, others])[:size]
