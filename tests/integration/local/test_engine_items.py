"""Items behind the front door: what DynamoDB does, including what it refuses and moto would accept."""

import re
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.local.bare_twin import BareTwin, bare_twin

JOBS = "jobs"


def item(pk: str, sk: str = "-", **attributes: Any) -> dict[str, Any]:
    return {"pk": {"S": pk}, "sk": {"S": sk}, **attributes}


def key(pk: str, sk: str = "-") -> dict[str, Any]:
    return item(pk, sk)


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareTwin]:
    with bare_twin(tmp_path_factory.mktemp("twin")) as made:
        yield made


@pytest.fixture
def table(twin: BareTwin) -> Iterator[Any]:
    client = twin.client("dynamodb", parameter_validation=False)
    client.create_table(
        TableName=JOBS,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "team", "ended_at")
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_team",
                "KeySchema": [
                    {"AttributeName": "team", "KeyType": "HASH"},
                    {"AttributeName": "ended_at", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["name"]},
            }
        ],
    )
    yield client
    client.delete_table(TableName=JOBS)


def refused(call: Any, **params: Any) -> str:
    """The message of a ValidationException."""
    with pytest.raises(ClientError) as error:
        call(**params)
    assert error.value.response["Error"]["Code"] == "ValidationException"
    return str(error.value.response["Error"]["Message"])


def read(table: Any, pk: str, sk: str = "-") -> Any:
    return table.get_item(TableName=JOBS, Key=key(pk, sk)).get("Item")


def test_every_type_comes_back_as_it_was_put(table: Any) -> None:
    put = item(
        "all",
        text={"S": "ü"},
        number={"N": "1.50"},
        raw={"B": b"\x00\xff"},
        yes={"BOOL": True},
        nothing={"NULL": True},
        texts={"SS": ["a", "b"]},
        numbers={"NS": ["1", "2.0"]},
        raws={"BS": [b"a"]},
        many={"L": [{"S": "a"}, {"M": {"x": {"N": "007"}}}]},
    )
    table.put_item(TableName=JOBS, Item=put)
    assert read(table, "all") == put | {
        "number": {"N": "1.5"},
        "numbers": {"NS": ["1", "2"]},
        "many": {"L": [{"S": "a"}, {"M": {"x": {"N": "7"}}}]},
    }


def test_a_put_replaces_and_a_delete_removes_and_both_tell_what_was(table: Any) -> None:
    table.put_item(TableName=JOBS, Item=item("a", old={"S": "x"}))
    replaced = table.put_item(TableName=JOBS, Item=item("a", new={"S": "y"}), ReturnValues="ALL_OLD")
    assert replaced["Attributes"] == item("a", old={"S": "x"})
    deleted = table.delete_item(TableName=JOBS, Key=key("a"), ReturnValues="ALL_OLD")
    assert deleted["Attributes"] == item("a", new={"S": "y"})
    assert read(table, "a") is None
    assert "Attributes" not in table.delete_item(TableName=JOBS, Key=key("a"), ReturnValues="ALL_OLD")


@pytest.mark.parametrize(
    ("wanted", "attributes"),
    [
        ("NONE", None),
        ("ALL_OLD", item("a", n={"N": "1"}, other={"S": "x"})),
        ("ALL_NEW", item("a", n={"N": "3"}, other={"S": "x"}, fresh={"S": "y"})),
        ("UPDATED_OLD", {"n": {"N": "1"}}),
        ("UPDATED_NEW", {"n": {"N": "3"}, "fresh": {"S": "y"}}),
    ],
)
def test_an_update_returns_what_is_asked_for(
    table: Any, wanted: str, attributes: dict[str, Any] | None
) -> None:
    table.put_item(TableName=JOBS, Item=item("a", n={"N": "1"}, other={"S": "x"}))
    answer = table.update_item(
        TableName=JOBS,
        Key=key("a"),
        UpdateExpression="SET #n = #n + :two, fresh = :y",
        ExpressionAttributeNames={"#n": "n"},
        ExpressionAttributeValues={":two": {"N": "2"}, ":y": {"S": "y"}},
        ReturnValues=wanted,
    )
    assert answer.get("Attributes") == attributes


