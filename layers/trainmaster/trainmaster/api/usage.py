"""GET /usage: what a team's month was spent on, and how much of its budget is left."""

import json
from collections.abc import Iterator
from http import HTTPStatus

from trainmaster.api.known_names import no_team
from trainmaster.api.paging import Mark, Room, Seal, fitting
from trainmaster.api.plan_views import unused_plans
from trainmaster.api.policy_warnings import price_warnings
from trainmaster.api.request_context import Answer, RequestContext
from trainmaster.api.usage_groups import (
    ALL_TEAMS,
    grouped_usage,
    month_asked,
    running_view,
    team_asked,
    time_of,
    wants_csv,
)
from trainmaster.api.views import View, field_error_view
from trainmaster.core.costs.ledger import MonthAccount, budget_cents, usage_view, warns
from trainmaster.core.policy import DEFAULT_TEAM


def show_usage(context: RequestContext) -> Answer:
    """Show one team's month job by job; grouped if the call names a group, a period or CSV."""
    given = context.call.parameters("team", "month", "group_by", "from", "to", "next_token")
    if given.keys() & {"group_by", "from", "to"} or given.get("team") == ALL_TEAMS or wants_csv(context):
        return grouped_usage(context, given)
    team = team_asked(context, given.get("team"))
    month = month_asked(context, given.get("month"))
    reader = context.outside.reader
    lines, preemptions = reader.usage(team, month)
    if not lines and not preemptions and not _is_known(context, team):
        raise no_team(context, team)
    budget = _budget(context, team, reader.month(team, month))
    warnings = [field_error_view(warning) for warning in price_warnings(context, context.policy)]
    whole = usage_view(team, month, lines, preemptions)
    seal = Seal(key=bytes.fromhex(context.stored.seal_key), bound=json.dumps(["usage", team, month]))
    start = seal.mark(given["next_token"]) if "next_token" in given else None
    shown, end = _page(whole, start)
    context_views = {
        "budget": budget,
        "running": running_view(context, teams=(team,), months=(month,)) if start is None else None,
        "warnings": fitting(warnings),
        "next_token": seal.token(end) if end else None,
    }
    since, until = time_of(month)
    unused = unused_plans(context, since=since, until=until) if start is None else {}
    return Answer(status=HTTPStatus.OK, body=whole | shown | context_views | unused)


def _page(whole: View, start: Mark | None) -> tuple[View, Mark | None]:
    """List jobs by name, then preemptions; the sums are of the whole month on every page."""
    room, shown, end = Room(), {"jobs": list[View](), "preemptions": list[View]()}, start
    for mark, view in _listed(whole, start):
        if not room.takes(view) and any(shown.values()):
            return shown, end
        shown[mark.section].append(view)
        end = mark
    return shown, None


def _listed(whole: View, start: Mark | None) -> Iterator[tuple[Mark, View]]:
    """Yield the entries behind ``start``; the list of preemptions only grows at its end."""
    seen = start.counted if start and start.section == "preemptions" else 0
    name = str(start.order[0]) if start and start.section == "jobs" else ""
    for job in whole["jobs"] if not seen else ():
        if job["name"] > name:
            yield Mark(section="jobs", order=(job["name"],), counted=0), job
    for number, preemption in enumerate(whole["preemptions"][seen:], start=seen + 1):
        yield Mark(section="preemptions", order=(), counted=number), preemption


def _is_known(context: RequestContext, team: str) -> bool:
    return context.policy.team(team) is not None or (not context.policy.teams and team == DEFAULT_TEAM)


def _budget(context: RequestContext, team: str, account: MonthAccount) -> View | None:
    """Show the team's budget in USD; None if it has none."""
    team_policy = context.policy.team(team)
    if team_policy is None or team_policy.budget is None:
        return None
    limit = budget_cents(team_policy.budget.usd_per_month)
    return {
        "limit": limit / 100,
        "spent": account.spent / 100,
        "reserved": account.reserved / 100,
        "warning": warns(limit, MonthAccount(), account),
    }
