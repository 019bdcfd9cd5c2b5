"""Rows J13, J15 to J19, N21, N22: time runs out, passes fail, the table does not answer."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from trainmaster.adapters.client_settings import TABLE
from trainmaster.core.errors import UnavailableError
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.planner import plan
from trainmaster.services.scheduler import executor, explanations, passes, start_protocol
from trainmaster.services.scheduler.pass_summary import Summary

from tests.builders import A, minutes
from tests.faults.conftest import NewWorld
from tests.faults.scenes import code_of
from tests.integration.cloud import AnswerLost, Refused, Unreachable
from tests.integration.messages import proxy_event
from tests.integration.world import World

IN_PROGRESS = Refused("TransactionInProgressException")
TRIES = 3


def wide(capacity: int, *pools: str) -> dict[str, Any]:
    types = dict(zip(pools or ("main",), (A, "ml.b.xlarge", "ml.c.xlarge", "ml.d.xlarge"), strict=False))
    limits = {"max_submissions_per_minute": 1000}
    return {
        "pools": [
            {"name": name, "capacity": {one: capacity}, "limits": limits} for name, one in types.items()
        ]
    }


def wakes(*pools: str) -> dict[str, Any]:
    records = [{"messageId": pool, "body": json.dumps({"version": 1, "pool": pool})} for pool in pools]
    return {"Records": records}


def rung(world: World) -> list[dict[str, Any]]:
    """Wake-ups in the queue; they are taken out."""
    bodies = []
    while messages := world._wake_ups():
        for one in messages:
            bodies.append(json.loads(one["Body"]))
            world.cloud.client("sqs").delete_message(
                QueueUrl=world.queue_url, ReceiptHandle=one["ReceiptHandle"]
            )
    return bodies


def warnings(world: World) -> list[str]:
    """Subjects of the warnings that operators got."""
    return [event.detail["subject"] for event in world.messages.events if event.kind == "Platform Warning"]


# ---- J13: the deadline


def test_J13_nothing_is_claimed_after_the_deadline_and_the_next_pass_does_the_rest(
    new_world: NewWorld,
) -> None:
    world = new_world(wide(9))
    names = [f"job{number}" for number in range(8)]
    for name in names:
        world.submit(name)
    rung(world)
    world.remaining_ms = lambda: 120_000 if len(world.sagemaker.creates) < 3 else 29_000
    world.wake()
    assert sorted(world.states(*names)) == ["pending"] * 5 + ["running"] * 3
    assert len(world.sagemaker.creates) == 3, "no claim is without its Create"
    assert {"version": 1, "pool": "main", "hops": 1} in rung(world)
    world.remaining_ms = lambda: 120_000
    world.wake(hops=1)
    assert world.states(*names) == ["running"] * 8
    world.check(*names)


def test_J13_reasons_are_left_to_the_next_pass_too(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explanations, "AT_ONCE", 1)
    world = new_world(wide(1))
    names = [f"job{number}" for number in range(6)]
    for name in names:
        world.submit(name)
    world.wake()
    for name in names[1:]:
        job = world.job(name)
        assert job.waiting is not None
    world.submit("late1")
    world.submit("late2")
    rung(world)
    world.wire.sent.clear()
    world.remaining_ms = lambda: 120_000 if "TransactWriteItems" not in world.wire.sent else 0
    world.wake()
    assert [world.job(name).waiting is None for name in ("late1", "late2")] == [False, True]
    assert [one["hops"] for one in rung(world)] == [1]
    world.remaining_ms = lambda: 120_000
    world.wake(hops=1)
    assert world.job("late2").waiting is not None


def test_J13_after_fifty_passes_in_a_row_the_minute_goes_on(new_world: NewWorld) -> None:
    world = new_world(wide(9))
    world.submit("job1")
    rung(world)
    world.remaining_ms = lambda: 0
    record = {"messageId": "1", "body": json.dumps({"version": 1, "pool": "main", "hops": 49})}
    world.call("schedule", {"Records": [record]})
    assert rung(world) == [{"version": 1, "pool": "main", "hops": 50}]
    record["body"] = json.dumps({"version": 1, "pool": "main", "hops": 50})
    world.call("schedule", {"Records": [record]})
    assert rung(world) == []
    assert world.states("job1") == ["pending"]


# ---- J15: one pool of a batch


def test_J15_a_pool_that_raises_fails_alone(new_world: NewWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    pools = ("main", "b", "c")
    world = new_world(wide(2, *pools))
    world.submit("job1")
    real = plan

    def broken(snapshot: Any, pool: Any, **named: Any) -> Any:
        if pool.name == "b":
            raise KeyError("b")
        return real(snapshot, pool, **named)

    monkeypatch.setattr(passes, "plan", broken)
    answer = world.call("schedule", wakes("b", "main", "c"))
    assert answer == {"batchItemFailures": [{"itemIdentifier": "b"}]}
    assert world.states("job1") == ["running"]


def test_J15_a_pool_that_takes_its_whole_time_leaves_the_others_theirs(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_world(wide(2, "main", "b", "c"))
    world.submit("job1")
    left = [120_000.0]
    world.remaining_ms = lambda: int(left[0])
    given: dict[str, float] = {}

    def run(_: Any, pool: str, *, deadline: Any, hops: int) -> Summary:
        given[pool] = deadline.left().total_seconds()
        left[0] -= deadline.left().total_seconds() * 1000
        return Summary(unfinished=pool == "b", hops=hops)

    monkeypatch.setattr(passes.Scheduler, "run", run)
    answer = world.call("schedule", wakes("b", "main", "c"))
    assert answer == {"batchItemFailures": []}
    assert given == pytest.approx({"b": 20 / 3, "main": 20 / 3, "c": 20 / 3}, abs=0.01)
    assert {"version": 1, "pool": "b", "hops": 1} in rung(world)


# ---- J16: one look of reconcile


@pytest.mark.parametrize("fault", [KeyError("x"), AssertionError()])
def test_J16_a_fault_in_one_look_stops_no_other(
    fault: Exception, busy: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy.sagemaker.end("job2", "Completed")
    observer = type(busy.wiring.reconciler.observer)
    real = observer.look

    def look(self: Any, job: Any) -> Any:
        if job.name == "job1":
            raise fault
        return real(self, job)

    monkeypatch.setattr(observer, "look", look)
    rung(busy)
    deadline = busy.wiring.deadline(lambda: 55_000, margin=minutes(0.2))
    repairs = busy.wiring.reconciler.run(deadline=deadline)
    assert busy.states("job1", "job2") == ["running", "completed"]
    assert repairs.faults == [fault]
    assert [one.value for one in repairs.samples() if one.metric.name == "RepairsFailed"] == [1]
    assert "main" in {one["pool"] for one in rung(busy)}


# ---- J18, J19: passes that get nowhere


def test_J18_a_look_that_does_the_same_again_ends_the_pass(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.submit("job1")
    monkeypatch.setattr(executor, "claim", lambda *_: None)
    deadline = world.wiring.deadline(lambda: 120_000, margin=minutes(0.5))
    summary = world.wiring.scheduler.run("main", deadline=deadline)
    assert (summary.looks, summary.repeated) == (2, True)
    assert "PassesRepeated" in {one.metric.name for one in summary.samples("main", now=world.now)}


def test_J19_a_job_that_makes_passes_fail_stands_aside_and_operators_hear_once(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_world(wide(1))
    world.submit("bad")
    real = start_protocol.forbidden

    def forbidden(job: Any, body: Any, context: Any) -> bool:
        if job.name == "bad":
            raise KeyError("HyperParameters")
        return real(job, body, context)

    monkeypatch.setattr(start_protocol, "forbidden", forbidden)
    for _ in range(3):
        assert world.call("schedule", wakes("main"))["batchItemFailures"] == [{"itemIdentifier": "main"}]
    job = world.job("bad")
    assert (job.state, job.is_parked) == (JobState.PENDING, True)
    assert code_of(world, "bad") == "backoff"
    assert "KeyError" in str(job.waiting)
    assert warnings(world) == ["job-fault"]
    world.submit("good")
    world.wake()
    assert world.states("good") == ["running"]
    assert world.cancel("bad") in (200, 202)
    assert world.states("bad") == ["stopped"]
    world.check("good", "bad")


# ---- N21, N22: the table


@pytest.mark.parametrize("trouble", [IN_PROGRESS, AnswerLost()], ids=["in progress", "answer lost"])
def test_N21_a_claim_that_was_written_is_recognised_and_goes_on_to_its_create(
    trouble: Any, world: World
) -> None:
    world.submit("job1")
    world.wire.strike("TransactWriteItems", 1, AnswerLost())
    world.wire.strike("TransactWriteItems", 2, trouble)
    world.wake()
    assert world.states("job1") == ["running"]
    assert world.sagemaker.creates == ["job1"]
    world.check("job1")


def test_N21_a_write_whose_answers_are_all_lost_by_botocore_is_tried_again_by_us(world: World) -> None:
    config: Any = TABLE
    world.submit("job1")
    world.wire.strike("TransactWriteItems", config.retries["total_max_attempts"], AnswerLost())
    world.wake()
    assert world.states("job1") == ["running"]
    world.check("job1")


@pytest.mark.parametrize("trouble", [Unreachable(), AnswerLost()], ids=["before", "after"])
@pytest.mark.parametrize("operation", ["Query", "UpdateItem", "DeleteItem", "PutItem", "GetItem"])
def test_N22_a_table_that_does_not_answer_is_unavailable_and_nothing_happens_twice(
    operation: str, trouble: Any, busy: World
) -> None:
    busy.sagemaker.end("job1", "Completed")
    busy.wire.strike(operation, TRIES, trouble)
    acts: list[Callable[[], Any]] = [lambda: busy.tell("job1"), busy.wake, busy.reconcile]
    for act in acts:
        _tolerant(act)
    assert busy.submit("job3")["status"] in (201, 503)
    busy.wire.heal()
    for _ in range(2):
        busy.a_minute_passes()
    assert busy.states("job1", "job2") == ["completed", "running"]
    names = ["job1", "job2", *(["job3"] if busy.wiring.reader.job("job3") else [])]
    busy.check(*names)


def test_N22_the_api_says_when_to_try_again(world: World) -> None:
    world.wire.lasting["GetItem"] = AnswerLost()
    answer = world.call("api", _get_jobs())
    assert answer["statusCode"] == 503
    headers = answer.get("headers") or {}
    multi = answer.get("multiValueHeaders") or {}
    assert "Retry-After" in {**headers, **multi}


def _get_jobs() -> dict[str, Any]:
    return proxy_event("GET", "/jobs/job1", None, query=None)


def _tolerant(act: Callable[[], Any]) -> None:
    try:
        act()
    except UnavailableError:
        return
