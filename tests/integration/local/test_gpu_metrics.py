"""GPU metrics of real training jobs of the twin, and an alarm over them."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.integration.local.running_twin import FIXTURE, RunningTwin, running_twin

WAITING = ["sh", "-c", "while :; do sleep 0.1; done"]
MINUTE = timedelta(minutes=1)


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTwin]:
    with running_twin(tmp_path_factory.mktemp("twin"), template=FIXTURE, manual=True) as twin:
        yield twin


def train(twin: RunningTwin, name: str, *, instance_type: str = "ml.g5.12xlarge", hosts: int = 1) -> datetime:
    """A job that has just reached Training, on a clock at the beginning of a minute; answers the instant."""
    now = datetime.fromisoformat(twin.advance(0))
    twin.advance((60 - now.timestamp() % 60) % 60)
    ready = twin.ready
    twin.client("sagemaker").create_training_job(
        TrainingJobName=name,
        RoleArn=ready.role_arn,
        AlgorithmSpecification={
            "TrainingInputMode": "File",
            "TrainingImage": f"{ready.account_id}.dkr.ecr.{ready.region}.amazonaws.com/any:1",
            "ContainerEntrypoint": WAITING,
        },
        OutputDataConfig={"S3OutputPath": f"s3://{ready.bucket}/out"},
        ResourceConfig={"InstanceType": instance_type, "InstanceCount": hosts, "VolumeSizeInGB": 1},
        StoppingCondition={"MaxRuntimeInSeconds": 86400},
    )
    now = datetime.fromisoformat(twin.advance(30))
    described = twin.client("sagemaker").describe_training_job(TrainingJobName=name)
    assert described["SecondaryStatus"] == "Training"
    return now


def gpu(twin: RunningTwin, host: str, since: datetime, *, minutes: int) -> list[float]:
    """GPUUtilization of a host, a value a minute from the one that ``since`` lies in."""
    answer = twin.client("cloudwatch").get_metric_statistics(
        Namespace="/aws/sagemaker/TrainingJobs",
        MetricName="GPUUtilization",
        Dimensions=[{"Name": "Host", "Value": host}],
        StartTime=since,
        EndTime=since + minutes * MINUTE,
        Period=60,
        Statistics=["Average"],
    )
    points = sorted(answer["Datapoints"], key=lambda one: one["Timestamp"])
    return [point["Average"] for point in points]


def load(twin: RunningTwin, name: str, **fields: Any) -> int:
    return twin.control("POST", "/gpu", {"training_job": name, **fields}).status


def test_a_host_in_training_is_busy_on_all_its_gpus(twin: RunningTwin) -> None:
    since = train(twin, "busy")
    twin.advance(180)
    assert gpu(twin, "busy/algo-1", since, minutes=3) == pytest.approx([380.0, 380.0, 380.0])


def test_a_load_counts_from_its_minute_and_for_its_host_alone(twin: RunningTwin) -> None:
    since = train(twin, "half", hosts=2)
    assert load(twin, "half", host="algo-2", percent=0, from_minute=2) == 200
    twin.advance(240)
    assert gpu(twin, "half/algo-1", since, minutes=4) == pytest.approx([380.0] * 4)
    before, first, change, after = gpu(twin, "half/algo-2", since, minutes=4)
    assert (before, first, after) == pytest.approx((380.0, 380.0, 0.0))
    assert 0 < change < 380.0, "two minutes of Training were over within this one"


def test_a_load_without_a_minute_counts_from_now_on(twin: RunningTwin) -> None:
    since = train(twin, "now")
    twin.advance(90)
    assert load(twin, "now", host=None, percent=50, from_minute=None) == 200
    twin.advance(120)
    found = gpu(twin, "now/algo-1", since, minutes=4)
    assert found == pytest.approx([380.0, 380.0, 200.0, 200.0], abs=0.01), "a minute was just over"


def test_metrics_end_with_training(twin: RunningTwin) -> None:
    since = train(twin, "ended")
    twin.advance(60)
    twin.client("sagemaker").stop_training_job(TrainingJobName="ended")
    twin.advance(300)
    assert gpu(twin, "ended/algo-1", since, minutes=10) == [380.0]
    assert load(twin, "ended", percent=1) == 400


def test_a_load_needs_a_host_that_there_is_and_gpus(twin: RunningTwin) -> None:
    train(twin, "one-host")
    assert load(twin, "one-host", host="algo-2", percent=1) == 400
    train(twin, "no-gpus", instance_type="ml.m5.large")
    assert load(twin, "no-gpus", percent=1) == 400


def test_an_alarm_over_the_hosts_sees_a_stall(twin: RunningTwin) -> None:
    train(twin, "stalls", hosts=2)
    metrics: list[dict[str, Any]] = [
        {
            "Id": f"m{place}",
            "MetricStat": {
                "Metric": {
                    "Namespace": "/aws/sagemaker/TrainingJobs",
                    "MetricName": "GPUUtilization",
                    "Dimensions": [{"Name": "Host", "Value": f"stalls/algo-{place + 1}"}],
                },
                "Period": 300,
                "Stat": "Average",
            },
            "ReturnData": False,
        }
        for place in range(2)
    ]
    metrics.append({"Id": "e", "Expression": "MAX([FILL(m0, 400), FILL(m1, 400)]) / 4", "ReturnData": True})
    cloudwatch = twin.client("cloudwatch")
    cloudwatch.put_metric_alarm(
        AlarmName="stalls",
        Metrics=metrics,
        EvaluationPeriods=3,
        Threshold=1,
        ComparisonOperator="LessThanThreshold",
        TreatMissingData="notBreaching",
    )

    def state() -> str:
        (found,) = cloudwatch.describe_alarms(AlarmNames=["stalls"])["MetricAlarms"]
        return str(found["StateValue"])

    load(twin, "stalls", host="algo-1", percent=0)
    twin.advance(20 * 60)
    assert state() == "OK", "one host is busy"
    load(twin, "stalls", host="algo-2", percent=0)
    twin.advance(15 * 60)
    assert state() == "OK", "the first of fifteen minutes was half busy"
    twin.advance(60)
    assert state() == "ALARM"
    load(twin, "stalls", percent=60)
    twin.advance(60)
    assert state() == "OK"
