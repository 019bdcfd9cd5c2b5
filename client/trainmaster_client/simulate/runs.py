"""How training gets on in a replay: of a job over all its attempts, and of the attempt that is live.

Nothing that decides may see it.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum, auto

from trainmaster.core.jobs.instances import Vector

from trainmaster_client.simulate.past_jobs import INTERRUPTED, Break, Pace, PastAttempt, PastJob

SECOND = timedelta(seconds=1)
PREEMPTED = "preemption"
"""Code of the end of an attempt."""


def whole_s(length: timedelta) -> int:
    """To the nearest second: what is cut off each time would add up."""
    return round(length / SECOND)


class Finish(Enum):
    """How training ends if nobody stops it."""

    DONE = auto()
    MAX_RUNTIME = auto()
    BREAK = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Of a job: how far it has come, and what is to become of it."""

    past: PastJob
    pace: Pace
    saves_every_s: int | None
    breaks: tuple[Break, ...]
    """Still to come."""
    done_s: int = 0
    """Training that is safe in checkpoints."""
    since_break_s: int = 0
    """Training since the last one."""
    has_trained: bool = False

    @classmethod
    def of(cls, past: PastJob, pace: Pace) -> "Course":
        every = None if past.saves_every is None else max(past.saves_every // SECOND, 1)
        return cls(past=past, pace=pace, saves_every_s=every, breaks=past.breaks)

    @property
    def trains_s(self) -> int | None:
        """None: until its user stops it."""
        if self.past.withdrawn_after is not None and not self.past.trains_for:
            return None
        return whole_s(self.past.trains_for)

    def saved_after(self, trained_s: int) -> int:
        """Training of the job that is in checkpoints after so much more of it."""
        every = self.saves_every_s
        return 0 if every is None else (self.done_s + trained_s) // every * every

    def after(self, trained_s: int, *, broke: bool = False, lost_s: int | None = None) -> "Course":
        """With so much more training, of which a stop has left what was saved, or all but ``lost_s``."""
        done = self.saved_after(trained_s) if lost_s is None else self.done_s + trained_s - lost_s
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


def startup_s(course: Course, *, number: int, warm: bool) -> int:
    """As the same attempt took, if it started as warm; else as the job's first took, or as usual."""
    then, pace = _as_it_was(course, number), course.pace
    if then is not None and then.warm is warm and then.started_up_in is not None:
        return whole_s(then.started_up_in)
    own = pace.cold_start if course.past.cold_start is None else course.past.cold_start
    restore = pace.restore if course.done_s else timedelta()
    return whole_s((pace.warm_start if warm else own) + restore)


def stop_s(course: Course, run: "Run", now: int) -> int:
    """From the stop until its instances are free."""
    then = _as_it_was(course, run.number)
    if now < run.train_s:
        return whole_s(course.pace.early_stop)
    if then is not None and then.end == PREEMPTED and then.stopped_in is not None:
        return whole_s(then.stopped_in)
    return whole_s(course.pace.stop)


def lost_then_s(course: Course, number: int, trained_s: int) -> int | None:
    """What the same attempt lost; None: the job did not come back after it then, or it saves nothing."""
    then = _as_it_was(course, number)
    came_back = number < len(course.past.attempts) - 1
    if course.saves_every_s is None or then is None or then.training_since is None or not came_back:
        return None
    return min(whole_s(then.lost), trained_s)


def replaced_s(course: Course, *, number: int) -> int:
    """From an interruption until it trains again: as the same attempt took, else as usual."""
    then = _as_it_was(course, number)
    if then is not None and then.interrupted_for is not None:
        return whole_s(then.interrupted_for)
    return whole_s(course.pace.replaced) + startup_s(course, number=number, warm=False)


def _as_it_was(course: Course, number: int) -> PastAttempt | None:
    attempts = course.past.attempts
    return attempts[number] if number < len(attempts) else None


def _until_break(course: Course, number: int) -> int:
    """As long as the same attempt trained, if it broke off; else what is left since the break before."""
    then, coming = _as_it_was(course, number), course.breaks[0]
    if then is not None and then.end == coming.code and then.trained is not None:
        return whole_s(then.trained)
    return max(whole_s(coming.after) - course.since_break_s, 0)


def finish_of(course: Course, *, number: int, left_s: int) -> tuple[Finish, int]:
    """How this time of training ends, and after how long.

    Args:
        course: Without interruptions, where the attempt is not on spot.
        number: Of the attempt.
        left_s: Of the attempt's MaxRuntimeInSeconds.
    """
    ends: list[tuple[int, Finish]] = []
    if course.breaks:  # at the very end too: it came back after it
        ends.append((_until_break(course, number), Finish.BREAK))
    if course.trains_s is not None:
        ends.append((max(course.trains_s - course.done_s, 0), Finish.DONE))
    ends.append((left_s, Finish.MAX_RUNTIME))
    length, finish = min(ends, key=lambda end: end[0])
    return finish, length
