"""Rows K6 and K7: urgent jobs that need the instances of many small ones, and many urgent jobs."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.attribute_values import to_attributes
from trainmaster.adapters.dynamodb.codec import encode
from trainmaster.core.jobs.instances import Capacity, CapacityType
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.actions import Preempt
from trainmaster.core.planning.reservations import MAX_RESERVATIONS
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob
from trainmaster.services.scheduler import stops
from trainmaster.services.scheduler.stops import MAX_VICTIMS

from benchmarks.preemptors import Crowd, cpu_seconds, crowded
from tests.bodies import body
from tests.builders import A, minutes
from tests.faults.planes import plane, run, states
from tests.histories.playing import STAGE
from tests.histories.stage import CrashError, Fault, Process
from tests.histories.world import POOL, World
from tests.memory.store import MemoryJobStore

LONGEST_NAME = 63
MOST_LOOKS = 10
"""On its way out, borrowing, may be stopped, ends when: each part of a plan goes through them once."""
FEW = tuple(f"small{number}" for number in range(5))


def submit(world: World, name: str, *, priority: int = 0, count: int = 1, preemptible: bool = True) -> None:
    tags = {"priority": str(priority), "trainmaster:preemptible": str(preemptible).lower()}
    request = body(
        TrainingJobName=name,
        Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
        ResourceConfig={"InstanceType": A, "InstanceCount": count, "VolumeSizeInGB": 10},
    )
    answer = world.submit(request)
    assert answer.status == 201, answer


def full_of(*names: str, fixed: int = 0) -> World:
    """Each holds one instance; ``fixed`` more are held by a job that nobody may stop."""
    world = plane({"pools": [{"name": POOL, "capacity": {A: len(names) + fixed}}]})
    for name in names:
        submit(world, name)
    if fixed:
        submit(world, "fixed", count=fixed, preemptible=False)
    run(world, world.run_pass)
    assert set(states(world, *names)) == {"running"}
    return world


def asked(world: World) -> list[str]:
    return [name for name, job in world.tables.jobs.items() if job.state.value == "preempting"]


def victims_end(world: World) -> None:
    """As SageMaker was asked to; each end is heard of."""
    for name in asked(world):
        live = world.job(name).live
        assert live is not None
        assert live.stop_sent, f"{name} was never stopped"
        world.sagemaker.end(live.training_job_name, "Stopped")
        run(world, partial(world.hear, live.training_job_name))
    run(world, world.run_pass)


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many victims each transaction asked."""
    found: list[int] = []
    commit = MemoryJobStore.commit

    def noted(self: MemoryJobStore, changes: list[Change], **how: Any) -> Any:
        written = commit(self, changes, **how)
        condition = how.get("condition")
        if condition is not None and condition.places_hold is not None:
            found.append(len(changes))
        return written

    monkeypatch.setattr(MemoryJobStore, "commit", noted)
    return found


@pytest.mark.parametrize(("count", "expected"), [(24, [24]), (25, [24, 1]), (30, [24, 6])])
def test_K6_small_jobs_are_stopped_in_as_many_transactions_as_it_takes(
    count: int, expected: list[int], batches: list[int]
) -> None:
    names = tuple(f"small{number:02d}" for number in range(count))
    world = full_of(*names)
    submit(world, "urgent", priority=1000, count=count)
    run(world, world.run_pass)
    assert batches == expected
    assert max(expected) <= MAX_VICTIMS
    assert sorted(asked(world)) == sorted(names)
    assert list(world.tables.pools[POOL].holds) == ["urgent"]
    victims_end(world)
    assert states(world, "urgent") == ["running"]
    assert set(states(world, *names)) == {"preempted"}
    assert not world.tables.pools[POOL].holds


@pytest.mark.parametrize("count", [24, 25, 30])
def test_K6_nobody_is_stopped_for_a_job_that_could_not_start(count: int, batches: list[int]) -> None:
    names = tuple(f"small{number:02d}" for number in range(count - 1))
    world = full_of(*names, fixed=1)
    submit(world, "urgent", priority=1000, count=count)
    run(world, world.run_pass)
    assert (asked(world), batches) == ([], [])
    assert not world.tables.pools[POOL].holds


@pytest.fixture
def two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stops, "MAX_VICTIMS", 2)


def dies(world: World, at: int) -> bool:
    """A pass whose process dies before its call of this number; False: it made fewer."""
    process = Process(name="pass", act=world.run_pass, fault=Fault(at=at, after=False, error=CrashError))
    STAGE.finish(process)
    world.watch.look()
    return process.calls > at


def interrupted(most: int) -> World:
    """Five are to make room for an urgent job; the pass died when so many had been asked."""
    for at in range(100):
        world = full_of(*FEW)
        submit(world, "urgent", priority=1000, count=5)
        assert dies(world, at)
        if len(asked(world)) == most:
            return world
    raise AssertionError(f"never {most} of them")


