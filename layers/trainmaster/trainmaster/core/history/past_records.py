"""What is remembered, of which period, and means of it over time."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from trainmaster.core.jobs.attempts import StatusStart
from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.reason_codes import Code

ONE_DAY = timedelta(days=1)
LONGEST_ATTEMPT = timedelta(days=60)
"""Claim to end. Source: CreateTrainingJob, 28 days of run time after up to 28 of waiting for capacity."""

LONGEST_WARM_POOL = timedelta(days=30)
"""``warm_pool.max_idle`` is at most 28 days; SageMaker may say a little more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Half open: ``since`` is in it, ``until`` is not."""

    since: datetime
    until: datetime

    def overlaps(self, began: datetime, ended: datetime | None) -> bool:
        """``ended``: None, it goes on."""
        return began < self.until and (ended is None or ended > self.since or began >= self.since)

    def days(self, *, longer: timedelta = timedelta()) -> Iterator[date]:
        """UTC days that it touches; ``longer``: and those up to so long after its end."""
        day, last = self.since.astimezone(UTC).date(), (self.until + longer).astimezone(UTC).date()
        while day <= last:
            yield day
            day += ONE_DAY


Position = tuple[str, str]
"""Behind which record a list continues: which part of the history, and where in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastAttempt:
    """Of an attempt that has ended."""

    number: int
    vector: Vector
    claimed_at: datetime
    training_since: datetime | None = None
    end: Code | None = None
    preempted_by: str | None = None
    """The preemptor, where that is why it was stopped."""
    preempted_by_team: str | None = None
    warm_start: bool = False
    lost: timedelta = timedelta()
    """Of its training, what no checkpoint had when it ended."""
    unknown: timedelta = timedelta()
    """Training that may be in a checkpoint, though none was seen; nothing in what earlier releases noted."""
    trained: timedelta | None = None
    """In status Training; None: it never was, or an earlier release noted it."""
    interruptions: int = 0
    """Of its spot instances, after each of which SageMaker started it again."""
    checkpoint_at: datetime | None = None
    """The newest checkpoint that anybody saw; None: none was seen, or an earlier release noted its end."""
    statuses: tuple[StatusStart, ...] | None = None
    """The secondary statuses that it went through; None: not known, or an earlier release noted it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalJob:
    """Of a job that is over, what a later replay of the queue needs."""

    entry_id: str
    submitted_by: str
    submitted_at: datetime
    vector: Vector
    """What it asked for."""
    priority: int
    max_runtime: timedelta
    saves_checkpoints: bool
    state: JobState
    preemptible: bool = True
    earlier: int = 0
    """Attempts that it had before this one, or before it was withdrawn."""
    max_wait: timedelta | None = None
    """MaxWaitTimeInSeconds as asked for, of spot jobs; None: none, or an earlier release noted its end."""
    warm_key: str | None = None
    """Of its best shape; None: it can use no warm pool, or an earlier release noted its end."""
    learned_in: tuple[str, ...] | None = None
    """``Traits.keys``; None: an earlier release submitted it, or noted its end."""
    end: Code | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """An attempt that ended, a job that is over, or both."""

    job: str
    team: str
    ended_at: datetime
    attempt: PastAttempt | None = None
    """None: the job was over before its next attempt was claimed."""
    final: FinalJob | None = None
    """None: the job comes back."""

    @property
    def is_long(self) -> bool:
        """Who looks for attempts at an instant would have to look far ahead for it."""
        return self.attempt is not None and self.ended_at - self.attempt.claimed_at > ONE_DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class PastWarmPool:
    training_job_name: str
    team: str
    """Whose attempt left it."""
    vector: Vector
    since: datetime
    until: datetime
    reused_by: str | None = None
    """The job that was claimed with it; None: it expired or was given up."""
    reused_by_team: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityChange:
    """A policy that changed what a pool may use."""

    pool: str
    at: datetime
    capacity: Vector
    """From then on; a type that drains is there with 0."""
    before: Vector = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyPut:
    """What is remembered of a new policy."""

    at: datetime
    changes: tuple[CapacityChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PastEvent:
    id: str
    at: datetime
    kind: str
    """``NoticeKind``, also of a newer release that was rolled back."""
    team: str
    job: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    """As ``docs/events.md`` has it, but for what stands beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitCount:
    """How many more jobs wait from a minute on, or fewer."""

    minute: datetime
    team: str
    capacity: Capacity
    count: int


SECOND = timedelta(seconds=1)


@dataclass(slots=True)
class _Sums:
    """Of one quantity."""

    partial: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    """By step, count times seconds of what began or ended in it."""
    whole: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    """By step, how much more was there for whole steps from it on."""


@dataclass(slots=True)
class TimeMeans:
    """Whatever it is given costs the same, however many steps it lasted."""

    window: Window
    step: timedelta
    _sums: dict[Hashable, _Sums] = field(default_factory=dict)

    @property
    def steps(self) -> int:
        """The last one may be shorter."""
        return -((self.window.since - self.window.until) // self.step)

    def add(self, key: Hashable, count: float, *, began: datetime, ended: datetime | None) -> None:
        """``count`` more were there; ``ended``: None, they are there still."""
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
        """Of each step."""
        sums = self._sums.get(key, _Sums())
        found, level = [], 0.0
        whole = self.window.until - self.window.since
        for number in range(self.steps):
            level += sums.whole.get(number, 0.0)
            length = min(self.step, whole - number * self.step) / SECOND
            found.append(level + sums.partial.get(number, 0.0) / length)
        return found


def waiting_at(since: datetime, now: dict[Capacity, int], counts: Iterable[WaitCount]) -> dict[Capacity, int]:
    """How many waited at an instant: those of now, less who came after it, with those who left."""
    waited = defaultdict(int, now)
    for one in counts:
        if one.minute > since:
            waited[one.capacity] -= one.count
    return dict(waited)
