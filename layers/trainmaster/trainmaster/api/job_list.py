"""GET /jobs: pools in the policy's order; running, waiting for a turn, held. Finished jobs only by state.

A page continues behind the last entry of the page before, so an entry that stays in place comes exactly
once, whatever others do. One that is started or preempted between two pages, or moved by its team's past use,
may be missed or come twice.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import islice
from typing import Any

from trainmaster import __version__
from trainmaster.api.array_routes import arrays_that_wait, position_of_first
from trainmaster.api.array_views import array_view
from trainmaster.api.job_context import Look, look_at, reason_now, share_of, shifts_in
from trainmaster.api.job_query import ListQuery, query_of
from trainmaster.api.known_names import known_teams, no_pool, refused
from trainmaster.api.list_sections import Entry, ListSection, finished, unfinished
from trainmaster.api.paging import Mark, Room, Seal
from trainmaster.api.parent_jobs import States, parent_views, states_of, waits_for_parents
from trainmaster.api.request_context import Answer, RequestContext
from trainmaster.api.views import JobContext, job_view, masked_view
from trainmaster.core.arrays.array_model import Array
from trainmaster.core.jobs.model import FINAL, Job, JobState
from trainmaster.core.planning.wait_reasons import NO_POSITION, QueuePosition
from trainmaster.core.policy import UNMANAGED

_READ_AHEAD = 250
"""Entries of one read; filters may drop most of them."""
_MAX_READ = 2000
"""Entries read for one page; with a filter that matches little, pages may be short, even empty."""


COMPUTED_FOR_SECONDS = 60
"""Longest time that a client's kept answer may show the same computed values: positions, reasons, costs."""
_TAG_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Describes an entry of the page, with its position if it has a turn."""

    entry: Entry
    position: QueuePosition
    mark: Mark
    """Mark behind which the next page begins if this entry is the page's last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    matches: list[Found]
    end: Mark | None
    """Mark behind which the next page begins; None on the last page."""
    jobs: Mapping[str, Job]
    """Jobs that have already been read, by name."""

    def tag(self, context: RequestContext, query: ListQuery, arrays: Iterable[Array]) -> str:
        shown = [
            (match.mark.section, match.entry.name, match.entry.ver, match.entry.state)
            for match in self.matches
        ]
        counted = [match.mark.counted for match in self.matches[:1]]
        counts = [(array.name, array.ver, array.jobs.waiting, str(array.counts)) for array in arrays]
        return _entity_tag(context, query.text(), query.limit, counted, self.end is None, shown, counts)


def list_jobs(context: RequestContext) -> Answer:
    """List jobs; the entity tag covers the entries, which are read first: later changes show next time."""
    query = query_of(context)
    seal = Seal(key=bytes.fromhex(context.stored.seal_key), bound=_bound(context, query))
    start = seal.mark(query.token) if query.token else None
    page = _page(context, query, start)
    arrays = _arrays(context, query)
    tag = page.tag(context, query, arrays)
    if _is_known(context, tag):
        return _not_modified(tag)
    views, end = _fitting(_views(context, query, page), page.end)
    _refuse_unknown_pool(context, query, is_empty=not (views or end or start))
    body = {
        "jobs": views,
        "arrays": [
            array_view(array, context, position=position_of_first(array, context)) for array in arrays
        ],
        "next_token": seal.token(end) if end else None,
    }
    return Answer(status=HTTPStatus.OK, body=body, headers={"ETag": tag})


def _arrays(context: RequestContext, query: ListQuery) -> list[Array]:
    """Return the arrays with waiting tasks; none if the list is of jobs that no task waits among."""
    if query.state not in {None, JobState.PENDING, JobState.HELD} or query.token:
        return []
    return arrays_that_wait(context, query)


def _entity_tag(context: RequestContext, *content: object) -> str:
    """Hash what an answer shows, as a weak tag: computed values may differ.

    Args:
        context: Its caller and policy are part of the tag.
        content: The filters, and the versions of all that is shown.
    """
    minute = int(context.outside.clock().timestamp()) // COMPUTED_FOR_SECONDS
    sight = [__version__, context.stored.version, context.is_admin, context.teams, minute]
    key = bytes.fromhex(context.stored.seal_key)  # of names of other teams nothing can be tried out
    text = json.dumps([sight, content]).encode()
    return f'W/"{hashlib.blake2b(text, key=key, digest_size=_TAG_BYTES, person=b"entity-tag").hexdigest()}"'


def _is_known(context: RequestContext, tag: str) -> bool:
    """Tell whether the caller already has the answer with this tag."""
    given = context.call.if_none_match.split(",")
    return tag.removeprefix("W/") in {known.strip().removeprefix("W/") for known in given}


def _not_modified(tag: str) -> Answer:
    return Answer(status=HTTPStatus.NOT_MODIFIED, body="", content_type="", headers={"ETag": tag})


def _refuse_unknown_pool(context: RequestContext, query: ListQuery, *, is_empty: bool) -> None:
    """Refuse an unknown pool of ended jobs here: only an empty list shows that there was no such pool."""
    if is_empty and query.pool is not None and context.policy.pool(query.pool) is None:
        raise no_pool(context, query.pool)


