"""Measures a whole pass by running jobs, lanes and teams, and the largest rows that it leaves."""

import gc
import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.deep_queue import DeepQueue, ready_made
from benchmarks.metered_passes import Passes
from local.clock import TwinClock
from local.engine.calls import AwsCall
from local.engine.dynamodb.values import item_bytes
from local.engine.moto_engine import MotoEngine
from local.wire import Request

PASSES = 2
"""Measured of each size, after the first; the least CPU counts."""


def measure_sizes(queues: Sequence[DeepQueue]) -> list[dict[str, Any]]:
    """Measure each size in a table of its own, one after the other."""
    return [_measured(queue) for queue in queues]


def _measured(queue: DeepQueue) -> dict[str, Any]:
    engine = MotoEngine(clock=TwinClock(manual=False))
    (filled,) = ready_made(engine, [queue])
    passes = Passes.over(filled, engine)
    gc.collect()
    gc.freeze()  # the table is another machine's memory
    first = passes.run()
    records = [passes.run() for _ in range(PASSES)]
    gc.unfreeze()
    rows = largest_rows(engine, filled.table)
    engine.close()
    return {
        "running": queue.running,
        "waiting": queue.pending,
        "teams": queue.teams,
        "lanes": queue.lanes,
        "first_pass": first,
        "pass": min(records, key=lambda record: record["cpu_ms"]),
        "largest_rows_bytes": rows,
    }


def largest_rows(engine: MotoEngine, table: str) -> dict[str, int]:
    """Return the bytes of the largest row of each kind."""
    largest: dict[str, int] = {}
    params: dict[str, Any] = {"TableName": table}
    while True:
        answer = _scanned(engine, params)
        for row in answer["Items"]:
            kind = _kind(row["pk"]["S"], row["sk"]["S"])
            largest[kind] = max(largest.get(kind, 0), item_bytes(row))
        if "LastEvaluatedKey" not in answer:
            return dict(sorted(largest.items()))
        params["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _scanned(engine: MotoEngine, params: Mapping[str, Any]) -> dict[str, Any]:
    call = AwsCall(service="dynamodb", operation="Scan", params=params, region=engine.region)
    request = Request(method="POST", raw_path="/", query="", headers={}, body=b"")
    answer: dict[str, Any] = json.loads(engine.call(call, request).body)
    return answer


def _kind(partition: str, sort: str) -> str:
    """Return the kind of a row; rows of a pool or a job have it in the beginning of the sort key."""
    beginning = partition.split("#", maxsplit=1)[0]
    if beginning in {"P", "J"}:
        return f"{beginning}/{sort.split('#', maxsplit=1)[0]}"
    return beginning
