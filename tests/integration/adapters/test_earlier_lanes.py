"""Queues that the release before left: entries lie in their lanes alone, and teams count the lanes."""

from collections import Counter
from typing import Any

import pytest
from trainmaster.adapters.dynamodb.attribute_values import to_attributes
from trainmaster.core.jobs.model import Job

from tests.builders import A, B, claimed, of
from tests.integration.adapters.test_dynamodb import Table
from tests.integration.conftest import TABLE

NEW_ROWS = ("O#", "OT#", "L#")


def always() -> bool:
    return True


@pytest.fixture
def table(dynamodb: Any) -> Table:
    return Table(dynamodb)


def items(table: Table) -> dict[tuple[str, str], dict[str, Any]]:
    found = table.client.scan(TableName=TABLE)["Items"]
    return {(item["pk"]["S"], item["sk"]["S"]): item for item in found}


def in_order(table: Table) -> dict[tuple[str, str], dict[str, Any]]:
    """Rows of the pool's order and of its teams'."""
    return {key: item for key, item in items(table).items() if key[0].startswith(("O#", "OT#"))}


def queue(table: Table) -> dict[str, Job]:
    jobs = [
        *(table.submitted(f"a{number:02d}", team="vision", score=number) for number in range(40)),
        *(
            table.submitted(f"b{number:02d}", team="speech", vector=of(1, B), score=100 + number)
            for number in range(3)
        ),
    ]
    return {one.name: one for one in jobs}


def as_the_release_before(table: Table) -> None:
    """No row of it is of a new kind; each lane is counted, and so is one that is empty."""
    lanes: Counter[tuple[str, str]] = Counter()
    for key in items(table):
        if key[0].startswith("Q#"):
            _, _, team, lane = key[0].split("#")
            lanes[team, lane] += 1
        if key[0].startswith(NEW_ROWS):
            table.client.delete_item(TableName=TABLE, Key=to_attributes({"pk": key[0], "sk": key[1]}))
    for (team, lane), count in [*lanes.items(), (("vision", "ml.gone.xlarge=1"), 0)]:
        counts(table, team, lane, count)


def counts(table: Table, team: str, lane: str, more: int) -> None:
    table.client.update_item(
        TableName=TABLE,
        Key=to_attributes({"pk": "T#main", "sk": team}),
        UpdateExpression="ADD #lane :more",
        ExpressionAttributeNames={"#lane": f"lane#{lane}"},
        ExpressionAttributeValues=to_attributes({":more": more}),
    )


def test_they_are_looked_at_and_listed_before_they_are_in_order(table: Table) -> None:
    queue(table)
    as_the_release_before(table)
    names = {entry.name for entry in table.snapshot().waiting}
    assert names == {*(f"a{number:02d}" for number in range(8)), "b00", "b01", "b02"}
    listed = table.reader.waiting("main", after=(37, "a37"), limit=4)
    assert [entry.name for entry in listed] == ["a38", "a39", "b00", "b01"]
    assert table.reader.queue_length("main") == 43


@pytest.mark.thorough
def test_they_come_into_order_as_if_they_had_been_submitted_now(table: Table) -> None:
    queue(table)
    before = in_order(table)
    as_the_release_before(table)
    table.store.take_over("main", table.snapshot().earlier_lanes, in_time=always)
    assert in_order(table) == before
    after = table.snapshot()
    assert (len(after.waiting), after.earlier_lanes, after.empty_lanes) == (43, (), ())
    assert not [name for name in table.row("T#main", "vision") if name.startswith("lane#")]
    assert len([entry.name for entry in table.reader.waiting("main", after=None, limit=99)]) == 43


@pytest.mark.thorough
def test_what_time_was_too_short_for_goes_on_later(table: Table) -> None:
    queue(table)
    before = in_order(table)
    as_the_release_before(table)
    looks = iter([True, True, False])
    table.store.take_over("main", table.snapshot().earlier_lanes, in_time=lambda: next(looks, False))
    assert 0 < len(in_order(table)) < len(before)
    names = {entry.name for entry in table.snapshot().waiting}
    assert names >= {"a00", "a07", "b00", "b02"}
    listed = table.reader.waiting("main", after=None, limit=99)
    assert len({entry.name for entry in listed}) == len(listed) == 43
    table.store.take_over("main", table.snapshot().earlier_lanes, in_time=always)
    assert (in_order(table), table.snapshot().earlier_lanes) == (before, ())


@pytest.mark.thorough
def test_who_comes_in_by_the_release_before_meanwhile_is_taken_over_next(table: Table) -> None:
    queue(table)
    as_the_release_before(table)
    lanes = table.snapshot().earlier_lanes
    counts(table, "speech", f"{B}=1", 1)
    table.store.take_over("main", lanes, in_time=always)
    (left,) = table.snapshot().earlier_lanes
    assert (left.team, left.puts) == ("speech", 4)


@pytest.mark.thorough
def test_who_was_started_by_a_release_that_was_rolled_back_to_leaves_the_order(table: Table) -> None:
    jobs = queue(table)
    rows = in_order(table)
    table.change(jobs["a05"], claimed(jobs["a05"]))
    left_behind = {key: item for key, item in rows.items() if key[1].endswith("a05")}
    for item in left_behind.values():
        table.client.put_item(TableName=TABLE, Item=item)
    counts(table, "vision", f"{A}=1", -1)
    assert "a05" in {entry.name for entry in table.snapshot().waiting}
    table.store.take_over("main", table.snapshot().earlier_lanes, in_time=always)
    assert in_order(table) == {key: item for key, item in rows.items() if key not in left_behind}
