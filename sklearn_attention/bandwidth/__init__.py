"""Bandwidths: how far a kernel looks, by rule or by leave-one-out, on plain arrays."""

from ._leave_one_out import leave_one_out_bandwidth, leave_one_out_error
from ._minimize import MAX_CANDIDATES, minimize_scale
from ._rules import RULES, feature_spread, rule_bandwidth

__all__ = [
    "MAX_CANDIDATES",
    "RULES",
    "feature_spread",
    "leave_one_out_bandwidth",
    "leave_one_out_error",
    "minimize_scale",
    "rule_bandwidth",
]
