"""Backfill: whoever goes ahead of the first job that waits, that job starts no later than it was certain to.

The pool is rolled forward. Every job keeps its instances for as long as it possibly may, new ones come in
behind, and each change brings a new plan, as each ring does.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.instances import Capacity, Vector, fits, total
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.actions import Preempt, Start
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import Order, PoolPolicy, Preemption

from tests.builders import NOON, A, B, changed, minutes, of, running, waiting
from tests.properties.carrying_out import frees_by, started_job
from tests.properties.pools import always, shape

CAPACITY_WAIT = timedelta(minutes=30)
SLACK = timedelta(minutes=10)
VECTORS = st.sampled_from([of(1), of(1), of(2), of(3), of(1, B), {**of(1), **of(1, B)}, of(1, spot=True)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    pool: PoolPolicy
    running: tuple[RunningJob, ...]
    waiting: tuple[WaitingJob, ...]
    later: tuple[tuple[datetime, WaitingJob], ...]
    """Jobs that come in after the others, and when."""


@st.composite
def queue_entries(draw: st.DrawFn, name: str, *, minutes_ago: int) -> WaitingJob:
    return waiting(
        name,
        minutes_ago=minutes_ago,
        shapes=(shape(draw(VECTORS)),),
        runs_at_most=minutes(draw(st.sampled_from([5, 30, 120]))),
        max_wait=minutes(240),
    )


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Preemption is off: it may delay anybody whom a higher priority outranks."""
    pool = PoolPolicy(
        name="main",
        capacity={A: draw(st.integers(2, 4)), B: draw(st.integers(1, 2))},
        spot_capacity={A: 1},
        order=Order(backfill=True),
        preemption=Preemption(enabled=False),
        capacity_wait=CAPACITY_WAIT,
    )
    live: list[RunningJob] = []
    for number in range(draw(st.integers(1, 5))):
        ends = NOON + minutes(draw(st.integers(1, 240)))
        stops = draw(st.integers(0, 5)) == 0
        job = running(f"r{number}", vector=draw(VECTORS), ends_by=min(ends, NOON + SLACK) if stops else ends)
        job = replace(job, state=JobState.STOPPING, stop_sent=True) if stops else job
        if fits(total(one.vector for one in (*live, job)), _capacity(pool)):
            live.append(job)
    queue = tuple(draw(queue_entries(f"w{n}", minutes_ago=20 - n)) for n in range(draw(st.integers(2, 6))))
    later = tuple(
        (NOON + minutes(draw(st.integers(1, 200))), draw(queue_entries(f"x{n}", minutes_ago=0)))
        for n in range(draw(st.integers(0, 3)))
    )
    return Scene(pool=pool, running=tuple(live), waiting=queue, later=later)


@always
@given(scenes())
def test_backfilled_jobs_never_delay_the_first_that_waits(scene: Scene) -> None:
    first = first_that_waits(scene)
    if first is None:
        return
    certain = certain_start(first, scene)
    if certain is not None:
        assert start_of(first, scene) <= certain


def first_that_waits(scene: Scene) -> WaitingJob | None:
    free = _free(scene.pool, scene.running)
    for job in sorted(scene.waiting, key=lambda one: one.rank):
        if not fits(job.vector, _capacity(scene.pool)):
            continue
        if not fits(job.vector, free):
            return job
        free = {one: count - job.vector.get(one, 0) for one, count in free.items()}
    return None


def certain_start(first: WaitingJob, scene: Scene) -> datetime | None:
    """When it would fit if those ahead started now and never ended, and nobody behind it ever started."""
    free = _free(scene.pool, scene.running)
    for job in sorted(scene.waiting, key=lambda one: one.rank):
        if job is first:
            break
        if fits(job.vector, free):
            free = {one: count - job.vector.get(one, 0) for one, count in free.items()}
    for over in sorted(scene.running, key=lambda one: one.expected.ends_by or NOON):
        free = total((free, over.vector))
        if fits(first.vector, free):
            return over.expected.ends_by
    return None


def start_of(first: WaitingJob, scene: Scene) -> datetime:
    """Roll the pool forward until the job starts."""
    now, running, queue = NOON, list(scene.running), list(scene.waiting)
    later, over, trains = list(scene.later), dict[str, datetime](), dict[str, datetime]()
    while True:
        for action in _plan(scene.pool, running, queue, now):
            queue = [one for one in queue if one.name != action.job.name]
            if action.job.name == first.name:
                return now
            running.append(started_job(action, now=now))
            over[action.job.name] = frees_by(action.job, action.shape.vector, scene.pool, Snapshot(), now=now)
            trains[action.job.name] = now + CAPACITY_WAIT
        ends = {one.name: over.get(one.name) or one.expected.ends_by or now for one in running}
        coming = [at for at in trains.values() if at > now] + [at for at, _ in later]
        now = min([*(max(at, now) for at in ends.values()), *coming])
        queue += [job for at, job in later if at <= now]
        later = [(at, job) for at, job in later if at > now]
        running = [_trained(one, trains, over, now=now) for one in running if ends[one.name] > now]


def _plan(pool: PoolPolicy, running: list[RunningJob], queue: list[WaitingJob], now: datetime) -> list[Start]:
    used = total(one.vector for one in running)
    decided = plan(Snapshot(used=used, running=tuple(running), waiting=tuple(queue)), pool, now=now)
    assert not any(isinstance(one, Preempt) for one in decided.actions)
    return [one for one in decided.actions if isinstance(one, Start)]


def _trained(
    job: RunningJob, trains: dict[str, datetime], over: dict[str, datetime], *, now: datetime
) -> RunningJob:
    """Its end is certain once it trains: as late as it can be. Spot counts from its creation."""
    if job.name not in trains or (trains[job.name] > now and not _is_spot(job.vector)):
        return job
    return changed(job, training_since=trains[job.name], ends_by=over[job.name])


def _is_spot(vector: Vector) -> bool:
    return any(capacity.endswith(":spot") for capacity in vector)


def _capacity(pool: PoolPolicy) -> dict[Capacity, int]:
    return {**of(pool.capacity[A]), **of(pool.capacity[B], B), **of(pool.spot_capacity[A], spot=True)}


def _free(pool: PoolPolicy, running: tuple[RunningJob, ...]) -> dict[Capacity, int]:
    used = total(one.vector for one in running)
    return {one: count - used.get(one, 0) for one, count in _capacity(pool).items()}
