"""The policy document as typed data: pools, teams and admins, and who matches a principal."""

from trainmaster.policy.document import parse_policy
from trainmaster.policy.model import Aging, Order, Policy, PoolPolicy, Preemption, TeamPolicy
from trainmaster.policy.principals import PrincipalKind, PrincipalPattern, parse_principal

__all__ = [
    "Aging",
    "Order",
    "Policy",
    "PoolPolicy",
    "Preemption",
    "PrincipalKind",
    "PrincipalPattern",
    "TeamPolicy",
    "parse_policy",
    "parse_principal",
]
