"""How training gets on in a replay: of a job over all its attempts, and of the attempt that is live.

Nothing that decides may see it.
"""

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum, auto

from trainmaster.core.jobs.instances import Vector

from trainmaster_client.simulate.engine.past_jobs import (
    INTERRUPTED,
    INTERRUPTED_STATUS,
    STOPPED_BY_QUEUE,
    STOPPING,
    Break,
    Pace,
    PastAttempt,
    PastJob,
)

SECOND = timedelta(seconds=1)
TICK = timedelta(milliseconds=1)
"""Instants of the table and of SageMaker are no finer."""


def in_s(length: timedelta) -> float:
    """Return seconds to the millisecond, as instants are exported; whole seconds as int, so that sums are."""
    return exact_s(length / SECOND) if length % SECOND else length // SECOND


def exact_s(seconds: float) -> float:
    """Round a sum to the millisecond: what happens at one instant has to be equal."""
    return round(seconds, 3)


def work_s(trained_s: float, speed: float) -> float:
    """Return the training that counts of a time: of an elastic job as if at its largest width."""
    return trained_s if speed == 1 else exact_s(trained_s * speed)


def wall_s(work: float, speed: float) -> float:
    """Return the time in which so much is trained."""
    return work if speed == 1 else exact_s(work / speed)


