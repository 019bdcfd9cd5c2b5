"""Row O1 with crashes: wherever a process dies, a futile preemption counts once and is told once."""

from collections.abc import Callable

import pytest

from tests.builders import minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import ends
from tests.faults.situations import urgent_comes
from tests.faults.test_crashes import is_read
from tests.faults.thrashing import CAPACITY_ERROR
from tests.integration.world import Crash, World

KINDS = ("Preemption Did Not Help", "Platform Warning")


def preemptor_starts(world: World) -> None:
    """job4 starts where job1 ran, and AWS has nothing for it."""
    urgent_comes(world)
    world.schedule()
    ends(world, "job1", "Stopped")
    assert world.states("job1", "job4") == ["preempted", "running"]
    world.sagemaker.end("job4", "Failed", reason=CAPACITY_ERROR)


def preemptor_is_refused(world: World) -> None:
    """SageMaker answers the start of job4 with a fault of its own."""
    urgent_comes(world)
    world.schedule()
    world.sagemaker.end("job1", "Stopped")
    world.tell("job1")
    world.sagemaker.refuse["CreateTrainingJob"] = [("InternalFailure", 500)] * 9


def job4_is_heard_of(world: World) -> None:
    world.tell("job4")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("prepare", "act"),
    [
        pytest.param(preemptor_starts, job4_is_heard_of, id="the end of the attempt"),
        pytest.param(preemptor_is_refused, World.schedule, id="the start that is refused"),
    ],
)
def test_O1_wherever_a_process_dies_it_counts_once_and_is_told_once(
    new_world: NewWorld, prepare: Callable[[World], None], act: Callable[[World], None]
) -> None:
    world = new_world()
    prepare(world)
    ready = world.save()
    told = len(world.messages.events)
    calls = world.calls_of(lambda: act(world))
    for at in [number for number, operation in enumerate(calls) if not is_read(operation)]:
        for phase in ("before", "after"):
            world.restore(ready)
            del world.messages.events[told:]
            assert world.dies(lambda: act(world), Crash(at, phase))
            world.sagemaker.refuse.clear()
            world.now += minutes(6)  # a lease that nobody is at any more is over
            for _ in range(3):
                world.reconcile()
                world.schedule()
            job = world.job("job4")
            # Where it died before AWS was asked, the next pass starts it: then nothing was futile.
            count = 0 if job.futile is None else job.futile.count
            ids = {
                kind: {one.detail["id"] for one in world.messages.events if one.kind == kind}
                for kind in KINDS
            }
            assert count == 1 or (count == 0 and job.is_live), f"died {phase} call {at}, {calls[at]}"
            assert [len(ids[kind]) for kind in KINDS] == [count, count], (
                f"died {phase} call {at}, {calls[at]}"
            )
