"""Why a job does not run, who uses its instances until when, and what would help: lines for people."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from trainmaster.core.jobs.row_words import length

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.instants import clock, likely_start, with_local_clocks, zone_line
from trainmaster_client.jobs.job_views import NO_NAME, JobView, job_view
from trainmaster_client.jobs.progress import is_next, place_line
from trainmaster_client.jobs.queue_reader import listed_jobs

SHOWN_JOBS = 5
"""Jobs that are named in a line; more are only counted."""
MOST_PAGES = 5
"""Pages of the pool's queue that are read."""
_CLOCK = re.compile(r"\b\d\d:\d\d\b")
_ANY = datetime.min.replace(tzinfo=UTC)
"""Stands for the instant of jobs without one, which are sorted apart."""

HELP = {
    "ahead": "raise its priority: trainmaster priority {name} N",
    "capacity": "ask for fewer or other instances (tag trainmaster:alternatives), or raise its priority if"
    " others may be preempted: trainmaster priority {name} N",
    "quota": "wait for one of your team's jobs to end, or ask an admin to raise the team's quota or"
    " borrowing_limit",
    "budget": "wait until jobs of the team end and give back what they reserve and do not use, set a shorter"
    " MaxRuntimeInSeconds, or ask an admin to raise the team's budget",
    "held": "run: trainmaster release {name}",
    "dependency": "trainmaster tree {name} shows what it waits for; trainmaster after {name} --none has it"
    " wait for no job",
    "window": "let it save (CheckpointConfig) or set a shorter MaxRuntimeInSeconds, so that it may start"
    " before the instant that is named; trainmaster pools --ahead shows calendar and reservations",
    "backoff": "nothing to do; it retries automatically",
    "reservation": "set a shorter MaxRuntimeInSeconds: a job that is certain to end in time may go first",
    "account-limit": "ask AWS Service Quotas for a higher training quota on this type",
    "refused": "nothing to do if the right, role, subnet or key that AWS names comes back; otherwise fix the"
    " request and submit it under another name. trainmaster doctor says whether all starts with the role are"
    " refused",
    "paused": "ask an admin to resume: trainmaster policy resume",
    "recount": "ask an admin to pause and to run trainmaster repair --apply",
}
"""Advice by the code of the reason."""


_FOR_INSTANCES = frozenset({"capacity", "ahead", "reservation", "quota"})
"""Codes of waits that end when others give instances back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitReport:
    """Explains a wait by the jobs around it."""

    users: tuple[JobView, ...] = ()
    """Jobs that use its instances, the first to free them first; under a quota only those of its team."""
    ahead: tuple[JobView, ...] = ()
    """Jobs before it in the pool's queue, the first few."""
    unnamed_ahead: int = 0
    """Further jobs before it."""
    help: str = ""
    """Advice, with the command where there is one; empty if nothing helps, or the job does not wait."""


def wait_report(job: JobView, others: Iterable[JobView]) -> WaitReport:
    """Explain why a job waits by the other jobs of its pool, as far as those are given."""
    if not job.is_waiting:
        return WaitReport()
    others = list(others)
    ahead = _ahead(job, others)
    code = job.waiting.code if job.waiting else ""
    return WaitReport(
        users=tuple(_users(job, others)),
        ahead=tuple(ahead[:SHOWN_JOBS]),
        unnamed_ahead=max((job.position or 0) - 1 - SHOWN_JOBS, 0) if ahead else 0,
        help=HELP[code].format(name=job.name) if code in HELP and not is_next(job) else "",
    )


def why_lines(api: ApiClient, document: Document, *, now: datetime) -> list[str]:
    """Explain a job's wait, with up to five pages of its pool's queue; times are in this machine's zone.

    Args:
        api: Asked for the other jobs of the pool, where they are what the job waits for.
        document: The job as ``GET /jobs/{name}`` answers it.
        now: An instant with a zone.
    """
    view = job_view(document)
    others = _others(api, view)
    lines = [with_local_clocks(line, now=now) for line in _lines(view, document, others, now=now)]
    has_times = any(_CLOCK.search(line) for line in lines)
    return [*lines, f"  {zone_line(now)}"] if has_times else lines