def test_an_update_makes_the_item_when_there_is_none(table: Any) -> None:
    table.update_item(
        TableName=JOBS,
        Key=key("new"),
        UpdateExpression="ADD used :one SET tags = if_not_exists(tags, :none)\n  REMOVE gone",
        ExpressionAttributeValues={":one": {"N": "1"}, ":none": {"M": {}}},
    )
    assert read(table, "new") == item("new", used={"N": "1"}, tags={"M": {}})


def test_an_update_that_fails_leaves_nothing_behind(table: Any) -> None:
    message = refused(
        table.update_item,
        TableName=JOBS,
        Key=key("new"),
        UpdateExpression="SET a = nowhere",
    )
    assert message == "The provided expression refers to an attribute that does not exist in the item"
    assert read(table, "new") is None


def test_a_condition_that_fails_shows_the_item_on_demand(table: Any) -> None:
    table.put_item(TableName=JOBS, Item=item("a", state={"S": "running"}))
    with pytest.raises(ClientError) as error:
        table.put_item(
            TableName=JOBS,
            Item=item("a"),
            ConditionExpression="attribute_not_exists(pk)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert error.value.response["Error"] == {
        "Code": "ConditionalCheckFailedException",
        "Message": "The conditional request failed",
    }
    response: dict[str, Any] = dict(error.value.response)
    assert response["Item"] == item("a", state={"S": "running"})
    assert read(table, "a") == item("a", state={"S": "running"})


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("attribute_exists(pk) AND n = :one", True),
        ("n <> :one OR NOT begins_with(s, :ab)", False),
        ("n BETWEEN :one AND :two AND s IN (:ab, :abc)", True),
        ("size(s) >= :two AND contains(s, :ab)", True),
        ("(n < :two) AND (nowhere = :ab)", False),
        ("attribute_type(s, :ab) OR nowhere <> :one", True),
        ("m.inside = :one AND l[0] = :two", True),
    ],
)
def test_conditions_hold_as_written(table: Any, condition: str, *, holds: bool) -> None:
    table.put_item(
        TableName=JOBS,
        Item=item("a", n={"N": "1"}, s={"S": "abc"}, m={"M": {"inside": {"N": "1"}}}, l={"L": [{"N": "2"}]}),
    )
    values = {":one": {"N": "1"}, ":two": {"N": "2"}, ":ab": {"S": "ab"}, ":abc": {"S": "abc"}}
    used = {name: values[name] for name in re.findall(r":\w+", condition)}
    delete = {"ConditionExpression": condition, "ExpressionAttributeValues": used}
    with nullcontext() if holds else pytest.raises(ClientError, match="ConditionalCheckFailedException"):
        table.delete_item(TableName=JOBS, Key=key("a"), **delete)
    assert (read(table, "a") is None) is holds


@pytest.mark.parametrize(
    ("params", "message"),
    [
        pytest.param(
            {"ConditionExpression": "a = :x"},
            "Invalid ConditionExpression: An expression attribute value used in expression is not defined; "
            "attribute value: :x",
            id="a value that is not given",
        ),
        pytest.param(
            {"ConditionExpression": "attribute_exists(#x)"},
            "Invalid ConditionExpression: An expression attribute name used in the document path "
            "is not defined; attribute name: #x",
            id="a name that is not given",
        ),
        pytest.param(
            {
                "ConditionExpression": "attribute_exists(a)",
                "ExpressionAttributeValues": {":x": {"S": "y"}, ":z": {"S": "y"}},
            },
            "Value provided in ExpressionAttributeValues unused in expressions: keys: {:x, :z}",
            id="values that are not used",
        ),
        pytest.param(
            {"ConditionExpression": "attribute_exists(a)", "ExpressionAttributeNames": {"#x": "y"}},
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#x}",
            id="a name that is not used",
        ),
        pytest.param(
            {"ExpressionAttributeNames": {"#x": "y"}},
            "ExpressionAttributeNames can only be specified when using expressions",
            id="names without an expression",
        ),
        pytest.param(
            {"ConditionExpression": "attribute_exists(a)", "ExpressionAttributeValues": {}},
            "ExpressionAttributeValues must not be empty",
            id="an empty map",
        ),
        pytest.param(
            {"ConditionExpression": "  "},
            "Invalid ConditionExpression: The expression can not be empty;",
            id="empty",
        ),
    ],
)
def test_expressions_that_dynamodb_refuses(table: Any, params: dict[str, Any], message: str) -> None:
    assert refused(table.put_item, TableName=JOBS, Item=item("a"), **params) == message
    assert read(table, "a") is None


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        pytest.param({"n": {"N": "1" * 39}}, "38 significant digits", id="39 digits"),
        pytest.param({"n": {"N": "x"}}, "cannot be converted to a numeric value: x", id="not a number"),
        pytest.param({"n": {"N": "1e126"}}, "overflow", id="too large a number"),
        pytest.param({"s": {"SS": []}}, "may not be empty", id="an empty set"),
        pytest.param({"s": {"SS": ["a", "a"]}}, "duplicates", id="a set with duplicates"),
        pytest.param({"x": {"S": "a", "N": "1"}}, "exactly one", id="two types"),
        pytest.param({"x": {"S": "a" * 409_600}}, "Item size has exceeded", id="too large an item"),
        pytest.param(
            {"team": {"N": "1"}}, "Type mismatch for Index Key team Expected: S Actual: N", id="index type"
        ),
        pytest.param({"team": {"S": ""}}, "IndexName: by_team, IndexKey: team", id="an empty index key"),
        pytest.param({"pk": {"S": ""}}, "empty string value. Key: pk", id="an empty key"),
        pytest.param({"sk": {"N": "1"}}, "Type mismatch for key", id="the wrong type of key"),
    ],
)
def test_items_that_dynamodb_refuses(table: Any, attributes: dict[str, Any], message: str) -> None:
    assert message in refused(table.put_item, TableName=JOBS, Item=item("a") | attributes)


