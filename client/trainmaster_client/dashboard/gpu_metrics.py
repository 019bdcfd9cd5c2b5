"""GPU use of a job's attempts, as CloudWatch has it of each host."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from trainmaster.core.memory.accelerators import gpus

from trainmaster_client.api import Document
from trainmaster_client.errors import LogsUnansweredError
from trainmaster_client.jobs.job_views import Attempt, job_view
from trainmaster_client.logs.joined_attempts import host_count

NAMESPACE = "/aws/sagemaker/TrainingJobs"
METRIC = "GPUUtilization"
MOST_HOSTS = 8
"""Hosts shown of an attempt; a picture of more is not read any better."""
MOST_QUERIES = 100
"""Queries of one call, a fifth of what GetMetricData takes; the newest attempts come first."""
_MOST_POINTS = 300
_MINUTE = 60
"""Seconds: CloudWatch has a point a minute of training jobs, and periods are a multiple of it."""


def gpu_use(client: Any, document: Document, *, now: datetime) -> Document:  # noqa: ANN401  boto3's
    """Return the use of each host, per cent of all its GPUs. Raises LogsUnansweredError.

    SageMaker sums the per cent of a host's GPUs: where their number is not known, the sum stays, and
    ``gpus`` of the answer is None.

    Args:
        client: For CloudWatch.
        document: The job as the API answers it.
        now: What an attempt that is live is read up to.
    """
    attempts = [
        attempt for attempt in job_view(document).attempts if attempt.started_at and attempt.training_job_name
    ]
    count = _gpus_of_a_host(document)
    if not attempts:
        return {"period": _MINUTE, "gpus": count, "series": []}
    begin = min(attempt.started_at for attempt in attempts if attempt.started_at)
    end = max(attempt.ended_at or now for attempt in attempts) + timedelta(minutes=1)
    period = _period(end - begin)
    queries = list(_queries(attempts, host_count(document), period))[-MOST_QUERIES:]
    request = {
        "MetricDataQueries": [query for query, _, _ in queries],
        "StartTime": begin,
        "EndTime": end,
        "ScanBy": "TimestampAscending",
    }
    try:
        pages = list(client.get_paginator("get_metric_data").paginate(**request))
    except (ClientError, BotoCoreError) as error:
        raise LogsUnansweredError(f"{error}.") from error
    points: dict[str, list[tuple[float, float]]] = {query["Id"]: [] for query, _, _ in queries}
    for result in (result for page in pages for result in page["MetricDataResults"]):
        stamps = (at.astimezone(UTC).timestamp() for at in result["Timestamps"])
        values = (value / (count or 1) for value in result["Values"])
        points[result["Id"]] += zip(stamps, values, strict=True)
    series = [
        {"attempt": attempt, "host": host, "points": points[query["Id"]]} for query, attempt, host in queries
    ]
    return {"period": period, "gpus": count, "series": [line for line in series if line["points"]]}


def _gpus_of_a_host(document: Document) -> int | None:
    """Count the GPUs of each host; None if its hosts differ in that, have none, or are of an unknown type."""
    counts = {gpus(instance_type) for instance_type in document.get("instances") or {}}
    return counts.pop() or None if len(counts) == 1 else None


def _period(length: timedelta) -> int:
    minutes = length.total_seconds() / _MINUTE
    return _MINUTE * max(1, int(-(-minutes // _MOST_POINTS)))


def _queries(attempts: Sequence[Attempt], hosts: int, period: int) -> Iterator[tuple[Document, int, str]]:
    """Yield each query with the number of the attempt and the host it is about."""
    for attempt in attempts:
        for number in range(1, min(max(hosts, 1), MOST_HOSTS) + 1):
            host = f"algo-{number}"
            dimension = {"Name": "Host", "Value": f"{attempt.training_job_name}/{host}"}
            metric = {"Namespace": NAMESPACE, "MetricName": METRIC, "Dimensions": [dimension]}
            stat = {"Metric": metric, "Period": period, "Stat": "Average"}
            yield {"Id": f"a{attempt.number}h{number}", "MetricStat": stat}, attempt.number, host
