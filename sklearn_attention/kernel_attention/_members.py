"""Learning members: each its own kernel, and the rows that judge it."""

import numpy as np
import torch

from ..attention import map_blocks
from ..nn import ViewKernel
from ..training import learn_attending, learn_solving, refine_attending
from ._blend import log_odds
from ._reader import Reader, solved_system
from ._solve_logistic import solve_logistic
from ._ways import FEW_ROWS, WAYS

# Rows that a kernel is learned from, at most: batches are drawn from them.
_MOST_LEARNED_FROM = 20_000
_JITTER = 0.3
# Log-odds vary by eight, before the rows are seen; what is too much the link takes back.
_LOG_ODDS_VARIANCE = 64.0
_LEAST_WEIGHT = 1e-6


def learn_members(memory, members, judged, *, n_steps, loss, fixed, done):
    """Learn members, and predict the rows that judge each without themselves.

    Parameters
    ----------
    memory : Memory
    members : list of dict
        With ``way``, ``seed`` and ``judge``, the position in `judged`.
    judged : list of ndarray
        Rows that a member does not learn from, unless they are all rows.
    n_steps : int
    loss : {"squared", "log"}
        Of the averages; "log" for indicators of classes.
    fixed : dict of str to ndarray
        Parameters of the kernel that are given rather than learned.
    done : callable
        Called after each member.

    Returns
    -------
    members : list of dict
        With the kernel's parameters, ``support``, ``slopes`` and, if solved,
        ``coefficients``: arrays, strings and numbers.
    left_out : list of ndarray
        Leave-one-out predictions of its rows by each member.
    """
    few = len(memory) <= FEW_ROWS

    def learned(member):
        rows = judged[member["judge"]]
        generator = torch.Generator().manual_seed(member["seed"])
        state, kernel = _learn(memory, member, rows, n_steps, loss, fixed, generator)

        def built():
            return _build(memory, state, kernel, rows, loss, fixed, generator)

        return built() if few else built

    found = []
    # A large system is solved by all threads, one member after the other.
    for result in map_blocks(learned, members, parallel=memory.device.type == "cpu"):
        found.append(result if few else result())
        done()
    return [state for state, _ in found], [left_out for _, left_out in found]


def _learn(memory, member, judged, n_steps, loss, fixed, generator):
    way = WAYS[member["way"]]
    rows = np.arange(len(memory))
    if len(judged) < len(memory):
        rows = np.setdiff1d(rows, judged)
    if len(rows) > _MOST_LEARNED_FROM:
        chosen = torch.randperm(len(rows), generator=generator)[:_MOST_LEARNED_FROM]
        rows = rows[chosen.numpy()]
    coordinates = memory.coordinates(memory.X[rows], torch.float32)
    kernel = ViewKernel.start(
        memory.features, [_variance(x).cpu() for x in coordinates],
        memory.X.shape[1], memory.kernel, jitter=_JITTER, generator=generator,
        constant=0.0 if "scale" in fixed else 1.0,
    ).to(torch.float32, memory.device)  # fmt: skip
    for name, value in fixed.items():
        kernel.parameters[name] = memory.tensor(value, torch.float32)
    state = member | {"slopes": memory.line_columns(rows)}
    weights = memory.tensor(memory.weights[rows], torch.float32)
    if way.reads == "solve":
        learn_solving(
            kernel, coordinates, memory.tensor(memory.targets[rows], torch.float32), weights,
            n_steps=n_steps, share=way.share, precision=way.precision, generator=generator,
            fixed=fixed,
        )  # fmt: skip
    elif "scale" not in fixed:
        learn_attending(
            kernel, coordinates, memory.tensor(memory.values[rows], torch.float32), weights,
            slopes=_line_coordinates(memory, state, rows), loss=loss, n_steps=n_steps,
            generator=generator, fixed=fixed,
        )  # fmt: skip
    return state | {"support": memory.support(way, generator)}, kernel


def _build(memory, state, kernel, judged, loss, fixed, generator):
    """What a way to read needs besides the kernel, and how it predicts what judges it."""
    way = WAYS[state["way"]]
    if way.reads == "solve":
        state = state | _parameters(kernel, fixed)
        if loss == "log" and len(state["support"]) == len(memory) <= FEW_ROWS:
            return _solve_log_odds(memory, state, judged)
        kernel = memory.view_kernel(state, memory.precision(way))
        system = solved_system(memory, state, kernel)
        left_out = system.left_out(torch.as_tensor(judged)).double().cpu().numpy()
        return state | {"coefficients": system.coefficients.cpu().numpy()}, left_out
    support = state["support"]
    if len(support) > 1:
        _refine(memory, state, kernel, judged, loss, fixed, generator)
    state = state | _parameters(kernel, fixed)
    own = np.minimum(np.searchsorted(support, judged), len(support) - 1)
    own = np.where(support[own] == judged, own, -1)
    return state, Reader(memory, state)(memory.X[judged], own)


def _solve_log_odds(memory, state, judged):
    """Kernel logistic regression of the indicators; noise enough for single precision."""
    double = memory.view_kernel(state, torch.float64)
    matrix = double.matrix(double.scaled(memory.coordinates(memory.X, torch.float64)))
    values = memory.tensor(memory.values, torch.float32)
    coefficients, left_out = solve_logistic(
        _LOG_ODDS_VARIANCE * matrix.float(), values,
        memory.tensor(np.maximum(memory.weights, _LEAST_WEIGHT), torch.float32),
        memory.tensor(log_odds(memory.mean), torch.float32), torch.as_tensor(judged),
    )  # fmt: skip
    coefficients = _LOG_ODDS_VARIANCE * coefficients.double().cpu().numpy()
    state = state | {"coefficients": coefficients, "log_odds": True}
    return state, left_out.double().cpu().numpy()


def _refine(memory, state, kernel, judged, loss, fixed, generator):
    support = state["support"]
    # Rows that judge the member do not choose its temperature, unless they are all rows.
    asked = np.flatnonzero(~np.isin(support, judged))
    refine_attending(
        kernel, memory.coordinates(memory.X[support], torch.float32),
        memory.tensor(memory.values[support], torch.float32),
        memory.tensor(memory.weights[support], torch.float32),
        slopes=_line_coordinates(memory, state, support), loss=loss,
        own=torch.as_tensor(asked if len(asked) else np.arange(len(support))),
        generator=generator, fixed=fixed,
    )  # fmt: skip


def _variance(x):
    return (x - x.mean(dim=0)).square().mean(dim=0)


def _line_coordinates(memory, state, rows):
    if WAYS[state["way"]].reads != "local_linear":
        return None
    return memory.line_coordinates(memory.X[rows], state["slopes"], torch.float32)


def _parameters(kernel, fixed):
    """The kernel's parameters as arrays; what was given as it was, in full precision."""
    learned = {name: value.cpu().numpy() for name, value in kernel.parameters.items()}
    return learned | fixed | {"constant": float(kernel.constant)}
