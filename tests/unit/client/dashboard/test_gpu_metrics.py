"""GPU use of a job: each attempt's hosts, in points that a screen has columns for."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from trainmaster_client.dashboard.gpu_metrics import MOST_HOSTS, gpu_use
from trainmaster_client.errors import LogsUnansweredError

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


class CloudWatch:
    """Answers each query with one point, except those about ``silent`` hosts."""

    def __init__(self, *silent: str) -> None:
        self.silent = silent
        self.asked: list[dict[str, Any]] = []

    def get_paginator(self, operation: str) -> "CloudWatch":
        assert operation == "get_metric_data"
        return self

    def paginate(self, **request: Any) -> list[dict[str, Any]]:
        self.asked.append(request)
        return [{"MetricDataResults": [self._result(one) for one in request["MetricDataQueries"]]}]

    def _result(self, query: dict[str, Any]) -> dict[str, Any]:
        host = query["MetricStat"]["Metric"]["Dimensions"][0]["Value"]
        is_silent = host in self.silent
        stamps, values = ([], []) if is_silent else ([NOW - timedelta(minutes=5)], [752.0])
        return {"Id": query["Id"], "Timestamps": stamps, "Values": values}


class Away(CloudWatch):
    def _result(self, query: dict[str, Any]) -> dict[str, Any]:
        raise EndpointConnectionError(endpoint_url=f"https://monitoring/{query['Id']}")


def job(*attempts: tuple[str, str, str | None], hosts: int = 1) -> dict[str, Any]:
    return {
        "name": "job1",
        "state": "running",
        "instances": {"ml.p5.48xlarge": hosts},
        "attempts": [
            {"attempt": number, "training_job_name": name, "started_at": begin, "ended_at": end}
            for number, (name, begin, end) in enumerate(attempts)
        ],
    }


def test_each_attempt_has_the_points_of_its_hosts() -> None:
    client = CloudWatch("job1/algo-2")
    document = job(
        ("job1", "2026-11-21T10:00:00Z", "2026-11-21T10:30:00Z"),
        ("job1-r1", "2026-11-21T11:00:00Z", None),
        hosts=2,
    )
    found = gpu_use(client, document, now=NOW)
    point = ((NOW - timedelta(minutes=5)).timestamp(), 94.0)  # of the 752 per cent of 8 GPUs
    assert found == {
        "period": 60,
        "gpus": 8,
        "series": [
            {"attempt": 0, "host": "algo-1", "points": [point]},
            {"attempt": 1, "host": "algo-1", "points": [point]},
            {"attempt": 1, "host": "algo-2", "points": [point]},
        ],
    }
    (request,) = client.asked
    assert request["StartTime"] == datetime(2026, 11, 21, 10, tzinfo=UTC)
    assert request["EndTime"] == NOW + timedelta(minutes=1)


def test_a_long_job_of_many_hosts_is_asked_for_in_few_points_and_queries() -> None:
    client = CloudWatch()
    document = job(("job1", "2026-11-11T12:00:00Z", None), hosts=64)
    found = gpu_use(client, document, now=NOW)
    assert found["period"] % 60 == 0
    assert timedelta(days=10) / timedelta(seconds=found["period"]) <= 300
    assert len(client.asked[0]["MetricDataQueries"]) == MOST_HOSTS


def test_a_job_that_never_started_asks_nothing() -> None:
    client = CloudWatch()
    assert gpu_use(client, job(), now=NOW)["series"] == []
    assert client.asked == []


def test_a_cloudwatch_that_is_away_may_answer_later() -> None:
    with pytest.raises(LogsUnansweredError):
        gpu_use(Away(), job(("job1", "2026-11-21T10:00:00Z", None)), now=NOW)


@pytest.mark.parametrize(
    ("instances", "gpus", "value"),
    [
        pytest.param({"ml.g5.12xlarge": 1}, 4, 188.0, id="four GPUs"),
        pytest.param({"ml.p5.48xlarge": 1, "ml.g5.12xlarge": 1}, None, 752.0, id="hosts that differ"),
        pytest.param({"ml.m5.xlarge": 1}, None, 752.0, id="no GPU"),
        pytest.param({"ml.new.96xlarge": 1}, None, 752.0, id="an unknown type"),
    ],
)
def test_the_use_is_of_all_gpus_of_a_host_where_their_number_is_known(
    instances: dict[str, int], gpus: int | None, value: float
) -> None:
    document = {**job(("job1", "2026-11-21T10:00:00Z", None)), "instances": instances}
    found = gpu_use(CloudWatch(), document, now=NOW)
    assert found["gpus"] == gpus
    assert {point[1] for line in found["series"] for point in line["points"]} == {value}
