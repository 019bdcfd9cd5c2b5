"""Whether the API's resource policy and the caller's own policies let a call through.

Source: API Gateway Developer Guide, "How API Gateway resource policies affect authorization workflow".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local.deployment.deployment_errors import TemplateError
from local.identity.conditions import Context
from local.identity.evaluator import Decision, Statement, decide, parse_policy
from local.wire import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceStatement:
    """A statement of a resource policy: one of an identity policy and whom it speaks of."""

    principals: frozenset[str]
    statement: Statement

    def names(self, principal: Principal) -> bool:
        """Answer whether the caller is meant: by ARN, by the role behind the session, or as anybody."""
        account = principal.account_id
        mine = {"*", principal.arn, principal.role_arn, account, f"arn:aws:iam::{account}:root"}
        return not self.principals.isdisjoint(mine)


def parse_resource_policy(document: Mapping[str, Any]) -> tuple[ResourceStatement, ...]:
    """Raises TemplateError for a principal, ValueError for another element that is not known here."""
    return tuple(_parse(statement) for statement in document["Statement"])


def _parse(statement: Mapping[str, Any]) -> ResourceStatement:
    rest = {key: value for key, value in statement.items() if key != "Principal"}
    (parsed,) = parse_policy({"Statement": [rest]})
    return ResourceStatement(principals=_principals(statement.get("Principal")), statement=parsed)


def _principals(principal: object) -> frozenset[str]:
    if principal == "*":
        return frozenset({"*"})
    if not isinstance(principal, Mapping) or principal.keys() != {"AWS"}:
        raise TemplateError("resource policy", f"the twin does not know principal {principal}")
    named = principal["AWS"]
    return frozenset(named if isinstance(named, list) else [named])


def combined(
    policy: tuple[ResourceStatement, ...],
    own: tuple[Statement, ...] | None,
    principal: Principal,
    *,
    call: tuple[str, Context],
) -> Decision:
    """Decide for a caller of the API's own account: any Deny wins, else either Allow suffices.

    Args:
        policy: The API's.
        own: The caller's; None for one that counts as allowed to invoke any API.
        principal: The caller.
        call: ARN of the called method, and the condition keys of the request.
    """
    action, (method_arn, context) = "execute-api:Invoke", call
    speaking = [entry.statement for entry in policy if entry.names(principal)]
    by_policy = decide(speaking, action, method_arn, context)
    by_identity = Decision.ALLOWED if own is None else decide(own, action, method_arn, context)
    for decision in (Decision.DENIED, Decision.ALLOWED):
        if decision in (by_policy, by_identity):
            return decision
    return Decision.NOT_ALLOWED
