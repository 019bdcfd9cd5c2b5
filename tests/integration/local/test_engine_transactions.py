"""TransactWriteItems: all or nothing, reasons, tokens, conflicts on demand, and many at once."""

import itertools
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.local.bare_twin import BareTwin, bare_twin

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
JOBS = "jobs"
MAX_USED = 3


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareTwin]:
    with bare_twin(tmp_path_factory.mktemp("twin"), manual_from=NOON) as made:
        yield made


@pytest.fixture
def table(twin: BareTwin) -> Iterator[Any]:
    twin.faults.clear()
    client = twin.client("dynamodb", parameter_validation=False)
    client.create_table(
        TableName=JOBS,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
    )
    yield client
    client.delete_table(TableName=JOBS)


def put(pk: str, **attributes: Any) -> dict[str, Any]:
    return {"Put": {"TableName": JOBS, "Item": {"pk": {"S": pk}, **attributes}}}


def add(pk: str, amount: int, **params: Any) -> dict[str, Any]:
    values = {":n": {"N": str(amount)}} | params.pop("ExpressionAttributeValues", {})
    return {
        "Update": {
            "TableName": JOBS,
            "Key": {"pk": {"S": pk}},
            "UpdateExpression": "ADD used :n",
            "ExpressionAttributeValues": values,
            **params,
        }
    }


def check(pk: str, condition: str, **params: Any) -> dict[str, Any]:
    return {
        "ConditionCheck": {
            "TableName": JOBS,
            "Key": {"pk": {"S": pk}},
            "ConditionExpression": condition,
            **params,
        }
    }


def stored(table: Any, pk: str) -> Any:
    return table.get_item(TableName=JOBS, Key={"pk": {"S": pk}}).get("Item")


def used(table: Any, pk: str = "counter") -> int:
    return int(stored(table, pk)["used"]["N"])


def reasons(call: Any) -> tuple[str, list[dict[str, Any]]]:
    with pytest.raises(ClientError) as error:
        call()
    response: dict[str, Any] = dict(error.value.response)
    assert response["Error"]["Code"] == "TransactionCanceledException"
    return response["Error"]["Message"], response["CancellationReasons"]


