"""The lines that the API exports, a job each as JSON: read and checked, every mistake with line and field."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, get_args

from trainmaster.core.arrays.array_model import MOST_STOP_AFTER
from trainmaster.core.jobs.end_conditions import ConditionKind
from trainmaster.core.jobs.index_sets import MOST_ARRAY_TASKS
from trainmaster.core.jobs.reason_codes import ReasonCode

from trainmaster_client.simulate.engine.past_jobs import STOPPING, TRAINING, AskedCapacity
from trainmaster_client.simulate.histories.elastic_fields import ExportedWidths, elastic_of
from trainmaster_client.simulate.histories.line_fields import MOST_INSTANCES, Fields
from trainmaster_client.simulate.histories.line_problems import LineProblems, shown

_MOST_PRIORITY = 1000
_KINDS = tuple(ConditionKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedAttempt:
    """None where the line says null, or is of a stack that does not export it."""

    started_at: datetime
    training_since: datetime | None
    ended_at: datetime | None
    end: str | None
    lost: timedelta
    warm_start: bool | None
    trained: timedelta | None
    """Time in status Training."""
    interruptions: int | None
    """Number of spot interruptions, after each of which SageMaker started it again."""
    intervals: tuple[timedelta, ...] = ()
    """Times in status Training, those that interruptions ended first; empty where they are not known."""
    checkpoint_at: datetime | None = None
    """Instant of the newest checkpoint that was seen, maybe of an earlier attempt."""
    statuses: tuple[tuple[str, timedelta], ...] = ()
    """Secondary statuses, each with how long after the start it began; empty where they are not known."""
    plan: str | None = None
    """Name of the training plan that it ran on; None also where the stack does not export it."""
    instances: int | None = None
    """Instances that it had; None where the stack does not export it: those that the job asked for."""
    speed: float = 1.0
    """Speed at its width as a share of that at the job's largest; 1 for a job that is not elastic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCondition:
    """A condition on the end of another job."""

    kind: ConditionKind
    entry_id: str
    """Entry id of the submission of that other job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedJob:
    """A job of the export, one line."""

    name: str
    team: str
    submitted_by: str
    pool: str | None
    """Name of the pool; None takes that of its instance types."""
    instances: Mapping[str, int]
    capacity_type: AskedCapacity
    priority: int
    submitted_at: datetime
    max_runtime: timedelta
    saves_checkpoints: bool
    attempts: tuple[ExportedAttempt, ...]
    end: str | None
    """Reason code; None: it is not over."""
    ended_at: datetime | None
    entry_id: str | None
    preemptible: bool | None
    max_wait: timedelta | None = None
    warm_key: str | None = None
    learned_in: tuple[str, ...] | None = None
    after: tuple[ExportedCondition, ...] = ()
    array: str | None = None
    """Name of the array that it is a task of."""
    array_at_most: int | None = None
    array_stop_after: int | None = None
    elastic: ExportedWidths | None = None
    """Its widths; None: it is not elastic, or the stack does not export it."""
    avoids_plans: bool = False

    @property
    def key(self) -> tuple[str, datetime]:
        """Identity of the job: of two lines with the same key the later counts."""
        return self.name, self.submitted_at


def read_lines(lines: Iterable[str], *, where: str) -> Iterator[ExportedJob]:
    """Yield the jobs in order. Raises MalformedHistoryError at the end, with every mistake in it."""
    problems = LineProblems(where=where)
    for number, line in enumerate(lines, start=1):
        if line.strip():
            document = _document(line, number, problems)
            if document is not None:
                before = problems.count
                job = _job(Fields(document, number, problems))
                if problems.count == before:
                    yield job
    problems.raise_any()


def _document(line: str, number: int, problems: LineProblems) -> dict[str, Any] | None:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        says = error.msg if isinstance(error, json.JSONDecodeError) else "it is not a value that can be read"
        where = f"at character {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        problems.add(number, "", f"is not JSON: {says} {where}".rstrip(), _whole_line(line))
        return None
    if not isinstance(document, dict):
        problems.add(number, "", f"is {shown(document)}", "write one job as a JSON object on each line")
        return None
    return document


def _whole_line(line: str) -> str:
    if line.startswith("job_id,"):
        return "this is a trace: give it to --trace"
    if line.lstrip().startswith("["):
        return "write one JSON object on each line, without a list around them"
    return "write one job as a JSON object on each line"


def _job(fields: Fields) -> ExportedJob:
    instances = fields.instances("instances")
    attempts = tuple(_attempt(part) for part in fields.parts("attempts"))
    return ExportedJob(
        name=fields.text("name"),
        team=fields.text("team"),
        submitted_by=fields.text("submitted_by"),
        pool=fields.text("pool"),
        instances=instances,
        capacity_type=_capacity_type(fields),
        priority=fields.whole("priority", least=0, most=_MOST_PRIORITY),
        submitted_at=fields.instant("submitted_at"),
        max_runtime=fields.seconds("max_runtime_seconds"),
        saves_checkpoints=fields.flag("saves_checkpoints"),
        attempts=attempts,
        end=fields.text("end") if fields.has("end") else None,
        ended_at=fields.instant("ended_at") if fields.has("ended_at") else None,
        entry_id=fields.text("entry_id") if fields.has("entry_id") else None,
        preemptible=fields.flag("preemptible") if fields.has("preemptible") else None,
        max_wait=fields.seconds("max_wait_seconds") if fields.has("max_wait_seconds") else None,
        warm_key=fields.text("warm_key") if fields.has("warm_key") else None,
        learned_in=fields.texts("learned_in") if fields.has("learned_in") else None,
        after=tuple(_conditions(fields)) if fields.has("after") else (),
        array=fields.text("array") if fields.has("array") else None,
        array_at_most=_at_most(fields, "array_at_most", least=1, most=MOST_ARRAY_TASKS),
        array_stop_after=_at_most(fields, "array_stop_after", least=0, most=MOST_STOP_AFTER),
        elastic=elastic_of(fields, instances, [attempt.instances for attempt in attempts]),
        avoids_plans=fields.flag("avoids_plans") if fields.has("avoids_plans") else False,
    )


def _capacity_type(fields: Fields) -> AskedCapacity:
    text, known = fields.text("capacity_type"), get_args(AskedCapacity)
    if text not in (*known, "-"):
        fields.refuse("capacity_type", f"{shown(text)} is not known", f"write {', '.join(known)}")
    return next((kind for kind in known if kind == text), "on-demand")


def _at_most(fields: Fields, name: str, *, least: int, most: int) -> int | None:
    return fields.whole(name, least=least, most=most) if fields.has(name) else None


def _conditions(fields: Fields) -> Iterator[ExportedCondition]:
    for part in fields.parts("after"):
        kind, entry_id = part.text("when"), part.text("entry_id")
        if kind in _KINDS:
            yield ExportedCondition(kind=ConditionKind(kind), entry_id=entry_id)
        elif kind != "-":
            part.refuse("when", f"{shown(kind)} is not known", f"write {', '.join(_KINDS)}")


def _attempt(fields: Fields) -> ExportedAttempt:
    started_at = fields.instant("started_at")
    training_since = fields.instant("training_since") if fields.has("training_since") else None
    ended_at = fields.instant("ended_at") if fields.has("ended_at") else None
    if ended_at is not None and ended_at < (training_since or started_at):
        fields.refuse("ended_at", "is before it started", "correct one of the two instants")
    end = fields.text("end") if fields.has("end") else None
    statuses = tuple(_statuses(fields, started_at)) if fields.has("statuses") else ()
    if end == ReasonCode.COMPLETED:  # asked to stop while it uploaded, it ends as it would have
        statuses = tuple(pair for pair in statuses if pair[0] != STOPPING)
    intervals = tuple(after - at for (what, at), (_, after) in pairwise(statuses) if what == TRAINING)
    trained = fields.seconds("trained_seconds") if fields.has("trained_seconds") else None
    return ExportedAttempt(
        started_at=started_at,
        training_since=training_since,
        ended_at=ended_at,
        end=end,
        lost=fields.seconds("lost_seconds") if fields.has("lost_seconds") else timedelta(),
        warm_start=fields.flag("warm_start") if fields.has("warm_start") else None,
        trained=sum(intervals, timedelta()) if statuses else trained,
        interruptions=_at_most(fields, "interruptions", least=0, most=1000),
        intervals=intervals,
        checkpoint_at=fields.instant("checkpoint_at") if fields.has("checkpoint_at") else None,
        statuses=statuses,
        plan=fields.text("plan") if fields.has("plan") else None,
        instances=_at_most(fields, "instances", least=1, most=MOST_INSTANCES),
    )


def _statuses(fields: Fields, started_at: datetime) -> Iterator[tuple[str, timedelta]]:
    """Yield the statuses; none begins before the attempt: claims have our clock, statuses SageMaker's."""
    last = timedelta()
    for part in fields.parts("statuses"):
        last = max(part.instant("at") - started_at, last)
        yield part.text("status"), last
