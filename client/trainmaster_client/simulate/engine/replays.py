"""Data that a replay gives: each attempt as it would have gone under one policy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from trainmaster.core.jobs.model import JobState
from trainmaster.core.lifecycle.change import Change

from trainmaster_client.simulate.engine.past_jobs import INTERRUPTED, RESIZES, STOPPED_FOR_OTHERS

RESIZED = "resized"
"""End of an attempt of an elastic job that continues at another width."""
ON_PLAN = "plan/"
"""Beginning of the capacity type of attempts on training plans; the plan's name follows."""
PLAIN_QUEUE = "plain queue"
"""Label of the column of a queue that goes by priority alone."""


class ReplayedAttempt(NamedTuple):
    """An attempt of a replay. Seconds since ``History.begins``."""

    job: str
    attempt: int
    pool: str
    instance_type: str
    capacity_type: str
    """``on-demand``, ``spot``, or ``plan/NAME`` on a training plan."""
    instances: int
    start_s: int
    """Second from which it holds its instances."""
    train_s: int
    """Second in which it began to train; if it never did, the one in which it was stopped."""
    end_s: int
    """Second from which its instances are free."""
    end: str
    """``completed``; ``failed``, also where the job is tried again; ``stopped`` by a user or at its run time;
    ``preempted``; ``interrupted``: it left spot; ``resized``: it continues at another width; ``live`` at the
    instant up to which was replayed."""
    lost_s: int
    """Training that has to be done again."""
    warm: bool
    """Whether it started in a warm pool."""
    preempted_by: str | None = None
    stopping_s: int = 0
    """Seconds between the stop and ``end_s``: held, without training; 0 if it was not stopped."""

    @property
    def is_on_plan(self) -> bool:
        return self.capacity_type.startswith(ON_PLAN)


class WarmInterval(NamedTuple):
    """Instances kept ready without a job. Seconds since ``History.begins``."""

    pool: str
    instance_type: str
    instances: int
    since_s: int
    until_s: int


class ReplayedWindow(NamedTuple):
    """A window of a training plan. Seconds since ``History.begins``."""

    since_s: int
    until_s: int
    ends_s: int
    """Second from which SageMaker ends its instances."""
    instances: int


class ReplayedPlan(NamedTuple):
    """A training plan that a replay has."""

    pool: str
    name: str
    instance_type: str
    fee_usd: float | None
    """Paid for all its windows, those outside of the history too; None if it is not known."""
    windows: Sequence[ReplayedWindow]

    @property
    def capacity_type(self) -> str:
        """Return the capacity type of attempts on it."""
        return f"{ON_PLAN}{self.name}"

    @property
    def paid_s(self) -> int:
        """Return the instance-seconds of all its windows."""
        return sum(window.instances * (window.until_s - window.since_s) for window in self.windows)

    @property
    def most(self) -> int:
        """Return its instances in the largest window."""
        return max((window.instances for window in self.windows), default=0)


class CapacityStep(NamedTuple):
    """On-demand capacity of a pool from a second on."""

    since_s: int
    instances: Mapping[str, int]
    """Number of instances by type."""


@dataclass(slots=True, kw_only=True)
class Replay:
    """The replay of one history under one policy."""

    policy: str
    """Label of the policy: a file's name, ``revision 7``, ``recorded``, ``plain queue``."""
    capacity: Mapping[str, Mapping[str, Mapping[str, int]]]
    """Capacity by pool, capacity type (``on-demand``, ``spot``) and instance type, as replayed.

    It is the largest, where a calendar changes it.
    """
    steps: Mapping[str, Sequence[CapacityStep]] = field(default_factory=dict)
    """On-demand capacity over time, by pool, of those with a calendar."""
    plans: Sequence[ReplayedPlan] = ()
    """Training plans, beside ``capacity``."""
    attempts: list[ReplayedAttempt] = field(default_factory=list)
    warm: list[WarmInterval] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Reason by job why it was never admitted (no pool, too wide, a rule). The jobs of all replays are the
    same."""
    passes: int = 0
    cpu_s: float = 0.0
    """CPU seconds of the planner."""
    notes: list[str] = field(default_factory=list)
    """Sentences on what this replay left out or changed, capacities that were sized included."""


def end_text(change: Change) -> str:
    """Return the name of the end that an attempt came to."""
    assert change.ended is not None, change
    reason = change.ended.end.reason if change.ended.end else None
    if change.after.spot.left and not change.before.spot.left:
        return INTERRUPTED
    if reason is not None and reason.code in STOPPED_FOR_OTHERS:
        return "preempted"
    if reason is not None and reason.code in RESIZES:
        return RESIZED
    if change.after.state is JobState.COMPLETED:
        return "completed"
    return "stopped" if change.after.state is JobState.STOPPED else "failed"