def _fitting(
    views: Iterable[tuple[Mark, dict[str, Any]]], end: Mark | None
) -> tuple[list[dict[str, Any]], Mark | None]:
    """Take as many views as one answer holds; also return the mark where the next page begins."""
    room, taken, last = Room(), list[dict[str, Any]](), end
    for mark, view in views:
        if not room.takes(view) and taken:
            return taken, last
        taken.append(view)
        last = mark
    return taken, end


def _bound(context: RequestContext, query: ListQuery) -> str:
    """Bind tokens to what the caller may see, and to the filters."""
    return json.dumps([context.is_admin, context.teams, query.text()])


def _list_sections(context: RequestContext, query: ListQuery) -> list[ListSection]:
    reader = context.outside.reader
    if query.state in FINAL:
        assert query.state is not None
        teams = known_teams(context) if query.team is None else (query.team,)
        return finished(teams, query.state, reader)
    pools = [*(pool.name for pool in context.policy.pools), UNMANAGED]
    chosen = [pool for pool in pools if query.pool in {None, pool}]
    return unfinished(chosen, query.state, reader, lambda name: shifts_in(context.policy.pool(name), context))


def _page(context: RequestContext, query: ListQuery, start: Mark | None) -> Page:
    page, jobs, looked = list[Found](), dict[str, Job](), 0
    walk = _walk(_list_sections(context, query), start)
    while batch := list(islice(walk, _READ_AHEAD if query.reads_jobs else 1)):
        fits = _fits(context, query, batch, jobs)
        for left, match in zip(range(len(batch) - 1, -1, -1), batch, strict=True):
            looked += 1
            if match.entry.name in fits:
                page.append(match)
            if len(page) == query.limit or looked == _MAX_READ:
                are_more = left or next(walk, None)
                return Page(matches=page, end=match.mark if are_more else None, jobs=jobs)
    return Page(matches=page, end=None, jobs=jobs)


def _fits(
    context: RequestContext, query: ListQuery, batch: Iterable[Found], jobs: dict[str, Job]
) -> frozenset[str]:
    """Return the names that match; ``jobs`` gets the jobs that had to be read for it."""
    names = [match.entry.name for match in batch if _matches(context, match.entry, query)]
    if not query.reads_jobs or not names:
        return frozenset(names)
    reader, since = context.outside.reader, query.changed_since
    read = reader.jobs(names) if since is None else reader.changed_since(names, since)
    jobs |= {name: job for name, job in read.items() if query.is_by(job, context)}
    return frozenset(jobs)


def _walk(list_sections: list[ListSection], start: Mark | None) -> Iterator[Found]:
    """Yield every entry behind the mark, each with its own mark."""
    names = [section.name for section in list_sections]
    if start is not None and start.section not in names:
        raise refused("next_token", "is of a list whose pools have changed", "start again without it")
    for section in list_sections[names.index(start.section) if start else 0 :]:
        mark = (
            start
            if start and start.section == section.name
            else Mark(section=section.name, order=(), counted=0)
        )
        may_continue = True
        while may_continue:
            entries = section.read(mark.order or None, _READ_AHEAD)
            may_continue = len(entries) == _READ_AHEAD
            for entry in entries:
                mark = replace(mark, order=entry.order, counted=mark.counted + 1)
                position = QueuePosition.behind(mark.counted - 1) if section.has_turns else NO_POSITION
                yield Found(entry=entry, position=position, mark=mark)


def _matches(context: RequestContext, entry: Entry, query: ListQuery) -> bool:
    """Tell whether an entry matches; names and owners of other teams' jobs cannot be probed by a filter."""
    if query.is_of_own and not context.sees(entry.team):
        return False
    is_named = entry.name.startswith(query.name_prefix or "")
    return is_named and query.team in {None, entry.team} and query.state in {None, entry.state}


def _views(context: RequestContext, query: ListQuery, page: Page) -> Iterator[tuple[Mark, dict[str, Any]]]:
    names = [match.entry.name for match in page.matches]
    jobs = page.jobs if query.reads_jobs else context.outside.reader.jobs(names)
    shown = [
        (match, job)
        for match in page.matches
        if (job := jobs.get(match.entry.name)) and query.still_fits(job)
    ]
    looks = _looks(context, (job for _, job in shown))
    seen = [job for _, job in shown if context.sees(job.spec.team)]
    states = states_of(context, seen)
    for match, job in shown:
        position = match.position if job.is_waiting else NO_POSITION
        yield match.mark, _view(context, job, position, looks, states)


def _looks(context: RequestContext, jobs: Iterable[Job]) -> dict[str, Look | None]:
    """Look at the pool of each waiting job of the page, each pool once."""
    pools = {job.spec.pool for job in jobs if job.is_waiting and context.sees(job.spec.team)}
    return {pool: look_at(context.policy.pool(pool), context) for pool in sorted(pools)}


def _view(
    context: RequestContext,
    job: Job,
    position: QueuePosition,
    looks: dict[str, Look | None],
    states: States,
) -> dict[str, Any]:
    if not context.sees(job.spec.team):
        return masked_view(job, position)
    look = looks.get(job.spec.pool)
    around = JobContext(
        now=context.outside.clock(),
        pool=context.policy.pool(job.spec.pool),
        position=position,
        why=waits_for_parents(job, states) or reason_now(job, position, look, paused=context.stored.paused),
        parents=parent_views(job, context, states),
        share=share_of(job, look),
    )
    return job_view(job, around)
