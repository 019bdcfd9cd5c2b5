"""The answer of ``GET /timeline`` as typed data, and as rows: one per instance, with what held it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

from trainmaster_client.errors import MalformedViewError
from trainmaster_client.http.answers import printable

PREEMPTED = frozenset({"preemption"})
"""Reason codes of an attempt that was preempted by another job."""
COMPLETED = frozenset({"completed"})

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSpan:
    """An attempt from its claim to its end."""

    job: str | None
    """Name of the job; None if it is another team's."""
    attempt: int
    team: str
    pool: str
    instances: Mapping[str, int]
    capacity_type: str
    claimed_at: datetime
    training_since: datetime | None
    ended_at: datetime | None
    end: str
    """Reason code; empty while it is live."""
    preempted_by: str
    """Name or team of the job that preempted it; empty if none did."""
    warm_start: bool
    lost: timedelta
    unknown: timedelta = timedelta()
    """Training that may be in a checkpoint, though none was seen."""

    @property
    def label(self) -> str:
        return self.job or f"({self.team})"

    @property
    def was_preempted(self) -> bool:
        return self.end in PREEMPTED or bool(self.preempted_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityChange:
    """The capacity of a pool from an instant on."""

    at: datetime
    pool: str
    by_kind: Mapping[str, Mapping[str, int]]
    """Instances by capacity type and instance type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmSpan:
    pool: str
    instance_type: str
    instances: int
    since: datetime
    until: datetime | None
    """When it ended; None while it is still warm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    attempts: tuple[AttemptSpan, ...]
    capacity: tuple[CapacityChange, ...]
    warm: tuple[WarmSpan, ...]
    since: datetime | None
    """Begin of the records, except of live attempts; None if all is recorded."""


class SlotUse(StrEnum):
    STARTING = "starting"
    TRAINING = "training"
    UNSEEN = "unseen"
    """Training of which no checkpoint was seen: lost or saved, nobody knows."""
    WARM = "warm"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSpan:
    """A use of one instance, without a gap."""

    use: SlotUse
    since: datetime
    until: datetime
    attempt: AttemptSpan | None
    """The attempt that used it; None if it was kept warm."""


@dataclass(slots=True, kw_only=True)
class InstanceRow:
    spans: list[SlotSpan] = field(default_factory=list)
    """Uses of the instance, in order."""

    @property
    def free_since(self) -> datetime:
        return self.spans[-1].until


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRows:
    """The instances of a pool of one type and capacity type, as many as were used at once."""

    pool: str
    instance_type: str
    capacity_type: str
    rows: tuple[InstanceRow, ...]


def timeline(document: Mapping[str, Any]) -> Timeline:
    """Raises MalformedViewError."""
    try:
        return Timeline(
            attempts=tuple(map(_attempt, document.get("attempts") or ())),
            capacity=tuple(sorted(map(_capacity, document.get("capacity") or ()), key=attrgetter("at"))),
            warm=tuple(map(_warm, document.get("warm") or ())),
            since=_optional(document.get("since"), datetime.fromisoformat),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error


def instance_rows(seen: Timeline, *, now: datetime) -> list[InstanceRows]:
    """Place each attempt and warm pool on rows that were free then, the row that became free last first.

    So what follows a job on its own instances, as a warm pool does, is in the same row.
    """
    groups = []
    for key, parts in groupby(
        sorted(_parts(seen, now), key=lambda part: part.key), key=lambda part: part.key
    ):
        rows: list[InstanceRow] = []
        for part in sorted(parts, key=lambda part: (part.spans[0].since, part.spans[-1].until)):
            for row in _free_rows(rows, part.spans[0].since, part.count):
                row.spans += part.spans
        pool, instance_type, kind = key
        groups.append(
            InstanceRows(pool=pool, instance_type=instance_type, capacity_type=kind, rows=tuple(rows))
        )
    return groups


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    key: tuple[str, str, str]
    count: int
    spans: tuple[SlotSpan, ...]


def _parts(seen: Timeline, now: datetime) -> Iterable[_Part]:
    for attempt in seen.attempts:
        spans = _attempt_spans(attempt, now)
        for instance_type, count in attempt.instances.items():
            yield _Part(key=(attempt.pool, instance_type, attempt.capacity_type), count=count, spans=spans)
    for warm in seen.warm:
        until = max(warm.since, warm.until or now)
        kept = SlotSpan(use=SlotUse.WARM, since=warm.since, until=until, attempt=None)
        yield _Part(key=(warm.pool, warm.instance_type, "on-demand"), count=warm.instances, spans=(kept,))


def _attempt_spans(attempt: AttemptSpan, now: datetime) -> tuple[SlotSpan, ...]:
    until = max(attempt.claimed_at, attempt.ended_at or now)
    begun = (
        until
        if attempt.training_since is None
        else min(max(attempt.training_since, attempt.claimed_at), until)
    )
    starting = SlotSpan(use=SlotUse.STARTING, since=attempt.claimed_at, until=begun, attempt=attempt)
    if attempt.training_since is None:
        return (starting,)
    use = SlotUse.UNSEEN if attempt.unknown else SlotUse.TRAINING  # no checkpoint of any of it was seen
    training = SlotSpan(use=use, since=begun, until=until, attempt=attempt)
    return (starting, training) if begun > attempt.claimed_at else (training,)


def _free_rows(rows: list[InstanceRow], at: datetime, count: int) -> Sequence[InstanceRow]:
    """Return that many free rows, adding new ones if too few are free."""
    free = sorted((row for row in rows if row.free_since <= at), key=attrgetter("free_since"), reverse=True)
    new = [InstanceRow() for _ in range(count - len(free))]
    rows += new
    return [*free[:count], *new]


def _attempt(document: Mapping[str, Any]) -> AttemptSpan:
    return AttemptSpan(
        job=_optional(document.get("job"), printable),
        attempt=int(document.get("attempt") or 0),
        team=printable(document.get("team")),
        pool=printable(document.get("pool")),
        instances=_counts(document.get("instances")),
        capacity_type=printable(document.get("capacity_type")) or "on-demand",
        claimed_at=datetime.fromisoformat(document["claimed_at"]),
        training_since=_optional(document.get("training_since"), datetime.fromisoformat),
        ended_at=_optional(document.get("ended_at"), datetime.fromisoformat),
        end=printable(document.get("end")),
        preempted_by=_preemptor(document),
        warm_start=bool(document.get("warm_start")),
        lost=timedelta(seconds=document.get("lost_seconds") or 0),
        unknown=timedelta(seconds=document.get("unknown_seconds") or 0),
    )


def _preemptor(document: Mapping[str, Any]) -> str:
    """Name the preempting job; another team's job has no name, but a team."""
    name, team = (printable(document.get(key)) for key in ("preempted_by", "preempted_by_team"))
    return name or (f"a job of team {team}" if team else "")


def _capacity(document: Mapping[str, Any]) -> CapacityChange:
    return CapacityChange(
        at=datetime.fromisoformat(document["at"]),
        pool=printable(document.get("pool")),
        by_kind={
            "on-demand": _counts(document.get("capacity")),
            "spot": _counts(document.get("spot_capacity")),
            "plan": _counts(document.get("plan_capacity")),
        },
    )


def _warm(document: Mapping[str, Any]) -> WarmSpan:
    return WarmSpan(
        pool=printable(document.get("pool")),
        instance_type=printable(document["instance_type"]),
        instances=int(document.get("instances") or 0),
        since=datetime.fromisoformat(document["since"]),
        until=_optional(document.get("until"), datetime.fromisoformat),
    )


def _counts(counts: Mapping[str, Any] | None) -> dict[str, int]:
    return {printable(name): int(count) for name, count in (counts or {}).items()}


def _optional(value: Any, parse: Callable[[Any], T]) -> T | None:  # noqa: ANN401  JSON
    return None if value is None else parse(value)
