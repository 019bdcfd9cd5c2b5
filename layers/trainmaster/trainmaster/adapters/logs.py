"""LogReader over CloudWatch Logs."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

GROUP = "/aws/sagemaker/TrainingJobs"
MAX_STREAMS = 10
MAX_LINES = 200


class CloudWatchLogs:
    """``client`` makes the client when a log is read for the first time: most functions never do."""

    def __init__(self, client: Callable[[], Any]) -> None:
        self._make_client = client

    def tail(self, training_job_name: str) -> tuple[str, ...]:
        try:
            return tuple(self._lines(training_job_name))[-MAX_LINES:]
        except (ClientError, BotoCoreError):
            return ()

    def _lines(self, training_job_name: str) -> Iterator[str]:
        client = self._make_client()
        streams = client.describe_log_streams(
            logGroupName=GROUP, logStreamNamePrefix=f"{training_job_name}/"
        )["logStreams"]
        for stream in islice(streams, MAX_STREAMS):
            answer = client.get_log_events(
                logGroupName=GROUP, logStreamName=stream["logStreamName"], limit=MAX_LINES
            )
            yield from (event["message"] for event in answer["events"])
