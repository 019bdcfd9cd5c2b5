"""The small ports: the wake-up queue, checkpoints in a bucket, alarms, what listeners and people are told."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster.core.errors import UnavailableError
from trainmaster.core.jobs.observations import Newest
from trainmaster.core.monitoring.alarms import Alarm, AlarmReading, AlarmState
from trainmaster.core.monitoring.queue_front_looks import Front, Look, Unseen
from trainmaster.core.records import SetAside, TeamCalls
from trainmaster.core.row_differences import Repair
from trainmaster.services.deadline import Deadline


@dataclass(slots=True)
class MemoryWakeUps:
    woken: list[str] = field(default_factory=list)
    """Pools, in the order of their wake-ups; whoever answers takes them out."""
    hops: list[int] = field(default_factory=list)
    """Of each call."""

    def send(self, pools: Iterable[str], *, hops: int = 0) -> None:
        self.woken += pools
        self.hops.append(hops)


class _OneByOne:
    """Beside, where one thing happens after the other."""

    hands = 1

    def __call__(self, tasks: Iterable[Callable[[], object]]) -> None:
        for task in tasks:
            task()


one_by_one = _OneByOne()


@dataclass(slots=True)
class MemoryTurns:
    """It is always our turn, unless a test says otherwise."""

    closed: set[str] = field(default_factory=set)
    """Operations whose turn does not come."""

    def wait_for(self, operation: str, *, most: timedelta) -> bool:  # noqa: ARG002  as the port
        return operation not in self.closed

    def throttled(self, operation: str) -> None: ...

    def accepted(self, operation: str) -> None: ...


@dataclass(slots=True)
class MemoryRotation:
    last: str | None = None

    def looked_upto(self) -> str | None:
        return self.last

    def note_looked(self, name: str) -> None:
        self.last = name


@dataclass(slots=True)
class MemoryReadCounts:
    """What instances tell; a broken one takes nothing."""

    totals: dict[tuple[str, datetime], TeamCalls] = field(default_factory=dict)
    """By team and minute."""
    writes: list[tuple[str, datetime]] = field(default_factory=list)
    is_broken: bool = False

    def add_calls(self, team: str, counted: TeamCalls, *, at: datetime) -> Mapping[str, TeamCalls]:
        self.writes.append((team, at))
        if self.is_broken:
            raise UnavailableError("throttled")
        minute = (team, at.replace(second=0, microsecond=0))
        before = self.totals.get(minute, TeamCalls())
        after = TeamCalls(reads=before.reads + counted.reads, calls=before.calls + counted.calls)
        self.totals[minute] = after
        return {name: total for (name, when), total in self.totals.items() if when == minute[1]}


@dataclass(slots=True)
class MemoryFronts:
    fronts: dict[str, Front] = field(default_factory=dict)

    def front(self, pool: str) -> Front:
        return self.fronts.get(pool, Front())

    def note_look(self, pool: str, look: Look) -> None:
        self.fronts[pool] = replace(self.front(pool), look=look)

    def note_unseen(self, pool: str, unseen: Unseen | None) -> None:
        self.fronts[pool] = replace(self.front(pool), unseen=unseen)


FOREVER = Deadline(lambda: timedelta(hours=1))
"""Time that does not pass."""


@dataclass(slots=True)
class MemoryCheckpoints:
    written: dict[str, datetime] = field(default_factory=dict)
    """By S3 URI."""

    def newest(self, uri: str) -> Newest:
        return Newest(written_at=self.written.get(uri))


@dataclass(slots=True)
class MemoryLogs:
    tails: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By training job."""

    def tail(self, training_job_name: str) -> tuple[str, ...]:
        return self.tails.get(training_job_name, ())


@dataclass(slots=True)
class MemoryNotifier:
    told: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def tell(self, kind: str, detail: Mapping[str, Any]) -> None:
        self.told.append((kind, detail))


@dataclass(slots=True)
class MemoryMailer:
    mails: list[tuple[str, str]] = field(default_factory=list)
    """Subject and text."""

    def mail(self, subject: str, text: str, attributes: Mapping[str, str]) -> None:
        assert attributes
        self.mails.append((subject, text))


@dataclass(slots=True)
class MemoryAlarms:
    """AlarmKeeper and AlarmReader: an alarm stays in its state until a test changes it."""

    alarms: dict[str, Alarm] = field(default_factory=dict)
    states: dict[str, AlarmReading] = field(default_factory=dict)
    """Of the alarms above; not here: INSUFFICIENT_DATA, as they are born."""
    born: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    refuses: UnavailableError | None = None
    """With what the next alarms are refused."""

    def put(self, alarms: Sequence[Alarm]) -> None:
        if alarms and self.refuses is not None:
            raise self.refuses
        self.alarms |= {alarm.name: alarm for alarm in alarms}

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            self.alarms.pop(name, None)
            self.states.pop(name, None)

    def goes(self, name: str, state: AlarmState, at: datetime) -> None:
        assert name in self.alarms, name
        self.states[name] = AlarmReading(state=state, since=at)

    def reading(self, alarm_name: str) -> AlarmReading | None:
        if alarm_name not in self.alarms:
            return None
        newborn = AlarmReading(state=AlarmState.INSUFFICIENT_DATA, since=self.born)
        return self.states.get(alarm_name, newborn)

    def readings(self, prefix: str) -> Mapping[str, AlarmReading]:
        found = {name: self.reading(name) for name in self.alarms if name.startswith(prefix)}
        return {name: reading for name, reading in found.items() if reading is not None}


@dataclass(slots=True)
class MemoryMetrics:
    """MetricReader: every host has data, but for those that a test silences."""

    silent: set[str] = field(default_factory=set)

    def have_data(
        self,
        hosts: Sequence[str],
        *,
        since: datetime,  # noqa: ARG002
        until: datetime,  # noqa: ARG002
    ) -> Mapping[str, bool]:
        return {host: host not in self.silent for host in hosts}


class MemoryRegister:
    """Dictionaries are always understood."""

    def noted(self, *, now: datetime) -> tuple[SetAside, ...]:  # noqa: ARG002
        return ()

    def forget(self) -> None:
        """There is nothing."""


class MemoryRepairs:
    """RepairStore, for who is never asked to repair: dictionaries do not drift."""

    def repair(self) -> Repair | None:
        return None

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"used {name} without a repair")
