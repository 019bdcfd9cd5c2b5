"""Stops of what is above what a calendar or a plan left, or on instances that are reserved for others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning import reservation_reasons, wait_reasons
from trainmaster.core.planning.actions import Drain, ReleaseWarm
from trainmaster.core.planning.capacity import ASKED_TO_STOP, take
from trainmaster.core.planning.preemption import cost_of_stop
from trainmaster.core.planning.reserved_capacity import ReservedCapacity, reservations_at
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WarmPool
from trainmaster.core.planning.warm_pools import is_leaving
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.policy.plan_windows import ENDS_BEFORE, window_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """Stops that a change of the capacity needs, and the pool as it is once they were asked for."""

    actions: tuple[Drain | ReleaseWarm, ...]
    snapshot: Snapshot


def drained(snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> Drained:
    """Take what is above the capacity that is left: warm pools first, then running jobs.

    The lowest priority goes first, among equals whoever saves checkpoints and loses the least. A job that its
    owner does not allow to be stopped runs on, but not on a plan, where SageMaker ends it anyway. One whose
    start is not recorded yet is stopped by the next pass.
    What a team has reserved is taken from others, never from the team.
    """
    over = _Over.of(snapshot, pool, now=now)
    warm = [kept for kept in snapshot.warm_pools if not is_leaving(kept, now=now)]
    released = [kept for kept in warm if over.takes(kept)]
    running = [job for job in snapshot.running if job.state is JobState.RUNNING and _may_stop(job)]
    running.sort(key=lambda job: (job.priority, not job.has_checkpoint, cost_of_stop(job, now=now), job.name))
    stopped = [job for job in running if over.takes(job)]
    if not released and not stopped:
        return Drained(actions=(), snapshot=snapshot)
    actions: tuple[Drain | ReleaseWarm, ...] = (
        *(ReleaseWarm(warm_pool=kept, because=_why(kept, pool, now=now)) for kept in released),
        *(Drain(job=job, why=_why(job, pool, now=now)) for job in stopped),
    )
    return Drained(actions=actions, snapshot=_without(snapshot, stopped, released))


def _without(snapshot: Snapshot, stopped: Sequence[RunningJob], released: Sequence[WarmPool]) -> Snapshot:
    stopping = {job.name for job in stopped}
    gone = {kept.training_job_name for kept in released}
    return replace(
        snapshot,
        running=tuple(
            replace(job, state=JobState.PREEMPTING, stop_sent=True) if job.name in stopping else job
            for job in snapshot.running
        ),
        warm_pools=tuple(kept for kept in snapshot.warm_pools if kept.training_job_name not in gone),
    )


@dataclass(slots=True, kw_only=True)
class _Over:
    """Instances above what there is, while it is decided who gives them back."""

    counts: dict[Capacity, int]
    """Counts by plan, and by type that the calendar drains or a team has reserved, less those that leave."""
    reserved: ReservedCapacity

    @classmethod
    def of(cls, snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> "_Over":
        reserved = ReservedCapacity.of(pool.reserved)
        types = pool.stops.union(*pool.reserved.values())
        counts = {
            capacity: snapshot.used.get(capacity, 0)
            + snapshot.warm.get(capacity, 0)
            - pool.capacity.get(capacity.instance_type, 0)
            for capacity in map(Capacity, types)
        }
        for plan, instances in pool.plan_counts.items():
            counts[plan] = snapshot.used.get(plan, 0) - instances.kept
        for job in snapshot.running:
            if job.state in ASKED_TO_STOP:
                _less(counts, job.vector)
            else:
                reserved.use(job.team, job.vector)
        for warm_pool in snapshot.warm_pools:
            if is_leaving(warm_pool, now=now):
                _less(counts, warm_pool.vector)
            else:
                reserved.use(warm_pool.team, warm_pool.vector)
        kept = reserved.kept_from(None)
        _less(counts, kept, times=-1)
        # Where the calendar does not drain, what is above stays unless a team lacks what it has reserved.
        over = {
            capacity: count
            for capacity, count in counts.items()
            if capacity.is_plan or capacity.instance_type in pool.stops or kept.get(capacity, 0) > 0
        }
        return cls(counts=over, reserved=reserved)

    def takes(self, holder: RunningJob | WarmPool) -> bool:
        """Count what somebody gives back, if any of it is above what there is; tell whether it is."""
        given = self.reserved.gives(holder.team, holder.vector)
        if not any(count > 0 and self.counts.get(capacity, 0) > 0 for capacity, count in given.items()):
            return False
        _less(self.counts, given)
        self.reserved.use(holder.team, holder.vector, times=-1)
        return True


def _less(counts: dict[Capacity, int], vector: Vector, *, times: int = 1) -> None:
    known = {capacity: count for capacity, count in vector.items() if capacity in counts}
    take(counts, known, times=times)


def _may_stop(job: RunningJob) -> bool:
    return job.preemptible or any(capacity.is_plan for capacity in job.vector)


def _why(holder: RunningJob | WarmPool, pool: PoolPolicy, *, now: datetime) -> str:
    """Name the plan, the reservation of another team on its types, or the calendar."""
    plan = next((capacity for capacity in holder.vector if capacity.is_plan), None)
    if plan is not None:
        return _why_closed(plan, pool, now=now)
    keeping = reservations_at(pool, holder.vector, now, of_others_than=holder.team)
    if keeping:
        return reservation_reasons.reserved_text(keeping[0], holder.vector)
    there = {
        capacity: pool.capacity.get(capacity.instance_type, 0)
        for capacity in holder.vector
        if capacity.instance_type in pool.stops
    }
    return wait_reasons.lowered_text(there)


def _why_closed(plan: Capacity, pool: PoolPolicy, *, now: datetime) -> str:
    seen = next((seen for _, seen in pool.known_plans if seen.capacity_key == plan), None)
    window = None if seen is None else window_at(seen, now)
    ends = None if window is None or pool.plan_counts[plan].kept else window.end - ENDS_BEFORE
    return wait_reasons.closed_text(plan, ends=ends, left=pool.plan_counts[plan].kept)
