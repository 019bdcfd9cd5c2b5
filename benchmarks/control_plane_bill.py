"""Computes what calls of the control plane cost: counts times list prices of us-east-1, in USD."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any

from trainmaster.core.monitoring.alarms import Alarm

from local.engine.dynamodb.values import item_bytes

GB_SECONDS_EACH = Decimal(1)
"""GB-seconds of one run of a function: 1 s at 1,024 MB. Assumed, not measured; some functions have 512 MB."""
WRITE_UNIT_BYTES = 1024
TRANSACTION_FACTOR = 2
"""DynamoDB developer guide: each item of a transaction is written twice."""


class Unit(StrEnum):
    INVOCATIONS = "function runs"
    WRITE_UNITS = "table write units"
    READ_UNITS = "table read units"
    API_CALLS = "API calls"
    QUEUE_CALLS = "queue calls"
    EVENTS = "events sent"
    SCHEDULED = "scheduled runs"
    ALARM_CALLS = "alarm calls"


PRICES: Mapping[Unit, Decimal] = {
    Unit.INVOCATIONS: Decimal("0.20") / 1_000_000 + GB_SECONDS_EACH * Decimal("0.0000133334"),
    Unit.WRITE_UNITS: Decimal("0.625") / 1_000_000,
    Unit.READ_UNITS: Decimal("0.125") / 1_000_000,
    Unit.API_CALLS: Decimal("3.50") / 1_000_000,
    Unit.QUEUE_CALLS: Decimal("0.40") / 1_000_000,
    Unit.EVENTS: Decimal("1.00") / 1_000_000,
    Unit.SCHEDULED: Decimal("1.00") / 1_000_000,
    Unit.ALARM_CALLS: Decimal("0.01") / 1_000,
}
"""USD each, on demand, without free tiers: the public price pages of Lambda (arm64), DynamoDB, API Gateway
(REST), SQS, EventBridge, EventBridge Scheduler and CloudWatch. Transcribed by hand."""

_READS = {"GetItem": 1, "Query": 1, "BatchGetItem": 1}
_UNIT_OF = {
    "execute-api": Unit.API_CALLS,
    "sqs": Unit.QUEUE_CALLS,
    "events": Unit.EVENTS,
    "cloudwatch": Unit.ALARM_CALLS,
}

Record = Mapping[str, Any]
RowKey = tuple[str, str]
RowBytes = Mapping[RowKey, int]


def units(calls: Iterable[Record], *, invocations: int, scheduled: int, rows: RowBytes) -> Counter[Unit]:
    """Count what is billed for the calls of a journal.

    Args:
        calls: Records of kind ``call`` of a twin's journal.
        invocations: Runs of functions in the same time; the journal does not have them.
        scheduled: Those of them that the schedule began.
        rows: Sizes in bytes of the table's rows, before or after the calls. An update shows no size of
            its own, and is counted as the larger of this and what was last put there.
    """
    counts = Counter({Unit.INVOCATIONS: invocations, Unit.SCHEDULED: scheduled})
    sizes = dict(rows)
    for call in calls:
        if call["service"] == "dynamodb":
            _add_table_call(counts, call, sizes)
        elif call["service"] in _UNIT_OF:
            counts[_UNIT_OF[call["service"]]] += 1
    return counts


def row_key(row: Mapping[str, Any]) -> RowKey:
    """Return what tells rows of the table apart."""
    return row["pk"]["S"], row["sk"]["S"]


def _add_table_call(counts: Counter[Unit], call: Record, sizes: dict[RowKey, int]) -> None:
    operation = call["operation"]
    if operation in _READS:
        counts[Unit.READ_UNITS] += _READS[operation]
    elif operation == "TransactWriteItems":
        for (write,) in (part.values() for part in call["params"]["TransactItems"]):
            counts[Unit.WRITE_UNITS] += TRANSACTION_FACTOR * _write_units(write, sizes)
    else:
        counts[Unit.WRITE_UNITS] += _write_units(call["params"], sizes)


def _write_units(write: Mapping[str, Any], sizes: dict[RowKey, int]) -> int:
    """Count the units of a write: the larger of the row before and after it."""
    put = write.get("Item")
    key = row_key(put or write["Key"])
    before = sizes.get(key, 0)
    if put:
        sizes[key] = item_bytes(put)
    return max(1, math.ceil(max(before, sizes.get(key, 0)) / WRITE_UNIT_BYTES))


ALARM_METRIC_USD_PER_MONTH = Decimal("0.10")
"""Price of a standard-resolution alarm for each metric it reads: metric math over ten is ten."""
COMPOSITE_ALARM_USD_PER_MONTH = Decimal("0.50")
"""Price of a composite alarm, beside its parts."""


def alarms_usd(alarms: Iterable[Alarm]) -> Decimal:
    """Return the cost of alarms that exist for a month; CloudWatch bills them by the hour."""
    return sum(
        (
            ALARM_METRIC_USD_PER_MONTH * len(alarm.hosts) if alarm.hosts else COMPOSITE_ALARM_USD_PER_MONTH
            for alarm in alarms
        ),
        Decimal(0),
    )


def usd(counts: Mapping[Unit, int | Decimal]) -> Decimal:
    return sum((PRICES[unit] * count for unit, count in counts.items()), Decimal(0))
