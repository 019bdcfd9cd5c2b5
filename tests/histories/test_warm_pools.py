"""What becomes of a warm pool whose claim comes to nothing: scenes without dice."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from trainmaster.core.errors import AccountLimitError, TrainingRefusedError, UnavailableError

from tests.bodies import resources
from tests.builders import A, minutes, of
from tests.histories.playing import STAGE
from tests.histories.stage import CrashError, Fault, Process
from tests.histories.world import POOL, World

DOCUMENT: dict[str, Any] = {
    "pools": [
        {
            "name": POOL,
            "capacity": {A: 1},
            "warm_pool": {"keep_alive": "1h", "retain": "30m", "max_idle": "1h"},
        }
    ]
}


def train(name: str) -> dict[str, Any]:
    return resources(InstanceType=A, InstanceCount=1, VolumeSizeInGB=1) | {"TrainingJobName": name}


def run(world: World, act: Any, fault: Fault | None = None) -> None:
    STAGE.finish(Process(name="process", act=act, fault=fault))
    world.watch.look()


@pytest.fixture
def warm() -> World:
    """job0 has completed and left its instance warm; job1 waits and could use it."""
    world = World(document=DOCUMENT, stage=STAGE)
    world.submit(train("job0"))
    run(world, world.run_pass)
    world.sagemaker.train("job0")
    world.sagemaker.end("job0", "Completed")
    run(world, lambda: world.hear("job0"))
    assert world.tables.pools[POOL].warm == of(1)
    world.submit(train("job1"))
    return world


def counts(world: World) -> tuple[dict[Any, int], dict[Any, int]]:
    rows = world.tables.pools[POOL]
    return dict(+rows.used), dict(+rows.warm)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(UnavailableError("throttled"), id="put off"),
        pytest.param(TrainingRefusedError("no role"), id="refused for good"),
    ],
)
def test_a_warm_pool_whose_taker_was_not_created_is_counted_again(warm: World, error: Exception) -> None:
    warm.sagemaker.refuse = [error]
    run(warm, warm.run_pass)
    assert warm.sagemaker.creates == ["job0"]
    assert counts(warm) == ({}, of(1))


def test_a_warm_pool_counts_to_the_limit_that_its_taker_was_refused_at_and_is_given_up(warm: World) -> None:
    warm.sagemaker.refuse = [AccountLimitError("no more")]
    run(warm, warm.run_pass)
    assert warm.sagemaker.creates == ["job0"]
    assert counts(warm) == ({}, {})


def test_a_warm_pool_whose_taker_died_before_the_create_is_counted_again(warm: World) -> None:
    run(warm, warm.run_pass, Fault(at=4, after=False, error=CrashError))
    assert warm.sagemaker.creates == ["job0"]
    assert counts(warm) == (of(1), {})
    warm.now += minutes(6)
    run(warm, warm.reconcile)
    assert counts(warm) == ({}, of(1))


def test_a_warm_pool_that_its_taker_missed_is_counted_again_even_after_a_quick_end(warm: World) -> None:
    """Until it is seen where the taker runs, one more instance is paid for than is counted."""
    warm.sagemaker.jobs["job0"].request["ResourceConfig"]["VolumeSizeInGB"] = 77
    STAGE.finish(Process(name="pass", act=warm.run_pass))
    warm.sagemaker.train("job1")
    warm.sagemaker.end("job1", "Stopped", secondary="MaxRuntimeExceeded")
    run(warm, lambda: warm.hear("job1"))
    assert counts(warm) == ({}, of(2))


def swapped() -> World:
    """job2 was claimed with job0's warm pool and landed in that of job1, which ended meanwhile."""
    pool = DOCUMENT["pools"][0] | {"capacity": {A: 2}}
    world = World(document={"pools": [pool]}, stage=STAGE)
    world.submit(train("job0"))
    world.submit(train("job1"))
    run(world, world.run_pass)
    for name in ("job0", "job1"):
        world.sagemaker.train(name)
        run(world, partial(world.hear, name))
    world.sagemaker.end("job0", "Completed")
    run(world, lambda: world.hear("job0"))
    assert counts(world) == (of(1), of(1))
    world.sagemaker.objections.append(partial(_ends_first, world))
    world.submit(train("job2"))
    run(world, world.run_pass)
    run(world, lambda: world.hear("job1"))
    assert world.sagemaker.jobs["job1"].warm == "Reused"
    assert sorted(world.sagemaker.kept_warm()) == ["job0"]
    return world


def _ends_first(world: World, request: Mapping[str, Any]) -> None:
    """Just before it reaches SageMaker job1 ends; its warm pool is the first that matches."""
    jobs = world.sagemaker.jobs
    if request["TrainingJobName"] == "job2":
        world.sagemaker.end("job1", "Completed")
        world.sagemaker.jobs = {"job1": jobs["job1"], **jobs}


def test_a_warm_pool_that_was_counted_on_and_missed_is_nobody_else_s_room() -> None:
    world = swapped()
    world.submit(train("wants-other") | {"RoleArn": "arn:aws:iam::123456789012:role/other"})
    run(world, world.run_pass)
    assert world.job("wants-other").state.value == "pending"
    assert sum(world.sagemaker.taken().values()) == 2
    world.sagemaker.train("job2")
    run(world, lambda: world.hear("job2"))
    assert counts(world) == (of(1), of(1)), "it is counted again"
    for _ in range(3):
        run(world, world.run_pass)
    assert world.job("wants-other").state.value == "running", "it was given up for it"


def test_a_warm_pool_that_was_taken_is_settled_before_its_attempt_trains() -> None:
    pool = DOCUMENT["pools"][0] | {"capacity": {A: 2}}
    world = World(document={"pools": [pool]}, stage=STAGE)
    world.submit(train("job0"))
    run(world, world.run_pass)
    world.sagemaker.train("job0")
    world.sagemaker.end("job0", "Completed")
    run(world, lambda: world.hear("job0"))
    world.submit(train("job1"))
    world.submit(train("job2"))
    run(world, world.run_pass)
    assert [world.job(name).state.value for name in ("job1", "job2")] == ["running", "pending"]
    run(world, lambda: world.hear("job1"))
    assert world.job("job1").live_attempt.claim.reuses is None
    run(world, world.run_pass)
    assert world.job("job2").state.value == "running"


def test_operators_hear_once_of_warm_pools_that_no_start_lands_in() -> None:
    pool = DOCUMENT["pools"][0] | {"capacity": {A: 9}}
    world = World(document={"pools": [pool]}, stage=STAGE)
    for number in range(6):
        name = f"job{number}"
        world.submit(train(name))
        run(world, world.run_pass)
        world.sagemaker.jobs[name].request["ResourceConfig"]["VolumeSizeInGB"] = number  # a key of its own
        world.sagemaker.train(name)
        run(world, partial(world.hear, name))
        world.sagemaker.end(name, "Completed")
        run(world, partial(world.hear, name))
    run(world, world.run_pass)
    told = [detail for kind, detail in world.notifier.told if kind == "Platform Warning"]
    assert [one["subject"] for one in told] == ["warm-pools-not-matched"]
    assert "The last 3 starts" in told[0]["what"]