def refused(table: Any, *items: dict[str, Any], **params: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as error:
        table.transact_write_items(TransactItems=list(items), **params)
    return error.value.response["Error"]["Code"], error.value.response["Error"]["Message"]


def test_all_parts_are_written_together(table: Any) -> None:
    table.put_item(TableName=JOBS, Item={"pk": {"S": "old"}})
    table.transact_write_items(
        TransactItems=[
            put("new"),
            add("counter", 2),
            {"Delete": {"TableName": JOBS, "Key": {"pk": {"S": "old"}}}},
            check("nobody", "attribute_not_exists(pk)"),
        ]
    )
    assert (stored(table, "new"), used(table), stored(table, "old")) == ({"pk": {"S": "new"}}, 2, None)
    assert stored(table, "nobody") is None


def test_one_failed_condition_undoes_nothing_because_nothing_was_done(table: Any) -> None:
    table.transact_write_items(TransactItems=[add("counter", 2)])
    failing = add(
        "counter",
        1,
        ConditionExpression="used < :max",
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
        ExpressionAttributeValues={":max": {"N": "2"}},
    )
    message, why = reasons(
        lambda: table.transact_write_items(
            TransactItems=[put("new"), failing, check("gone", "attribute_exists(pk)")]
        )
    )
    assert message == (
        "Transaction cancelled, please refer cancellation reasons for specific reasons "
        "[None, ConditionalCheckFailed, ConditionalCheckFailed]"
    )
    failed = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
    assert why == [
        {"Code": "None"},
        failed | {"Item": {"pk": {"S": "counter"}, "used": {"N": "2"}}},
        failed,
    ]
    assert (stored(table, "new"), used(table)) == (None, 2)


def test_an_update_that_the_item_does_not_allow_is_a_reason(table: Any) -> None:
    table.put_item(TableName=JOBS, Item={"pk": {"S": "text"}, "used": {"S": "x"}})
    _, why = reasons(lambda: table.transact_write_items(TransactItems=[put("new"), add("text", 1)]))
    assert why[1] == {
        "Code": "ValidationError",
        "Message": "An operand in the update expression has an incorrect data type",
    }
    assert stored(table, "new") is None


def test_a_repeated_token_is_applied_once_for_ten_minutes_of_the_twins_clock(
    twin: BareTwin, table: Any
) -> None:
    def write(amount: int) -> None:
        table.transact_write_items(TransactItems=[add("counter", amount)], ClientRequestToken="token-1")

    write(1)
    write(1)
    assert used(table) == 1
    assert (
        refused(table, add("counter", 2), ClientRequestToken="token-1")[0]
        == "IdempotentParameterMismatchException"
    )
    twin.clock.advance(timedelta(minutes=10))
    write(2)
    assert used(table) == 3


def test_a_token_of_a_transaction_that_failed_is_free(table: Any) -> None:
    failing = [check("counter", "attribute_exists(pk)"), put("new")]
    reasons(lambda: table.transact_write_items(TransactItems=failing, ClientRequestToken="token-2"))
    table.put_item(TableName=JOBS, Item={"pk": {"S": "counter"}})
    table.transact_write_items(TransactItems=failing, ClientRequestToken="token-2")
    assert stored(table, "new") == {"pk": {"S": "new"}}


def test_a_conflict_on_demand_is_a_reason_of_the_first_item(twin: BareTwin, table: Any) -> None:
    twin.faults.set("TransactWriteItems", "TransactionConflict")
    _, why = reasons(lambda: table.transact_write_items(TransactItems=[put("a"), put("b")]))
    assert why == [
        {"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"},
        {"Code": "None"},
    ]
    table.transact_write_items(TransactItems=[put("a"), put("b")])
    twin.faults.set("TransactWriteItems", "ProvisionedThroughputExceededException")
    assert refused(table, put("a"))[0] == "ProvisionedThroughputExceededException"


@pytest.mark.parametrize(
    ("items", "message"),
    [
        pytest.param([], "valid min length: 1", id="nothing"),
        pytest.param([put(str(n)) for n in range(101)], "less than or equal to 100", id="101 items"),
        pytest.param(
            [put("a"), add("a", 1)], "cannot include multiple operations on one item", id="an item twice"
        ),
        pytest.param(
            [put("a") | add("b", 1)], "TransactItems can only contain one of", id="two kinds in one"
        ),
        pytest.param(
            [put(str(n), x={"S": "x" * 400_000}) for n in range(11)], "must not exceed 4 MB", id="4 MB"
        ),
        pytest.param([check("a", "x = :y")], "attribute value: :y", id="a value that is not given"),
        pytest.param(
            [check("a", "attribute_exists(pk)", ExpressionAttributeNames={"#x": "y"})],
            "unused in expressions: keys: {#x}",
            id="a name that is not used",
        ),
        pytest.param([add("a", 1, UpdateExpression="SET used :n")], "Syntax error", id="no expression"),
        pytest.param(
            [{"Delete": {"TableName": JOBS, "Key": {"sk": {"S": "a"}}}}], "does not match", id="no key"
        ),
    ],
)
def test_requests_that_dynamodb_refuses(table: Any, items: list[dict[str, Any]], message: str) -> None:
    code, why = refused(table, *items)
    assert (code, message in why) == ("ValidationException", True), why


def test_a_hundred_items_of_nearly_four_megabytes_fit(table: Any) -> None:
    table.transact_write_items(TransactItems=[put(str(n), x={"S": "x" * 40_000}) for n in range(100)])
    assert stored(table, "99")["x"]["S"] == "x" * 40_000


def test_a_table_that_is_not_there_says_so(table: Any) -> None:
    elsewhere = {"Put": {"TableName": "nothing", "Item": {"pk": {"S": "a"}}}}
    assert refused(table, elsewhere) == ("ResourceNotFoundException", "Requested resource not found")


class Gate:
    """A counter that lets three in at a time, entered and left by transactions."""

    def __init__(self, twin: BareTwin) -> None:
        self.client = twin.client("dynamodb")
        self.client.put_item(TableName=JOBS, Item={"pk": {"S": "gate"}, "used": {"N": "0"}})
        self.seen = list[int]()
        self.wrong = list[Exception]()
        self._entered = itertools.count()
        self._full = threading.Barrier(MAX_USED)

    def run(self, thread: int) -> None:
        try:
            for turn in range(25):
                self._pass(f"{thread}-{turn}")
        except Exception as error:  # noqa: BLE001  told by the main thread
            self.wrong.append(error)

    def _pass(self, name: str) -> None:
        while not self._enter(name):
            pass
        if next(self._entered) < MAX_USED:
            self._full.wait(30)  # the first three are inside together
        self.seen.append(used(self.client, "gate"))
        leave = {"Delete": {"TableName": JOBS, "Key": {"pk": {"S": name}}}}
        self.client.transact_write_items(TransactItems=[add("gate", -1), leave])

    def _enter(self, name: str) -> bool:
        top = {":max": {"N": str(MAX_USED)}}
        gate = add("gate", 1, ConditionExpression="used < :max", ExpressionAttributeValues=top)
        try:
            self.client.transact_write_items(TransactItems=[gate, put(name)])
        except self.client.exceptions.TransactionCanceledException:
            return False
        return True


@pytest.fixture
def restless_threads() -> Iterator[None]:
    """Threads that take turns as often as they can, so that what is not locked goes wrong."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_a_gate_of_three_holds_under_eight_threads_and_ends_empty(
    twin: BareTwin, table: Any, restless_threads: None
) -> None:
    """What moto's own transactions fail: they lose what others wrote while a condition failed."""
    gate = Gate(twin)
    threads = [threading.Thread(target=gate.run, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert gate.wrong == []
    assert (used(table, "gate"), max(gate.seen), len(gate.seen)) == (0, MAX_USED, 200)
    assert table.scan(TableName=JOBS)["Count"] == 1
