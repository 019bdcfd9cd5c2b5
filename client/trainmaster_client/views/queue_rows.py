"""A row of the queue: a job, or an array of jobs, in the words that every view shows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.core.jobs.row_words import LONGEST_SHORT_REASON, length, short_length

from trainmaster_client.jobs.array_views import ArrayView, TaskCounts
from trainmaster_client.jobs.job_views import NO_NAME, JobView
from trainmaster_client.jobs.start_estimates import StartEstimate
from trainmaster_client.views.short_reasons import QueueFacts, short_reason

NOTHING = "-"
"""Stands in a cell of which nothing is known, or that does not apply."""

MOST_PARENTS = 5
"""Parents that are named; further ones are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    sign: str
    """Stands beside the word, so that no state is known by its colour alone."""
    tone: str
    """``good``, ``bad``, ``warn`` or ``dim``: each view has its colours for them."""


STATE_MARKS: Mapping[str, Mark] = {
    "running": Mark(sign="▶", tone="good"),
    "starting": Mark(sign="◔", tone="good"),
    "pending": Mark(sign="○", tone="dim"),
    "held": Mark(sign="‖", tone="warn"),
    "preempting": Mark(sign="⇤", tone="warn"),
    "preempted": Mark(sign="↺", tone="warn"),
    "stopping": Mark(sign="◧", tone="warn"),
    "completed": Mark(sign="✓", tone="good"),
    "failed": Mark(sign="✕", tone="bad"),
    "stopped": Mark(sign="■", tone="dim"),
}
UNKNOWN_MARK = Mark(sign="?", tone="dim")
"""Mark of a state that this release does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    key: str
    heading: str
    """Short, for a terminal."""
    title: str
    is_number: bool = False


COLUMNS = (
    Column(key="job", heading="JOB", title="Job"),
    Column(key="team", heading="TEAM", title="Team"),
    Column(key="pool", heading="POOL", title="Pool"),
    Column(key="state", heading="STATE", title="State"),
    Column(key="instances", heading="INSTANCES", title="Instances"),
    Column(key="count", heading="N", title="Count"),
    Column(key="priority", heading="PRIO", title="Priority", is_number=True),
    Column(key="position", heading="POS", title="Position", is_number=True),
    Column(key="attempt", heading="ATTEMPT", title="Attempt", is_number=True),
    Column(key="age", heading="AGE", title="Age", is_number=True),
    Column(key="ran", heading="RAN", title="Ran", is_number=True),
    Column(key="left", heading="LEFT", title="Left", is_number=True),
    Column(key="starts", heading="STARTS", title="Starts in", is_number=True),
    Column(key="starts_late", heading="P90", title="Starts in, p90", is_number=True),
    Column(key="starts_range", heading="STARTS", title="Starts in (p90)", is_number=True),
    Column(key="short", heading="REASON", title="Reason"),
    Column(key="reason", heading="REASON", title="Reason"),
)
"""All columns in their order; a view has those that it has space for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    cells: Mapping[str, str]
    """Text by the key of its column; each column has one."""
    name: str
    """Name that commands take; empty if it is another team's."""
    mark: Mark
    code: str
    """Code of the reason; empty if there is none."""
    details: tuple[str, ...]
    """All that is known, as phrases that a comma can separate; the name is not among them."""
    job: JobView | None = None
    """The job as the API gave it; None if the row is an array's."""
    start: StartEstimate | None = None
    """Likely start; None if the job does not wait or nothing is known of it."""
    ran: timedelta | None = None
    """Time the live attempt has trained; an older stack tells only when the job first started."""
    left: timedelta | None = None
    """Longest time until the job's instances are certain to be free; None if not known."""
    searched: str = field(default="", repr=False)
    """Text in which a reader may look for a word, in lower case."""


