"""From the parameter `bandwidth` to numbers."""

import warnings

import numpy as np

from .._validation import check_choice
from ..bandwidth import (
    RULES,
    SMOOTHER_CRITERIA,
    AdaptiveBandwidth,
    check_neighbors,
    feature_spread,
    mixed_rule_bandwidth,
    plug_in_bandwidth,
    select_bandwidth,
    select_bandwidths,
    select_neighbors,
)
from ..kernels import mixed_kernel

CHOICES = ("knn-loo", "plug-in", *RULES, *SMOOTHER_CRITERIA)


def choose_bandwidth(estimator, kernel):
    """Choose the bandwidth of an estimator for the rows it remembers.

    Sets ``bandwidth_`` and ``kernel_``, and what else the way of choosing tells:
    ``criterion_value_``, ``bandwidth_search_``, ``relevance_``, ``n_neighbors_``.

    Parameters
    ----------
    estimator : MemoryEstimator
        With keys, values and their weights.
    kernel : Kernel
        Of the numeric columns.
    """
    rule = estimator.bandwidth
    searches = isinstance(rule, str) and rule in (*SMOOTHER_CRITERIA, "knn-loo")
    # How many bandwidths a search tries, nobody knows beforehand.
    context = estimator._init_callback_context(max_subtasks=None if searches else 0)
    context.call_on_fit_task_begin(estimator=estimator, **estimator._task_data())
    if isinstance(rule, AdaptiveBandwidth):
        _adapt(estimator, kernel, rule.n_neighbors)
    elif not isinstance(rule, str):
        by_rule = _by_rule(estimator, kernel, "scott")
        estimator.bandwidth_ = estimator.columns_.check_bandwidth(rule, by_rule)
    else:
        check_choice("bandwidth", rule, CHOICES)
        if rule in RULES:
            estimator.bandwidth_ = _by_rule(estimator, kernel, rule)
        elif rule == "plug-in":
            estimator.bandwidth_ = _plug_in(estimator, kernel)
        elif rule == "knn-loo":
            _search_neighbors(estimator, kernel, context)
        else:
            _search(estimator, kernel, context)
    estimator.kernel_ = mixed_kernel(kernel, estimator.columns_, estimator.bandwidth_)
    context.call_on_fit_task_end(
        estimator=estimator, **estimator._task_data(), reconstruction_attributes={}
    )


def _by_rule(estimator, kernel, rule):
    return mixed_rule_bandwidth(
        estimator.keys_, kernel, rule, columns=estimator.columns_,
        sample_weight=estimator.key_weights_,
    )  # fmt: skip


def _plug_in(estimator, kernel):
    n_features, n_outputs = estimator.keys_.shape[1], _targets(estimator).shape[1]
    if n_features != 1 or n_outputs != 1 or estimator.columns_.categorical:
        raise ValueError(
            f"bandwidth='plug-in' is for one numeric feature and one output, got "
            f"{n_features} features and {n_outputs} outputs: use bandwidth='loo'."
        )
    if estimator.degree == 2:
        raise ValueError(
            "bandwidth='plug-in' is for local lines and averages, got degree=2: use "
            "bandwidth='loo'."
        )
    bandwidth = plug_in_bandwidth(
        estimator.keys_[:, 0], _targets(estimator)[:, 0], kernel, estimator.key_weights_
    )
    return np.array([bandwidth])


def _search(estimator, kernel, context):
    rule = estimator.bandwidth
    estimator.kernel_ = kernel

    def state_at(bandwidth):
        kernel_ = mixed_kernel(kernel, estimator.columns_, bandwidth)
        return {"bandwidth_": bandwidth, "kernel_": kernel_}

    observe = _observer(estimator, context, state_at)
    options = {"degree": estimator.degree, "empty": estimator.empty}
    options |= {"sample_weight": estimator.key_weights_, "observe": observe}
    options |= {"random_state": estimator.random_state}
    keys, values = estimator.keys_, _targets(estimator)
    if estimator.per_feature or estimator.columns_.categorical:
        estimator.bandwidth_, score, estimator.relevance_ = select_bandwidths(
            keys, values, kernel, rule, per_feature=estimator.per_feature,
            columns=estimator.columns_, **options,
        )  # fmt: skip
    else:
        estimator.bandwidth_, score, estimator.bandwidth_search_, doubts = select_bandwidth(
            keys, values, kernel, rule, standardize=estimator._standardizes_outputs,
            device=estimator.device, **options,
        )  # fmt: skip
        for doubt in doubts:
            warnings.warn(doubt, stacklevel=2)
    estimator.criterion_value_ = score


def _search_neighbors(estimator, kernel, context):
    _adapt(estimator, kernel, 1)
    observe = _observer(estimator, context, lambda k: {"n_neighbors_": k})
    estimator.n_neighbors_, estimator.criterion_value_ = select_neighbors(
        estimator.keys_, _targets(estimator), estimator.kernel_,
        columns=estimator.columns_.numeric, degree=estimator.degree,
        sample_weight=estimator.key_weights_, random_state=estimator.random_state,
        observe=observe, empty=estimator.empty, device=estimator.device,
    )  # fmt: skip


def _adapt(estimator, kernel, n_neighbors):
    """Measure distances in the features' spread, and reach to a neighbour."""
    weights, n_features = estimator.key_weights_, estimator.keys_.shape[1]
    estimator.bandwidth_ = _by_rule(estimator, kernel, "scott")
    numeric = estimator.columns_.numeric
    if not numeric or kernel.radial_form(len(numeric)) is None:
        raise ValueError(
            f"bandwidth={estimator.bandwidth!r} measures distances, which kernel="
            f"{estimator.kernel!r} does not on these {n_features} columns: choose a radial "
            "kernel such as 'gaussian', and at least one numeric column."
        )
    estimator.bandwidth_[numeric] = feature_spread(estimator.keys_, weights)[numeric]
    n_keys = len(estimator.keys_) if weights is None else int((weights > 0).sum())
    estimator.n_neighbors_ = check_neighbors(n_neighbors, n_keys)
    estimator.kernel_ = mixed_kernel(kernel, estimator.columns_, estimator.bandwidth_)


def _targets(estimator):
    return estimator.values_.reshape(len(estimator.keys_), -1)


def _observer(estimator, context, state_at):
    """Makes every candidate a task that callbacks hear of."""
    observe = estimator._search_observer(context, estimator._task_data(), state_at)
    return lambda value, candidate: observe(lambda _: value, candidate)[1]