def test_an_item_of_just_the_limit_fits_and_an_update_must_not_pass_it(table: Any) -> None:
    overhead = len("pk") + len("a") + len("sk") + len("-") + len("x")
    table.put_item(TableName=JOBS, Item=item("a", x={"S": "x" * (400 * 1024 - overhead)}))
    message = refused(
        table.update_item,
        TableName=JOBS,
        Key=key("a"),
        UpdateExpression="SET y = :y",
        ExpressionAttributeValues={":y": {"S": "y"}},
    )
    assert message == "Item size to update has exceeded the maximum allowed size"
    assert "y" not in read(table, "a")


def test_a_key_must_have_exactly_the_tables_attributes(table: Any) -> None:
    message = "The provided key element does not match the schema"
    assert refused(table.get_item, TableName=JOBS, Key={"pk": {"S": "a"}}) == message
    assert refused(table.get_item, TableName=JOBS, Key=item("a", x={"S": "y"})) == message


def test_a_table_that_is_not_there_says_so(table: Any) -> None:
    with pytest.raises(ClientError) as error:
        table.get_item(TableName="nothing", Key=key("a"))
    assert error.value.response["Error"]["Code"] == "ResourceNotFoundException"


def test_a_malformed_request_is_refused(table: Any) -> None:
    assert 'Missing required parameter in input: "Key"' in refused(table.get_item, TableName=JOBS)


def names(page: dict[str, Any]) -> list[str]:
    return [found["sk"]["S"] for found in page["Items"]]


def partition(table: Any, condition: str, values: dict[str, str], **params: Any) -> dict[str, Any]:
    typed = {":pk": {"S": "q"}} | {name: {"S": value} for name, value in values.items()}
    page: dict[str, Any] = table.query(
        TableName=JOBS,
        KeyConditionExpression=f"pk = :pk{condition}",
        ExpressionAttributeValues=typed,
        **params,
    )
    return page


@pytest.mark.parametrize(
    ("condition", "values", "found"),
    [
        ("", {}, ["a1", "a2", "b1", "b2", "c"]),
        (" AND sk = :x", {":x": "b1"}, ["b1"]),
        (" AND sk < :x", {":x": "b1"}, ["a1", "a2"]),
        (" AND sk <= :x", {":x": "b1"}, ["a1", "a2", "b1"]),
        (" AND sk > :x", {":x": "b1"}, ["b2", "c"]),
        (" AND sk >= :x", {":x": "b1"}, ["b1", "b2", "c"]),
        (" AND sk BETWEEN :x AND :y", {":x": "a2", ":y": "b2"}, ["a2", "b1", "b2"]),
        (" AND begins_with(sk, :x)", {":x": "b"}, ["b1", "b2"]),
        (" AND begins_with(sk, :x)", {":x": "d"}, []),
    ],
)
def test_a_query_gives_its_items_in_order_forwards_and_backwards(
    table: Any, condition: str, values: dict[str, str], found: list[str]
) -> None:
    for sk in ("b2", "a1", "c", "b1", "a2"):
        table.put_item(TableName=JOBS, Item=item("q", sk))
    table.put_item(TableName=JOBS, Item=item("other", "a1"))
    assert names(partition(table, condition, values)) == found
    assert names(partition(table, condition, values, ScanIndexForward=False)) == found[::-1]


