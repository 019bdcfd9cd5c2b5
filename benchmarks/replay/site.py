"""One pool in simulated time: attempts start, train, are stopped and end; who decides is handed in."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

from benchmarks.replay.jobs import TraceJob

COLD_S, WARM_S = 240, 30
"""From the start of an attempt to Training, on new instances and in a warm pool."""
RESTORE_S = 60
"""On top, to load a checkpoint."""
STOP_S = 90
"""From the stop to the instant at which the instances are free."""
GIVE_UP_S = 3600
"""With nothing live and nothing to come, a queue that has not moved for this long never will."""


class Row(NamedTuple):
    """One attempt, as it went."""

    job_id: str
    attempt: int
    pool: str
    instances: int
    start_s: int
    """From here on it holds its instances."""
    train_s: int
    """When it began to train; of an attempt that never did, when it was stopped."""
    end_s: int
    """Its instances are free."""
    end: str
    """``completed``, or ``preempted``: then it was stopped STOP_S before ``end_s``."""
    lost_s: int
    """Training that has to be done again."""
    warm: bool
    """It started in a warm pool."""


@dataclass(slots=True, kw_only=True, eq=False)
class Task:
    """A job of the trace, and how far it has come."""

    job: TraceJob
    attempts: int = 0
    done_s: int = 0
    """Training that is safe in checkpoints."""


@dataclass(slots=True, kw_only=True, eq=False)
class Attempt:
    task: Task
    number: int
    start_s: int
    train_s: int
    warm: bool
    stopped_s: int | None = None

    @property
    def has_trained(self) -> bool:
        return self.stopped_s is None or self.train_s < self.stopped_s

    def trained_s(self, now: int) -> int:
        return max(0, now - self.train_s)

    def saved_s(self, now: int) -> int:
        """Training of the job that a stop now would leave in checkpoints."""
        every = self.task.job.checkpoint_every_s
        return 0 if every is None else (self.task.done_s + self.trained_s(now)) // every * every


class Decider(Protocol):
    """Who decides in one pool. Each call but ``decide`` says what has happened."""

    def submitted(self, task: Task) -> None: ...
    def trains(self, attempt: Attempt) -> None: ...
    def ended(self, attempt: Attempt, *, completed: bool) -> None:
        """Its instances are free; not completed, the job waits again."""

    def woken(self) -> None: ...
    def decide(self) -> None: ...


class _What(Enum):
    SUBMITTED = auto()
    TRAINS = auto()
    COMPLETED = auto()
    STOPPED = auto()
    WOKEN = auto()


class Site:
    """The clock and the instances of one pool. Times are whole seconds of the trace."""

    def __init__(self, jobs: Iterable[TraceJob]) -> None:
        self.now = 0
        self.rows: list[Row] = []
        self._events: list[tuple[int, int, _What, Task | Attempt | None]] = []
        self._count = 0
        self._to_come = 0
        self._moved_s = 0
        for job in jobs:
            self._at(job.submit_s, _What.SUBMITTED, Task(job=job))

    def run(self, decider: Decider) -> list[Row]:
        """Until nothing happens any more."""
        while self._events:
            self.now, _, what, subject = heappop(self._events)
            if what is not _What.WOKEN:
                self._to_come -= 1
            if self._tell(decider, what, subject):
                decider.decide()
        return self.rows

    def start(self, task: Task, *, warm: bool) -> Attempt:
        """Take the instances; training begins after start-up."""
        startup = (WARM_S if warm else COLD_S) + (RESTORE_S if task.done_s else 0)
        train_s = self.now + startup
        attempt = Attempt(task=task, number=task.attempts, start_s=self.now, train_s=train_s, warm=warm)
        task.attempts += 1
        self._moved_s = self.now
        self._at(train_s, _What.TRAINS, attempt)
        self._at(train_s + task.job.duration_s - task.done_s, _What.COMPLETED, attempt)
        return attempt

    def stop(self, attempt: Attempt) -> None:
        """It trains no more; its instances are free STOP_S from now."""
        attempt.stopped_s = self._moved_s = self.now
        self._at(self.now + STOP_S, _What.STOPPED, attempt)

    def wake_at(self, second: int) -> None:
        """Ask to be woken; not heard when nothing moves any more."""
        if self._to_come or self.now - self._moved_s < GIVE_UP_S:
            self._at(second, _What.WOKEN, None)

    def _at(self, second: int, what: _What, subject: Task | Attempt | None) -> None:
        self._count += 1
        self._to_come += what is not _What.WOKEN
        heappush(self._events, (second, self._count, what, subject))

    def _tell(self, decider: Decider, what: _What, subject: Task | Attempt | None) -> bool:
        """False when it was overtaken by a stop."""
        match subject:
            case Task():
                decider.submitted(subject)
            case Attempt() if what is _What.STOPPED:
                self._stopped(subject)
                decider.ended(subject, completed=False)
            case Attempt(stopped_s=None) if what is _What.TRAINS:
                decider.trains(subject)
            case Attempt(stopped_s=None):
                self._note(subject, end="completed", train_s=subject.train_s, lost_s=0)
                decider.ended(subject, completed=True)
            case None:
                decider.woken()
            case _:
                return False
        return True

    def _stopped(self, attempt: Attempt) -> None:
        stopped = attempt.stopped_s
        assert stopped is not None
        saved = attempt.saved_s(stopped)
        lost = attempt.task.done_s + attempt.trained_s(stopped) - saved
        self._note(attempt, end="preempted", train_s=min(attempt.train_s, stopped), lost_s=lost)
        attempt.task.done_s = saved

    def _note(self, attempt: Attempt, *, end: str, train_s: int, lost_s: int) -> None:
        job = attempt.task.job
        place = (job.pool, job.instances, attempt.start_s, train_s, self.now)
        self.rows.append(Row(job.job_id, attempt.number, *place, end, lost_s, attempt.warm))
