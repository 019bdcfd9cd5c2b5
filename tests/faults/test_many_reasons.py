"""Why jobs wait is written for many at once, once, and again for whoever missed it."""

import gzip
import json
from collections import Counter
from typing import Any

import pytest
from trainmaster.core.jobs.reason_codes import ReasonCode

from tests.builders import A, job
from tests.faults.conftest import NewWorld
from tests.integration.world import Crash, World

REASONS_ROW = {"pk": {"S": "P#main"}, "sk": {"S": "told"}}
NAMES = [f"wait{number:02d}" for number in range(12)]


def waiting_for(world: World, *names: str) -> Counter[str | None]:
    found = (world.job(name).waiting for name in names)
    return Counter(None if one is None else str(one.code) for one in found)


@pytest.fixture
def full(new_world: NewWorld) -> World:
    """One runs, many wait and have no reason yet."""
    world = new_world({"pools": [{"name": "main", "capacity": {A: 1}}]})
    world.submit("runs", priority=9)
    world.wake()
    for name in NAMES:
        world.submit(name)
    return world


def reasons_row(world: World) -> dict[str, Any] | None:
    client = world.cloud.client("dynamodb")
    item: dict[str, Any] | None = client.get_item(TableName="trainmaster", Key=REASONS_ROW).get("Item")
    return item


def put_reasons_row(world: World, **attributes: Any) -> None:
    world.cloud.client("dynamodb").put_item(TableName="trainmaster", Item=REASONS_ROW | attributes)


def test_a_first_pass_tells_them_all_in_a_few_calls_and_the_next_one_tells_nobody(full: World) -> None:
    first = Counter(full.calls_of(full.wake))
    assert None not in waiting_for(full, *NAMES)
    assert first["TransactWriteItems"] == 1
    assert first["BatchGetItem"] == 1
    assert sum(first.values()) <= 40
    again = Counter(full.calls_of(full.wake))
    assert again["TransactWriteItems"] + again["BatchGetItem"] + again["PutItem"] == 0


def test_two_hundred_and_fifty_six_get_their_reasons_in_less_than_a_hundred_calls(full: World) -> None:
    """Of several teams, so that many of them are candidates."""
    first = full.job("wait00")
    names = [f"crowd-{number:03d}" for number in range(256 - len(NAMES))]
    for number, name in enumerate(names):
        rank: dict[str, Any] = {"score": first.score, "ranked_by": first.ranked_by}
        one = job(name, team=f"team-{number % 16:02d}", entry_id=f"01{name:0>24}", **rank)
        full.wiring.store.submit(one, b"{}")
    assert len(full.calls_of(full.wake)) <= 100
    reasons = waiting_for(full, *NAMES, *names)
    assert reasons.total() - reasons[None] >= 64


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param(None, id="gone"),
        pytest.param({"ver": {"N": "1"}, "codes": {"B": b"no gzip"}}, id="broken"),
        pytest.param({"ver": {"S": "?"}, "codes": {"B": gzip.compress(b"{}")}}, id="of no version"),
        pytest.param({"ver": {"N": "7"}, "codes": {"B": gzip.compress(b'{"wait03": "ahead"}')}}, id="odd"),
    ],
)
def test_a_lost_row_of_reasons_costs_one_read_of_the_jobs_and_no_write(
    full: World, lost: dict[str, Any] | None
) -> None:
    full.wake()
    before = {name: full.job(name) for name in NAMES}
    client = full.cloud.client("dynamodb")
    client.delete_item(TableName="trainmaster", Key=REASONS_ROW)
    if lost is not None:
        put_reasons_row(full, **lost)
    calls = Counter(full.calls_of(full.wake))
    assert calls["TransactWriteItems"] == 0
    assert {name: full.job(name) for name in NAMES} == before
    full.wake()
    assert Counter(full.calls_of(full.wake))["BatchGetItem"] == 0, "the note is whole again"


def test_a_job_that_changes_meanwhile_loses_its_own_reason_alone(full: World) -> None:
    full.meanwhile["TransactWriteItems"] = lambda: full.cancel("wait03")
    full.wake()
    assert full.states("wait03") == ["stopped"]
    others = [name for name in NAMES if name != "wait03"]
    assert None not in waiting_for(full, *others)


def test_a_job_that_left_and_came_back_gets_its_reason_again(full: World) -> None:
    full.wake()
    code = waiting_for(full, "wait05")
    full.patch("wait05", held=True)
    assert waiting_for(full, "wait05") != code
    full.patch("wait05", held=False)
    full.wake()
    assert waiting_for(full, "wait05") == code


def test_two_passes_that_tell_at_once_leave_no_note_that_either_of_them_doubts(full: World) -> None:
    def other_pass_writes_its_note() -> None:
        codes = {"wait00": [0, "budget"]}
        put_reasons_row(full, ver={"N": "5"}, codes={"B": gzip.compress(json.dumps(codes).encode())})

    full.meanwhile["PutItem"] = other_pass_writes_its_note
    full.wake()
    assert reasons_row(full) is None
    full.wake()
    assert reasons_row(full) is not None
    assert waiting_for(full, "wait00")[ReasonCode.BUDGET.value] == 0


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("operation", ["BatchGetItem", "TransactWriteItems", "PutItem"])
def test_a_death_while_they_are_told_is_made_good_by_the_next_pass(
    full: World, operation: str, phase: str
) -> None:
    assert full.dies(full.wake, Crash(operation, phase))
    full.wake()
    assert None not in waiting_for(full, *NAMES)
    full.check("runs", *NAMES)