@pytest.mark.parametrize("forward", [True, False])
def test_pages_join_without_gap_or_double_and_a_full_page_has_a_key(table: Any, *, forward: bool) -> None:
    for number in range(6):
        table.put_item(TableName=JOBS, Item=item("q", str(number)))
    pages, start = [], dict[str, Any]()
    while True:
        page = partition(table, "", {}, Limit=2, ScanIndexForward=forward, **start)
        pages.append(names(page))
        if "LastEvaluatedKey" not in page:
            break
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    whole = ["0", "1", "2", "3", "4", "5"]
    ordered = whole if forward else whole[::-1]
    assert pages == [ordered[0:2], ordered[2:4], ordered[4:6], []]


def test_a_page_may_start_at_an_item_that_is_gone(table: Any) -> None:
    for sk in ("a", "b", "c"):
        table.put_item(TableName=JOBS, Item=item("q", sk))
    table.delete_item(TableName=JOBS, Key=key("q", "b"))
    assert names(partition(table, "", {}, ExclusiveStartKey=key("q", "b"))) == ["c"]


def test_a_page_ends_at_one_megabyte(table: Any) -> None:
    for number in range(4):
        table.put_item(TableName=JOBS, Item=item("q", str(number), x={"S": "x" * 400_000}))
    page = partition(table, "", {})
    assert names(page) == ["0", "1", "2"]
    assert page["LastEvaluatedKey"] == key("q", "2")


def test_a_filter_comes_after_the_page_and_not_on_keys(table: Any) -> None:
    for number in range(4):
        table.put_item(TableName=JOBS, Item=item("q", str(number), even={"BOOL": number % 2 == 0}))
    values = {":pk": {"S": "q"}, ":yes": {"BOOL": True}}
    query = {"TableName": JOBS, "KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": values}
    page = table.query(**query, FilterExpression="even = :yes", Limit=3)
    assert (names(page), page["Count"], page["ScannedCount"]) == (["0", "2"], 2, 3)
    message = refused(table.query, **query, FilterExpression="sk = :yes")
    assert message.endswith("Primary key attribute: sk")
    counted = table.query(**query, FilterExpression="even = :yes", Select="COUNT")
    assert (counted["Count"], "Items" in counted) == (2, False)


def test_an_index_has_the_items_with_its_attributes_and_what_it_projects(table: Any) -> None:
    def by_team(**params: Any) -> Any:
        return table.query(
            TableName=JOBS,
            IndexName="by_team",
            KeyConditionExpression="team = :t",
            ExpressionAttributeValues={":t": {"S": "red"}},
            **params,
        )

    for pk, ended in (("j2", "2026-01-02"), ("j1", "2026-01-03"), ("j3", "2026-01-01")):
        attributes: dict[str, Any] = {
            "team": {"S": "red"},
            "ended_at": {"S": ended},
            "name": {"S": pk},
            "body": {"S": "x"},
        }
        table.put_item(TableName=JOBS, Item=item(pk, **attributes))
    table.put_item(TableName=JOBS, Item=item("running", team={"S": "red"}))
    first = by_team(Limit=2, ScanIndexForward=False)
    assert [found["name"]["S"] for found in first["Items"]] == ["j1", "j2"]
    assert set(first["Items"][0]) == {"pk", "sk", "team", "ended_at", "name"}
    second = by_team(ScanIndexForward=False, ExclusiveStartKey=first["LastEvaluatedKey"])
    assert [found["name"]["S"] for found in second["Items"]] == ["j3"]
    assert refused(by_team, ConsistentRead=True).startswith("Consistent reads are not supported")


def test_an_update_moves_an_item_in_an_index(table: Any) -> None:
    def team(name: str) -> list[str]:
        page = table.query(
            TableName=JOBS,
            IndexName="by_team",
            KeyConditionExpression="team = :t",
            ExpressionAttributeValues={":t": {"S": name}},
        )
        return [found["pk"]["S"] for found in page["Items"]]

    table.put_item(TableName=JOBS, Item=item("a", team={"S": "red"}, ended_at={"S": "1"}))
    change = {"TableName": JOBS, "Key": key("a")}
    table.update_item(
        **change, UpdateExpression="SET team = :t", ExpressionAttributeValues={":t": {"S": "blue"}}
    )
    assert (team("red"), team("blue")) == ([], ["a"])
    table.update_item(**change, UpdateExpression="REMOVE ended_at")
    assert team("blue") == []


