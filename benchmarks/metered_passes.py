"""Runs whole passes over a queue in a table of the twin's engine, and counts what each reads and writes."""

import gc
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median
from typing import Any

from trainmaster.core.planning.actions import ExpandArray
from trainmaster.services.deadline import Deadline
from trainmaster.services.scheduler.passes import Scheduler

from benchmarks.deep_queue import POOL, DeepQueue
from benchmarks.full_pool import scheduler_of
from local.engine.calls import AwsCall
from local.engine.client import in_process_client
from local.engine.dynamodb.values import item_bytes
from local.engine.moto_engine import MotoEngine
from local.wire import Request, Response

PASS_LIMIT = timedelta(seconds=90)
MOST_TO_SETTLE = 20
"""Passes until a queue that nothing happens to needs no more writes."""
READ_UNIT, WRITE_UNIT = 4096, 1024
"""Bytes. Source: DynamoDB developer guide, "Read and write capacity units"."""
TRANSACTION_FACTOR = 2
"""A write in a transaction costs two. Source: as above."""


@dataclass(slots=True, kw_only=True)
class Meter:
    """Serves a client's calls by the twin's engine, and counts what goes through."""

    engine: MotoEngine
    items_read: int = 0
    queries: int = 0
    calls: int = 0
    rcu: int = 0
    wcu: int = 0
    cpu_s: float = 0.0
    """CPU that the twin took to answer."""

    def serve(self, call: AwsCall, request: Request) -> Response:
        began = time.process_time()
        response = self.engine.call(call, request)
        self._count(call, json.loads(response.body))
        self.cpu_s += time.process_time() - began
        return response

    def _count(self, call: AwsCall, answer: Mapping[str, Any]) -> None:
        self.calls += 1
        match call.operation:
            case "GetItem":
                self._read([answer["Item"]] if "Item" in answer else [])
            case "Query":
                self.queries += 1
                self._read(answer["Items"])
            case "TransactWriteItems":
                self.wcu += sum(_write_units(operation) for operation in call.params["TransactItems"])
            case "BatchGetItem":
                self._read([row for rows in answer["Responses"].values() for row in rows])
            case "PutItem":  # who knows why it waits
                self.wcu += _write_units({"Put": call.params}) // TRANSACTION_FACTOR
            case "UpdateItem" | "DeleteItem":  # once a minute what the pass looked at; one empty lane
                self.wcu += 1
            case other:
                raise LookupError(f"a pass over a full pool was not known to call {other}")

    def _read(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Count a consistent read: a unit for every 4 KiB of all items together, and one for nothing."""
        self.items_read += len(items)
        self.rcu += max(1, -(-sum(item_bytes(row) for row in items) // READ_UNIT))


def _write_units(operation: Mapping[str, Any]) -> int:
    """Count the write units of an operation; of an update only key and new values: a lower bound."""
    ((_, body),) = operation.items()
    written = item_bytes(
        body["Item"] if "Item" in body else body["Key"] | body.get("ExpressionAttributeValues", {})
    )
    return TRANSACTION_FACTOR * max(1, -(-written // WRITE_UNIT))


@dataclass(slots=True, kw_only=True)
class Passes:
    """Measures passes over one queue."""

    queue: DeepQueue
    meter: Meter
    scheduler: Scheduler
    first: dict[str, Any] = field(default_factory=dict)
    """Costs of the first pass, which writes for the candidates why they wait."""
    records: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def over(cls, queue: DeepQueue, engine: MotoEngine) -> "Passes":
        meter = Meter(engine=engine)
        client = in_process_client(
            "dynamodb", region=engine.region, endpoint_url=engine.endpoint_url, serve=meter.serve
        )
        return cls(queue=queue, meter=meter, scheduler=scheduler_of(client, queue.table))

    def settle(self) -> dict[str, Any]:
        """Run passes until one does nothing; return the costs of the first, which may expand arrays."""
        first = self.run(expands=True)
        for _ in range(MOST_TO_SETTLE):
            if not self.run(expands=True)["wcu"]:
                return first
        raise AssertionError("passes come to no end")

    def run(self, *, expands: bool = False) -> dict[str, Any]:
        """Run one pass and return its costs; it may start nothing, and make tasks jobs only if it says so."""
        meter = self.meter
        meter.items_read = meter.queries = meter.calls = meter.rcu = meter.wcu = 0
        meter.cpu_s = 0.0
        began = time.process_time()
        summary = self.scheduler.run(
            POOL, deadline=Deadline.at(datetime.now(UTC) + PASS_LIMIT, partial(datetime.now, UTC))
        )
        spent = time.process_time() - began
        done = [action for action in summary.done if not (expands and isinstance(action, ExpandArray))]
        assert not done, f"the pool was to be full: {done}"
        assert not summary.failures, summary.failures
        return {
            "pending": self.queue.pending,
            "items_read": meter.items_read,
            "queries": meter.queries,
            "calls": meter.calls,
            "rcu": meter.rcu,
            "wcu": meter.wcu,
            "cpu_ms": round((spent - meter.cpu_s) * 1000, 3),
            "twin_cpu_ms": round(meter.cpu_s * 1000, 3),
        }

    def summary(self) -> dict[str, Any]:
        """Return the counts of the last pass, and the medians of the times."""
        times = {
            name: round(median(record[name] for record in self.records), 3)
            for name in ("cpu_ms", "twin_cpu_ms")
        }
        return self.records[-1] | times


def take_turns(several: Sequence[Passes], *, runs: int) -> None:
    """Measure passes over each queue in turns, so that all see the same machine."""
    # The table is another machine's memory: garbage collection must not walk through it here.
    gc.collect()
    gc.freeze()
    for _ in range(runs):
        for passes in several:
            passes.records.append(passes.run())
    gc.unfreeze()
