"""The policy document as typed data: pools, teams and admins, and who matches a principal."""

from trainmaster.core.policy.document import (
    DEFAULT_TEAM,
    UNMANAGED_TEAM,
    AtLimit,
    Budget,
    Policy,
    TeamPolicy,
    parse_policy,
)
from trainmaster.core.policy.pool_policy import (
    UNMANAGED,
    UNMANAGED_POOL,
    Aging,
    Limits,
    Order,
    PoolPolicy,
    Preemption,
    Quota,
    WarmPool,
)
from trainmaster.core.policy.principals import PrincipalKind, PrincipalPattern, parse_principal, role_matches

__all__ = [
    "DEFAULT_TEAM",
    "UNMANAGED",
    "UNMANAGED_POOL",
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
