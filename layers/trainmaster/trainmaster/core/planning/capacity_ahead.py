"""A pool's capacity over time: who may start before a calendar or a plan lowers it, and who is stopped then.

A lowering is like a backfill reservation: a job starts before it if it is certain to have ended by then, if
there is room for it beside the others that stay, or if it can be stopped then without losing more than the
time since its last checkpoint.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, CapacityType, Shape, Vector, fits
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.actions import Drain, ReleaseWarm
from trainmaster.core.planning.capacity import ASKED_TO_STOP, take
from trainmaster.core.planning.preemption import cost_of_stop
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob
from trainmaster.core.planning.warm_pools import is_leaving
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.policy.calendar import CapacityFrom
from trainmaster.core.policy.plan_windows import ENDS_BEFORE, PlanChange, window_at

FreesBy = Callable[[WaitingJob, Shape], datetime]


LEAST_STAY = timedelta(minutes=15)
"""Least time to the closing of a plan's window in which a job that saves starts: less is spent on loading."""


@dataclass(slots=True, kw_only=True)
class _Lowering:
    """An instant at which less is there than now."""

    at: datetime
    left: dict[Capacity, int]
    """Instances of the lowered types that jobs which stay leave free then."""
    there: Vector
    """Instances of the lowered types that there are from then on."""
    stops: frozenset[Capacity]
    """Those of them whose jobs are stopped."""

    def stays(self, job: WaitingJob | RunningJob, capacity: Capacity) -> bool:
        """Tell whether a job would hold on to its instances, or lose work if it does not."""
        is_stopped = capacity in self.stops
        return not (is_stopped and job.preemptible is not False and job.has_checkpoint)

    def count(self, job: WaitingJob | RunningJob, vector: Vector, *, ends_by: datetime | None) -> None:
        """Take what the job holds on to beyond this instant."""
        if ends_by is None or ends_by > self.at:
            kept = {kind: vector[kind] for kind in vector if kind in self.left and self.stays(job, kind)}
            take(self.left, kept)


@dataclass(slots=True, kw_only=True)
class CapacityAhead:
    """The lowerings of a pool to come, while a plan gives its capacity away."""

    pool: PoolPolicy
    now: datetime
    lowerings: tuple[_Lowering, ...] = ()

    @classmethod
    def of(cls, pool: PoolPolicy, running: Iterable[RunningJob], *, now: datetime) -> Self:
        lowerings = tuple(_lowerings(pool))
        for job in running if lowerings else ():
            if job.state not in ASKED_TO_STOP:
                for lowering in lowerings:
                    lowering.count(job, job.vector, ends_by=job.expected.ends_by)
        return cls(pool=pool, now=now, lowerings=lowerings)

    def too_big(self, vector: Vector, capacity: Vector) -> Reason:
        """Say that not even the whole pool has so many instances now, and when it has."""
        if any(kind.is_plan for kind in vector):
            later = next((change.at for change in self.pool.plans_ahead if _opens(change, vector)), None)
            return wait_reasons.no_window(vector, opens=later)
        spot = {Capacity(name, CapacityType.SPOT): count for name, count in self.pool.spot_capacity.items()}
        later = next((change.at for change in self.pool.ahead if fits(vector, _vector(change) | spot)), None)
        if later is None:
            return wait_reasons.too_big(vector, capacity)
        return wait_reasons.lower_until(vector, capacity, until=later)

    def refusal(self, job: WaitingJob, shape: Shape, *, frees_by: FreesBy) -> Reason | None:
        """Return why the job may not start now; None: no lowering concerns it.

        Args:
            job: A job that waits.
            shape: The shape that it would start in.
            frees_by: Tells when it would be certain to have given its instances back.
        """
        if not self.lowerings:
            return None
        until = frees_by(job, shape)
        for lowering in self.lowerings:
            if until <= lowering.at:
                continue
            for capacity, count in shape.vector.items():
                left = lowering.left.get(capacity)
                if left is None or count <= left:
                    continue
                if lowering.stays(job, capacity) or self._is_too_late(capacity, lowering):
                    return _past(lowering, {capacity: count}, until=until)
        return None

    def _is_too_late(self, capacity: Capacity, lowering: _Lowering) -> bool:
        return capacity.is_plan and lowering.at - self.now < LEAST_STAY

    def start(self, job: WaitingJob, vector: Vector, *, until: datetime) -> None:
        """Count a job that starts."""
        for lowering in self.lowerings:
            lowering.count(job, vector, ends_by=until)


def _past(lowering: _Lowering, vector: Vector, *, until: datetime) -> Reason:
    (capacity,) = vector
    if capacity.is_plan:
        return wait_reasons.past_window(vector, until=until, closes=lowering.at)
    there = lowering.there.get(capacity, 0)
    return wait_reasons.past_lowering(vector, until=until, lowered_at=lowering.at, there=there)


