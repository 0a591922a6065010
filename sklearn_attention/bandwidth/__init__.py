"""Bandwidths: how far a kernel reaches, by rule or by leave-one-out, on plain arrays."""

from ._criteria import corrected_akaike, generalized_cross_validation, penalized_leave_one_out
from ._density import ConditionalLikelihood, DensityLikelihood
from ._one_scale import select_bandwidth
from ._rules import rule_bandwidth
from ._search import BandwidthChoice

__all__ = [
    "BandwidthChoice",
    "ConditionalLikelihood",
    "DensityLikelihood",
    "corrected_akaike",
    "generalized_cross_validation",
    "penalized_leave_one_out",
    "rule_bandwidth",
    "select_bandwidth",
]