class Finish(Enum):
    """Ends of training that is not stopped."""

    DONE = auto()
    MAX_RUNTIME = auto()
    BREAK = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The course of a job: how far it has come, and what is to become of it."""

    past: PastJob
    pace: Pace
    saves_every_s: float | None
    breaks: tuple[Break, ...]
    """Still to come."""
    done_s: float = 0
    """Training that is safe in checkpoints, like all of a course as if at the largest width."""
    since_break_s: float = 0
    """Training since the last one."""
    has_trained: bool = False

    @classmethod
    def of(cls, past: PastJob, pace: Pace) -> "Course":
        every = None if past.saves_every is None else max(in_s(past.saves_every), 1)
        return cls(past=past, pace=pace, saves_every_s=every, breaks=past.breaks)

    @property
    def trains_s(self) -> float | None:
        """Seconds the job trains; None if it trains until its user stops it."""
        if self.past.withdrawn_after is not None and not self.past.trains_for:
            return None
        return in_s(self.past.trains_for)

    def speed_at(self, vector: Vector) -> float:
        """Return the speed of an attempt, as a share of that at the job's largest width."""
        elastic = self.past.elastic
        return 1 if elastic is None else elastic.speeds[sum(vector.values())]

    def saved_after(self, trained_s: float) -> float:
        """Return the training of the job that is in checkpoints after ``trained_s`` more of it."""
        every = self.saves_every_s
        if every is None:
            return 0
        return max(exact_s(exact_s(self.done_s + trained_s) // every * every), self.done_s)

    def saved_within(self, trained_s: float, vector: Vector) -> float:
        """Return how much of what an attempt has trained is in checkpoints, in seconds of the attempt."""
        speed = self.speed_at(vector)
        return wall_s(self.saved_after(work_s(trained_s, speed)) - self.done_s, speed)

    def saves_next_after(self, trained_s: float, vector: Vector) -> float:
        """Return the seconds that the attempt has trained when it writes its next checkpoint after these."""
        if self.saves_every_s is None:
            return math.inf
        speed = self.speed_at(vector)
        saved = self.saved_after(work_s(trained_s, speed))
        return wall_s(exact_s(saved + self.saves_every_s - self.done_s), speed)

    def after(self, trained_s: float, *, broke: bool = False, lost_s: float | None = None) -> "Course":
        """Return the course after more training; a stop leaves what was saved, or all but ``lost_s``."""
        done = self.saved_after(trained_s) if lost_s is None else exact_s(self.done_s + trained_s - lost_s)
        trained = self.has_trained or trained_s > 0
        if broke:
            return replace(self, done_s=done, since_break_s=0, breaks=self.breaks[1:], has_trained=trained)
        since_break_s = exact_s(self.since_break_s + trained_s)
        return replace(self, done_s=done, since_break_s=since_break_s, has_trained=trained)

    def without_interruptions(self) -> "Course":
        """Drop interruptions, as on demand; the next failure then comes after as much training."""
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
    """Serial of all runs, and of all times a run trains: events of another one come too late."""
    number: int
    vector: Vector
    max_runtime_s: int
    max_wait_s: int | None
    """Seconds a spot attempt may wait, counted from its start."""
    start_s: float
    launch_s: float
    """Second in which it has its instances."""
    train_s: float
    """When it first trains."""
    since_s: float
    """When this time of training begins or began: after an interruption another one."""
    finish: Finish
    upload_since_s: float | None = None
    """Second from which it has come to its end, whoever stops it; None if no upload is known."""
    warm: bool
    earlier: tuple[tuple[float, float], ...] = ()
    """Times of training that an interruption ended."""
    lost_s: float = 0
    """Training seconds lost by interruptions."""
    stopped_s: float | None = None

    @property
    def is_spot(self) -> bool:
        return next(iter(self.vector)).is_spot

    @property
    def interruptions(self) -> int:
        return len(self.earlier)

    def uploads(self, now: float) -> bool:
        return self.upload_since_s is not None and now >= self.upload_since_s

    def trained_s(self, now: float) -> float:
        """Return the seconds trained since the last interruption."""
        return max(0, exact_s(now - self.since_s))

    @property
    def trained_before_s(self) -> float:
        return sum(until - since for since, until in self.earlier)

    def last_s(self, now: float) -> float:
        """Return the last second in which it could train."""
        return now if self.stopped_s is None else self.stopped_s

    def has_trained(self, last: float) -> bool:
        return self.train_s < last or (self.train_s == last and self.stopped_s is None)


def startup_s(course: Course, *, number: int, warm: bool) -> float:
    """Return the start-up time of the same attempt, if it was as warm; else the job's first, or the usual."""
    then, pace = as_it_was(course, number), course.pace
    if then is not None and then.warm is warm and then.started_up_in is not None:
        return in_s(then.started_up_in)
    own = pace.cold_start if course.past.cold_start is None else course.past.cold_start
    restore = pace.restore if course.done_s else timedelta()
    usual = (pace.warm_start if warm else own) + restore
    stopped = None if then is None or then.warm is not warm else then.began(STOPPING)
    return in_s(usual if stopped is None else max(usual, stopped + SECOND))  # it did not train by then


def stop_s(course: Course, run: "Run", now: float) -> float:
    """Return the seconds between the stop and free instances."""
    then, is_early = as_it_was(course, run.number), now < run.train_s
    if then is not None and is_early is (then.training_since is None) and _was_stopped(then):
        return in_s(then.stopped_in or timedelta())
    return in_s(course.pace.early_stop if is_early else course.pace.stop)


def _was_stopped(then: PastAttempt) -> bool:
    """Tell whether the attempt was stopped, and it is known how long that took."""
    return then.stopped_in is not None and (then.end in STOPPED_BY_QUEUE or then.began(STOPPING) is not None)


def lost_then_s(course: Course, run: Run, trained_s: float) -> float | None:
    """Return what the same attempt lost; None if the job did not come back after it, or saves nothing.

    A stop loses nothing of a job that saves when it is stopped.
    """
    if course.past.saves_when_stopped and run.stopped_s is not None:
        return 0
    then = as_it_was(course, run.number)
    came_back = run.number < len(course.past.attempts) - 1
    if course.saves_every_s is None or then is None or then.training_since is None or not came_back:
        return None
    return min(work_s(in_s(then.lost), course.past.speed_of(then)), trained_s)


def settled(course: Course, run: Run, *, now: float, broke: bool) -> tuple[Course, float]:
    """Return the course after an attempt, and the seconds of the attempt that no checkpoint has."""
    speed = course.speed_at(run.vector)
    trained = work_s(run.trained_s(run.last_s(now)), speed)
    lost_s = lost_then_s(course, run, trained) if broke or run.stopped_s is not None else None
    after = course.after(trained, broke=broke, lost_s=lost_s)
    again_s = wall_s(exact_s(course.done_s + trained - after.done_s), speed)
    return after, exact_s(run.lost_s + again_s)


def replaced_s(course: Course, *, number: int, interruption: int) -> float:
    """Return the time from an interruption to training again: the same attempt's, else the usual."""
    then = as_it_was(course, number)
    took = None if then is None else then.trains_again(interruption)
    if took is not None:
        return in_s(took)
    return in_s(course.pace.replaced) + startup_s(course, number=number, warm=False)


def as_it_was(course: Course, number: int) -> PastAttempt | None:
    attempts = course.past.attempts
    return attempts[number] if number < len(attempts) else None


def _until_break(course: Course, number: int) -> float:
    """Return how long the same attempt trained, if it broke off; else what is left since the last break."""
    then, coming = as_it_was(course, number), course.breaks[0]
    was_whole = then is not None and then.end == coming.code and then.began(INTERRUPTED_STATUS) is None
    if then is not None and was_whole and then.trained is not None:
        return work_s(in_s(then.trained), course.past.speed_of(then))
    return max(exact_s(in_s(coming.after) - course.since_break_s), 0)


def finish_of(course: Course, run: Run, *, left_s: float) -> tuple[Finish, float]:
    """Return how this time of training ends, and after how long.

    Args:
        course: Without interruptions, where the attempt is not on spot.
        run: The attempt.
        left_s: Of the attempt's MaxRuntimeInSeconds.
    """
    ends: list[tuple[float, Finish]] = []
    speed = course.speed_at(run.vector)
    if course.breaks:  # at the very end too: it came back after it
        ends.append((wall_s(_until_break(course, run.number), speed), Finish.BREAK))
    if course.trains_s is not None:
        ends.append((wall_s(max(exact_s(course.trains_s - course.done_s), 0), speed), Finish.DONE))
    ends.append((left_s, Finish.MAX_RUNTIME))
    length, finish = min(ends, key=lambda end: end[0])
    return finish, length