def job_row(job: JobView, facts: QueueFacts, *, now: datetime, start: StartEstimate | None = None) -> Row:
    """Put a job into words.

    Args:
        job: The job.
        facts: What its short reason may name.
        now: An instant with a zone, which ages are counted to.
        start: Its likely start, if one is known.
    """
    since = job.training_since or job.started_at
    ran = None if since is None or not job.is_live else max(now - since, timedelta())
    left = None if job.ends_by is None else max(job.ends_by - now, timedelta())
    born = job.submitted_at or job.started_at
    starts = NOTHING if start is None else _until(start.p50, now)
    reason, short = job.waiting or job.reason, short_reason(job, facts)
    cells = {
        "job": job.name or NO_NAME,
        "team": job.team,
        "pool": job.pool,
        "state": job.state,
        "instances": job.instances,
        "count": f"{job.instance_count}x{' spot' if job.is_spot else ''}",
        "priority": str(job.priority),
        "position": _position(job.position, job.ahead_at_least),
        "attempt": NOTHING if job.attempt is None else str(job.attempt),
        "age": NOTHING if born is None else length(now - born),
        "ran": NOTHING if ran is None else short_length(ran),
        "left": NOTHING if left is None else short_length(left),
        "starts": starts,
        "starts_late": NOTHING if start is None else _until(start.p90, now),
        "starts_range": starts if start is None else f"{starts} ({_until(start.p90, now)})",
        "short": short,
        "reason": job.why or short,
    }
    return Row(
        cells=cells,
        name=job.name or "",
        mark=STATE_MARKS.get(job.state, UNKNOWN_MARK),
        code=reason.code if reason else "",
        details=tuple(_details({**cells, "after": _conditions(job), "width": job.width_note})),
        job=job,
        start=start,
        ran=ran,
        left=left,
        searched=_searched(cells),
    )


def array_row(array: ArrayView, *, now: datetime) -> Row:
    """Put an array into words, as of an instant with a zone: one line, however many tasks it has."""
    reason = array.waiting or array.reason
    born = datetime.fromisoformat(array.submitted_at) if array.submitted_at else None
    cells = dict.fromkeys((column.key for column in COLUMNS), NOTHING) | {
        "job": array.name or NO_NAME,
        "team": array.team,
        "pool": array.pool,
        "state": array.state,
        "instances": "array",
        "count": "array",
        "priority": str(array.priority),
        "position": _position(array.position, None),
        "age": NOTHING if born is None else length(now - born),
        "short": _task_counts(array.tasks),
        "reason": "; ".join(part for part in (array.counts, array.why) if part),
    }
    return Row(
        cells=cells,
        name=array.name,
        mark=STATE_MARKS.get(array.state, UNKNOWN_MARK),
        code=reason.code if reason else "",
        details=tuple(_details(cells)),
        searched=_searched(cells),
    )


def _task_counts(tasks: TaskCounts) -> str:
    """Write ``50 of 64 wait, 8 run, 2 failed``, with as many counts as a short reason holds."""
    counts = {
        "wait": tasks.waiting,
        "held": tasks.held,
        "run": tasks.running,
        "failed": tasks.failed,
        "completed": tasks.completed,
        "stopped": tasks.stopped,
    }
    parts = [f"{count} {word}" for word, count in counts.items() if count] or ["none left"]
    parts[0] = parts[0].replace(" ", f" of {tasks.total} ", 1)
    texts = (", ".join(parts[:most]) for most in range(len(parts), 0, -1))
    return next(text for text in texts if len(text) <= LONGEST_SHORT_REASON)


def _details(cells: Mapping[str, str]) -> Iterator[str]:
    """Yield the facts of a row as phrases; what is not known is left out."""
    team, pool, starts = cells["team"], cells["pool"], cells["starts"]
    yield f"{team} in {pool}" if team and pool else team or pool
    yield cells["state"]
    for phrase, key in (
        ("position {}", "position"),
        ("priority {}", "priority"),
        ("{}", "instances"),
        ("attempt {}", "attempt"),
        ("age {}", "age"),
        ("ran {}", "ran"),
        ("at most {} left", "left"),
        ("likely to start {}" if starts == "now" else "likely to start in {}", "starts"),
        ("after {}", "after"),
        ("{}", "width"),
        ("{}", "reason"),
    ):
        if cells.get(key, "") not in {"", NOTHING} and (key, cells[key]) != ("attempt", "0"):
            yield phrase.format(cells[key])


def _conditions(job: JobView) -> str:
    """Write what a waiting job waits for, with the states; empty if it is no other job."""
    if not job.is_waiting:
        return ""
    named = [f"{parent.condition}{f' ({parent.state})' if parent.state else ''}" for parent in job.parents]
    unnamed = len(named) - MOST_PARENTS
    return ", ".join(named[:MOST_PARENTS]) + (f" and {unnamed} more" if unnamed > 0 else "")


def _searched(cells: Mapping[str, str]) -> str:
    keys = ("job", "team", "pool", "state", "instances", "reason", "short")
    return "\n".join(cells[key] for key in keys).casefold()


def _position(number: int | None, ahead_at_least: int | None) -> str:
    if number is not None:
        return str(number)
    return NOTHING if ahead_at_least is None else f">{ahead_at_least}"


def _until(at: datetime, now: datetime) -> str:
    return short_length(at - now) if at > now else "now"
