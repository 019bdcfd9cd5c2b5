"""Whether IAM policies allow an action on a resource; pure: documents and facts in, a decision out.

Source: IAM User Guide, "Policy evaluation logic" and "IAM JSON policy elements reference".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from local.identity.conditions import Condition, Context, like, parse_condition
from local.wire import Principal

_ELEMENTS = frozenset({"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition"})


class Decision(StrEnum):
    ALLOWED = "allowed"
    NOT_ALLOWED = "not allowed"
    """No statement says yes."""
    DENIED = "denied"
    """A statement says no, whatever the others say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    allows: bool
    actions: tuple[str, ...]
    not_actions: tuple[str, ...]
    resources: tuple[str, ...]
    not_resources: tuple[str, ...]
    conditions: tuple[Condition, ...]

    def applies(self, action: str, resource: str, context: Context) -> bool:
        return (
            self._has_action(action)
            and self._has_resource(resource)
            and all(condition.holds(context) for condition in self.conditions)
        )

    def _has_action(self, action: str) -> bool:
        if self.not_actions:
            return not any(like(action, pattern, ignore_case=True) for pattern in self.not_actions)
        return any(like(action, pattern, ignore_case=True) for pattern in self.actions)

    def _has_resource(self, resource: str) -> bool:
        if self.not_resources:
            return not any(like(resource, pattern) for pattern in self.not_resources)
        return any(like(resource, pattern) for pattern in self.resources)


def is_allowed(
    policies: Iterable[Mapping[str, Any]], action: str, resource: str, context: Mapping[str, Any]
) -> bool:
    """Tell whether a statement allows it and none denies it. ``context``: condition key -> value or values.

    Raises:
        ValueError: a document holds an element, an operator or a policy variable that is not known here.
    """
    statements = tuple(statement for policy in policies for statement in parse_policy(policy))
    return decide(statements, action, resource, normalized(context)) is Decision.ALLOWED


def decide(statements: Iterable[Statement], action: str, resource: str, context: Context) -> Decision:
    """Decide for parsed statements and a normalized context; a refusal tells which kind it is."""
    decision = Decision.NOT_ALLOWED
    for statement in statements:
        if statement.applies(action, resource, context):
            if not statement.allows:
                return Decision.DENIED
            decision = Decision.ALLOWED
    return decision


def parse_policy(document: Mapping[str, Any]) -> tuple[Statement, ...]:
    """Return the statements of a policy document. Raises ValueError for what is not known here."""
    return tuple(_parse_statement(statement) for statement in _listed(document["Statement"]))


def trusting(trust: Mapping[str, Any], principal: Principal, role_arn: str) -> tuple[Statement, ...]:
    """Return the statements of a role's trust policy that name this caller."""
    root = f"arn:aws:iam::{principal.account_id}:root"
    names = {"*", principal.arn, principal.role_arn, principal.account_id, root}
    return tuple(
        _parse_statement(
            {name: part for name, part in statement.items() if name != "Principal"} | {"Resource": role_arn}
        )
        for statement in _listed(trust["Statement"])
        if names.intersection(_listed(_of_aws(statement.get("Principal", ()))))
    )


def _of_aws(named: Any) -> Any:  # noqa: ANN401  a text, a list or a mapping by kind
    return named.get("AWS", ()) if isinstance(named, Mapping) else named


def normalized(context: Mapping[str, Any]) -> Context:
    """Return keys in lower case (IAM ignores their case), and values as texts."""
    return {key.lower(): _texts(value) for key, value in context.items()}


def _parse_statement(statement: Mapping[str, Any]) -> Statement:
    if unknown := set(statement) - _ELEMENTS:
        raise ValueError(f"unknown elements in a policy statement: {sorted(unknown)}")
    if statement["Effect"] not in {"Allow", "Deny"}:
        raise ValueError(f"Effect must be Allow or Deny: {statement['Effect']!r}")
    if ("Action" in statement) == ("NotAction" in statement):
        raise ValueError("a statement has either Action or NotAction")
    if ("Resource" in statement) == ("NotResource" in statement):
        raise ValueError("a statement has either Resource or NotResource")
    return Statement(
        allows=statement["Effect"] == "Allow",
        actions=_patterns(statement.get("Action", ())),
        not_actions=_patterns(statement.get("NotAction", ())),
        resources=_patterns(statement.get("Resource", ())),
        not_resources=_patterns(statement.get("NotResource", ())),
        conditions=_parse_conditions(statement.get("Condition", {})),
    )


def _parse_conditions(block: Mapping[str, Mapping[str, Any]]) -> tuple[Condition, ...]:
    return tuple(
        parse_condition(operator, key, _patterns(wanted))
        for operator, keys in block.items()
        for key, wanted in keys.items()
    )


def _listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else (value,)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(
        str(scalar).lower() if isinstance(scalar, bool) else str(scalar) for scalar in _listed(value)
    )


def _patterns(value: object) -> tuple[str, ...]:
    texts = _texts(value)
    if any("${" in text for text in texts):
        raise ValueError(f"policy variables are not known here: {texts}")
    return texts
