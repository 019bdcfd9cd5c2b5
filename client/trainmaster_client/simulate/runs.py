"""How training gets on in a replay: of a job over all its attempts, and of the attempt that is live.

Nothing that decides may see it.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum, auto

from trainmaster.core.jobs.instances import Vector

from trainmaster_client.simulate.assumptions import COLD_START, REPLACED, RESTORE, WARM_START
from trainmaster_client.simulate.past_jobs import INTERRUPTED, Break, PastJob

SECOND = timedelta(seconds=1)


class Finish(Enum):
    """How training ends if nobody stops it."""

    DONE = auto()
    MAX_RUNTIME = auto()
    BREAK = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Of a job: how far it has come, and what is to become of it."""

    past: PastJob
    saves_every_s: int | None
    breaks: tuple[Break, ...]
    """Still to come."""
    done_s: int = 0
    """Training that is safe in checkpoints."""
    since_break_s: int = 0
    """Training since the last one."""
    has_trained: bool = False

    @classmethod
    def of(cls, past: PastJob) -> "Course":
        every = None if past.saves_every is None else max(past.saves_every // SECOND, 1)
        return cls(past=past, saves_every_s=every, breaks=past.breaks)

    @property
    def trains_s(self) -> int | None:
        """None: until its user stops it."""
        if self.past.withdrawn_after is not None and not self.past.trains_for:
            return None
        return self.past.trains_for // SECOND

    def saved_after(self, trained_s: int) -> int:
        """Training of the job that is in checkpoints after so much more of it."""
        every = self.saves_every_s
        return 0 if every is None else (self.done_s + trained_s) // every * every

    def after(self, trained_s: int, *, broke: bool = False) -> "Course":
        """With so much more training, of which a stop has left what was saved."""
        done = self.saved_after(trained_s)
        trained = self.has_trained or trained_s > 0
        if broke:
            return replace(self, done_s=done, since_break_s=0, breaks=self.breaks[1:], has_trained=trained)
        since_break_s = self.since_break_s + trained_s
        return replace(self, done_s=done, since_break_s=since_break_s, has_trained=trained)

    def without_interruptions(self) -> "Course":
        """On demand nothing is taken away: what comes next is the next failure, after as much training."""
        after, rest = timedelta(), list(self.breaks)
        while rest and rest[0].code == INTERRUPTED:
            after += rest.pop(0).after
        if rest and after:
            rest[0] = replace(rest[0], after=after + rest[0].after)
        return self if len(rest) == len(self.breaks) else replace(self, breaks=tuple(rest))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The live attempt of a job, as SageMaker has it; seconds of the replay."""

    serial: int
    """Of all runs, and of all times a run trains: news of another one come too late."""
    number: int
    vector: Vector
    max_runtime_s: int
    max_wait_s: int | None
    """From its start, of spot attempts."""
    start_s: int
    train_s: int
    """When it first trains."""
    since_s: int
    """When this time of training begins or began: after an interruption another one."""
    finish: Finish
    warm: bool
    earlier: tuple[tuple[int, int], ...] = ()
    """Times of training that an interruption ended."""
    lost_s: int = 0
    """By interruptions."""
    stopped_s: int | None = None

    @property
    def is_spot(self) -> bool:
        return next(iter(self.vector)).is_spot

    @property
    def interruptions(self) -> int:
        return len(self.earlier)

    def trained_s(self, now: int) -> int:
        """Since the last interruption."""
        return max(0, now - self.since_s)

    @property
    def trained_before_s(self) -> int:
        return sum(until - since for since, until in self.earlier)

    def last_s(self, now: int) -> int:
        """Up to when it could train."""
        return now if self.stopped_s is None else self.stopped_s

    def has_trained(self, last: int) -> bool:
        return self.train_s < last or (self.train_s == last and self.stopped_s is None)


def startup_s(course: Course, *, warm: bool) -> int:
    own = course.past.cold_start
    up = WARM_START if warm else COLD_START if own is None else own
    return (up + (RESTORE if course.done_s else timedelta())) // SECOND


def replaced_s(course: Course) -> int:
    """From an interruption until it trains again."""
    return REPLACED // SECOND + startup_s(course, warm=False)


def finish_of(course: Course, *, left_s: int) -> tuple[Finish, int]:
    """How this time of training ends, and after how long.

    Args:
        course: Without interruptions, where the attempt is not on spot.
        left_s: Of the attempt's MaxRuntimeInSeconds.
    """
    ends: list[tuple[int, Finish]] = [(left_s, Finish.MAX_RUNTIME)]
    if course.trains_s is not None:
        ends.insert(0, (max(course.trains_s - course.done_s, 0), Finish.DONE))
    if course.breaks:
        after = max(course.breaks[0].after // SECOND - course.since_break_s, 0)
        ends.append((after, Finish.BREAK))
    length, finish = min(ends, key=lambda end: end[0])
    return finish, length
