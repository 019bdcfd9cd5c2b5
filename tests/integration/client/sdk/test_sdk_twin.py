"""The SDK v2 and plain boto3 against the whole plane: a job that is preempted, seen through both doors."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3
import pytest
import sagemaker.session
from sagemaker.estimator import Estimator
from trainmaster_client.hook import install
from trainmaster_client.session import QueueTrainingJobSession

from tests.e2e.plane import IMAGE, INSTANCE_TYPE, Plane, eventually, pool, running_plane, tags
from tests.integration.client.sdk_world import TELEMETRY

pytestmark = pytest.mark.long

FINAL = {"Completed", "Failed", "Stopped"}
WAYS = ("by-deploy", "by-hand", "by-job")
METRICS = [
    {"Name": "first:loss", "Regex": "first loss=([0-9.]+)"},
    {"Name": "later:loss", "Regex": "later loss=([0-9.]+)"},
]
TRAINS = (
    'echo 1 > "$SM_MODEL_DIR/weights"; '
    'if [ -e "$0" ]; then echo later loss=1.5; else touch "$0"; echo first loss=3; fi; '
)
"""A shell command that leaves a model, and prints another line when it runs again."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("doors")
    with running_plane(folder, "--speed", "240", policy=pool(1)) as running, patch(TELEMETRY):
        yield running


