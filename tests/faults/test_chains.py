"""Passes in a row over one pool: wake-ups meanwhile are left to them, and none is lost."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from trainmaster.core.planning.chains import GOES_ON_FOR, MOST_HOPS

from tests.faults.conftest import NewWorld
from tests.faults.test_time import rung, wide
from tests.integration.cloud import Unreachable
from tests.integration.world import Crash, World

SECOND = timedelta(seconds=1)
FIRST: dict[str, Any] = {"version": 1, "pool": "main"}
NEXT = FIRST | {"hops": 1}


def has_time_for(world: World, creates: int) -> None:
    """So many more; then the invocation's time is over."""
    most = len(world.sagemaker.creates) + creates
    world.remaining_ms = lambda: 120_000 if len(world.sagemaker.creates) < most else 29_000


def marked(world: World) -> bool:
    (counters,) = [
        one for one in world.items() if one["pk"]["S"] == "P#main" and one["sk"]["S"] == "counters"
    ]
    return "goes_on_until" in counters


def deliver(world: World, *, sent_at: datetime | None = None, receives: int = 1, hops: int = 0) -> None:
    attributes = {"ApproximateReceiveCount": str(receives)}
    if sent_at is not None:
        attributes["SentTimestamp"] = str(int(sent_at.timestamp() * 1000))
    body = json.dumps(FIRST | {"hops": hops})
    world.call("schedule", {"Records": [{"messageId": "1", "body": body, "attributes": attributes}]})


@pytest.fixture
def unfinished(new_world: NewWorld) -> World:
    """Three of eight run, and the next pass was asked for."""
    world = new_world(wide(9))
    for number in range(8):
        world.submit(f"job{number}")
    rung(world)
    has_time_for(world, 3)
    world.wake()
    assert rung(world) == [NEXT]
    assert marked(world)
    return world


def test_a_row_that_starts_jobs_goes_on_beyond_fifty_passes_and_rings_nothing(
    unfinished: World, capsys: pytest.CaptureFixture[str]
) -> None:
    has_time_for(unfinished, 1)
    unfinished.wake(hops=MOST_HOPS)
    assert (running(unfinished), rung(unfinished)) == (4, [NEXT])
    unfinished.remaining_ms = lambda: 0
    unfinished.wake(hops=MOST_HOPS - 1)
    assert (running(unfinished), rung(unfinished)) == (4, [NEXT | {"hops": MOST_HOPS}])
    assert "ChainsEnded" not in capsys.readouterr().out
    unfinished.wake(hops=MOST_HOPS)
    assert (rung(unfinished), "ChainsEnded" in capsys.readouterr().out) == ([], True)


def running(world: World) -> int:
    return world.states(*(f"job{number}" for number in range(8))).count("running")


def test_a_wake_up_meanwhile_is_left_to_the_next_pass_in_the_row(unfinished: World) -> None:
    unfinished.remaining_ms = lambda: 120_000
    unfinished.wake()
    assert (running(unfinished), rung(unfinished)) == (3, [])


def test_the_end_of_a_row_looks_once_more_so_that_no_wake_up_is_lost(unfinished: World) -> None:
    has_time_for(unfinished, 2)
    unfinished.wake(hops=1)
    assert (running(unfinished), rung(unfinished)) == (5, [NEXT])
    unfinished.remaining_ms = lambda: 120_000
    unfinished.wake(hops=1)
    assert (running(unfinished), rung(unfinished), marked(unfinished)) == (8, [FIRST], False)
    unfinished.wake()
    assert rung(unfinished) == []


@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_pass_that_dies_between_note_and_wake_up_keeps_the_pool_for_a_time(
    new_world: NewWorld, phase: str
) -> None:
    world = new_world(wide(9))
    for number in range(8):
        world.submit(f"job{number}")
    rung(world)
    has_time_for(world, 3)
    assert world.dies(world.wake, Crash("SendMessageBatch", phase))
    asked = [NEXT] if phase == "after" else []
    assert (rung(world), marked(world)) == (asked, True)
    world.remaining_ms = lambda: 120_000
    world.wake()
    assert running(world) == 3
    world.now += GOES_ON_FOR
    world.wake()
    assert running(world) == 8


def test_a_wake_up_that_comes_again_begins_anew_where_nobody_is_at_it(unfinished: World) -> None:
    unfinished.remaining_ms = lambda: 120_000
    deliver(unfinished, receives=2, hops=1)
    assert running(unfinished) == 3
    unfinished.now += GOES_ON_FOR
    deliver(unfinished, receives=2, hops=1)
    assert (running(unfinished), rung(unfinished)) == (8, [])


def test_two_passes_at_once_ask_for_one_more_in_all(unfinished: World) -> None:
    """Who comes too late to note that the row goes on asks for nothing."""
    seen = unfinished.wiring.reader._counters("main").goes_on_until
    assert seen is not None
    store = unfinished.wiring.store
    has_time_for(unfinished, 1)
    real = store.change_chain

    def overtaken(pool: str, before: Any, after: Any) -> bool:
        assert real(pool, before, before + SECOND), "another one goes on first"
        return real(pool, before, after)

    store.change_chain = overtaken  # type: ignore[method-assign]
    unfinished.wake(hops=1)
    assert (running(unfinished), rung(unfinished)) == (4, [])


def test_a_queue_that_does_not_answer_leaves_the_pool_to_anybody(new_world: NewWorld) -> None:
    world = new_world(wide(9))
    for number in range(8):
        world.submit(f"job{number}")
    rung(world)
    has_time_for(world, 3)
    world.wire.lasting["SendMessageBatch"] = Unreachable()
    world.wake()
    world.wire.heal()
    assert (marked(world), rung(world)) == (False, [])


def test_a_wake_up_sent_before_the_last_pass_began_has_had_its_answer(world: World) -> None:
    sent = world.now
    world.now += 3 * SECOND
    world.wake()
    world.wire.sent.clear()
    deliver(world, sent_at=sent)
    assert world.wire.sent == []
    deliver(world, sent_at=sent + SECOND)
    assert world.wire.sent != [], "two clocks may be as far apart"


def test_an_idle_pass_reads_seven_times(world: World) -> None:
    world.wake()
    world.wire.sent.clear()
    world.wake()
    assert sorted(world.wire.sent) == ["GetItem", *["Query"] * 6]


def test_a_crash_between_the_transactions_that_tell_pools_costs_each_the_time_to_its_next_pass(
    new_world: NewWorld,
) -> None:
    pools = ["main", *(f"pool-{number:03d}" for number in range(120))]
    document, world = wide(1, "main", "pool-119"), new_world(wide(1))
    policies = world.fresh_process().policies
    current = policies.current()
    in_the_second = Crash(1, "before")
    assert world.dies(lambda: policies.put(document, pools=pools, replaces=current), in_the_second)
    reader, version = world.wiring.reader, current.version + 1
    assert [reader._counters(name).policy_version for name in ("main", "pool-119")] == [version, None]
    world.wake("pool-119")
    assert reader._counters("pool-119").policy_version == version


@pytest.mark.parametrize("broken", [{"S": "soon"}, {"N": "1" + 30 * "0"}, {"NULL": True}])
def test_a_note_that_nobody_can_read_keeps_nobody_away(world: World, broken: dict[str, Any]) -> None:
    rows = world.items()
    for row in rows:
        if row["pk"]["S"] == "P#main":
            row["goes_on_until"] = broken
    world.put_back(rows)
    world.submit("job1")
    world.wake()
    assert world.states("job1") == ["running"]
    if "N" not in broken:
        assert world.wiring.store.change_chain("main", None, world.now)
