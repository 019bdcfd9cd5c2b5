"""The policy document as typed data: pools, teams and admins, and who matches a principal."""

from trainmaster.core.policy.document import (
    DEFAULT_TEAM,
    DEFAULTS,
    DEFAULTS_RULE,
    EARLIER_DEFAULTS,
    UNMANAGED_TEAM,
    AtLimit,
    Budget,
    Policy,
    TeamPolicy,
    defaults_that_change,
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
    "DEFAULTS",
    "DEFAULTS_RULE",
    "DEFAULT_TEAM",
    "EARLIER_DEFAULTS",
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
    "defaults_that_change",
    "parse_policy",
    "parse_principal",
    "role_matches",
]
