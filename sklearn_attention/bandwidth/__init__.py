"""Bandwidths: how far a kernel looks, by rule or by leave-one-out, on plain arrays."""

from ._candidates import criterion_of_candidates, default_bandwidths
from ._convolution import kernel_reach
from ._criteria import (
    SMOOTHER_CRITERIA,
    corrected_akaike,
    generalized_cross_validation,
    penalized_leave_one_out,
)
from ._density import ConditionalLikelihood, DensityLeastSquares, DensityLikelihood
from ._density_search import (
    CRITERIA,
    conditional_bandwidth,
    density_bandwidth,
    mixed_rule_bandwidth,
)
from ._minimize import minimize_scale
from ._neighbors import (
    AdaptiveBandwidth,
    check_neighbors,
    neighbor_distances,
    select_neighbors,
)
from ._per_feature import select_bandwidths
from ._plug_in import plug_in_bandwidth
from ._rules import RULES, feature_spread, rule_bandwidth
from ._search import BandwidthChoice, leave_one_out_error, select_bandwidth

__all__ = [
    "CRITERIA",
    "RULES",
    "SMOOTHER_CRITERIA",
    "AdaptiveBandwidth",
    "BandwidthChoice",
    "ConditionalLikelihood",
    "DensityLeastSquares",
    "DensityLikelihood",
    "check_neighbors",
    "conditional_bandwidth",
    "corrected_akaike",
    "criterion_of_candidates",
    "default_bandwidths",
    "density_bandwidth",
    "feature_spread",
    "generalized_cross_validation",
    "kernel_reach",
    "leave_one_out_error",
    "minimize_scale",
    "mixed_rule_bandwidth",
    "neighbor_distances",
    "penalized_leave_one_out",
    "plug_in_bandwidth",
    "rule_bandwidth",
    "select_bandwidth",
    "select_bandwidths",
    "select_neighbors",
]
