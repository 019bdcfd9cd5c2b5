"""GET /usage with ``group_by``: one team or all, a month or any period, as JSON or CSV."""

import csv
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

from trainmaster.api.known_names import instant, known_teams, no_team, one_of, refused
from trainmaster.api.paging import Mark, Room, Seal
from trainmaster.api.plan_views import unused_plans
from trainmaster.api.request_context import Answer, RequestContext
from trainmaster.api.views import View, instant_text
from trainmaster.core.costs.grouping import GroupBy, Grouping, TeamLine, is_within, model_of, months_between
from trainmaster.core.costs.ledger import Cause, UsageLine, line_view, month_of
from trainmaster.core.errors import FieldError, ForbiddenError, quoted
from trainmaster.core.jobs.model import Job
from trainmaster.core.planning.running_costs import RunningCost, cost_so_far
from trainmaster.core.policy import DEFAULT_TEAM

LONGEST = timedelta(days=31)
USUAL = timedelta(days=1)
_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")
ALL_TEAMS = "*"
CSV = "text/csv"
NEXT_PAGE_HEADER = "trainmaster-next-token"
CUT_HEADER = "trainmaster-truncated"
MOST_JOBS = 5000
"""Jobs whose rows are read for one answer, in a few seconds; further jobs have no key."""
_BATCH = 500
_COLUMNS = ("key", "instance_hours", "usd", "saved_usd", *(cause.value for cause in Cause))
_ACTIVE = ("=", "+", "-", "@", "\t", "\r", "\n")
"""First characters of a cell that a spreadsheet reads as a formula. Source: OWASP, CSV injection."""


def month_asked(context: RequestContext, given: str | None) -> str:
    """Read ``YYYY-MM`` in UTC; the default is this month. Raises InvalidRequestError."""
    month = given or month_of(context.outside.clock())
    if _MONTH.fullmatch(month):
        return month
    raise refused("month", f"{quoted(month)} is not a valid month", "write it like 2026-11")


def time_of(month: str) -> tuple[datetime, datetime]:
    """Return the first instant of a month and of the next one."""
    begin = datetime.fromisoformat(f"{month}-01").replace(tzinfo=UTC)
    return begin, (begin + timedelta(days=32)).replace(day=1)


def time_asked(begin: str | None, end: str | None, *, now: datetime) -> tuple[datetime, datetime]:
    """Read a half-open period, by default the last 24 hours. Raises InvalidRequestError."""
    until = now if end is None else instant("to", end)
    since = until - USUAL if begin is None else instant("from", begin)
    if since >= until:
        raise refused(
            "from", "is not before the end of the time", "ask for a time that begins before its end"
        )
    if until - since > LONGEST:
        message = f"the time is longer than {LONGEST.days} days"
        raise refused("from", message, "ask for a shorter one, or for a month with month=2026-11")
    return since, until


def team_asked(context: RequestContext, team: str | None) -> str:
    """Return the team to show. Raises ForbiddenError, or InvalidRequestError if one must be named."""
    if team is not None:
        if context.sees(team):
            return team
        if team not in known_teams(context):
            raise no_team(context, team)
        own = ", ".join(context.teams)
        error = FieldError(
            field="query.team", message="is not one of the caller's teams", hint=f"use one of: {own}"
        )
        raise ForbiddenError("the caller is not in this team", errors=[error])
    if len(context.teams) == 1:
        return context.teams[0]
    known = context.teams or tuple(team.name for team in context.policy.teams) or (DEFAULT_TEAM,)
    raise refused("team", "is needed", f"use one of: {', '.join(known)}")


def wants_csv(context: RequestContext) -> bool:
    return any(media_type.partition(";")[0].strip() == CSV for media_type in context.call.accept.split(","))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    by: GroupBy
    teams: tuple[str, ...]
    since: datetime
    until: datetime
    months: tuple[str, ...]
    is_of_month: bool
    """Whether months of the ledger are shown, so that no job is read for when it counts."""


@dataclass(slots=True)
class _Read:
    """Holds what was read about the jobs of the lines."""

    jobs: dict[str, Job] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False


def grouped_usage(context: RequestContext, given: Mapping[str, str]) -> Answer:
    question = _question(context, given)
    lines = [line for team in question.teams for line in _lines(context, team, question.months)]
    read = _read(context, question, lines)
    if not question.is_of_month:
        known = read.jobs
        lines = [
            entry
            for entry in lines
            if is_within(entry, known.get(entry.line.job), question.since, question.until)
        ]
    groups = Grouping(by=question.by, jobs=read.jobs, models=read.models).grouped(lines)
    return _answer(context, given, question, groups, is_cut=read.is_cut)


def _question(context: RequestContext, given: Mapping[str, str]) -> _Question:
    teams = _teams(context, given.get("team"))
    by = _group_by(given.get("group_by"), of_all=given.get("team") == ALL_TEAMS)
    if not given.keys() & {"from", "to"}:
        month = month_asked(context, given.get("month"))
        since, until = time_of(month)
        return _Question(by=by, teams=teams, since=since, until=until, months=(month,), is_of_month=True)
    if "month" in given:
        raise refused("month", "goes not with from and to", "give a month, or a time")
    since, until = time_asked(given.get("from"), given.get("to"), now=context.outside.clock())
    months = months_between(since, until)
    return _Question(by=by, teams=teams, since=since, until=until, months=months, is_of_month=False)


