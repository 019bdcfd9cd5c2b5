"""What a warm ``POST /add-job`` costs the api function: CPU from the proxy event to the answer, and calls.

AWS is another process (``stand_in.py``), reached by the function's real clients; waiting for it does not
count.
"""

import contextlib
import importlib
import io
import json
import os
import sys
import time
from collections import Counter
from itertools import count
from statistics import median
from types import SimpleNamespace
from typing import Any

import boto3

from benchmarks.deep_queue import make_table
from benchmarks.stand_in import StandIn, stand_in
from benchmarks.starts import BODY, ROOT, environment_of

WARM_UP, CALLS, ROUNDS = 40, 200, 4
MAX_MS = 5.0
MAX_CALLS = 4
POOLS, TEAMS = 8, 8
LIMITS = {"max_waiting": 10_000, "max_submissions_per_minute": 10_000}
INSTANCE_TYPE = "ml.g5.12xlarge"
ARN = "arn:aws:sts::111122223333:assumed-role/vision-research/ada"
QUIET = {
    "POWERTOOLS_METRICS_NAMESPACE": "trainmaster",
    "POWERTOOLS_SERVICE_NAME": "trainmaster",
    "TRAINMASTER_ADMIN_PRINCIPAL_ARNS": "",
}


class Posting:
    """The api function in this process, with a policy of some pools and teams."""

    def __init__(self, aws: StandIn) -> None:
        self.aws = aws
        os.environ.update(environment_of(aws.endpoint_url) | QUIET)
        make_table(boto3.client("dynamodb"), "trainmaster")
        boto3.client("sqs").create_queue(QueueName="wake-ups")
        folder = str(ROOT / "functions" / "api")
        sys.path.insert(0, folder)
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # where its log goes from now on
                self._function = importlib.import_module("app")
        finally:
            sys.path.remove(folder)
        self._numbers = count()
        self._context = SimpleNamespace(
            function_name="api",
            memory_limit_in_mb=512,
            invoked_function_arn="arn:aws:lambda:us-east-1:111122223333:function:api",
            aws_request_id="00000000-0000-0000-0000-000000000000",
            get_remaining_time_in_millis=lambda: 29_000,
        )
        policies = self._function.wiring().policies
        document = _policy()
        policies.put(document, pools=[one["name"] for one in document["pools"]], replaces=policies.current())

    def round(self, calls: int) -> dict[str, Any]:
        """CPU milliseconds of each call, and what they called of AWS."""
        self.aws.counts()
        with contextlib.redirect_stdout(io.StringIO()):
            milliseconds = [round(self.post() * 1000, 3) for _ in range(calls)]
        called = Counter(self.aws.counts())
        return {"milliseconds": milliseconds, "calls": {name: n / calls for name, n in called.items()}}

    def post(self) -> float:
        event = _event(f"measured-{next(self._numbers):06d}-fine-tune-resnet-50")
        began = time.process_time()
        answer = self._function.handler(event, self._context)
        spent = time.process_time() - began
        assert answer["statusCode"] == 201, answer["body"]  # noqa: PLR2004
        return spent


def measure() -> dict[str, Any]:
    """Facts of a report: the median of each round, the best of them, and calls of AWS for one request."""
    with stand_in() as aws:
        posting = Posting(aws)
        posting.round(WARM_UP)
        rounds = [posting.round(CALLS) for _ in range(ROUNDS)]
    medians = [round(median(one["milliseconds"]), 3) for one in rounds]
    return {"handler_cpu_ms": medians, "best_handler_cpu_ms": min(medians), "calls": rounds[-1]["calls"]}


def handler_cpu_seconds() -> float:
    """Of one request: the best of several rounds' medians."""
    return float(measure()["best_handler_cpu_ms"]) / 1000


def _policy() -> dict[str, Any]:
    types = [INSTANCE_TYPE, *(f"ml.p4d.{n}xlarge" for n in range(POOLS))]
    return {
        "version": 1,
        "pools": [
            {"name": f"pool-{number}", "capacity": {kind: 16}, "limits": LIMITS}
            for number, kind in zip(range(POOLS), types, strict=False)
        ],
    }


def _event(name: str) -> dict[str, Any]:
    resources = {"InstanceType": INSTANCE_TYPE, "InstanceCount": 1, "VolumeSizeInGB": 100}
    body = {"TrainingJobName": name, **BODY, "ResourceConfig": resources}
    return {
        "httpMethod": "POST",
        "path": "/add-job",
        "resource": "/{proxy+}",
        "headers": {"Content-Type": "application/json"},
        "multiValueHeaders": {"Content-Type": ["application/json"]},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "pathParameters": {"proxy": "add-job"},
        "requestContext": {"identity": {"userArn": ARN}, "requestId": name, "stage": "v1"},
        "body": json.dumps(body),
        "isBase64Encoded": False,
    }
