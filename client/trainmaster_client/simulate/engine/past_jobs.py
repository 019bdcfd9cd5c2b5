"""Data that a replay is fed with: the jobs of a period, what each asked for and how its training went."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import log2
from typing import Literal, TypeAlias

from trainmaster.core.arrays.array_model import DEFAULT_STOP_AFTER
from trainmaster.core.jobs.end_conditions import ConditionKind
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.planning.width_worth import PER_DOUBLING

from trainmaster_client.simulate.engine.assumptions import (
    COLD_START,
    LAUNCH,
    REPLACED,
    RESTORE,
    STOP,
    WARM_START,
)

DOWNLOADING, TRAINING, UPLOADING, STOPPING = "Downloading", "Training", "Uploading", "Stopping"
INTERRUPTED_STATUS = "Interrupted"
"""Secondary statuses. Source: SageMaker API reference, SecondaryStatusTransition."""

AskedCapacity: TypeAlias = Literal["on-demand", "spot", "plan"]
"""Capacity type that a job asked for; ``plan``: training plans and nothing else."""
STOPPED_FOR_OTHERS = frozenset({ReasonCode.PREEMPTION, ReasonCode.WINDOW})
"""Codes of ends at which the queue stopped an attempt for others: for a job, or for the clock."""
STOPPED_BY_QUEUE = STOPPED_FOR_OTHERS | {ReasonCode.SHRINK, ReasonCode.GROW}
"""Codes of ends at which the queue stopped an attempt, also for another width of the same job."""
RESIZES = frozenset({ReasonCode.SHRINK, ReasonCode.GROW, ReasonCode.MAX_RUNTIME_AT_WIDTH})
"""Codes of ends after which an elastic job continues at another width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastAttempt:
    """The real course of one attempt."""

    started_at: datetime
    """Instant from which it held its instances."""
    training_since: datetime | None
    ended_at: datetime | None
    """End of the attempt; None if it was live when the history was read."""
    end: str | None
    """Reason code; None while live."""
    lost: timedelta
    """Training that was in no checkpoint at the end."""
    warm: bool | None = None
    """Whether it started in a warm pool; None if the source does not tell."""
    trained: timedelta | None = None
    """Training time without its time in Stopping; None if the source does not tell."""
    interrupted_for: timedelta | None = None
    """Time from each spot interruption until it trained again; None if there was none, or it is not known."""
    statuses: tuple[tuple[str, timedelta], ...] = ()
    """SageMaker's secondary statuses, each with how long after the start it began; empty: not known."""
    plan: str | None = None
    """Name of the training plan that it ran on; None if it ran on none, or the source does not tell."""
    instances: int | None = None
    """Instances that it had; None if the source does not tell: those that the job asked for."""

    @property
    def started_up_in(self) -> timedelta | None:
        return None if self.training_since is None else self.training_since - self.started_at

    def began(self, status: str) -> timedelta | None:
        """Return how long after its start it first was in a status; None if never, or not known."""
        return next((at for name, at in self.statuses if name == status), None)

    def trains_again(self, number: int) -> timedelta | None:
        """Return the time between interruption ``number`` (from 0) and training again; None if not known."""
        trains = [at for name, at in self.statuses if name == TRAINING]
        interrupted = [at for name, at in self.statuses if name == INTERRUPTED_STATUS]
        return trains[number + 1] - interrupted[number] if number + 1 < len(trains) else self.interrupted_for

    @property
    def stopped_in(self) -> timedelta | None:
        """Return the time from the stop to the end, if it was stopped while it trained; None if not known."""
        stopped = self.began(STOPPING)
        if stopped is not None and self.ended_at is not None:
            return self.ended_at - self.started_at - stopped
        if self.training_since is None or self.ended_at is None or self.trained is None:
            return None
        return self.ended_at - self.training_since - self.trained


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A point where an attempt ended, or lost its instances, by itself, and the job went on later."""

    after: timedelta
    """Training, what was lost included, since the break before, or since the job first trained."""
    code: str
    """``interrupted``: SageMaker took its spot instances and starts the same attempt again; else the class of
    the failure (``hardware``, ``network``): the policy decides whether another attempt is made."""
    lost: timedelta | None = None
    """Training that an interruption made necessary again; None: what came after the last regular save."""


INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterEnd:
    """A condition on the end of another job of the history."""

    kind: ConditionKind
    job: str
    """Name of that job in the history, or ``PastArray.key``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastArray:
    """The array that a job was a task of."""

    key: str
    """Each once in a history, and no job's name."""
    at_most: int | None = None
    """Tasks that may run at once; None: as many as fit."""
    stop_after_failures: int = DEFAULT_STOP_AFTER


@dataclass(frozen=True, slots=True, kw_only=True)
class PastWidths:
    """Widths of an elastic job, and how fast it trains at each."""

    widths: Widths
    speeds: Mapping[int, float]
    """Speed by width, as a share of that at the largest; ``usual_speeds`` where the source does not tell."""


def usual_speeds(widths: Widths) -> dict[int, float]:
    """Return the speeds that the planner assumes of a job which has not shown its own."""
    return {count: PER_DOUBLING ** log2(count / widths.largest) for count in widths.counts}


