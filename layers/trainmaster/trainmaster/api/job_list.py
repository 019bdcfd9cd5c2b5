"""GET /jobs: pools in policy order; running, waiting in their turn, held. Finished ones only by state.

A page goes on behind the last entry of the one before, so entries that stay where they are come exactly
once, whatever the others do; one that is started or preempted between two pages may be missed or come twice.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, TypeAlias

from trainmaster.api.job_context import Look, look_at, reason_now
from trainmaster.api.paging import Mark, Room, Seal
from trainmaster.api.request_context import Answer, ApiReader, RequestContext
from trainmaster.api.views import JobContext, job_view, masked_view
from trainmaster.core.errors import FieldError, InvalidRequestError, invalid, quoted
from trainmaster.core.jobs.model import FINAL, LIVE, WAITING, Job, JobState, epoch_ms
from trainmaster.core.planning.wait_reasons import NO_POSITION, QueuePosition
from trainmaster.core.policy import DEFAULT_TEAM, UNMANAGED, UNMANAGED_TEAM

Order: TypeAlias = tuple[int | str, ...]
"""An entry's position in its section; the name is the last part, so no two are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the queue, before its job is read."""

    name: str
    team: str
    state: JobState
    order: Order


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSection:
    name: str
    read: Callable[[Order | None, int], Sequence[Entry]]
    """Entries from behind a position, at most so many, in their order."""
    has_turns: bool = False
    """Its entries have positions."""


def unfinished(pools: Iterable[str], state: JobState | None, reader: ApiReader) -> list[ListSection]:
    """Pool by pool: what runs, what waits its turn, what waits for something else."""
    list_sections: list[ListSection] = []
    for pool in pools:
        if state is None or state in LIVE:
            list_sections.append(_running(pool, reader))
        if state is None or state in WAITING:
            list_sections.append(_waiting(pool, reader))
        if state is None or state in WAITING or state is JobState.HELD:
            list_sections.append(_parked(pool, reader))
    return list_sections


def finished(teams: Iterable[str], state: JobState, reader: ApiReader) -> list[ListSection]:
    """Team by team, the newest end first."""
    assert state in FINAL, state
    return [_finished(team, state, reader) for team in teams]


def _running(pool: str, reader: ApiReader) -> ListSection:
    def read(after: Order | None, limit: int) -> Sequence[Entry]:
        entries = (
            Entry(
                name=job.name,
                team=job.team,
                state=job.state,
                order=(-job.priority, epoch_ms(job.claimed_at), job.name),
            )
            for job in reader.running(pool)
        )
        return sorted((one for one in entries if after is None or one.order > after), key=_order)[:limit]

    return ListSection(name=f"running:{pool}", read=read)


def _waiting(pool: str, reader: ApiReader) -> ListSection:
    def read(after: Order | None, limit: int) -> Sequence[Entry]:
        rows = reader.waiting(pool, after=_pair(after), limit=limit)
        return [Entry(name=row.name, team=row.team, state=row.state, order=row.rank) for row in rows]

    return ListSection(name=f"waiting:{pool}", read=read, has_turns=True)


def _parked(pool: str, reader: ApiReader) -> ListSection:
    def read(after: Order | None, limit: int) -> Sequence[Entry]:
        rows = reader.parked(pool, after=_pair(after), limit=limit)
        return [
            Entry(name=row.name, team=row.team, state=row.state, order=(row.parked_until_ms, row.name))
            for row in rows
        ]

    return ListSection(name=f"parked:{pool}", read=read)


def _finished(team: str, state: JobState, reader: ApiReader) -> ListSection:
    def read(after: Order | None, limit: int) -> Sequence[Entry]:
        behind = None if after is None else (str(after[0]), str(after[1]))
        rows = reader.finished(team, state=state, after=behind, limit=limit)
        return [Entry(name=name, team=team, state=state, order=(ended_at, name)) for ended_at, name in rows]

    return ListSection(name=f"finished:{team}", read=read)


def _pair(after: Order | None) -> tuple[int, str] | None:
    return None if after is None else (int(after[0]), str(after[1]))


def _order(entry: Entry) -> Order:
    return entry.order


DEFAULT_LIMIT = 50
MAX_LIMIT = 100
_READ_AHEAD = 250
"""Entries read at a time; filters may drop most of them."""
_MAX_READ = 2000
"""Entries looked at for one page: with a filter that matches little, pages may be short, even empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """What the query string asks for."""

    state: JobState | None
    team: str | None
    pool: str | None
    limit: int
    token: str | None

    def still_fits(self, job: Job) -> bool:
        """Jobs move on between the read of the queue and that of the job."""
        right_state = job.state is self.state if self.state else not job.is_final
        return right_state and self.pool in {None, job.spec.pool}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An entry of the page, and its position if it has a turn."""

    entry: Entry
    position: QueuePosition
    mark: Mark
    """Behind which the next page begins if it is the last of this one."""


def list_jobs(context: RequestContext) -> Answer:
    query = _query(context)
    seal = Seal(key=bytes.fromhex(context.stored.seal_key), bound=_bound(context, query))
    start = seal.mark(query.token) if query.token else None
    page, end = _page(_list_sections(context, query), query, start)
    views, end = _fitting(_views(context, query, page), end)
    body = {"jobs": views, "next_token": seal.token(end) if end else None}
    return Answer(status=HTTPStatus.OK, body=body)


