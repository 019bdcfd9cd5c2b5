"""The caller: from the gateway's ``userArn`` alone to a principal, its teams, and whether it is an admin."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from trainmaster.core.errors import FieldError, ForbiddenError, InvalidRequestError, MissingIdentityError
from trainmaster.core.policy import DEFAULT_TEAM, Policy, PrincipalKind, PrincipalPattern, parse_principal

_NAME = r"(?P<name>[A-Za-z0-9_+=,.@-]{1,64})"
# The two forms we serve: IAM user guide, "IAM identifiers". A session shows its role without the path,
# so AWSReservedSSO_... roles need no form of their own.
_ROLE_SESSION = re.compile(
    r"arn:(?P<partition>aws(?:-[a-z]+)*):sts::(?P<account>[0-9]{12}):assumed-role/"
    rf"{_NAME}/[A-Za-z0-9_+=,.@-]{{1,64}}"
)
_USER = re.compile(
    r"arn:(?P<partition>aws(?:-[a-z]+)*):iam::(?P<account>[0-9]{12}):user/"
    rf"(?P<path>(?:[\x21-\x2e\x30-\x7e]+/)*){_NAME}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    arn: str
    """The ARN as the gateway gave it, the session's name included: it says who submitted."""
    partition: str
    account_id: str
    kind: PrincipalKind
    path: str | None
    """Path of a user; None for a role's session, whose ARN does not have it."""
    name: str


def caller_of(user_arn: str | None) -> Caller:
    """Read the caller from ``requestContext.identity.userArn``.

    Raises:
        MissingIdentityError: There is none: the gateway did not authenticate the call.
        ForbiddenError: Neither a role's session nor a user, e.g. root or a federated user.
    """
    if not user_arn:
        raise MissingIdentityError("the gateway named no caller")
    if session := _ROLE_SESSION.fullmatch(user_arn):
        return _caller(session, PrincipalKind.ROLE, path=None)
    if user := _USER.fullmatch(user_arn):
        return _caller(user, PrincipalKind.USER, path=user["path"])
    raise ForbiddenError("only sessions of IAM roles and IAM users may call")


def _caller(match: re.Match[str], kind: PrincipalKind, *, path: str | None) -> Caller:
    return Caller(
        arn=match.string,
        partition=match["partition"],
        account_id=match["account"],
        kind=kind,
        path=path,
        name=match["name"],
    )


def is_admin(caller: Caller, policy: Policy, admin_principal_arns: Iterable[str]) -> bool:
    """Tell whether the caller is an admin of the policy, or of the deployment whatever the policy says."""
    deployed = (parse_principal(arn) for arn in admin_principal_arns)
    return _matches_any(caller, policy.admins) or _matches_any(
        caller, (pattern for pattern in deployed if pattern is not None)
    )


def teams_of(caller: Caller, policy: Policy, own_account: str) -> tuple[str, ...]:
    """Return the caller's teams in the policy's order; none for a stranger."""
    if not policy.teams:
        return (DEFAULT_TEAM,) if caller.account_id == own_account else ()
    return tuple(team.name for team in policy.teams if _matches_any(caller, team.principals))


def team_for(caller: Caller, policy: Policy, requested_team: str | None, *, own_account: str) -> str:
    """Return the team that a submission counts for.

    Args:
        caller: Who submits.
        policy: The policy in force.
        requested_team: Value of the tag ``team``; None when there is no such tag.
        own_account: The account of the control plane.

    Raises:
        ForbiddenError: The caller has no team, or not this one.
        InvalidRequestError: The caller has several teams and did not say which.
    """
    teams = teams_of(caller, policy, own_account)
    if not teams:
        raise stranger(caller)
    if requested_team is None and len(teams) > 1:
        raise InvalidRequestError("the tag 'team' is required", errors=[_which_team(teams)])
    if requested_team is not None and requested_team not in teams:
        raise ForbiddenError("the caller is not in this team", errors=[_other_team(teams)])
    return requested_team or teams[0]


_MADE_SESSION = re.compile(r"botocore-session-[0-9]+")
"""Name that boto3 and the CLI give a session of an assumed role that got no name; it differs each time."""


def is_of(caller: Caller, submitted_by: str) -> bool:
    """Tell whether the caller submitted a job.

    Only the role counts if neither session got a name of its own.
    """
    if caller.arn == submitted_by:
        return True
    (role, _, session), (his_role, _, his_session) = caller.arn.rpartition("/"), submitted_by.rpartition("/")
    made = _MADE_SESSION.fullmatch(session) and _MADE_SESSION.fullmatch(his_session)
    return role == his_role and made is not None


def principal_of(caller: Caller) -> str:
    """Return the principal as a policy would write it."""
    path = caller.path or ""
    return f"arn:{caller.partition}:iam::{caller.account_id}:{caller.kind}/{path}{caller.name}"


def stranger(caller: Caller) -> ForbiddenError:
    """Make the answer to a caller of no team."""
    error = FieldError(
        field="principal",
        message=f"{principal_of(caller)} is in no team",
        hint="ask an admin to add it to the principals of a team",
    )
    return ForbiddenError("no team of the policy lists this caller", errors=[error])


def _matches_any(caller: Caller, patterns: Iterable[PrincipalPattern]) -> bool:
    return any(_matches(caller, pattern) for pattern in patterns)


def _matches(caller: Caller, pattern: PrincipalPattern) -> bool:
    return (
        caller.kind is pattern.kind
        and caller.account_id == pattern.account_id
        and caller.partition == pattern.partition
        and _path_matches(caller.path, pattern.path)
        and pattern.matches_name(caller.name)
    )


def _path_matches(path: str | None, written: str) -> bool:
    """Compare a path only where both are known: names are unique in an account whatever the path."""
    return path is None or not written or path == written


def _which_team(teams: tuple[str, ...]) -> FieldError:
    return FieldError(
        field="Tags.team",
        message=f"the caller is in {len(teams)} teams",
        hint=f"add the tag 'team' with one of: {', '.join(teams)}",
    )


def _other_team(teams: tuple[str, ...]) -> FieldError:
    return FieldError(
        field="Tags.team",
        message="is not one of the caller's teams",
        hint=f"use one of: {', '.join(teams)}, or leave the tag out",
    )
