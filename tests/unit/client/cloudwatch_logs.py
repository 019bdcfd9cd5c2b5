"""CloudWatch Logs in this process: streams of training jobs, filled by a test."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import boto3

GROUP = "/aws/sagemaker/TrainingJobs"
NOON = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
"""moto refuses lines that are older than two weeks."""


@cache
def session() -> boto3.Session:
    """One for all tests: a client of a new session takes a third of a second."""
    return boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="eu-west-1")


class TrainingLogs:
    """Counts the calls, so that a test can say how many were needed."""

    def __init__(self, region: str = "us-east-1") -> None:
        self.client: Any = session().client("logs", region)
        self.calls: list[str] = []
        self.client.meta.events.register("before-call.cloudwatch-logs.*", self._count)

    def write(self, stream: str, *lines: tuple[int, str]) -> None:
        """(seconds after noon, text)."""
        exists = self.client.exceptions.ResourceAlreadyExistsException
        for create, names in (
            (self.client.create_log_group, {"logGroupName": GROUP}),
            (self.client.create_log_stream, {"logGroupName": GROUP, "logStreamName": stream}),
        ):
            try:
                create(**names)
            except exists:
                continue
        self.client.put_log_events(
            logGroupName=GROUP,
            logStreamName=stream,
            logEvents=[{"timestamp": ms(second), "message": text} for second, text in lines],
        )
        self.calls.clear()

    def _count(self, model: Any, **_: Any) -> None:
        self.calls.append(model.name)


def ms(second: int) -> int:
    return int((NOON + timedelta(seconds=second)).timestamp() * 1000)


def job(*attempts: str | None, ended: Iterable[int] = ()) -> dict[str, Any]:
    """A job as the API answers it, whose attempts have these training job names."""
    over = set(ended)
    return {
        "name": "job1",
        "state": "running",
        "instances": {"ml.p5.48xlarge": 1},
        "attempts": [
            {
                "attempt": number,
                "training_job_name": name,
                "ended_at": (NOON + timedelta(seconds=5)).isoformat() if number in over else None,
            }
            for number, name in enumerate(attempts)
        ],
    }
