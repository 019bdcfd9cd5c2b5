"""Patterns for IAM roles and users that a line of the policy names."""

import re
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

# Characters of IAM names and paths: IAM API reference, CreateRole, RoleName and Path.
# A path may hold more than this, but nobody needs a wildcard or a colon in one.
SHAPE = (
    r"arn:(?P<partition>aws(?:-[a-z]+)*):iam::(?P<account>[0-9]{12}):(?P<kind>role|user)/"
    r"(?P<path>(?:[A-Za-z0-9_.,+=@-]+/)*)(?P<name>[A-Za-z0-9_+=,.@*-]{1,64})"
)
_PATTERN = re.compile(SHAPE)


class PrincipalKind(StrEnum):
    ROLE = "role"
    USER = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalPattern:
    """``arn:aws:iam::111122223333:role/[path/]NAME``; a ``*`` stands only inside NAME."""

    partition: str
    account_id: str
    kind: PrincipalKind
    path: str
    """Path as written, with its last slash; empty where none is written."""
    name: str

    @property
    def is_wider_than_it_looks(self) -> bool:
        """Tell whether it matches every role, as ``role/team/*`` does: a session does not show the path."""
        return self.kind is PrincipalKind.ROLE and bool(self.path) and self.name.strip("*") == ""

    def matches_name(self, name: str) -> bool:
        """Tell whether the whole name matches: ``a`` is not ``a-b``, ``a*`` is both."""
        return fnmatchcase(name, self.name)  # the name's characters leave `*` as the only wildcard


def parse_principal(text: str) -> PrincipalPattern | None:
    """Return the pattern; None if the text is not one."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        return None
    return PrincipalPattern(
        partition=match["partition"],
        account_id=match["account"],
        kind=PrincipalKind(match["kind"]),
        path=match["path"],
        name=match["name"],
    )


def role_matches(pattern: PrincipalPattern, role_arn: str) -> bool:
    """Tell whether the pattern names this role; an ARN of a role, unlike one of a session, has its path."""
    role = parse_principal(role_arn)
    return (
        role is not None
        and role.kind is pattern.kind
        and (role.partition, role.account_id) == (pattern.partition, pattern.account_id)
        and pattern.path in {"", role.path}
        and pattern.matches_name(role.name)
    )
