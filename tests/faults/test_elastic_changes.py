"""Group R of the fault list: a change of width that is cut off, or that nobody needs any more."""

from collections.abc import Callable

import pytest

from tests.builders import A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import ends, trains
from tests.faults.test_crashes import is_read
from tests.faults.test_elastic_jobs import later, pool, rigid, sent, submit
from tests.integration.world import Crash, World

PROMPT = {"preemption": {"min_runtime": "5m"}}


def attempt_of(world: World, name: str = "wide") -> str:
    """The training job of the live attempt."""
    return world.job(name).live_attempt.training_job_name


def urgent_comes(world: World) -> None:
    """An elastic job trains on all four instances, and an urgent job needs two."""
    submit(world, "wide", "1-4")
    world.schedule()
    trains(world, "wide")
    later(world, minutes(10))
    rigid(world, "urgent", 2, priority=500)


def shrink_is_asked(world: World) -> None:
    urgent_comes(world)
    world.schedule()
    assert world.states("wide", "urgent") == ["preempting", "pending"]


def wide_is_over(world: World) -> None:
    shrink_is_asked(world)
    world.sagemaker.end("wide", "Stopped")


def pool_has_room(world: World) -> None:
    """It runs narrow, the urgent job is over, and what it can use is free."""
    wide_is_over(world)
    world.tell("wide")
    world.schedule()
    trains(world, attempt_of(world), "urgent")
    ends(world, "urgent")


def settles(world: World) -> None:
    """Ends each stop, and lets passes and repairs do what is due."""
    for _ in range(3):
        for name, job in world.sagemaker.jobs.items():
            if job.status == "Stopping":
                world.sagemaker.end(name, "Stopped")
                world.tell(name)
        world.a_minute_passes()


def live_attempts(world: World) -> int:
    """Training jobs of the elastic job that SageMaker has and that have not ended."""
    live = ("InProgress", "Stopping")
    return sum(job.status in live for name, job in world.sagemaker.jobs.items() if name.startswith("wide"))


def test_R1_it_stops_once_keeps_its_place_and_runs_narrower(new_world: NewWorld) -> None:
    world = new_world(pool(4, **PROMPT))
    wide_is_over(world)
    world.tell("wide")
    world.schedule()
    assert world.states("wide", "urgent") == ["running", "running"]
    assert sent(world, "wide") == (2, 16)
    job = world.job("wide")
    assert (job.preemptions, job.made_room_for, job.spent.wasted) == (0, None, {})
    assert world.check("wide", "urgent") == {A: 4}
    later(world, minutes(30))
    assert world.states("wide", "urgent") == ["running", "running"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("prepare", "act"),
    [
        pytest.param(urgent_comes, World.schedule, id="the stop"),
        pytest.param(wide_is_over, lambda world: world.tell("wide"), id="the end"),
        pytest.param(wide_is_over, World.a_minute_passes, id="the restart"),
    ],
)
def test_R1_wherever_a_process_dies_one_attempt_lives_in_the_room_it_kept(
    new_world: NewWorld, prepare: Callable[[World], None], act: Callable[[World], None]
) -> None:
    world = new_world(pool(4, **PROMPT))
    prepare(world)
    ready = world.save()
    calls = world.calls_of(lambda: act(world))
    for at in [number for number, operation in enumerate(calls) if not is_read(operation)]:
        for phase in ("before", "after"):
            world.restore(ready)
            assert world.dies(lambda: act(world), Crash(at, phase))
            settles(world)
            died = f"died {phase} call {at}, {calls[at]}"
            assert world.states("wide", "urgent") == ["running", "running"], died
            assert sent(world, "wide")[0] == 2, died
            assert live_attempts(world) == 1, died
            assert world.check("wide", "urgent") == {A: 4}, died


@pytest.mark.parametrize("begins", [shrink_is_asked, wide_is_over])
def test_R1_if_the_urgent_job_is_gone_it_starts_at_the_width_that_now_fits(
    new_world: NewWorld, begins: Callable[[World], None]
) -> None:
    world = new_world(pool(4, **PROMPT))
    begins(world)
    assert world.cancel("urgent") == 202
    settles(world)
    assert world.states("wide", "urgent") == ["running", "stopped"]
    assert sent(world, "wide")[0] == 4
    assert world.check("wide", "urgent") == {A: 4}


def test_R1_the_room_it_keeps_is_free_for_others_once_it_is_cancelled(new_world: NewWorld) -> None:
    world = new_world(pool(4, **PROMPT))
    shrink_is_asked(world)
    rigid(world, "other", 2)
    assert world.cancel("wide") == 202
    settles(world)
    assert world.states("wide", "urgent", "other") == ["stopped", "running", "running"]


def test_R1_others_do_not_get_the_room_that_it_keeps(new_world: NewWorld) -> None:
    world = new_world(pool(4, **PROMPT))
    shrink_is_asked(world)
    rigid(world, "other", 2)
    settles(world)
    assert world.states("wide", "urgent", "other") == ["running", "running", "pending"]
    assert sent(world, "wide")[0] == 2


def test_R1_it_grows_into_room_that_nobody_can_use_after_the_snooze(new_world: NewWorld) -> None:
    world = new_world(pool(4, **PROMPT))
    pool_has_room(world)
    later(world, minutes(10))
    assert world.states("wide") == ["running"], "within the snooze of its shrink"
    assert "growing to 4 would save" in world.api("GET", "/jobs/wide")["elastic"]["why"]
    later(world, minutes(40))
    assert world.states("wide") == ["preempting"]
    assert world.job("wide").reason.code == "grow"  # type: ignore[union-attr]
    settles(world)
    assert sent(world, "wide")[0] == 4
    assert world.job("wide").preemptions == 0
    ends_of = [one["reason"]["code"] for one in world.api("GET", "/jobs/wide")["attempts"] if one["reason"]]
    assert ends_of == ["shrink", "grow"]


def ran_before(world: World, name: str, instances: int, tok_s: float) -> None:
    """A job of the same program has trained with as many instances, at as many tokens a second."""
    rigid(world, name, instances)
    world.schedule()
    trains(world, name)
    world.now += minutes(10)
    world.sagemaker.jobs[name].metrics["tok_s"] = tok_s
    ends(world, name)


@pytest.mark.parametrize(
    ("at_four", "state", "gain"),
    [(2000.0, "running", "would not save any"), (3900.0, "preempting", "would save")],
)
def test_R1_earlier_runs_of_its_program_decide_whether_a_growth_pays(
    new_world: NewWorld, at_four: float, state: str, gain: str
) -> None:
    world = new_world(pool(4, **PROMPT))
    ran_before(world, "wide-1", 2, 2000.0)
    ran_before(world, "wide-2", 4, at_four)
    pool_has_room(world)
    later(world, minutes(50))
    assert world.states("wide") == [state]
    why = world.api("GET", "/jobs/wide")["elastic"]["why"]
    assert gain in why
    assert "by the speeds of 2 runs of its program with 2 to 4 instances" in why


def test_R1_a_growth_that_gets_no_instances_comes_back_narrower(new_world: NewWorld) -> None:
    world = new_world(pool(4, **PROMPT))
    pool_has_room(world)
    later(world, minutes(50))
    settles(world)
    assert sent(world, "wide")[0] == 4
    world.sagemaker.end(attempt_of(world), "Failed", reason="CapacityError: none")
    world.tell(world.job("wide").live_attempt.training_job_name)
    later(world, minutes(30))
    assert sent(world, "wide")[0] == 3
