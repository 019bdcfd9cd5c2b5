"""Measures the twin's items as the table grows: a transaction of two items, reads, a put.

Each operation is timed inside the engine (no network, no client) on a table with few and with many items
under as many partition keys, both tables in turn, and judged by the medians. The peer is moto's own engine,
at a size that it can bear. Last, one GetItem through the front door: HTTP, rights and journal included.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from moto.dynamodb.models import dynamodb_backends
from trainmaster_client.report import Report

from benchmarks.tables import at_most
from local.clock import TwinClock
from local.engine.calls import AwsCall
from local.engine.moto_engine import MotoEngine
from local.faults import Faults
from local.front_door import FrontDoor
from local.identity.identities import Identities
from local.journal import Journal
from local.wire import Request

ROOT = Path(__file__).resolve().parents[1]
FEW, MANY = 100, 20_000
PEER_MANY = 1_000
RUNS = 200
PEER_RUNS = 10
MAX_DOOR_MS = 3.0
MAX_RATIO = 2.0
"""Many items against few; a cost that does not depend on the size is 1."""
BODY = "x" * 600
"""Brings an item to the size of a job's."""

Params = Mapping[str, Any]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transactions", description=__doc__)
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "transactions.json", metavar="PATH")
    arguments = parser.parse_args(argv)
    report = Report("transactions")
    engine = MotoEngine(clock=TwinClock(manual=False))
    ours = measure(engine, (FEW, MANY), RUNS, lambda call: engine.call(call, _NO_REQUEST))
    for operation, seconds in ours.items():
        ratio = round(median(seconds[MANY]) / median(seconds[FEW]), 2)
        at_most(report, f"flat-{operation}", ratio, MAX_RATIO)
    peer = measure(engine, (FEW, PEER_MANY), PEER_RUNS, _moto_alone(engine))
    through_door = measure_door(engine)
    milliseconds = round(median(through_door) * 1000, 3)
    at_most(report, "front-door-GetItem", milliseconds, MAX_DOOR_MS, "ms")
    report.facts.update(seconds=ours, peer_seconds=peer, front_door_seconds=through_door)
    _print("twin", ours)
    _print("moto", peer)
    engine.close()
    return report.finish(arguments.json)


def measure(
    engine: MotoEngine, sizes: tuple[int, int], runs: int, call: Callable[[AwsCall], object]
) -> dict[str, dict[int, list[float]]]:
    """Measure seconds of each run by operation and size; the sizes take turns on the same machine."""
    for size in sizes:
        fill(engine, f"t{size}", size)
    seconds: dict[str, dict[int, list[float]]] = {}
    for run in range(runs):
        for size in sizes:
            for name, params in operations(f"t{size}", run).items():
                request = AwsCall(service="dynamodb", operation=name, params=params, region=engine.region)
                began = time.perf_counter()
                call(request)
                spent = round(time.perf_counter() - began, 7)
                seconds.setdefault(name, {size: [] for size in sizes})[size].append(spent)
    for size in sizes:
        engine.client("dynamodb").delete_table(TableName=f"t{size}")
    return seconds


def measure_door(engine: MotoEngine) -> list[float]:
    """Measure seconds of each GetItem by one kept-alive connection, to a table with many items."""
    table = f"t{MANY}"
    fill(engine, table, MANY)
    with TemporaryDirectory() as folder, open_door(engine, Path(folder) / "journal") as (address, key_id):
        connection = HTTPConnection(address)
        scope = f"{key_id}/20260101/{engine.region}/dynamodb/aws4_request"
        headers = {
            "X-Amz-Target": "DynamoDB_20120810.GetItem",
            "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0",
        }
        seconds = []
        for run in range(RUNS):
            body = json.dumps(operations(table, run)["GetItem"])
            began = time.perf_counter()
            connection.request("POST", "/", body, headers)
            answer = connection.getresponse()
            answer.read()
            seconds.append(round(time.perf_counter() - began, 7))
            assert answer.status == HTTPStatus.OK
        connection.close()
    return seconds


@contextmanager
def open_door(engine: MotoEngine, journal_path: Path) -> Iterator[tuple[str, str]]:
    """Host and port of a front door, and a key id that it knows."""
    identities = Identities(engine.account_id)
    journal = Journal(journal_path, engine.clock)
    door = FrontDoor(port=0, identities=identities, engine=engine, journal=journal, faults=Faults())
    door.start()
    try:
        yield door.endpoint_url.removeprefix("http://"), identities.add_user("benchmark").access_key_id
    finally:
        door.close()
        journal.close()


def fill(engine: MotoEngine, table: str, items: int) -> None:
    client = engine.client("dynamodb")
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
    )
    for start in range(0, items, 25):
        puts = [{"PutRequest": {"Item": item(number)}} for number in range(start, min(start + 25, items))]
        client.batch_write_item(RequestItems={table: puts})


def item(number: int) -> dict[str, Any]:
    return {"pk": {"S": f"job-{number}"}, "sk": {"S": "-"}, "used": {"N": "0"}, "body": {"S": BODY}}


def operations(table: str, run: int) -> dict[str, Params]:
    key = {"pk": {"S": f"job-{run % FEW}"}, "sk": {"S": "-"}}
    new = {"pk": {"S": f"run-{run}"}, "sk": {"S": "-"}}
    add = {
        "TableName": table,
        "Key": key,
        "UpdateExpression": "ADD used :one",
        "ConditionExpression": "attribute_exists(pk)",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    query = {
        "TableName": table,
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": key["pk"]},
    }
    return {
        "TransactWriteItems": {
            "TransactItems": [{"Update": add}, {"Put": {"TableName": table, "Item": new}}]
        },
        "GetItem": {"TableName": table, "Key": key},
        "Query": query,
        "PutItem": {"TableName": table, "Item": item(run % FEW)},
    }


def _moto_alone(engine: MotoEngine) -> Callable[[AwsCall], object]:
    """Return the same calls by moto's own methods, without the parts of it that the twin does not use."""
    backend = dynamodb_backends[engine.account_id][engine.region]

    def call(request: AwsCall) -> object:
        params = request.params
        match request.operation:
            case "TransactWriteItems":
                return backend.transact_write_items(params["TransactItems"])
            case "GetItem":
                return backend.get_item(params["TableName"], params["Key"])
            case "Query":
                pk = params["ExpressionAttributeValues"][":pk"]
                return backend.query(
                    params["TableName"],
                    pk,
                    None,
                    [],
                    None,
                    None,
                    True,
                    None,
                    hash_key_conditions=[("pk", pk)],
                )
            case _:
                return backend.put_item(params["TableName"], params["Item"])

    return call


_NO_REQUEST = Request(method="POST", raw_path="/", query="", headers={}, body=b"")
"""The engine answers these operations by their parameters alone."""


def _print(engine: str, seconds: Mapping[str, Mapping[int, list[float]]]) -> None:
    for operation, by_size in seconds.items():
        figures = "   ".join(
            f"{size:6,} items {median(runs) * 1000:8.3f} ms" for size, runs in by_size.items()
        )
        print(f"{engine}  {operation:18} {figures}")


if __name__ == "__main__":
    sys.exit(main())
