from decimal import Decimal
from typing import Any

from benchmarks.control_plane_bill import RowBytes, Unit, units, usd


def call(service: str, operation: str, **params: Any) -> dict[str, Any]:
    return {"kind": "call", "service": service, "operation": operation, "params": params}


def key(name: str) -> dict[str, Any]:
    return {"pk": {"S": name}, "sk": {"S": "row"}}


def put(name: str, *, size: int) -> dict[str, Any]:
    """An item of ``size`` bytes and what its keys take, less than 100."""
    return key(name) | {"blob": {"S": "x" * size}}


def write_units(*calls: dict[str, Any], rows: RowBytes | None = None) -> int:
    return units(calls, invocations=0, scheduled=0, rows=rows or {})[Unit.WRITE_UNITS]


def test_each_item_of_a_transaction_is_written_twice_at_its_own_size() -> None:
    items = [{"Put": {"Item": put("a", size=1500)}}, {"Update": {"Key": key("b")}}]
    assert write_units(call("dynamodb", "TransactWriteItems", TransactItems=items)) == 2 * 2 + 2 * 1


def test_a_write_is_as_large_as_the_row_before_or_after_it() -> None:
    rows = {("a", "row"): 3000}
    assert write_units(call("dynamodb", "UpdateItem", Key=key("a")), rows=rows) == 3
    assert write_units(call("dynamodb", "PutItem", Item=put("a", size=10)), rows=rows) == 3
    assert write_units(call("dynamodb", "PutItem", Item=put("a", size=5000)), rows=rows) == 5


def test_what_was_put_is_what_is_updated_and_deleted_later() -> None:
    first, then = (call("dynamodb", "PutItem", Item=put("a", size=size)) for size in (2500, 10))
    assert write_units(first, then) == 3 + 3
    assert write_units(first, then, call("dynamodb", "DeleteItem", Key=key("a"))) == 3 + 3 + 1
    assert write_units(first, call("dynamodb", "UpdateItem", Key=key("a"))) == 3 + 3


def test_reads_calls_and_runs_are_counted_and_what_is_free_is_not() -> None:
    found = units(
        [
            *(call("dynamodb", operation) for operation in ("GetItem", "Query", "Query")),
            call("execute-api", "POST /add-job"),
            call("sqs", "SendMessageBatch"),
            call("events", "PutEvents"),
            call("cloudwatch", "DescribeAlarms"),
            call("sagemaker", "CreateTrainingJob"),
        ],
        invocations=7,
        scheduled=1,
        rows={},
    )
    assert +found == {
        Unit.READ_UNITS: 3,
        Unit.API_CALLS: 1,
        Unit.QUEUE_CALLS: 1,
        Unit.EVENTS: 1,
        Unit.ALARM_CALLS: 1,
        Unit.INVOCATIONS: 7,
        Unit.SCHEDULED: 1,
    }


def test_a_million_writes_and_a_million_runs_cost_what_the_price_pages_say() -> None:
    assert usd({Unit.WRITE_UNITS: 1_000_000}) == Decimal("0.625")
    assert usd({Unit.INVOCATIONS: 1_000_000}) == Decimal("0.20") + Decimal("13.3334")
    assert usd({Unit.API_CALLS: 1_000_000, Unit.READ_UNITS: 1_000_000}) == Decimal("3.625")
