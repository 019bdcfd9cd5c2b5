"""What a pass can decide to do. ``execute`` handles every kind."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from trainmaster.jobs import Reason, Vector
from trainmaster.scheduling.snapshot import Hold, RunningJob, WaitingJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Claim the instances and create the training job."""

    job: WaitingJob
    room: Vector
    """Most that may be in use, by capacity, at the instant of the claim."""
    ends_hold: bool = False
    """The job was held room for; the claim uses it up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempt:
    """Stop every victim so that ``job`` can start, and keep their room for it."""

    job: WaitingJob
    victims: tuple[RunningJob, ...]
    used: Vector
    """In use when this was decided; if it has changed since, the decision is void."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Send StopTrainingJob for an attempt that was asked to stop but not yet told."""

    job: RunningJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpark:
    """Move a job whose back-off is over back into the queue."""

    job: WaitingJob


@dataclass(frozen=True, slots=True, kw_only=True)
class DropHold:
    """The preemptor is gone or did not come in time: its room is free again."""

    hold: Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitHold:
    """The last victim has ended: from now on the hold has a deadline."""

    hold: Hold
    until: datetime


Action: TypeAlias = Start | Preempt | Stop | Unpark | DropHold | LimitHold


def subject(action: Action) -> str:
    """Name of the job an action is about."""
    return action.hold.preemptor if isinstance(action, DropHold | LimitHold) else action.job.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything one look at a pool leads to."""

    actions: tuple[Action, ...]
    reasons: Mapping[str, Reason]
    """Why each candidate that does not start waits, by job name."""
