"""Measures a look at a job behind thousands of others, and the dry run of a policy of 500 pools."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import boto3
from botocore import xform_name
from trainmaster.core.forecast.start_estimate import MOST_SHAPES

from benchmarks.api_function import ADMIN, TABLE, TIMEOUT_S, ApiFunction
from benchmarks.deep_queue import DeepQueue, fill
from benchmarks.stand_in import StandIn, stand_in
from tests.integration.messages import proxy_event

DISTINCT = DeepQueue(pending=5_000, lanes=5_000)
"""Queue in which every job asks for another shape."""
LARGEST_ESTIMATED = 10 * MOST_SHAPES + 9
"""Index of the last job that gets an estimate: every tenth job goes first, so as many shapes are ahead of
it as an estimate takes."""
ASKED = (199, 999, LARGEST_ESTIMATED, LARGEST_ESTIMATED + 10, 4_999, 0)
"""Jobs looked at, by how many were submitted before them."""
LOOKS = 3
"""The least CPU counts: others use this machine, too."""
MAX_LOOK_S = 1.0
POOLS = 500
DELAYS_MS = (0, 5)
"""Delays of the table's answers to a dry run; DynamoDB takes about 5 ms for a read. Assumed."""
MAX_DRY_RUN_S = TIMEOUT_S


def measure_api(queue: DeepQueue = DISTINCT) -> dict[str, Any]:
    with stand_in() as aws:
        function, client = ApiFunction(aws), boto3.client("dynamodb")
        fill(client, TABLE, queue, now=datetime.now(UTC), send=partial(_sent, client))
        looks = [_look(function, queue, number) for number in ASKED if number < queue.pending]
        function.put_policy(_of_many_pools(queue))
        return {"looks": looks, "dry_runs": [_dry_run(function, aws, queue, delay) for delay in DELAYS_MS]}


def _look(function: ApiFunction, queue: DeepQueue, number: int) -> dict[str, Any]:
    event = proxy_event("GET", f"/jobs/{queue.name(number)}", user=ADMIN)
    answers = [function.answer(event) for _ in range(LOOKS)]
    answer = answers[-1][1]
    return {
        "position": answer["position"],
        "cpu_s": round(min(spent for spent, _ in answers), 4),
        "is_estimated": answer["estimated_start"] is not None,
        "note": answer["estimate_note"],
    }


def _dry_run(function: ApiFunction, aws: StandIn, queue: DeepQueue, delay_ms: int) -> dict[str, Any]:
    """Try a policy with a new rule: every pool is looked at, and waiting jobs' requests are read."""
    document = _of_many_pools(queue) | {"rules": {"max_instances": 8}}
    event = proxy_event("PUT", "/policy", document, query={"dry_run": "true"}, user=ADMIN)
    aws.counts(delay_ms=delay_ms)
    began = time.monotonic()
    spent, answer = function.answer(event)
    seconds = time.monotonic() - began
    return {
        "pools": POOLS,
        "delay_ms": delay_ms,
        "cpu_s": round(spent, 3),
        "seconds": round(seconds, 2),
        "changes": len(answer["changes"]),
        "is_truncated": answer["truncated"],
        "calls": aws.counts(),
    }


def _of_many_pools(queue: DeepQueue) -> dict[str, Any]:
    """Return the queue's own policy, with further pools without jobs."""
    others = [
        {"name": f"pool-{number:03d}", "capacity": {f"ml.x{number}.large": 8}} for number in range(1, POOLS)
    ]
    return {**queue.policy, "pools": [*queue.policy["pools"], *others]}


def _sent(client: Any, operation: str, params: Mapping[str, Any]) -> object:
    return getattr(client, xform_name(operation))(**params)