def _fitting(
    views: Iterable[tuple[Mark, dict[str, Any]]], end: Mark | None
) -> tuple[list[dict[str, Any]], Mark | None]:
    """As many as one answer takes, and behind which the next page begins."""
    room, taken, last = Room(), list[dict[str, Any]](), end
    for mark, view in views:
        if not room.takes(view) and taken:
            return taken, last
        taken.append(view)
        last = mark
    return taken, end


def _query(context: RequestContext) -> ListQuery:
    given = context.call.parameters("state", "team", "pool", "limit", "next_token")
    return ListQuery(
        state=_state(given.get("state")),
        team=given.get("team"),
        pool=given.get("pool"),
        limit=_limit(given.get("limit")),
        token=given.get("next_token"),
    )


def _state(text: str | None) -> JobState | None:
    if text is None:
        return None
    try:
        return JobState(text)
    except ValueError as error:
        raise _refused(
            "state", f"{quoted(text)} is no state", f"use one of: {', '.join(JobState)}"
        ) from error


def _limit(text: str | None) -> int:
    if text is None:
        return DEFAULT_LIMIT
    if text.isascii() and text.isdigit() and 1 <= int(text[:4]) <= MAX_LIMIT and len(text) < len("1000"):
        return int(text)
    raise _refused("limit", f"{quoted(text)} is not between 1 and {MAX_LIMIT}", f"write 1 to {MAX_LIMIT}")


def _refused(parameter: str, message: str, hint: str) -> InvalidRequestError:
    return invalid([FieldError(field=f"query.{parameter}", message=message, hint=hint)])


def _bound(context: RequestContext, query: ListQuery) -> str:
    """A token is good for callers who see the same, and for the same filters."""
    return json.dumps([context.is_admin, context.teams, query.state, query.team, query.pool])


def _list_sections(context: RequestContext, query: ListQuery) -> list[ListSection]:
    reader = context.outside.reader
    if query.state in FINAL:
        known = [team.name for team in context.policy.teams] or [DEFAULT_TEAM]
        teams = dict.fromkeys((*known, UNMANAGED_TEAM))
        return finished([team for team in teams if query.team in {None, team}], query.state, reader)
    pools = [*(pool.name for pool in context.policy.pools), UNMANAGED]
    return unfinished([pool for pool in pools if query.pool in {None, pool}], query.state, reader)


def _page(
    list_sections: list[ListSection], query: ListQuery, start: Mark | None
) -> tuple[list[Found], Mark | None]:
    """The page's entries, and the mark behind which the next one begins; None at the end."""
    page: list[Found] = []
    walk = _walk(list_sections, start)
    for looked, found in enumerate(walk, start=1):
        if _matches(found.entry, query):
            page.append(found)
        if len(page) == query.limit or looked == _MAX_READ:
            return page, found.mark if next(walk, None) else None
    return page, None


def _walk(list_sections: list[ListSection], start: Mark | None) -> Iterator[Found]:
    """Every entry from behind the mark, with a mark of its own."""
    names = [section.name for section in list_sections]
    if start is not None and start.section not in names:
        raise _refused("next_token", "is of a list whose pools have changed", "start again without it")
    for section in list_sections[names.index(start.section) if start else 0 :]:
        mark = (
            start
            if start and start.section == section.name
            else Mark(section=section.name, order=(), counted=0)
        )
        more = True
        while more:
            entries = section.read(mark.order or None, _READ_AHEAD)
            more = len(entries) == _READ_AHEAD
            for entry in entries:
                mark = replace(mark, order=entry.order, counted=mark.counted + 1)
                position = QueuePosition.behind(mark.counted - 1) if section.has_turns else NO_POSITION
                yield Found(entry=entry, position=position, mark=mark)


def _matches(entry: Entry, query: ListQuery) -> bool:
    return query.team in {None, entry.team} and query.state in {None, entry.state}


def _views(
    context: RequestContext, query: ListQuery, page: list[Found]
) -> Iterator[tuple[Mark, dict[str, Any]]]:
    jobs = context.outside.reader.jobs(found.entry.name for found in page)
    shown = [(found, job) for found in page if (job := jobs.get(found.entry.name)) and query.still_fits(job)]
    looks = _looks(context, (job for _, job in shown))
    for found, job in shown:
        position = found.position if job.is_waiting else NO_POSITION
        yield found.mark, _view(context, job, position, looks)


def _looks(context: RequestContext, jobs: Iterable[Job]) -> dict[str, Look | None]:
    """At the pools of those jobs of the page that wait, each once."""
    pools = {job.spec.pool for job in jobs if job.is_waiting and context.sees(job.spec.team)}
    return {pool: look_at(context.policy.pool(pool), context) for pool in sorted(pools)}


def _view(
    context: RequestContext, job: Job, position: QueuePosition, looks: dict[str, Look | None]
) -> dict[str, Any]:
    if not context.sees(job.spec.team):
        return masked_view(job, position)
    around = JobContext(
        now=context.outside.clock(),
        pool=context.policy.pool(job.spec.pool),
        position=position,
        why=reason_now(job, position, looks.get(job.spec.pool), paused=context.stored.paused),
    )
    return job_view(job, around)
