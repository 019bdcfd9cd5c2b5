"""L7: metrics by the query protocol, as older clients read them, and by the newest: of the twin, by hooks."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.loaders import Loader
from trainmaster_client.hook import install

from tests.integration.client.fake_api import (
    ACCESS_KEY,
    REGION,
    SECRET_KEY,
    FakeApi,
    Scripted,
    running_fake_api,
    view,
)
from tests.integration.local.bare_twin import BareTwin, bare_twin

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NAMESPACE = "/aws/sagemaker/TrainingJobs"
POINTS = {"job1": {0: 3.0, 1: 2.0}, "job1-r1-abcdef": {1: 1.5, 2: 1.0}}
"""Training job -> minute -> value."""
JOINED = [3.0, 1.5, 1.0]


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareTwin]:
    with bare_twin(tmp_path_factory.mktemp("twin"), manual_from=NOON) as running:
        running.identities.add_user("caller", access_key_id=ACCESS_KEY, secret_access_key=SECRET_KEY)
        for name, values in POINTS.items():
            for minute, value in values.items():
                running.client("cloudwatch").put_metric_data(
                    Namespace=NAMESPACE,
                    MetricData=[
                        {**of(name), "Value": value, "Timestamp": NOON + timedelta(minutes=minute, seconds=7)}
                    ],
                )
        yield running


@pytest.fixture(params=["json", "query"])
def session(
    request: pytest.FixtureRequest, twin: BareTwin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> boto3.Session:
    """Its clients for CloudWatch speak this protocol, as botocore does where its model has no other."""
    model = Loader().load_service_model("cloudwatch", "service-2")
    model["metadata"] |= {"protocol": request.param, "protocols": [request.param]}
    file = tmp_path / "cloudwatch" / model["metadata"]["apiVersion"] / "service-2.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(model))
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    monkeypatch.setenv("AWS_ENDPOINT_URL", twin.door.endpoint_url)
    made = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
    assert made.client("cloudwatch").meta.service_model.resolved_protocol == request.param
    return made


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with running_fake_api() as running:
        yield running


def of(name: str) -> dict[str, Any]:
    return {"MetricName": "loss", "Dimensions": [{"Name": "TrainingJobName", "Value": name}]}


def span(*, naive: bool) -> dict[str, datetime]:
    """Botocore takes a time without a zone for UTC's."""
    times = {"StartTime": NOON, "EndTime": NOON + timedelta(minutes=5)}
    return {name: at.replace(tzinfo=None) if naive else at for name, at in times.items()}


def statistics(session: boto3.Session, *, naive: bool = False) -> list[tuple[datetime, float]]:
    client: Any = session.client("cloudwatch")
    answer = client.get_metric_statistics(
        Namespace=NAMESPACE, **of("job1"), **span(naive=naive), Period=60, Statistics=["Average"]
    )
    return sorted((point["Timestamp"], point["Average"]) for point in answer["Datapoints"])


def data(session: boto3.Session, *, naive: bool = False, **options: Any) -> dict[str, list[Any]]:
    metric = {"Namespace": NAMESPACE, **of("job1")}
    queries: list[Any] = [
        {"Id": "loss", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Average"}, "ReturnData": True},
        {"Id": "half", "Expression": "loss / 2"},
    ]
    client: Any = session.client("cloudwatch")
    answer = client.get_metric_data(MetricDataQueries=queries, **span(naive=naive), **options)
    return {
        one["Id"]: list(zip(one["Timestamps"], one["Values"], strict=True))
        for one in answer["MetricDataResults"]
    }


def timed(values: list[float]) -> list[tuple[datetime, float]]:
    return [(NOON + timedelta(minutes=minute), value) for minute, value in enumerate(values)]


@pytest.mark.parametrize("times", ["aware", "naive"])
def test_L7_either_protocol_reads_the_same_points_from_the_twin(session: boto3.Session, times: str) -> None:
    naive = times == "naive"
    assert statistics(session, naive=naive) == timed([3.0, 2.0])
    assert data(session, naive=naive, ScanBy="TimestampAscending") == {
        "loss": timed([3.0, 2.0]),
        "half": timed([1.5, 1.0]),
    }


def test_L7_through_the_hooks_either_protocol_reads_the_points_of_all_attempts(
    session: boto3.Session, api: FakeApi
) -> None:
    attempts = [
        {"attempt": number, "training_job_name": name, "training_job_arn": f"arn:{name}", "ended_at": None}
        for number, name in enumerate(POINTS)
    ]
    api.script("GET", "/jobs/job1", Scripted(document=view(attempts=attempts)))
    install(session, api_url=api.url)
    assert statistics(session) == timed(JOINED)
    halves = [value / 2 for value in JOINED]
    assert data(session) == {"loss": timed(JOINED)[::-1], "half": timed(halves)[::-1]}
    assert data(session, ScanBy="TimestampAscending")["loss"] == timed(JOINED)


def test_L7_a_wrong_value_in_either_protocol_is_the_callers_mistake(session: boto3.Session) -> None:
    client: Any = session.client("cloudwatch")
    with pytest.raises(client.exceptions.ClientError) as refused:
        client.get_metric_statistics(
            Namespace=NAMESPACE, **of("job1"), **span(naive=False), Period=7, Statistics=["Average"]
        )
    answer = refused.value.response
    assert (answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]) == ("ValidationError", 400)
