"""Records of the past, the windows they are read by, and their means over time."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from trainmaster.core.durations.work_speeds import WorkSpeed
from trainmaster.core.jobs.attempts import StatusStart
from trainmaster.core.jobs.end_conditions import ConditionKind
from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.reason_codes import Code
from trainmaster.core.jobs.widths import Widths

ONE_DAY = timedelta(days=1)
LONGEST_ATTEMPT = timedelta(days=60)
"""Longest time from claim to end. Source: CreateTrainingJob, up to 28 days of waiting and 28 of running."""

LONGEST_WARM_POOL = timedelta(days=30)
"""Longest life of a warm pool: ``warm_pool.max_idle`` is at most 28 days, SageMaker may report a little
more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A half-open period: ``since`` is in it, ``until`` is not."""

    since: datetime
    until: datetime

    def overlaps(self, began: datetime, ended: datetime | None) -> bool:
        """Tell whether a time lies partly in the window; ``ended`` None means that it goes on."""
        return began < self.until and (ended is None or ended > self.since or began >= self.since)

    def days(self, *, longer: timedelta = timedelta()) -> Iterator[date]:
        """Yield the UTC days that it touches, and those up to ``longer`` after its end."""
        day, last = self.since.astimezone(UTC).date(), (self.until + longer).astimezone(UTC).date()
        while day <= last:
            yield day
            day += ONE_DAY


Position = tuple[str, str]
"""Record after which a list continues: part of the history, and place in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastAttempt:
    """The record of an attempt that has ended."""

    number: int
    vector: Vector
    claimed_at: datetime
    training_since: datetime | None = None
    end: Code | None = None
    preempted_by: str | None = None
    """Name of the preemptor, if the attempt was stopped for one."""
    preempted_by_team: str | None = None
    warm_start: bool = False
    lost: timedelta = timedelta()
    """Training that no checkpoint had kept when it ended."""
    unknown: timedelta = timedelta()
    """Training that may be in a checkpoint, though none was seen; nothing in what earlier releases noted."""
    trained: timedelta | None = None
    """Time in status Training; None if it never was, or an earlier release made the record."""
    interruptions: int = 0
    """Interruptions of its spot instances, after each of which SageMaker started it again."""
    checkpoint_at: datetime | None = None
    """The newest checkpoint that was seen; None if none was, or an earlier release made the record."""
    statuses: tuple[StatusStart, ...] | None = None
    """Secondary statuses that it went through; None if unknown, or an earlier release made the record."""
    speed: WorkSpeed | None = None
    """Samples or tokens a second; None if its metrics told none, or an earlier release made the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCondition:
    """A condition that a job had on another."""

    kind: ConditionKind
    job: str
    """Name of the parent."""
    entry_id: str
    """Entry id of the parent's submission."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalJob:
    """The facts about a job that is over that a later replay of the queue needs."""

    entry_id: str
    submitted_by: str
    submitted_at: datetime
    vector: Vector
    """Instances that it asked for."""
    priority: int
    max_runtime: timedelta
    saves_checkpoints: bool
    state: JobState
    preemptible: bool = True
    earlier: int = 0
    """Number of attempts before this one, or before the job was withdrawn."""
    max_wait: timedelta | None = None
    """MaxWaitTimeInSeconds as requested for a spot job; None if not requested, or made by an earlier
    release."""
    warm_key: str | None = None
    """Warm key of its best shape; None if it can use no warm pool, or an earlier release made the record."""
    learned_in: tuple[str, ...] | None = None
    """``Traits.keys`` of the job; None if an earlier release submitted it, or made the record."""
    after: tuple[PastCondition, ...] = ()
    """The ends of other jobs that it waited for."""
    end: Code | None = None
    array: str | None = None
    """Name of the array that it is a task of; None if it is none, or an earlier release made the record."""
    array_at_most: int | None = None
    """The array's throttle when the task became a job; None if it had none, or it is not known."""
    array_stop_after: int | None = None
    """Equal failures after which the array is held; None if it is none's task, or it is not known."""
    widths: Widths | None = None
    """Instance counts that it may run with; None if it is not elastic, or an earlier release made the
    record."""
    speeds: Mapping[str, int] = field(default_factory=dict)
    """Steps in 1,000 seconds by width as text, as its program reported them."""
    avoids_plans: bool = False
    """Whether it must not run on training plans; False also if an earlier release made the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """An attempt that ended, a job that is over, or both."""

    job: str
    team: str
    ended_at: datetime
    attempt: PastAttempt | None = None
    """None if the job was over before its next attempt was claimed."""
    final: FinalJob | None = None
    """None if the job comes back."""

    @property
    def is_long(self) -> bool:
        """Tell whether the attempt lasted over a day: finding it by an instant needs a look far ahead."""
        return self.attempt is not None and self.ended_at - self.attempt.claimed_at > ONE_DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class PastWarmPool:
    training_job_name: str
    team: str
    """Team whose attempt left it."""
    vector: Vector
    since: datetime
    until: datetime
    reused_by: str | None = None
    """The job that was claimed with it; None if it expired or was given up."""
    reused_by_team: str | None = None
    because: str | None = None
    """Why it was given up; None if it was not, or an earlier release made the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityChange:
    """A policy's change of a pool's capacity."""

    pool: str
    at: datetime
    capacity: Vector
    """Capacity from then on; a type that drains is in it with 0."""
    before: Vector = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyPut:
    """The record of a new policy."""

    at: datetime
    by: str = ""
    """Principal who put it in force; empty if unknown."""
    changes: tuple[CapacityChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PastEvent:
    id: str
    at: datetime
    kind: str
    """``NoticeKind`` as text, perhaps one of a newer release that was rolled back."""
    team: str
    job: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Detail as in ``docs/events.md``, without what the fields have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitCount:
    """The change in the number of waiting jobs in one minute."""

    minute: datetime
    team: str
    capacity: Capacity
    count: int


SECOND = timedelta(seconds=1)


@dataclass(slots=True)
class _Sums:
    """Sums of one quantity by step."""

    partial: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    """Count times seconds, by step, of what began or ended in it."""
    whole: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    """Change of the count, by step, that holds for whole steps from it on."""


@dataclass(slots=True)
class TimeMeans:
    """Means of counts over steps of time. Adding costs the same, however many steps a count lasted."""

    window: Window
    step: timedelta
    _sums: dict[Hashable, _Sums] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """Number of steps; the last one may be shorter."""
        return -((self.window.since - self.window.until) // self.step)

    def add(self, key: Hashable, count: float, *, began: datetime, ended: datetime | None) -> None:
        """Add ``count`` for a time; ``ended`` None means that it goes on."""
        sums = self._sums.setdefault(key, _Sums())
        first = max(began, self.window.since) - self.window.since
        last = min(ended or self.window.until, self.window.until) - self.window.since
        if last <= first:
            return
        start, end = first // self.step, last // self.step
        if start == end:
            sums.partial[start] += count * ((last - first) / SECOND)
            return
        sums.partial[start] += count * (((start + 1) * self.step - first) / SECOND)
        sums.partial[end] += count * ((last - end * self.step) / SECOND)
        sums.whole[start + 1] += count
        sums.whole[end] -= count

    def means(self, key: Hashable) -> list[float]:
        """Return the mean count of each step."""
        sums = self._sums.get(key, _Sums())
        means, level = [], 0.0
        whole = self.window.until - self.window.since
        for number in range(self.steps):
            # The level holds for whole steps; what began or ended within the step is added by its seconds.
            level += sums.whole.get(number, 0.0)
            length = min(self.step, whole - number * self.step) / SECOND
            means.append(level + sums.partial.get(number, 0.0) / length)
        return means


def waiting_at(since: datetime, now: dict[Capacity, int], counts: Iterable[WaitCount]) -> dict[Capacity, int]:
    """Return how many waited at an instant, from the number now and the changes since.

    Args:
        since: The instant asked for.
        now: Number of jobs that wait now, by capacity.
        counts: Changes since then.
    """
    waited = defaultdict(int, now)
    for wait_count in counts:
        if wait_count.minute > since:
            waited[wait_count.capacity] -= wait_count.count
    return dict(waited)