@pytest.fixture(scope="module")
def boto_session(plane: Plane) -> Iterator[boto3.Session]:
    ready = plane.twin.ready
    here = {
        "AWS_ENDPOINT_URL": ready["endpoint_url"],
        "TRAINMASTER_API_URL": ready["api_url"],
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with patch.dict(os.environ, here):
        yield boto3.Session(ready["access_key_id"], ready["secret_access_key"], region_name=ready["region"])


def waits_for(path: Path) -> list[str]:
    return ["sh", "-c", f"echo begun; while [ ! -e {path} ]; do sleep 0.05; done; echo done"]


def estimator(plane: Plane, session: Any, command: list[str], **options: Any) -> Estimator:
    return Estimator(
        image_uri=IMAGE,
        role=plane.twin.ready["role_arn"],
        instance_count=1,
        instance_type=INSTANCE_TYPE,
        output_path=f"s3://{plane.twin.ready['bucket']}/out",
        sagemaker_session=session,
        container_entry_point=command,
        **options,
    )


def preempt_once_it_runs(plane: Plane, name: str, path: Path) -> threading.Thread:
    """A more urgent job takes the only instance; then the first one may end."""

    def act() -> None:
        plane.await_log(name, "begun")
        plane.add(plane.request(f"{name}-urgent", ["true"], Tags=tags(priority="9")))
        eventually(lambda: plane.job(name), lambda job: job["attempt"] == 1 and job["state"] == "running")
        path.touch()

    thread = threading.Thread(target=act)
    thread.start()
    return thread


def test_fit_follows_a_preempted_job_to_its_end_and_another_process_attaches(
    plane: Plane, boto_session: boto3.Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket = plane.twin.ready["bucket"]
    session = QueueTrainingJobSession(boto_session, default_bucket=bucket, poll_seconds=0.2)
    shell, flag, waits = waits_for(tmp_path / "go")
    command = [shell, flag, f"{TRAINS}{waits}", str(tmp_path / "ran")]
    job = estimator(plane, session, command, tags=tags(priority="1"), metric_definitions=METRICS)
    other = preempt_once_it_runs(plane, "first", tmp_path / "go")
    job.fit(job_name="first")
    other.join()

    told = capsys.readouterr().out
    assert told.count("\nbegun\n") == 2
    assert told.count("\ndone\n") == 1
    assert told.index("Preempted") < told.rindex("\nbegun\n") < told.index("\ndone\n")
    description = job.latest_training_job.describe()
    last = plane.job("first")["training_job_name"]
    assert (description["TrainingJobName"], description["TrainingJobStatus"]) == ("first", "Completed")
    assert job.model_data == f"s3://{bucket}/out/{last}/output/model.tar.gz"
    steps = [one["Status"] for one in description["SecondaryStatusTransitions"]]
    assert steps[0] == "Pending"
    assert steps.index("Stopped") < steps.index("Pending", steps.index("Stopped")) < steps.index("Completed")

    attached = Estimator.attach("first", sagemaker_session=QueueTrainingJobSession(boto_session))
    assert attached.tags == tags(priority="1")

    curve = job.training_job_analytics.dataframe()
    assert list(zip(curve["metric_name"], curve["value"], strict=True)) == [
        ("first:loss", 3.0),
        ("later:loss", 1.5),
    ]
    final = job.latest_training_job.describe()["FinalMetricDataList"]
    assert [(one["MetricName"], one["Value"]) for one in final] == [("first:loss", 3.0), ("later:loss", 1.5)]

    model_data = f"s3://{bucket}/out/{last}/output/model.tar.gz"
    assert made_models(boto_session, attached) == dict.fromkeys(WAYS, model_data)


def made_models(boto_session: boto3.Session, trained: Estimator) -> dict[str, str]:
    """Each way of the SDK to a model, and whence it takes its data."""
    trained.create_model(name="by-hand").create(instance_type=INSTANCE_TYPE)
    predictor = trained.deploy(1, INSTANCE_TYPE, model_name="by-deploy", endpoint_name="served", wait=False)
    trained.sagemaker_session.wait_for_endpoint(
        "served", poll=1
    )  # deploy's own wait begins with 30 s of sleep
    trained.sagemaker_session.create_model_from_job("first", name="by-job")
    client = boto_session.client("sagemaker")
    served = client.describe_endpoint(EndpointName=predictor.endpoint_name)
    assert (served["EndpointName"], served["EndpointStatus"]) == ("served", "InService")
    predictor.delete_endpoint()
    assert client.list_endpoints()["Endpoints"] == []
    containers = {
        one["ModelName"]: client.describe_model(ModelName=one["ModelName"])["PrimaryContainer"]
        for one in client.list_models()["Models"]
    }
    source = containers["by-job"]["ModelDataSource"]["S3DataSource"]["S3Uri"]
    return {name: one.get("ModelDataUrl", source) for name, one in containers.items()}


def test_boto3_with_the_hook_waits_stops_and_tells_without_knowing_the_queue(
    plane: Plane, boto_session: boto3.Session, tmp_path: Path
) -> None:
    hooked = boto3.Session(
        plane.keys.access_key_id, plane.keys.secret_access_key, region_name=boto_session.region_name
    )
    install(hooked)
    client = hooked.client("sagemaker")
    plane.add(plane.request("busy", waits_for(tmp_path / "go")))
    plane.await_log("busy", "begun")
    made = client.create_training_job(**plane.request("second", ["true"]))
    seen = client.describe_training_job(TrainingJobName="second")
    assert (seen["TrainingJobStatus"], seen["SecondaryStatus"]) == ("InProgress", "Pending")
    assert seen["TrainingJobArn"] == made["TrainingJobArn"]
    data = seen["ModelArtifacts"]["S3ModelArtifacts"]
    with pytest.raises(client.exceptions.ClientError, match="Could not find model data at s3://"):
        client.create_model(
            ModelName="early",
            ExecutionRoleArn=plane.twin.ready["role_arn"],
            PrimaryContainer={"Image": IMAGE, "ModelDataUrl": data},
        )

    client.stop_training_job(TrainingJobName="second")
    stopped = client.describe_training_job(TrainingJobName="second")
    assert stopped["TrainingJobStatus"] == "Stopped"
    assert "second" not in [one["params"].get("TrainingJobName") for one in plane.calls("CreateTrainingJob")]

    (tmp_path / "go").touch()
    client.create_training_job(**plane.request("third", ["true"]))
    done = eventually(
        lambda: client.describe_training_job(TrainingJobName="third"),
        lambda job: job["TrainingJobStatus"] in FINAL,
    )
    assert done["TrainingJobStatus"] == "Completed"
    assert done["TrainingJobArn"] == client.describe_training_job(TrainingJobName="third")["TrainingJobArn"]


def test_the_sdks_own_session_over_the_hook_follows_the_logs_of_both_attempts(
    plane: Plane, tmp_path: Path, boto_session: boto3.Session, capsys: pytest.CaptureFixture[str]
) -> None:
    hooked = boto3.Session(
        plane.keys.access_key_id, plane.keys.secret_access_key, region_name=boto_session.region_name
    )
    install(hooked)
    session = sagemaker.session.Session(hooked, default_bucket=plane.twin.ready["bucket"])
    job = estimator(plane, session, waits_for(tmp_path / "go"), tags=tags(priority="1"))
    other = preempt_once_it_runs(plane, "fourth", tmp_path / "go")
    job.fit(job_name="fourth")
    other.join()
    told = capsys.readouterr().out
    assert told.count("begun") == 2
    assert told.count("done") == 1
    assert "Training seconds:" in told