@pytest.mark.usefixtures("two_at_a_time")
def test_K6_a_pass_may_die_between_any_two_calls_and_the_next_one_goes_on() -> None:
    seen = set()
    for at in range(200):
        world = full_of(*FEW)
        submit(world, "urgent", priority=1000, count=5)
        if not dies(world, at):
            break
        seen.add(len(asked(world)))
        world.now += minutes(1)
        run(world, world.reconcile)
        run(world, world.run_pass)
        assert sorted(asked(world)) == sorted(FEW), f"died before call {at}"
        victims_end(world)
        assert states(world, "urgent") == ["running"], f"died before call {at}"
    assert seen == {0, 2, 4, 5}


@pytest.mark.usefixtures("two_at_a_time")
@pytest.mark.parametrize("most", [2, 4])
def test_K6_the_rest_is_spared_once_the_preemptor_has_left(most: int) -> None:
    world = interrupted(most)
    world.cancel("urgent")
    run(world, world.run_pass)
    assert len(asked(world)) == most
    assert not world.tables.pools[POOL].holds


@pytest.mark.usefixtures("two_at_a_time")
def test_K6_whom_room_that_came_free_makes_superfluous_is_spared() -> None:
    world = interrupted(2)
    (spared, *_) = sorted(set(FEW) - set(asked(world)))
    world.sagemaker.end(spared, "Completed")
    run(world, lambda: world.hear(spared))
    run(world, world.run_pass)
    assert len(asked(world)) == 4
    assert states(world, spared) == ["completed"]
    victims_end(world)
    assert states(world, "urgent") == ["running"]


@pytest.mark.usefixtures("two_at_a_time")
def test_K6_the_rest_is_spared_where_it_would_not_be_enough_any_more() -> None:
    world = interrupted(2)
    left = sorted(set(FEW) - set(asked(world)))
    world.tables.jobs[left[0]] = _fixed(world, left[0])
    run(world, world.run_pass)
    assert len(asked(world)) == 2


def _fixed(world: World, name: str) -> Job:
    job = world.job(name)
    return replace(job, spec=replace(job.spec, preemptible=False))


@pytest.mark.usefixtures("two_at_a_time")
def test_K6_nobody_takes_what_the_first_victims_have_freed() -> None:
    world = interrupted(2)
    submit(world, "thief", priority=900)
    for name in asked(world):
        world.sagemaker.end(name, "Stopped")
        run(world, partial(world.hear, name))
    run(world, world.run_pass)
    assert states(world, "thief", "urgent") == ["pending", "pending"]
    victims_end(world)
    assert states(world, "urgent") == ["running"]


@pytest.mark.parametrize("with_quotas", [True, False])
def test_K7_a_plan_of_5000_running_and_130_urgent_jobs_takes_no_second(with_quotas: bool) -> None:  # noqa: FBT001
    crowd = Crowd(running=5_000, preemptors=130, with_quotas=with_quotas)
    seconds, decided = cpu_seconds(*crowded(crowd))
    assert sum(isinstance(one, Preempt) for one in decided.actions) >= 50
    assert seconds < 1


class Looked(tuple[RunningJob, ...]):  # noqa: SLOT001  a tuple has no slots of its own
    """Running jobs that count how often somebody goes through all of them."""

    times = 0

    def __iter__(self) -> Iterator[RunningJob]:
        self.times += 1
        return super().__iter__()


@pytest.mark.parametrize("rules", [{"with_quotas": False}, {}, {"may_borrow": False}])
def test_K7_a_plan_goes_through_all_that_runs_a_few_times_however_many_press(rules: dict[str, Any]) -> None:
    """Jobs of eighty teams, among them those that may stop none but their own team's."""
    world, pool = crowded(Crowd(running=600, preemptors=320, teams=80, **rules))
    looked = Looked(world.running)
    _, decided = cpu_seconds(replace(world, running=looked), pool)
    assert sum(isinstance(one, Preempt) for one in decided.actions) >= 60
    assert looked.times <= MOST_LOOKS


def test_K7_no_more_reservations_are_placed_than_the_counters_are_to_keep() -> None:
    crowd = Crowd(running=5_000, preemptors=400, with_quotas=False)
    _, decided = cpu_seconds(*crowded(crowd))
    assert sum(isinstance(one, Preempt) for one in decided.actions) == MAX_RESERVATIONS


def test_K7_the_counters_stay_below_100_kb_however_many_victims_there_are() -> None:
    """The longest names, two types each, half of their victims yet to be asked."""
    row: dict[str, Any] = {}
    vector = {Capacity("ml.g6e.48xlarge", CapacityType.SPOT): 4000, Capacity("ml.p5en.48xlarge"): 4000}
    for number in range(MAX_RESERVATIONS):
        name = f"{number:03d}".ljust(LONGEST_NAME, "x")
        hold = PreemptionReservation(preemptor=name, vector=vector, missing=vector)
        row[layout.hold_of(name)] = encode(hold)
    assert stored_bytes(to_attributes(row)) < 90_000


def stored_bytes(item: Any) -> int:
    """Source: DynamoDB developer guide, item sizes and formats."""
    return sum(len(name) + _bytes_of(value) for name, value in item.items())


def _bytes_of(attribute: dict[str, Any]) -> int:
    ((kind, content),) = attribute.items()
    if kind == "M":
        return 3 + len(content) + stored_bytes(content)
    if kind == "L":
        return 3 + sum(1 + _bytes_of(one) for one in content)
    return len(str(content)) + 1