def _teams(context: RequestContext, wanted: str | None) -> tuple[str, ...]:
    if wanted != ALL_TEAMS:
        team = team_asked(context, wanted)
        if team not in known_teams(context) and not context.is_admin:
            raise no_team(context, team)
        return (team,)
    if context.is_admin:
        return known_teams(context)
    hint = f"use one of: {', '.join(context.teams)}"
    error = FieldError(field="query.team", message="all teams are for admins", hint=hint)
    raise ForbiddenError("only admins see the money of all teams", errors=[error])


def _group_by(text: str | None, *, of_all: bool) -> GroupBy:
    if text is None:
        return GroupBy.TEAM if of_all else GroupBy.JOB
    try:
        return GroupBy(text)
    except ValueError as error:
        message = f"{quoted(text)} is nothing to group by"
        raise refused("group_by", message, one_of(text, GroupBy)) from error


def _lines(context: RequestContext, team: str, months: Iterable[str]) -> Iterator[TeamLine]:
    for month in months:
        lines, _ = context.outside.reader.usage(team, month)
        yield from (TeamLine(team=team, month=month, line=line) for line in lines)


def _read(context: RequestContext, question: _Question, lines: Iterable[TeamLine]) -> _Read:
    """Read the jobs' rows if team and name are not enough, and only as many as there is time for."""
    read = _Read()
    if question.is_of_month and not question.by.needs_jobs:
        return read
    names = list(dict.fromkeys(entry.line.job for entry in lines))
    read.is_cut = len(names) > MOST_JOBS
    for number, batch in enumerate(_batches(names[:MOST_JOBS])):
        if number and not context.has_time:
            read.is_cut = True
            break
        _read_some(context, question.by, batch, read)
    return read


def _read_some(context: RequestContext, by: GroupBy, names: list[str], read: _Read) -> None:
    reader = context.outside.reader
    if by is not GroupBy.MODEL_NAME:
        read.jobs |= reader.jobs(names)
        return
    for name, (job, request) in reader.to_start(names).items():
        read.jobs[name] = job
        if (model := model_of(request)) is not None:
            read.models[name] = model


def running_view(context: RequestContext, *, teams: Collection[str], months: Collection[str]) -> View:
    """Show what the teams' live attempts have cost so far, which the ledger does not have yet.

    Each pool's running jobs are one read; a pool for which no time is left makes the sum unknown.
    """
    total, now = RunningCost(), context.outside.clock()
    for pool in context.policy.pools:
        if not context.has_time:
            total = replace(total, is_known=False)
            break
        running = context.outside.reader.running(pool.name)
        here = cost_so_far(running, teams=teams, months=months, now=now)
        total = RunningCost(
            jobs=total.jobs + here.jobs,
            known_cents=total.known_cents + here.known_cents,
            is_known=total.is_known and here.is_known,
        )
    usd = None if total.cents is None else total.cents / 100
    return {"jobs": total.jobs, "usd": usd, "known_usd": total.known_cents / 100}


def _batches(names: list[str]) -> Iterator[list[str]]:
    yield from (names[start : start + _BATCH] for start in range(0, len(names), _BATCH))


def _answer(
    context: RequestContext,
    given: Mapping[str, str],
    question: _Question,
    groups: Mapping[str | None, UsageLine],
    *,
    is_cut: bool,
) -> Answer:
    """Answer with one page of the groups; the total is of all groups on every page."""
    filters = sorted((key, value) for key, value in given.items() if key != "next_token")
    bound = json.dumps(["usage-groups", context.is_admin, context.teams, filters])
    seal = Seal(key=bytes.fromhex(context.stored.seal_key), bound=bound)
    skipped = seal.mark(given["next_token"]).counted if "next_token" in given else 0
    views = list(_page(groups, skipped))
    shown = skipped + len(views)
    token = seal.token(Mark(section="groups", order=(), counted=shown)) if shown < len(groups) else None
    if wants_csv(context):
        headers = ({NEXT_PAGE_HEADER: token} if token else {}) | ({CUT_HEADER: "true"} if is_cut else {})
        return Answer(status=HTTPStatus.OK, body=csv_text(views), content_type=CSV, headers=headers)
    total = sum(groups.values(), start=UsageLine(job=""))
    body = {
        "from": instant_text(question.since),
        "to": instant_text(question.until),
        "group_by": question.by.value,
        "groups": views,
        "total": {**line_view(total), "known_usd": sum(total.by.values()) / 100},
        "running": None if skipped else running_view(context, teams=question.teams, months=question.months),
        "truncated": is_cut,
        "next_token": token,
    }
    unused = {} if skipped else unused_plans(context, since=question.since, until=question.until)
    return Answer(status=HTTPStatus.OK, body=body | unused)


def _page(groups: Mapping[str | None, UsageLine], skipped: int) -> Iterator[View]:
    room = Room()
    for number, (key, line) in enumerate(groups.items()):
        view = {"key": key, **line_view(line)}
        if number >= skipped:
            if not room.takes(view) and number > skipped:
                return
            yield view


def csv_text(views: Iterable[View]) -> str:
    """Write a heading line, then one line a group; an unknown value is an empty cell."""
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow(_COLUMNS)
    for view in views:
        cells = view | view["by"]
        lines.writerow([_cell(cells[column]) for column in _COLUMNS])
    return text.getvalue()


def _cell(value: object) -> object:
    """Put an apostrophe before a text that a spreadsheet would run as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_ACTIVE) else value
