"""Virtual time: who waits hands over, a process is killed at its time-out, one seed is one run."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from local.worlds import HARSH, KIND, World
from tests.worlds.plane import Plane
from tests.worlds.scenarios import policy
from tests.worlds.timeline import KilledError, Life, Timeline


def ended(timeline: Timeline, act: Callable[[], Any], *, ends: float = float("inf")) -> list[Any]:
    """What one process returned or raised."""
    found: list[Any] = []
    timeline.start(act, life=Life(ends=ends), over=lambda result, error: found.append(error or result))
    timeline.run(1000.0)
    return found


def test_two_processes_that_wait_take_turns_by_their_instants() -> None:
    timeline, seen = Timeline(), []

    def walk(name: str, seconds: float) -> None:
        for _ in range(3):
            timeline.wait(seconds)
            seen.append((name, timeline.now))

    for name, seconds in (("quick", 2.0), ("slow", 3.0)):
        timeline.start(partial(walk, name, seconds), life=Life(), over=lambda *_: None)
    timeline.run(100.0)
    assert seen == [
        ("quick", 2.0),
        ("slow", 3.0),
        ("quick", 4.0),
        ("slow", 6.0),
        ("quick", 6.0),
        ("slow", 9.0),
    ]


def test_a_process_dies_at_its_time_out_and_whatever_it_does_afterwards_fails() -> None:
    timeline, late = Timeline(), []

    def stubborn() -> None:
        try:
            timeline.wait(50.0)
        finally:
            try:
                timeline.wait(1.0)
            except KilledError:
                late.append(timeline.now)
                raise

    (error,) = ended(timeline, stubborn, ends=30.0)
    assert isinstance(error, KilledError)
    assert late == [30.0]


def test_threads_of_a_process_work_beside_each_other_a_few_at_once() -> None:
    timeline, over = Timeline(), []

    def task(number: int) -> None:
        timeline.wait(1.0)
        over.append((number, timeline.now))

    ended(timeline, lambda: timeline.beside((partial(task, number) for number in range(5)), at_most=2))
    assert over == [(0, 1.0), (1, 1.0), (2, 2.0), (3, 2.0), (4, 3.0)]


def test_the_time_out_of_a_process_ends_its_threads_too() -> None:
    timeline = Timeline()
    tasks = [partial(timeline.wait, 5.0), partial(timeline.wait, 50.0)]
    (error,) = ended(timeline, lambda: timeline.beside(tasks, at_most=2), ends=10.0)
    assert isinstance(error, KilledError)
    assert timeline.now == 1000.0


def test_who_waits_with_a_lock_keeps_the_others_waiting() -> None:
    timeline, over = Timeline(), []
    lock = timeline.lock()

    def task(number: int) -> None:
        with lock:
            timeline.wait(2.0)
        over.append((number, timeline.now))

    ended(timeline, lambda: timeline.beside((partial(task, number) for number in range(3)), at_most=3))
    assert over == [(0, 2.0), (1, 4.0), (2, 6.0)]


def test_sleep_is_virtual_in_a_process_alone() -> None:
    timeline = Timeline()

    def sleepy() -> float:
        time.sleep(600.0)
        return time.monotonic()

    with timeline.instead_of_the_clock():
        assert ended(timeline, sleepy) == [600.0]
        assert time.monotonic() != timeline.now


def test_an_invocation_is_killed_at_the_time_out_of_the_template() -> None:
    plane = Plane(KIND, policy(1), seed=1)
    timeout = plane.functions.deployed["reconcile"].timeout
    with plane.deployed(), pytest.MonkeyPatch.context() as patch:
        app = plane.functions.app("reconcile")
        patch.setattr(app, "handler", lambda *_: plane.timeline.wait(timeout + 1))
        plane.timeline.run(59.0 + 2 * timeout)
    assert plane.functions.records["reconcile"].killed > 0
    assert plane.functions.records["reconcile"].longest == timeout


@pytest.mark.parametrize("world", [pytest.param(KIND, id="kind"), pytest.param(HARSH, id="harsh")])
def test_the_same_seed_gives_the_same_run(world: World) -> None:
    assert played(world) == played(world)


def played(world: World) -> dict[str, Any]:
    plane = Plane(world, policy(2), seed=7)
    with plane.deployed():
        for number in range(4):
            plane.submit(f"job-{number}", at=number, seconds=90.0)
        plane.timeline.run(900.0)
    assert plane.states() == {"completed": 4}
    return plane.facts()