def _lines(job: JobView, document: Document, others: list[JobView], *, now: datetime) -> Iterator[str]:
    if not job.is_waiting:
        yield f"{job.name} does not wait: it is {job.state}{f' - {job.why}' if job.why else ''}"
        yield from (f"  {warning}" for attempt in job.attempts for warning in attempt.warnings)
        yield from _start_line(job, document)
        return
    yield f"{job.name}: {place_line(job)}"
    yield from _shapes_line(document)
    start = document.get("estimated_start")
    if isinstance(start, dict):
        yield f"  {likely_start(start, now=now)}"
    elif document.get("estimate_note"):
        yield f"  Start {printable(document['estimate_note'])}"
    share = document.get("fair_share")
    if isinstance(share, dict) and share.get("message"):
        yield f"  Fair share: {printable(share['message'])}"
    yield from _report_lines(wait_report(job, others), now)


def _start_line(job: JobView, document: Document) -> Iterator[str]:
    """Yield why its newest attempt started in its shape, else why its shapes are in their order."""
    starts = [transition.reason for transition in job.history if transition.to == "starting"]
    reason = starts[-1] if starts else None
    if reason is not None and reason.code == "cheapest":
        yield f"  Started in this shape: {reason.message}"
    else:
        yield from _shapes_line(document)


def _shapes_line(document: Document) -> Iterator[str]:
    """Yield why its shapes are tried in their order, if measured work per dollar decided that."""
    if because := document.get("shapes_because"):
        yield f"  Shapes: {printable(because)}"


def _report_lines(report: WaitReport, now: datetime) -> Iterator[str]:
    if report.users:
        yield "  In use by:"
    yield from (f"    {_user(user, now)}" for user in report.users[:SHOWN_JOBS])
    if unnamed := report.users[SHOWN_JOBS:]:
        yield f"    and {len(unnamed)} more"
    if report.ahead:
        others_ahead = f" and {report.unnamed_ahead} more" if report.unnamed_ahead else ""
        yield f"  Ahead: {', '.join(_named(job_ahead) for job_ahead in report.ahead)}{others_ahead}"
    if report.help:
        yield f"  What would help: {report.help}"


def _others(api: ApiClient, job: JobView) -> list[JobView]:
    """Read jobs of its pool, running ones first, as far as a few pages show them."""
    if not depends_on_others(job):
        return []
    return [job_view(entry) for entry in listed_jobs(api, {"pool": job.pool}, most_pages=MOST_PAGES)]


def depends_on_others(job: JobView) -> bool:
    """Tell whether other jobs of its pool are part of why a job waits."""
    code = job.waiting.code if job.waiting else ""
    return job.is_waiting and (code in _FOR_INSTANCES or job.position not in {None, 1})


def _users(job: JobView, others: list[JobView]) -> list[JobView]:
    code = job.waiting.code if job.waiting else ""
    if code not in _FOR_INSTANCES:
        return []
    types = job.instances_by_type.keys()
    users = [other for other in others if other.is_live and other.instances_by_type.keys() & types]
    if code == "quota":
        users = [other for other in users if other.team == job.team]
    return sorted(users, key=lambda other: (other.ends_by is None, other.ends_by or _ANY))


def _user(job: JobView, now: datetime) -> str:
    if job.ends_by is None:
        until = "no certain end yet"
    elif job.ends_by <= now:
        until = "due to end"
    else:
        until = f"until {clock(job.ends_by, now)} at the latest (in {length(job.ends_by - now)})"
    return f"{job.name or NO_NAME} of team {job.team}: {job.instances}, {until}"


def _ahead(job: JobView, others: list[JobView]) -> list[JobView]:
    """List the jobs before it in the pool's queue."""
    before = [
        other
        for other in others
        if other.is_waiting and other.position is not None and other.position < (job.position or 0)
    ]
    return sorted(before, key=lambda other: other.position or 0)


def _named(job: JobView) -> str:
    name = job.name or f"{NO_NAME} of team {job.team}"
    return f"{name} (priority {job.priority}, {job.instances})"
