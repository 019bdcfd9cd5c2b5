"""GET /me and GET /rules: who calls, and what of the policy binds them."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import timedelta
from http import HTTPStatus
from typing import Any

from trainmaster.api.request_context import Answer, RequestContext
from trainmaster.api.views import View, quota_view
from trainmaster.core.policy import DEFAULT_TEAM, Limits, Policy, Quota, TeamPolicy
from trainmaster.core.policy.kinds import duration_text
from trainmaster.core.request.options import MAX_PRIORITY
from trainmaster.core.rules.check import rules_of_submissions
from trainmaster.core.submission.identity import principal_of

_ANY = "any"
_GUARDS = ("secrets", "remote_debug", "session_chaining")
"""Rules that hold where nobody wrote them."""
_KEPT_BACK = frozenset({"principals", "launcher_role"})
"""Keys that only admins see, in the policy: who else is in the team, and which role starts its jobs."""


def show_me(context: RequestContext) -> Answer:
    """Show the caller's teams; an admin's are those that list the admin, which may be none."""
    context.call.parameters()
    body = {
        "principal": principal_of(context.caller),
        "submitted_by": context.caller.arn,
        "admin": context.is_admin,
        "teams": [_bounds(name, context.policy) for name in context.teams],
    }
    return Answer(status=HTTPStatus.OK, body=body)


def _bounds(name: str, policy: Policy) -> View:
    """Show what a job of the team may request; None means no bound."""
    team, written = policy.team(name), _written_team(policy, name)
    return {
        "name": name,
        "max_priority": team.max_priority if team else MAX_PRIORITY,
        "roles": _roles(team, written, policy),
        "images": written.get("images"),
        "s3_prefixes": written.get("s3_prefixes"),
    }


def _roles(team: TeamPolicy | None, written: Mapping[str, Any], policy: Policy) -> object:
    if team is not None and team.roles is not None:
        return written["roles"]
    return [] if team is not None and policy.is_guarded else _ANY


def show_rules(context: RequestContext) -> Answer:
    """Show the rules as written and the defaults that hold without being written; admins see every team."""
    context.call.parameters()
    policy = context.policy
    own = [team.name for team in policy.teams] if context.is_admin else context.teams
    body = {
        "revision": context.stored.revision,
        "rules": _rules(policy),
        "teams": [_team_rules(name, policy) for name in own or (DEFAULT_TEAM,)],
    }
    return Answer(status=HTTPStatus.OK, body=body)


def _rules(policy: Policy) -> View:
    in_force = rules_of_submissions(policy)
    modes = {name: getattr(in_force, name) for name in _GUARDS}
    unwritten = {name: {"mode": mode.value} for name, mode in modes.items() if mode is not None}
    return unwritten | dict(policy.source.get("rules") or {})


def _team_rules(name: str, policy: Policy) -> View:
    written = {key: value for key, value in _written_team(policy, name).items() if key not in _KEPT_BACK}
    return {"rules": {}} | written | _bounds(name, policy) | {"pools": list(_of_pools(name, policy))}


def _of_pools(team: str, policy: Policy) -> Iterable[View]:
    """Yield limits and quota of one team by pool, the quota as GET /pools shows it."""
    for pool in policy.pools:
        quota = quota_view(pool.quotas.get(team, Quota())) if pool.quotas else None
        yield {"name": pool.name, "limits": _limits(pool.limits), "quota": quota}


def _limits(limits: Limits) -> View:
    """Show limits as the policy document writes them."""
    return {
        name: duration_text(bound) if isinstance(bound, timedelta) else bound
        for name, bound in asdict(limits).items()
    }


def _written_team(policy: Policy, name: str) -> Mapping[str, Any]:
    teams = policy.source.get("teams") or ()
    return next((team for team in teams if team["name"] == name), {})