def _lowerings(pool: PoolPolicy) -> Iterator[_Lowering]:
    """Yield the changes after which less is there than now, of some type."""
    for change in pool.ahead:
        there = {
            Capacity(name, CapacityType.ON_DEMAND): change.capacity.get(name, 0)
            for name, count in pool.capacity.items()
            if change.capacity.get(name, 0) < count
        }
        if there:
            stops = frozenset(capacity for capacity in there if capacity.instance_type in change.stops)
            yield _Lowering(at=change.at, left=dict(there), there=there, stops=stops)
    for closing in pool.plans_ahead:
        now = pool.plan_counts.get(closing.capacity)
        if now is not None and closing.count.kept < now.kept:
            there = {closing.capacity: closing.count.usable}
            yield _Lowering(at=closing.at, left=dict(there), there=there, stops=frozenset(there))


def _opens(change: PlanChange, vector: Vector) -> bool:
    return all(kind == change.capacity and count <= change.count.usable for kind, count in vector.items())


def _vector(change: CapacityFrom) -> dict[Capacity, int]:
    return {Capacity(name, CapacityType.ON_DEMAND): count for name, count in change.capacity.items()}


# ---- at a lowering


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """The actions of a lowering, and the pool as it is once they were carried out."""

    actions: tuple[Drain | ReleaseWarm, ...]
    snapshot: Snapshot


def drained(snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> Drained:
    """Take what is above a capacity that the calendar or a plan lowered: warm pools first, then running jobs.

    The lowest priority goes first, among equals whoever saves checkpoints and loses the least. A job that its
    owner does not allow to be stopped runs on, but not on a plan, where SageMaker ends it anyway. One whose
    start is not recorded yet is stopped by the next pass.
    """
    over = _over(snapshot, pool, now=now)
    warm = [kept for kept in snapshot.warm_pools if not is_leaving(kept, now=now)]
    released = [kept for kept in warm if _taken(over, kept.vector)]
    running = [job for job in snapshot.running if job.state is JobState.RUNNING and _may_stop(job)]
    running.sort(key=lambda job: (job.priority, not job.has_checkpoint, cost_of_stop(job, now=now), job.name))
    stopped = [job for job in running if _taken(over, job.vector)]
    if not released and not stopped:
        return Drained(actions=(), snapshot=snapshot)
    actions: tuple[Drain | ReleaseWarm, ...] = (
        *(ReleaseWarm(warm_pool=kept, because="the calendar lowered the capacity") for kept in released),
        *(Drain(job=job, why=_why(job, pool, now=now)) for job in stopped),
    )
    stopping = {job.name for job in stopped}
    gone = {kept.training_job_name for kept in released}
    return Drained(
        actions=actions,
        snapshot=replace(
            snapshot,
            running=tuple(
                replace(job, state=JobState.PREEMPTING, stop_sent=True) if job.name in stopping else job
                for job in snapshot.running
            ),
            warm_pools=tuple(kept for kept in snapshot.warm_pools if kept.training_job_name not in gone),
        ),
    )


def _over(snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> dict[Capacity, int]:
    """Return the instances above the capacity, by drained type, that are not on their way out."""
    over: dict[Capacity, int] = {}
    for name in pool.stops:
        capacity = Capacity(name, CapacityType.ON_DEMAND)
        taken = snapshot.used.get(capacity, 0) + snapshot.warm.get(capacity, 0)
        over[capacity] = taken - pool.capacity.get(name, 0)
    for plan, instances in pool.plan_counts.items():
        over[plan] = snapshot.used.get(plan, 0) - instances.kept
    for job in snapshot.running:
        if job.state in ASKED_TO_STOP:
            _give_back(over, job.vector)
    for kept in snapshot.warm_pools:
        if is_leaving(kept, now=now):
            _give_back(over, kept.vector)
    return over


def _give_back(over: dict[Capacity, int], vector: Vector) -> None:
    take(over, {capacity: count for capacity, count in vector.items() if capacity in over})


def _gives(vector: Vector, over: Vector) -> bool:
    return any(over.get(capacity, 0) > 0 for capacity in vector)


def _taken(over: dict[Capacity, int], vector: Vector) -> bool:
    """Count what somebody gives back, if any of it is above the capacity; tell whether it is."""
    if not _gives(vector, over):
        return False
    _give_back(over, vector)
    return True


def _may_stop(job: RunningJob) -> bool:
    return job.preemptible or any(capacity.is_plan for capacity in job.vector)


def _why(job: RunningJob, pool: PoolPolicy, *, now: datetime) -> str:
    plan = next((capacity for capacity in job.vector if capacity.is_plan), None)
    if plan is not None:
        seen = next((seen for _, seen in pool.known_plans if seen.capacity_key == plan), None)
        window = None if seen is None else window_at(seen, now)
        ends = None if window is None or pool.plan_counts[plan].kept else window.end - ENDS_BEFORE
        return wait_reasons.closed_text(plan, ends=ends, left=pool.plan_counts[plan].kept)
    there = {
        capacity: pool.capacity.get(capacity.instance_type, 0)
        for capacity in job.vector
        if capacity.instance_type in pool.stops
    }
    return wait_reasons.lowered_text(there)
