"""The questions that a call raises for IAM, and what a call is for that purpose."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A question to the evaluator."""

    action: str
    resource: str
    context: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    or_of_role: str | None = None
    """ARN of a role whose right does as well as the caller's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A call in boto3's names."""

    service: str
    name: str
    params: Mapping[str, Any]
    region: str
    account_id: str

    def arn(self, service: str, resource: str) -> str:
        return f"arn:aws:{service}:{self.region}:{self.account_id}:{resource}"


class NotMappedError(Exception):
    """Raised if the permissions that an operation needs are not recorded."""

    def __init__(self, operation: Operation) -> None:
        super().__init__(f"{operation.service}:{operation.name} is not mapped to IAM actions")


Checks: TypeAlias = Iterable[Check] | None
"""Checks of an operation; None if they are not recorded."""
