from decimal import Decimal
from typing import Any

from benchmarks.control_plane_bill import Unit, units, usd


def call(service: str, operation: str, **params: Any) -> dict[str, Any]:
    return {"kind": "call", "service": service, "operation": operation, "params": params}


def test_each_item_of_a_transaction_is_written_twice_at_the_size_of_the_largest_row() -> None:
    items = [{"Put": {"TableName": "t"}}, {"Update": {"TableName": "t"}}]
    found = units(
        [call("dynamodb", "TransactWriteItems", TransactItems=items), call("dynamodb", "DeleteItem")],
        invocations=0,
        scheduled=0,
        row_bytes=1500,
    )
    assert found[Unit.WRITE_UNITS] == 2 * 2 * 2 + 2
    assert found[Unit.READ_UNITS] == 0


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
        row_bytes=100,
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
