"""Row J14: whose turn it is when the account's rate refuses a look at a live job."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from trainmaster.core.errors import ThrottledError
from trainmaster.services import reconciler
from trainmaster.services.reconciler import Repairs

from tests.builders import minutes
from tests.faults.conftest import NewWorld
from tests.integration.world import World
from tests.memory.edges import one_by_one
from tests.worlds.scenarios import policy


def with_running(new_world: NewWorld, *names: str) -> World:
    world = new_world(policy(len(names)))
    for name in names:
        world.submit(name)
    world.wake()
    assert set(world.states(*names)) == {"running"}
    return world


class Looked:
    """The names of jobs that reconcile looks at, in order; some of these looks are refused."""

    def __init__(self, refused: Sequence[str]) -> None:
        self.names: list[str] = []
        self._refused = list(refused)

    def look(self, job: Any) -> None:
        self.names.append(job.name)
        if job.name in self._refused:
            self._refused.remove(job.name)
            raise ThrottledError("DescribeTrainingJob was refused: ThrottlingException")

    def run(self, world: World, monkeypatch: pytest.MonkeyPatch) -> Repairs:
        one = replace(world.wiring.reconciler, beside=one_by_one)
        monkeypatch.setattr(type(one.observer), "look", self.look)
        return one.run(deadline=world.wiring.deadline(lambda: 60_000, margin=minutes(0.2)))


def test_J14_a_look_that_was_refused_comes_again_in_the_same_run(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = with_running(new_world, "job1", "job2", "job3")
    looked = Looked(["job2"])
    repairs = looked.run(world, monkeypatch)
    assert looked.names == ["job1", "job2", "job2", "job3"]
    assert repairs.failures == []


def test_J14_whose_look_was_refused_twice_is_the_first_of_the_next_run(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = with_running(new_world, "job1", "job2", "job3")
    repairs = Looked(["job2"] * 2).run(world, monkeypatch)
    assert [type(one) for one in repairs.failures] == [ThrottledError]
    after = Looked([])
    after.run(world, monkeypatch)
    assert after.names == ["job2", "job3", "job1"]


def test_J14_a_job_whose_looks_are_always_refused_does_not_keep_the_others_from_their_turn(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler, "LOOKS", 1)
    world = with_running(new_world, "job1", "job2", "job3")
    looked = Looked(["job1"] * 4)
    for _ in range(4):
        looked.run(world, monkeypatch)
    assert looked.names == ["job1", "job1", "job2", "job3", "job1", "job1"]
