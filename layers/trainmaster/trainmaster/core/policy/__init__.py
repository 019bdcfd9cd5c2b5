"""The policy document as typed data: pools, teams and admins, and the patterns that match principals."""

from trainmaster.core.policy.changed_defaults import DEFAULTS_RULE
from trainmaster.core.policy.document import (
    DEFAULTS,
    EARLIER_DEFAULTS,
    UNMANAGED_TEAM,
    WATCHED_DEFAULTS,
    AtLimit,
    Budget,
    Policy,
    TeamPolicy,
    defaults_that_change,
    parse_policy,
)
from trainmaster.core.policy.names import DEFAULT_TEAM
from trainmaster.core.policy.pool_limits import Limits, WarmPool
from trainmaster.core.policy.pool_order import Aging, FairShare, Order, is_by_length
from trainmaster.core.policy.pool_policy import UNMANAGED, UNMANAGED_POOL, PoolPolicy
from trainmaster.core.policy.pool_preemption import Preemption, PreemptionCost
from trainmaster.core.policy.pool_quotas import Quota
from trainmaster.core.policy.principals import PrincipalKind, PrincipalPattern, parse_principal, role_matches

__all__ = [
    "DEFAULTS",
    "DEFAULTS_RULE",
    "DEFAULT_TEAM",
    "EARLIER_DEFAULTS",
    "UNMANAGED",
    "UNMANAGED_POOL",
    "UNMANAGED_TEAM",
    "WATCHED_DEFAULTS",
    "Aging",
    "AtLimit",
    "Budget",
    "FairShare",
    "Limits",
    "Order",
    "Policy",
    "PoolPolicy",
    "Preemption",
    "PreemptionCost",
    "PrincipalKind",
    "PrincipalPattern",
    "Quota",
    "TeamPolicy",
    "WarmPool",
    "defaults_that_change",
    "is_by_length",
    "parse_policy",
    "parse_principal",
    "role_matches",
]
