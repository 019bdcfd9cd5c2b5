"""Whatever is written in whatever order: a query gives what a plain dictionary would."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local.clock import TwinClock
from local.engine.dynamodb.data_plane import DataPlane
from local.engine.moto_engine import MotoEngine

REGION = "us-east-1"
LETTERS = st.sampled_from("abcd")
WRITES = st.lists(
    st.tuples(LETTERS, LETTERS, st.one_of(st.none(), st.tuples(st.sampled_from("xy"), LETTERS))), max_size=40
)
"""Partition, sort value, and the index's partition and sort value (None: the item is deleted)."""


@pytest.fixture(scope="module")
def engine() -> Iterator[MotoEngine]:
    made = MotoEngine(clock=TwinClock(manual=False), region=REGION)
    yield made
    made.close()


def fresh_table(engine: MotoEngine) -> DataPlane:
    client = engine.client("dynamodb")
    if client.list_tables()["TableNames"]:
        client.delete_table(TableName="t")
    parts = [("pk", "HASH"), ("sk", "RANGE")], [("team", "HASH"), ("ended", "RANGE")]
    keys, index = [[{"AttributeName": name, "KeyType": kind} for name, kind in each] for each in parts]
    client.create_table(
        TableName="t",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=keys,
        AttributeDefinitions=[
            {"AttributeName": n, "AttributeType": "S"} for n in ("pk", "sk", "team", "ended")
        ],
        GlobalSecondaryIndexes=[
            {"IndexName": "by_team", "KeySchema": index, "Projection": {"ProjectionType": "ALL"}}
        ],
    )
    return DataPlane(engine.account_id, TwinClock(manual=False).now)


def query(plane: DataPlane, name: str, value: str, **params: Any) -> list[tuple[str, str]]:
    answer = plane.answer(
        "Query",
        REGION,
        {
            "TableName": "t",
            "KeyConditionExpression": f"{name} = :v",
            "ExpressionAttributeValues": {":v": {"S": value}},
            **params,
        },
    )
    assert answer is not None
    return [(item["pk"]["S"], item["sk"]["S"]) for item in answer["Items"]]


def write(plane: DataPlane, key: tuple[str, str], place: tuple[str, str] | None) -> None:
    base = {"TableName": "t", "Key": {"pk": {"S": key[0]}, "sk": {"S": key[1]}}}
    if place is None:
        plane.answer("DeleteItem", REGION, base)
        return
    values = {":t": {"S": place[0]}, ":e": {"S": place[1]}}
    update = {"UpdateExpression": "SET team = :t, ended = :e", "ExpressionAttributeValues": values}
    plane.answer("UpdateItem", REGION, base | update)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WRITES)
def test_queries_agree_with_a_plain_dictionary(
    engine: MotoEngine, writes: list[tuple[str, str, tuple[str, str] | None]]
) -> None:
    plane, plain = fresh_table(engine), dict[tuple[str, str], tuple[str, str]]()
    for pk, sk, place in writes:
        write(plane, (pk, sk), place)
        if place is None:
            plain.pop((pk, sk), None)
        else:
            plain[pk, sk] = place
    for letter in "abcd":
        wanted = sorted(key for key in plain if key[0] == letter)
        assert query(plane, "pk", letter) == wanted
        assert query(plane, "pk", letter, ScanIndexForward=False) == wanted[::-1]
    for team in "xy":
        wanted = sorted((key for key in plain if plain[key][0] == team), key=lambda key: (plain[key][1], key))
        assert query(plane, "team", team, IndexName="by_team") == wanted


def test_a_table_that_is_made_again_is_empty(engine: MotoEngine) -> None:
    write(fresh_table(engine), ("a", "a"), ("x", "a"))
    assert query(fresh_table(engine), "pk", "a") == []
