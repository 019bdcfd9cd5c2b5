"""The frame of all resource types: where they are made, what they answer, which properties they know."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from local.deployment.deployment_errors import TemplateError
from local.deployment.wiring import Wiring

Properties: TypeAlias = Mapping[str, Any]


class Roles(Protocol):
    """Turns the roles of the stack into callers."""

    def add_role(self, arn: str, policies: Iterable[Mapping[str, Any]]) -> None:
        """Add a role. Raises ValueError for a policy that the twin cannot evaluate."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The place where a stack is deployed, and its parameters."""

    stack: str
    region: str
    account_id: str
    folder: Path
    client: Callable[[str], Any]
    """service -> a boto3 client that writes straight into the twin."""
    roles: Roles
    wiring: Wiring

    def name(self, logical_id: str) -> str:
        """Return the name of a resource that the template does not name; the same in every run."""
        return f"{self.stack}-{logical_id}"

    def arn(self, service: str, resource: str) -> str:
        return f"arn:aws:{service}:{self.region}:{self.account_id}:{resource}"

    def short_id(self, logical_id: str) -> str:
        """Return ten characters as AWS gives them to an API; the same in every run."""
        return hashlib.sha256(f"{self.stack}/{logical_id}".encode()).hexdigest()[:10]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A resource's answers to ``Ref`` and ``Fn::GetAtt``."""

    ref: str
    attributes: Mapping[str, str] = field(default_factory=dict)


Create: TypeAlias = Callable[[Site, str, Properties], Made]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A resource type. A property it does not list is refused, so the twin cannot drift from the template."""

    create: Create
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()

    def make(self, site: Site, logical_id: str, properties: Properties) -> Made:
        check_keys(logical_id, properties, required=self.required, optional=self.optional)
        return self.create(site, logical_id, properties)


def check_keys(
    where: str, given: Mapping[str, Any], *, required: frozenset[str] = frozenset(), optional: frozenset[str]
) -> None:
    """Raise TemplateError for a key that is missing or not known."""
    if missing := sorted(required - given.keys()):
        raise TemplateError(where, f"needs {', '.join(missing)}")
    if unknown := sorted(given.keys() - required - optional):
        raise TemplateError(where, f"the twin does not know {', '.join(unknown)}")


def names(text: str) -> frozenset[str]:
    """Return the words of ``text`` as a set of property names."""
    return frozenset(text.split())
