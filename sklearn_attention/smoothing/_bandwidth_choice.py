"""From the parameter `bandwidth` to numbers."""

import functools
import warnings

import numpy as np

from .._partitions import is_partitioned
from .._validation import check_choice, check_flag, check_positive
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

SEARCHES = ("knn-loo", *SMOOTHER_CRITERIA)


def choose_bandwidth(
    rule, keys, values, kernel, columns, *, observe, per_feature=False, standardize=False,
    degree=0, sample_weight=None, random_state=None, empty="nearest", device="auto", gap=0,
):  # fmt: skip
    """Bandwidth by a number, a rule or a search, and the attributes that go with it.

    Parameters
    ----------
    rule : str, float, array-like or AdaptiveBandwidth
        The parameter `bandwidth` of an estimator.
    keys : ndarray of shape (n_samples, n_features)
        Training rows; categories as codes.
    values : ndarray of shape (n_samples, n_values)
        Their targets.
    kernel : Kernel
        Of the numeric columns.
    columns : Columns
        What each column is.
    observe : callable
        Called for each candidate of a search as ``observe(value, bandwidth)``, with the
        keywords ``kernel`` and ``n_neighbors_`` where these are searched too; returns whether
        to end the search there.
    per_feature : bool, default=False
        Whether a search by a criterion has a bandwidth for each feature.
    standardize, degree, sample_weight, random_state, empty, device, gap
        As for :func:`~sklearn_attention.bandwidth.select_bandwidth`.

    Returns
    -------
    fitted : dict
        ``bandwidth_`` and ``kernel_``, and what else is known: ``criterion_value_``,
        ``bandwidth_search_``, ``relevance_``, ``n_neighbors_``.
    """
    name = rule if isinstance(rule, str) else None
    per_feature = check_flag("per_feature", per_feature)
    if name is not None:
        check_choice("bandwidth", rule, (*SEARCHES, "plug-in", *RULES))
    one_factor = name in SMOOTHER_CRITERIA and not (per_feature or columns.categorical)
    if gap != 0 and check_positive("gap", gap, integer=True) and not one_factor:
        raise ValueError(
            f"gap={gap} is for searches of one factor on all features, which are numbers: use "
            f"gap=0, or one of {', '.join(SMOOTHER_CRITERIA)} as bandwidth."
        )
    by_rule = functools.partial(
        mixed_rule_bandwidth, keys, kernel, columns=columns, sample_weight=sample_weight
    )
    options = {"degree": degree, "sample_weight": sample_weight, "empty": empty}
    options |= {"random_state": random_state, "observe": observe}
    kernel_at = functools.partial(mixed_kernel, kernel, columns)
    fitted = {}
    if isinstance(rule, AdaptiveBandwidth) or name == "knn-loo":
        if is_partitioned(keys):
            raise ValueError(
                f"bandwidth={rule!r} measures distances to neighbours, which partitions of "
                f"Dask do not know: pass a number, or one of {', '.join(RULES)} and "
                f"{', '.join(SMOOTHER_CRITERIA)}."
            )
        _check_distances(rule, keys, kernel, columns)
        # Distances are measured in the features' spread.
        spread = feature_spread(keys, sample_weight)
        bandwidth = np.where(columns.is_numeric, spread, by_rule("scott"))
        if name is None:
            n_keys = len(keys) if sample_weight is None else np.count_nonzero(sample_weight)
            fitted["n_neighbors_"] = check_neighbors(rule.n_neighbors, n_keys)
        else:
            mixed = kernel_at(bandwidth)
            options["observe"] = lambda value, k: observe(
                value, bandwidth, kernel=mixed, n_neighbors_=k
            )
            fitted["n_neighbors_"], fitted["criterion_value_"] = select_neighbors(
                keys, values, mixed, columns=columns.numeric, device=device, **options
            )
    elif name is None:
        bandwidth = columns.check_bandwidth(rule, by_rule("scott"))
    elif name in RULES:
        bandwidth = by_rule(name)
    elif name == "plug-in":
        bandwidth = _plug_in(keys, values, kernel, columns, degree, sample_weight, random_state)
    elif per_feature or columns.categorical:
        options["observe"] = lambda value, found: observe(value, found, kernel=kernel_at(found))
        bandwidth, fitted["criterion_value_"], fitted["relevance_"] = select_bandwidths(
            keys, values, kernel, rule, columns=columns, per_feature=per_feature, **options
        )
    else:
        options |= {"standardize": standardize, "device": device, "gap": gap}
        bandwidth, value, tried, doubts = select_bandwidth(
            keys, values, kernel, rule, **options
        )
        fitted = {"criterion_value_": value, "bandwidth_search_": tried}
        for doubt in doubts:
            warnings.warn(doubt, stacklevel=2)
    kernel = kernel_at(bandwidth) if columns.categorical else kernel
    return {"bandwidth_": bandwidth, "kernel_": kernel} | fitted


def _check_distances(rule, keys, kernel, columns):
    if not columns.numeric or kernel.radial_form(len(columns.numeric)) is None:
        raise ValueError(
            f"bandwidth={rule!r} measures distances, which kernel={kernel!r} does not on these "
            f"{keys.shape[1]} columns: choose a radial kernel such as 'gaussian', and at least "
            "one numeric column."
        )


def _plug_in(keys, values, kernel, columns, degree, sample_weight, random_state):
    n_features, n_outputs = keys.shape[1], values.shape[1]
    if n_features != 1 or n_outputs != 1 or columns.categorical:
        raise ValueError(
            f"bandwidth='plug-in' is for one numeric feature and one output, got "
            f"{n_features} features and {n_outputs} outputs: use bandwidth='loo'."
        )
    if degree == 2:
        raise ValueError(
            "bandwidth='plug-in' is for local lines and averages, got degree=2: use "
            "bandwidth='loo'."
        )
    found = plug_in_bandwidth(
        keys[:, 0], values[:, 0], kernel, sample_weight, random_state=random_state
    )
    return np.array([found])
