"""The pool of a function's processes, driven by hand instead of by processes."""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field

import pytest

from local.deployment.lambda_runtime.invocation import Invocation, Outcome
from local.deployment.lambda_runtime.pool import FunctionPool

OK = Outcome(payload=b'"ok"')


@dataclass
class FakeProcess:
    on_exit: Callable[[int], None]
    changed: threading.Condition
    killed: bool = False
    last_words: str = ""

    def kill(self, last_words: str = "") -> None:
        with self.changed:
            self.killed, self.last_words = True, last_words
            self.changed.notify_all()

    def join(self) -> None:
        pass


@dataclass
class World:
    """A pool, and threads that call it as processes and callers would."""

    timeout_s: float = 30.0
    init_s: float = 30.0
    started: list[FakeProcess] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(16))

    def __post_init__(self) -> None:
        self.pool = FunctionPool(
            timeout_s=self.timeout_s, start=self._start, max_processes=2, init_s=self.init_s
        )

    def _start(self, _: str, on_exit: Callable[[int], None]) -> FakeProcess:
        process = FakeProcess(on_exit, self.changed)
        with self.changed:
            self.started.append(process)
            self.changed.notify_all()
        return process

    def invoke(self, payload: bytes = b"{}") -> Future[Outcome]:
        return self.threads.submit(self.pool.invoke, payload)

    def next(self, number: int) -> Future[Invocation | None]:
        return self.threads.submit(self.pool.next, str(number))

    def await_processes(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.started) >= count, 5)

    def answer(self, number: int, outcome: Outcome = OK) -> None:
        invocation = self.next(number).result(5)
        assert invocation is not None
        assert self.pool.answer(str(number), invocation.request_id, outcome)

    def close(self) -> None:
        self.pool.close()
        self.threads.shutdown()


@pytest.fixture
def world():
    world = World()
    yield world
    world.close()


def test_the_first_call_starts_a_process_and_the_second_finds_it_warm(world: World) -> None:
    for _ in range(2):
        outcome = world.invoke()
        world.await_processes(1)
        world.answer(0)
        assert outcome.result(5) == OK
    assert len(world.started) == 1


def test_a_call_goes_to_a_process_that_waits_for_work(world: World) -> None:
    world.invoke()
    world.await_processes(1)
    world.answer(0)
    asking = world.next(0)
    with pytest.raises(TimeoutError):
        asking.result(0.05)
    world.invoke(b"[1]")
    invocation = asking.result(5)
    assert invocation is not None
    assert invocation.payload == b"[1]"


def test_a_second_process_starts_while_the_first_is_busy_and_a_third_never(world: World) -> None:
    outcomes = [world.invoke() for _ in range(6)]
    world.await_processes(2)
    for _ in range(3):
        world.answer(0)
        world.answer(1)
    assert [outcome.result(5) for outcome in outcomes] == [OK] * 6
    assert len(world.started) == 2


def test_a_process_that_dies_during_a_call_fails_this_call_alone(world: World) -> None:
    outcome = world.invoke()
    world.await_processes(1)
    assert world.next(0).result(5) is not None
    world.started[0].on_exit(1)
    assert outcome.result(5).failed
    assert b"Runtime.ExitError" in outcome.result().payload
    after = world.invoke()
    world.await_processes(2)
    world.answer(1)
    assert after.result(5) == OK


def test_another_process_takes_the_place_of_one_that_died_while_calls_wait(world: World) -> None:
    outcomes = [world.invoke() for _ in range(3)]
    world.await_processes(2)
    assert all(world.next(number).result(5) is not None for number in range(2))
    world.started[0].on_exit(1)
    world.await_processes(3)
    world.answer(2)
    first_two = itertools.islice(as_completed(outcomes, 5), 2)
    assert sorted(outcome.result().failed for outcome in first_two) == [False, True]


def test_an_idle_process_that_dies_is_forgotten(world: World) -> None:
    outcome = world.invoke()
    world.await_processes(1)
    world.answer(0)
    assert outcome.result(5) == OK
    asking = world.next(0)
    with pytest.raises(TimeoutError):
        asking.result(0.05)
    world.started[0].on_exit(137)
    assert asking.result(5) is None
    after = world.invoke()
    world.await_processes(2)
    world.answer(1)
    assert after.result(5) == OK


def test_a_process_that_cannot_start_fails_the_call_it_was_started_for(world: World) -> None:
    outcome = world.invoke()
    world.await_processes(1)
    error = Outcome(payload=b'{"errorType":"Runtime.ImportModuleError"}', failed=True)
    world.pool.init_failed("0", error)
    world.started[0].on_exit(1)
    assert outcome.result(5) == error


def test_a_call_past_its_time_is_ended_with_its_process() -> None:
    world = World(timeout_s=0.05)
    outcome = world.invoke()
    world.await_processes(1)
    invocation = world.next(0).result(5)
    assert invocation is not None
    assert b"Task timed out after 0.05 seconds" in outcome.result(5).payload
    assert world.started[0].killed
    assert world.started[0].last_words == f"{invocation.request_id} Task timed out after 0.05 seconds"
    assert world.pool.killed == 1
    assert not world.pool.answer("0", invocation.request_id, OK)
    world.close()


def test_a_call_that_waits_behind_late_ones_gets_a_new_process() -> None:
    world = World(timeout_s=0.5)
    late = [world.invoke() for _ in range(2)]
    world.await_processes(2)
    assert all(world.next(number).result(5) is not None for number in range(2))
    waiting = world.invoke()
    world.await_processes(3)
    world.answer(2)
    assert waiting.result(5) == OK
    assert all(outcome.result(5).failed for outcome in late)
    world.close()


def test_a_process_that_never_asks_for_work_is_ended() -> None:
    world = World(init_s=0.02)
    outcome = world.invoke()
    world.await_processes(1)
    with world.changed:
        assert world.changed.wait_for(lambda: world.started[0].killed, 5)
    world.started[0].on_exit(137)
    assert b"exit status 137" in outcome.result(5).payload
    world.close()


def test_an_answer_to_another_call_is_refused(world: World) -> None:
    outcome = world.invoke()
    world.await_processes(1)
    invocation = world.next(0).result(5)
    assert invocation is not None
    assert not world.pool.answer("0", "another", OK)
    assert world.pool.answer("0", invocation.request_id, OK)
    assert outcome.result(5) == OK


def test_an_answer_over_six_megabytes_is_an_error(world: World) -> None:
    outcome = world.invoke()
    world.await_processes(1)
    world.answer(0, Outcome(payload=b"x" * (6 * 1024 * 1024 + 1)))
    assert b"Function.ResponseSizeTooLarge" in outcome.result(5).payload


def test_closing_ends_processes_and_calls(world: World) -> None:
    outcome = world.invoke()
    world.await_processes(1)
    waiting = world.next(0)
    assert waiting.result(5) is not None
    world.pool.close()
    assert outcome.result(5).failed
    assert world.started[0].killed
    assert world.pool.next("0") is None
    assert world.pool.invoke(b"{}").failed


def test_warming_starts_one_process_and_waits_until_it_is_ready(world: World) -> None:
    warm = world.threads.submit(world.pool.warm)
    world.await_processes(1)
    with pytest.raises(TimeoutError):
        warm.result(0.05)
    asking = world.next(0)
    warm.result(5)
    world.pool.warm()
    assert len(world.started) == 1
    assert not asking.done()
