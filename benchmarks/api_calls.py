"""CPU of what a person waits for: a submission, and a look at a job behind thousands, by the real clients.

AWS is another process (``stand_in.py``); what counts is the CPU time of the API function's own process, from
the event to the answer, log line included.
"""

import gc
import io
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from datetime import UTC, datetime
from functools import partial
from itertools import count
from statistics import median
from typing import Any

import boto3
from botocore import xform_name
from trainmaster import bootstrap

from benchmarks.deep_queue import INSTANCE_TYPE, DeepQueue, fill, make_table
from benchmarks.stand_in import StandIn, stand_in
from benchmarks.starts import BODY, environment_of

PERSON = "arn:aws:sts::111122223333:assumed-role/vision/ada"
ADMIN = "arn:aws:iam::111122223333:user/admin"
DISTINCT = DeepQueue(pending=5_000, lanes=5_000)
ASKED = (199, 999, 2_399, 4_999, 0)
"""Jobs looked at, by how many were submitted before them; every tenth goes before the others."""
LOOKS = 3
ROUNDS, SUBMISSIONS = 6, 20
"""The least of the rounds' medians counts: others use this machine, too."""
MAX_LOOK_S, MAX_SUBMISSION_MS = 1.0, 5.0

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


class _Context:
    """Of Lambda; what the handlers and Powertools ask of it."""

    function_name = "trainmaster-Api"
    memory_limit_in_mb = 1024
    invoked_function_arn = "arn:aws:lambda:us-east-1:111122223333:function:trainmaster-Api"
    aws_request_id = "00000000-0000-0000-0000-000000000000"

    def get_remaining_time_in_millis(self) -> int:
        return 15_000


def measure_api(queue: DeepQueue = DISTINCT, *, submissions: int = SUBMISSIONS) -> dict[str, Any]:
    with stand_in() as aws:
        handler = _deployed(aws, queue)
        numbers = count()
        rounds = [
            median(_submission(handler, next(numbers)) for _ in range(submissions)) for _ in range(ROUNDS)
        ]
        aws.counts()
        _submission(handler, next(numbers))
        calls = aws.counts()
        looks = [_look(handler, queue, number) for number in ASKED if number < queue.pending]
        return {
            "submission": {
                "cpu_ms": round(1000 * min(rounds), 3),
                "rounds_cpu_ms": [round(1000 * one, 3) for one in rounds],
                "calls": calls,
            },
            "looks": looks,
        }


def _deployed(aws: StandIn, queue: DeepQueue) -> Handler:
    """The function over a table with the queue in it."""
    os.environ.update(environment_of(aws.endpoint_url))
    sqs = boto3.client("sqs")
    os.environ["TRAINMASTER_DOORBELL_URL"] = sqs.create_queue(QueueName="wake-ups")["QueueUrl"]
    os.environ["TRAINMASTER_ADMIN_PRINCIPAL_ARNS"] = ADMIN
    client = boto3.client("dynamodb")
    make_table(client, "trainmaster")
    send = partial(_sent, client)
    fill(client, "trainmaster", queue, now=datetime.now(UTC), send=send)
    bootstrap.wiring.cache_clear()
    with redirect_stdout(io.StringIO()):  # where its logger is bound
        from functions.api import app  # noqa: PLC0415  reads the environment
    gc.collect()
    return app.handler


def _submission(handler: Handler, number: int) -> float:
    body = json.dumps(_request(f"submitted-{number:06d}"))
    return _spent(handler, _event("POST", "/add-job", PERSON, body), status=201)[0]


def _look(handler: Handler, queue: DeepQueue, number: int) -> dict[str, Any]:
    event = _event("GET", f"/jobs/{queue.name(number)}", ADMIN)
    found = [_spent(handler, event, status=200) for _ in range(LOOKS)]
    answer = found[-1][1]
    return {
        "position": answer["position"],
        "cpu_s": round(min(spent for spent, _ in found), 4),
        "is_estimated": answer["estimated_start"] is not None,
        "note": answer["estimate_note"],
    }


def _spent(handler: Handler, event: dict[str, Any], *, status: int) -> tuple[float, dict[str, Any]]:
    """CPU seconds, and the answer's body."""
    began = time.process_time()
    answer = handler(event, _Context())
    spent = time.process_time() - began
    assert answer["statusCode"] == status, answer
    return spent, json.loads(answer["body"])


def _sent(client: Any, operation: str, params: Mapping[str, Any]) -> object:  # noqa: ANN401
    return getattr(client, xform_name(operation))(**params)


def _request(name: str) -> dict[str, Any]:
    resources = {"InstanceType": INSTANCE_TYPE, "InstanceCount": 1, "VolumeSizeInGB": 100}
    return {"TrainingJobName": name, **BODY, "ResourceConfig": resources}


def _event(method: str, path: str, caller: str, body: str | None = None) -> dict[str, Any]:
    """As a REST API hands it to a Lambda function."""
    return {
        "resource": path,
        "path": path,
        "httpMethod": method,
        "headers": {"Content-Type": "application/json"},
        "multiValueHeaders": {"Content-Type": ["application/json"]},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "pathParameters": None,
        "requestContext": {"identity": {"userArn": caller}},
        "body": body,
        "isBase64Encoded": False,
    }