def shown_speeds(widths: Widths, seen: Mapping[int, float]) -> dict[int, float]:
    """Return speeds as shares of that at the largest width, from those that a job has shown.

    A width that it has not shown is compared with the nearest one that it has, by the planner's assumption.
    """
    usual = usual_speeds(widths)
    if not seen:
        return usual
    nearest = {count: min(seen, key=lambda width: abs(log2(width / count))) for count in widths.counts}
    speeds = {count: seen[width] * usual[count] / usual[width] for count, width in nearest.items()}
    return {count: speed / speeds[widths.largest] for count, speed in speeds.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class PastJob:
    """A job of the past. Deciders see the request, never ``trains_for``, ``breaks`` and ``attempts``."""

    name: str
    """Each once in a history."""
    team: str
    submitted_by: str
    submitted_at: datetime
    pool: str | None
    """Name of the pool; None takes the policy's pool of the instance type."""
    instances: Mapping[str, int]
    """Instances by type."""
    capacity_type: AskedCapacity
    priority: int
    max_runtime: timedelta
    trains_for: timedelta
    """Training that counted, of all attempts together: the time it trains if it is never stopped.

    An elastic job's times of training are as if at its largest width; ``instances`` are those of it, too."""
    end: Literal["completed", "failed", "stopped"]
    """State of the job once it has trained that long."""
    saves_every: timedelta | None
    """Time between checkpoints; None if it saves nothing: then a stop costs the whole attempt."""
    cold_start: timedelta | None = None
    """Time to Training on new instances; None takes the simulator's assumption."""
    breaks: tuple[Break, ...] = ()
    """Breaks in turn. One that the replay does not reach never comes; interruptions concern spot attempts
    alone."""
    preemptible: bool = True
    image: str | None = None
    """Training image; None if the source does not tell."""
    hyperparameters: str | None = None
    """Their digest; None: the source does not say."""
    max_wait: timedelta | None = None
    """MaxWaitTimeInSeconds of a spot job; None: it has none, or the source does not say."""
    warm_key: str | None = None
    """Equal for jobs that can use each other's warm pools; None: the source does not say, its team tells."""
    learned_in: tuple[str, ...] | None = None
    """Histograms of run times it counts in; None if the source does not tell: then name and team decide."""
    entry_id: str | None = None
    """Id of the submission, from which back-offs are drawn; None takes the job's name."""
    withdrawn_after: timedelta | None = None
    """Time after submission at which its user stopped it, while it did not train; None if not stopped."""
    after: tuple[AfterEnd, ...] = ()
    """Ends of other jobs, all of which it waits for; those of jobs outside of the history are left out."""
    array: PastArray | None = None
    """Tasks of one array are submitted at one instant, in the order of their indices."""
    attempts: tuple[PastAttempt, ...] = ()
    """Empty where the source does not say how it went."""
    elastic: PastWidths | None = None
    """Widths that it may run at; None: it is not elastic."""
    avoids_plans: bool = False
    """Whether it must not run on training plans."""
    saves_when_stopped: bool = False
    """Whether it saves within SageMaker's 120 seconds after a stop, so that a stop loses no training."""

    def speed_of(self, attempt: PastAttempt) -> float:
        """Return the speed of one of its attempts, as a share of that at its largest width."""
        if self.elastic is None or attempt.instances is None:
            return 1
        return self.elastic.speeds[attempt.instances]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Durations of SageMaker's steps: as the history shows, else as the simulator assumes."""

    cold_start: timedelta = COLD_START
    warm_start: timedelta = WARM_START
    restore: timedelta = RESTORE
    stop: timedelta = STOP
    early_stop: timedelta = STOP
    """Time that a stop takes of an attempt that does not train yet."""
    replaced: timedelta = REPLACED
    startup_news: tuple[float, ...] = ()
    """Shares of start-up at which SageMaker reports a secondary status; each wakes a pass."""
    launch: float = LAUNCH
    """Share of start-up after which an attempt has its instances."""
    upload: timedelta = timedelta()
    """Time of upload, part of how long a job trains; 0 if not known: then it wakes no pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountBounds:
    """Bounds of the account, whatever the policy says. No source tells them: a made-up history may."""

    instances: Mapping[str, int] = field(default_factory=dict)
    """Most at a time by type; a start beyond is refused. Without an entry: any number."""
    start_gap_s: int = 0
    """Seconds between two training jobs that are created, in any pool; a start waits for its turn."""

    @property
    def joins_pools(self) -> bool:
        """Tell whether events in one pool change what happens in another."""
        return self.start_gap_s > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The jobs of a period, in the order of submission."""

    source: str
    """Source for people: ``account 123456789012, 2026-10-01 to 2026-10-31``."""
    begins: datetime
    """Second 0 of each replay."""
    jobs: tuple[PastJob, ...]
    pace: Pace = Pace()
    account: AccountBounds = field(default_factory=AccountBounds)
    not_known: tuple[str, ...] = ()
    """Sentences: what the source does not say, what was assumed instead, what was left out and how many."""

    @property
    def is_recorded(self) -> bool:
        """Tell whether the history has when jobs really started."""
        return any(job.attempts for job in self.jobs)
