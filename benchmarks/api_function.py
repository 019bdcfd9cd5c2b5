"""The api function in this process, over a stand-in for AWS: what one request costs it.

What counts is the CPU time of this process, from the event to the answer, log line included.
"""

import gc
import io
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import Any

import boto3
from trainmaster import bootstrap

from benchmarks.deep_queue import make_table
from benchmarks.stand_in import StandIn
from benchmarks.starts import BODY, INSTANCE_TYPE, environment_of
from tests.integration.messages import proxy_event

PERSON = "arn:aws:sts::111122223333:assumed-role/vision/ada"
ADMIN = "arn:aws:iam::111122223333:user/admin"
TABLE = "trainmaster"
TIMEOUT_S = 15
"""Timeout of the function in template.yaml, seconds."""
ENVIRONMENT = {
    "POWERTOOLS_METRICS_NAMESPACE": "trainmaster",
    "POWERTOOLS_SERVICE_NAME": "trainmaster",
    "TRAINMASTER_ADMIN_PRINCIPAL_ARNS": ADMIN,
}


class ApiFunction:
    """A deployed one, whose table is empty."""

    def __init__(self, aws: StandIn) -> None:
        os.environ.update(environment_of(aws.endpoint_url) | ENVIRONMENT)
        make_table(boto3.client("dynamodb"), TABLE)
        boto3.client("sqs").create_queue(QueueName="wake-ups")
        bootstrap.wiring.cache_clear()
        with redirect_stdout(io.StringIO()):  # its log goes where stdout is now
            from functions.api import app  # noqa: PLC0415  reads the environment
        self._handler: Callable[[dict[str, Any], Any], dict[str, Any]] = app.handler
        gc.collect()

    def put_policy(self, document: Mapping[str, Any]) -> None:
        policies = bootstrap.wiring().policies
        policies.put(
            document, pools=[pool["name"] for pool in document["pools"]], replaces=policies.current()
        )

    def submit(self, name: str) -> float:
        """Submit a job; return the CPU seconds."""
        resources = {"InstanceType": INSTANCE_TYPE, "InstanceCount": 1, "VolumeSizeInGB": 100}
        body = {"TrainingJobName": name, **BODY, "ResourceConfig": resources}
        return self.answer(proxy_event("POST", "/add-job", body, user=PERSON), status=201)[0]

    def answer(self, event: dict[str, Any], *, status: int = 200) -> tuple[float, dict[str, Any]]:
        """Answer a request; return the CPU seconds, and the answer's body."""
        context, began = _Context(), time.process_time()
        answer = self._handler(event, context)
        spent = time.process_time() - began
        assert answer["statusCode"] == status, answer
        return spent, json.loads(answer["body"])


class _Context:
    """Lambda's context, as far as the handler and Powertools use it."""

    function_name = "trainmaster-Api"
    memory_limit_in_mb = 1024
    invoked_function_arn = "arn:aws:lambda:us-east-1:111122223333:function:trainmaster-Api"
    aws_request_id = "00000000-0000-0000-0000-000000000000"

    def __init__(self) -> None:
        self._ends = time.monotonic() + TIMEOUT_S

    def get_remaining_time_in_millis(self) -> int:
        return round(1000 * (self._ends - time.monotonic()))