def test_a_projection_keeps_what_it_names_inside_maps_and_lists(table: Any) -> None:
    table.put_item(
        TableName=JOBS,
        Item=item(
            "a", m={"M": {"x": {"S": "1"}, "y": {"S": "2"}}}, l={"L": [{"S": "0"}, {"S": "1"}]}, n={"N": "1"}
        ),
    )
    found = table.get_item(
        TableName=JOBS,
        Key=key("a"),
        ProjectionExpression="pk, #m.x, l[1], nowhere, #m.z",
        ExpressionAttributeNames={"#m": "m"},
    )
    assert found["Item"] == {"pk": {"S": "a"}, "m": {"M": {"x": {"S": "1"}}}, "l": {"L": [{"S": "1"}]}}
    assert "reserved keyword: name" in refused(
        table.get_item, TableName=JOBS, Key=key("a"), ProjectionExpression="name"
    )


def test_a_scan_reads_everything_once_in_pages_and_in_segments(table: Any) -> None:
    for number in range(10):
        table.put_item(TableName=JOBS, Item=item(f"p{number % 3}", str(number)))
    found, start = list[str](), dict[str, Any]()
    while True:
        page = table.scan(TableName=JOBS, Limit=3, **start)
        found += names(page)
        if "LastEvaluatedKey" not in page:
            break
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    assert sorted(found) == [str(number) for number in range(10)]
    parts = [names(table.scan(TableName=JOBS, Segment=part, TotalSegments=2)) for part in (0, 1)]
    assert sorted(parts[0] + parts[1]) == sorted(found)


def test_batches_read_and_write_up_to_their_limits(table: Any) -> None:
    puts = [{"PutRequest": {"Item": item("b", str(number))}} for number in range(25)]
    table.batch_write_item(RequestItems={JOBS: puts})
    table.batch_write_item(RequestItems={JOBS: [{"DeleteRequest": {"Key": key("b", "0")}}]})
    keys = [key("b", str(number)) for number in range(25)]
    assert len(table.batch_get_item(RequestItems={JOBS: {"Keys": keys}})["Responses"][JOBS]) == 24
    too_many = [*puts, {"PutRequest": {"Item": item("b", "25")}}]
    assert "Too many items" in refused(table.batch_write_item, RequestItems={JOBS: too_many})
    twice = [key("b", "1"), key("b", "1")]
    assert "duplicates" in refused(table.batch_get_item, RequestItems={JOBS: {"Keys": twice}})


def test_a_transaction_reads_up_to_a_hundred_items(table: Any) -> None:
    table.put_item(TableName=JOBS, Item=item("t", "0", n={"N": "1"}))
    gets = [{"Get": {"TableName": JOBS, "Key": key("t", str(number))}} for number in range(100)]
    found = table.transact_get_items(TransactItems=gets)["Responses"]
    assert (found[0], found[1], len(found)) == ({"Item": item("t", "0", n={"N": "1"})}, {}, 100)


def test_what_moto_writes_by_itself_is_seen_too(table: Any) -> None:
    partition(table, "", {})
    table.execute_statement(Statement=f"INSERT INTO {JOBS} value {{'pk': 'q', 'sk': 'partiql'}}")
    assert names(partition(table, "", {})) == ["partiql"]
    table.put_item(TableName=JOBS, Item=item("q", "legacy"), Expected={"pk": {"Exists": False}})
    assert names(partition(table, "", {})) == ["legacy", "partiql"]
    assert table.describe_table(TableName=JOBS)["Table"]["ItemCount"] == 2


def test_a_table_without_a_sort_key_works_alike(twin: BareTwin) -> None:
    client = twin.client("dynamodb")
    client.create_table(
        TableName="plain",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "N"}],
    )
    for number in (10, 9):
        client.put_item(TableName="plain", Item={"id": {"N": str(number)}})
    assert [found["id"]["N"] for found in client.scan(TableName="plain")["Items"]] == ["9", "10"]
    client.delete_item(TableName="plain", Key={"id": {"N": "9.0"}})
    assert client.scan(TableName="plain")["Count"] == 1
