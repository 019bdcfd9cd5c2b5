"""The policy document as typed data: pools, teams and admins, and who matches a principal."""

from trainmaster.core.policy.document import parse_policy
from trainmaster.core.policy.model import (
    DEFAULT_TEAM,
    STRAY_POOL,
    STRAYS,
    UNMANAGED_TEAM,
    Aging,
    AtLimit,
    Budget,
    Limits,
    Order,
    Policy,
    PoolPolicy,
    Preemption,
    Quota,
    TeamPolicy,
    WarmPool,
)
from trainmaster.core.policy.principals import PrincipalKind, PrincipalPattern, parse_principal, role_matches

__all__ = [
    "DEFAULT_TEAM",
    "STRAYS",
    "STRAY_POOL",
    "UNMANAGED_TEAM",
    "Aging",
    "AtLimit",
    "Budget",
    "Limits",
    "Order",
    "Policy",
    "PoolPolicy",
    "Preemption",
    "PrincipalKind",
    "PrincipalPattern",
    "Quota",
    "TeamPolicy",
    "WarmPool",
    "parse_policy",
    "parse_principal",
    "role_matches",
]
