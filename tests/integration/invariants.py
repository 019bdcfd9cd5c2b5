"""What holds at any instant, whatever has happened: compared between table, counters and SageMaker."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from trainmaster.bootstrap import Wiring
from trainmaster.core.arrays.array_model import Array, TaskJobs
from trainmaster.core.costs.ledger import Cause
from trainmaster.core.jobs.instances import Capacity, Vector, fits, total
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.policy import parse_policy
from trainmaster.core.records import PoolState
from trainmaster.services.plan_looks import with_plans

from tests.integration.sagemaker_stub import SageMakerStub

POOL = "main"


class Plane(Protocol):
    wiring: Wiring
    sagemaker: SageMakerStub

    def job(self, name: str) -> Job: ...


def check(plane: Plane, names: Sequence[str], *, capacity: Vector | None = None) -> Vector:
    """Bounded; counters are sums; one training job a live job; nothing is lost.

    Args:
        plane: At rest, or where a process died.
        names: All its jobs.
        capacity: Where it is not the policy's, because that was lowered.

    Returns:
        What is used and warm.
    """
    jobs = [plane.job(name) for name in names]
    live = [job for job in jobs if job.is_live]
    bound = capacity or capacity_of(plane)
    pools = {pool: plane.wiring.reader.pool_state(pool) for pool in {POOL, *(job.spec.pool for job in jobs)}}
    for pool, state in pools.items():
        _check_pool(plane, pool, state, [job for job in jobs if job.spec.pool == pool])
    warm = [left for state in pools.values() for left in state.warm_pools]
    taken = total([*(job.vector for job in live), *(left.vector for left in warm)])
    assert fits(taken, bound), f"over capacity: {taken} of {bound}"
    _check_months(plane, jobs)
    _check_sagemaker(plane, live, {left.training_job_name for left in warm}, bound)
    return taken


def capacity_of(plane: Plane) -> dict[Capacity, int]:
    """Of all pools: a type belongs to one of them."""
    policies, now = plane.wiring.policies, plane.wiring.clock()
    policy = with_plans(parse_policy(policies.current().document), policies, now)
    return total(pool_vector(pool) for pool in policy.pools)


def _check_pool(plane: Plane, pool: str, state: PoolState, jobs: Sequence[Job]) -> None:
    held = total(job.vector for job in jobs if job.is_live)
    warm = total(left.vector for left in state.warm_pools)
    assert _counted(state.used) == held, f"the counters of what is used of {pool} drifted"
    assert _counted(state.warm) == warm, f"the counters of what is warm of {pool} drifted"
    _check_rows(plane, pool, jobs)
    arrays = plane.wiring.reader.arrays(
        name for _, name in plane.wiring.reader.open_arrays(pool, after="", limit=1000)
    )
    _check_teams(jobs, state, Counter(array.template.spec.team for array in arrays.values()))
    for array in arrays.values():
        _check_array(array, [job for job in jobs if job.spec.array and job.spec.array.name == array.name])


def _check_rows(plane: Plane, pool: str, jobs: Sequence[Job]) -> None:
    reader = plane.wiring.reader
    assert {entry.name for entry in reader.running(pool)} == {job.name for job in jobs if job.is_live}
    waiting = sorted(one.name for one in reader.waiting(pool, after=None, limit=1000))
    in_turn = sorted(job.name for job in jobs if job.is_waiting and not job.is_parked)
    assert waiting == in_turn, "the queue lost or doubled a job"
    parked = sorted(one.name for one in reader.parked(pool, after=None, limit=1000))
    assert parked == sorted(job.name for job in jobs if job.is_parked), "a parked job is lost or doubled"


def _check_array(array: Array, tasks: Sequence[Job]) -> None:
    """Counts of an open array are those of the jobs of its tasks, and no task is at two places."""
    counted = TaskJobs(
        waiting=sum(job.is_waiting for job in tasks),
        held=sum(job.state is JobState.HELD for job in tasks),
        running=sum(job.is_live for job in tasks),
    )
    assert array.jobs == counted, f"the counts of array {array.name} drifted"
    for job in tasks:
        assert job.spec.array is not None, job.name
        assert not array.unexpanded >> job.spec.array.position & 1, f"{job.name} is to be made again"
    assert sum(getattr(array.counts, kind) for kind in _KINDS) == len(array.indices), array.name


_KINDS = ("waiting", "held", "running", "completed", "failed", "stopped")


def _check_teams(jobs: Sequence[Job], state: PoolState, open_arrays: Mapping[str, int]) -> None:
    """An open array counts as one more that waits for its team."""
    for team in {job.spec.team for job in jobs}:
        own = [job for job in jobs if job.spec.team == team]
        used = total(job.vector for job in own if job.is_live)
        queued = sum(not job.is_final and not job.is_live for job in own) + open_arrays.get(team, 0)
        found = state.teams[team]
        assert (_counted(found.used), found.waiting) == (used, queued), f"counters of {team} drifted"


def _check_months(plane: Plane, jobs: Sequence[Job]) -> None:
    """A month is the sum of what live attempts reserve and of its bills; those are what attempts have cost.

    Warm pools are billed to the job that left them, and are no attempts.
    """
    reserved, cost = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for job in jobs:
        for one in plane.wiring.reader.story(job)[0]:
            if one.claim.month and one.ended_at:
                cost[job.spec.team, one.claim.month] += one.bill.cents or 0
        if job.live and job.live.claim.month:
            reserved[job.spec.team, job.live.claim.month] += job.live.claim.reserved_cents
    for team, month in {*reserved, *cost}:
        account = plane.wiring.reader.month(team, month)
        lines, _ = plane.wiring.reader.usage(team, month)
        billed = sum(sum(line.by.values()) for line in lines)
        idle = sum(line.by.get(Cause.WARM_POOL, 0) for line in lines)
        assert account.reserved == reserved[team, month], f"{team} has reserved something else in {month}"
        assert account.spent == billed, f"{team} has spent something else in {month}"
        assert billed - idle == cost[team, month], f"{team} has other bills than attempts in {month}"


def _check_sagemaker(plane: Plane, live: Sequence[Job], warm: set[str], bound: Vector) -> None:
    stub = plane.sagemaker
    expected = {job.live.training_job_name for job in live if job.live}
    assert set(stub.live()) <= expected, "a training job without a job"
    assert len(set(stub.creates)) == len(stub.creates), "created twice"
    entries = Counter(job.tags.get("trainmaster:job", name) for name, job in stub.live().items())
    assert [entry for entry, count in entries.items() if count > 1] == [], "two live attempts of one job"
    unread = {name for name in expected if name in stub.jobs and not stub.jobs[name].is_live}
    assert set(stub.available()) <= warm | unread, "a warm pool that nobody counts"
    taken = {Capacity.parse(name): count for name, count in stub.taken_up().items()}
    assert fits(taken, bound), "SageMaker runs more than the capacity"


def _counted(vector: Vector) -> dict[Capacity, int]:
    """Without zeros."""
    return {capacity: count for capacity, count in vector.items() if count}
