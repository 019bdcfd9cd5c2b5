"""SageMaker training on the twin, used by plain boto3 with nothing but the values of the ready file."""

import io
import json
import secrets
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.e2e.plane import Document, Plane, python, running_plane

STARTED_WITHIN_SECONDS = 10.0
"""From CreateTrainingJob to Completed for a container that does nothing, at the default speed."""
HEARS_SIGTERM = (
    "import signal,sys,time\n"
    "signal.signal(signal.SIGTERM,lambda *_:(print('heard SIGTERM',flush=True),sys.exit(0)))\n"
    "print('ready',flush=True)\n"
    "while True: time.sleep(0.05)"
)


@pytest.fixture(scope="module")
def plane(tmp_path_factory) -> Iterator[Plane]:
    with running_plane(tmp_path_factory.mktemp("black-box")) as running:
        yield running


def test_the_ready_file_says_all_that_a_stranger_needs(plane):
    ready = plane.twin.ready
    caller = plane.client("sts").get_caller_identity()
    assert caller["Account"] == ready["account_id"]
    assert caller["Arn"] == f"arn:aws:iam::{ready['account_id']}:user/local-admin"
    assert plane.client("s3").head_bucket(Bucket=ready["bucket"])
    assert set(ready) == {
        "pid",
        "endpoint_url",
        "api_url",
        "control_url",
        "region",
        "account_id",
        "access_key_id",
        "secret_access_key",
        "role_arn",
        "bucket",
        "sdk_defaults",
    }


def test_what_a_container_writes_into_its_model_folder_is_in_the_model_archive_in_s3(plane):
    token = secrets.token_hex(16)
    code = f"import os,pathlib;pathlib.Path(os.environ['SM_MODEL_DIR'],'token').write_text('{token}')"
    plane.client("sagemaker").create_training_job(**plane.request("token", python(code)))
    done = plane.await_status("token", "Completed")
    assert token in archived(plane, done, "token")
    lasted = (done["LastModifiedTime"] - done["CreationTime"]).total_seconds()
    assert lasted < STARTED_WITHIN_SECONDS
    assert [one["Status"] for one in done["SecondaryStatusTransitions"]] == [
        "Starting",
        "Pending",
        "Downloading",
        "Training",
        "Uploading",
        "Completed",
    ]
    started, ended = plane.processes("token")
    assert (started["event"], ended["event"], ended["exit_code"]) == ("start", "exit", 0)


def test_an_entrypoint_gets_sigterm_when_its_job_is_stopped_and_a_script_does_not(plane):
    sagemaker = plane.client("sagemaker")
    sagemaker.create_training_job(**plane.request("entrypoint", python(HEARS_SIGTERM)))
    sagemaker.create_training_job(**script_request(plane, "script", HEARS_SIGTERM))
    for name in ("entrypoint", "script"):
        plane.await_log(name, "ready")
        sagemaker.stop_training_job(TrainingJobName=name)
        assert plane.described(name)["TrainingJobStatus"] == "Stopping"
    ends = {name: plane.await_status(name, "Stopped") for name in ("entrypoint", "script")}
    assert "heard SIGTERM" in plane.log("entrypoint")
    assert "heard SIGTERM" not in plane.log("script")
    assert signals(plane, "entrypoint") == ["SIGTERM"]
    assert signals(plane, "script") == ["SIGTERM", "SIGKILL"], "to the shell that keeps it, then to all"
    assert {end["SecondaryStatus"] for end in ends.values()} == {"Stopped"}


def test_25_jobs_are_listed_in_pages_of_10(plane):
    sagemaker = plane.client("sagemaker")
    names = [f"page-{number:02d}" for number in range(25)]
    for name in names:
        sagemaker.create_training_job(**plane.request(name, ["true"]))
        sagemaker.stop_training_job(TrainingJobName=name)
    pages = [
        [one["TrainingJobName"] for one in page["TrainingJobSummaries"]]
        for page in sagemaker.get_paginator("list_training_jobs").paginate(
            NameContains="page-", SortBy="Name", SortOrder="Ascending"
        )
    ]
    assert [name for page in pages for name in page] == names
    assert max(len(page) for page in pages) == 10


def test_a_name_is_taken_until_its_job_has_ended_and_was_deleted(plane):
    sagemaker = plane.client("sagemaker")
    request = plane.request("same-name", ["sleep", "1000"])
    first = sagemaker.create_training_job(**request)["TrainingJobArn"]
    assert refusal(lambda: sagemaker.create_training_job(**request)) == "ResourceInUse"
    assert refusal(lambda: sagemaker.delete_training_job(TrainingJobName="same-name")) is not None
    sagemaker.stop_training_job(TrainingJobName="same-name")
    assert plane.described("same-name")["TrainingJobStatus"] == "Stopping"
    plane.await_status("same-name", "Stopped")
    assert refusal(lambda: sagemaker.create_training_job(**request)) == "ResourceInUse"
    sagemaker.delete_training_job(TrainingJobName="same-name")
    assert refusal(lambda: plane.described("same-name")) == "ValidationException"
    assert sagemaker.create_training_job(**request)["TrainingJobArn"] == first
    sagemaker.stop_training_job(TrainingJobName="same-name")


def test_a_job_that_did_not_come_through_the_queue_is_left_alone(plane):
    """The default for unmanaged jobs is to note them."""
    plane.client("sagemaker").create_training_job(**plane.request("outside", ["true"]))
    plane.await_status("outside", "Completed")
    assert plane.call("GET", "/jobs/outside").status == 404
    touched = [
        one["operation"]
        for one in plane.twin.records()
        if one["kind"] == "call"
        and "assumed-role" in (one["principal"] or "")
        and one["params"].get("TrainingJobName") == "outside"
    ]
    assert not {"StopTrainingJob", "UpdateTrainingJob", "CreateTrainingJob"} & set(touched)


def test_a_container_that_fails_gives_its_exit_code_and_its_own_words(plane):
    code = (
        "import os,pathlib,sys;"
        "pathlib.Path(os.environ['SM_OUTPUT_DIR'],'failure').write_text('no such data set');sys.exit(3)"
    )
    plane.client("sagemaker").create_training_job(**plane.request("failing", python(code)))
    failed = plane.await_status("failing", "Failed")
    assert "no such data set" in failed["FailureReason"]
    assert "exit code: 3" in failed["FailureReason"]


def test_a_job_takes_the_warm_pool_of_one_that_asked_for_the_same(plane):
    sagemaker = plane.client("sagemaker")
    kept = resources(plane, KeepAlivePeriodInSeconds=600)
    for name in ("pool-first", "pool-second"):
        sagemaker.create_training_job(**plane.request(name, ["true"], ResourceConfig=kept))
        plane.await_status(name, "Completed")
    first, second = plane.described("pool-first"), plane.described("pool-second")
    assert first["WarmPoolStatus"]["Status"] == "Reused"
    assert first["WarmPoolStatus"]["ReusedByJob"] == "pool-second"
    assert second["WarmPoolStatus"]["Status"] == "Available"
    assert seconds_before_training(second) < seconds_before_training(first) / 2
    assert refusal(lambda: sagemaker.delete_training_job(TrainingJobName="pool-second")) == "ResourceInUse"
    release = {"KeepAlivePeriodInSeconds": 0}
    sagemaker.update_training_job(TrainingJobName="pool-second", ResourceConfig=release)
    assert plane.described("pool-second")["WarmPoolStatus"]["Status"] == "Terminated"
    listed = sagemaker.list_training_jobs(NameContains="pool-", WarmPoolStatusEquals="Reused")
    assert [one["TrainingJobName"] for one in listed["TrainingJobSummaries"]] == ["pool-first"]


def test_every_host_of_a_job_is_a_process_and_one_that_fails_ends_all(plane):
    sagemaker = plane.client("sagemaker")
    fails = [
        "sh",
        "-c",
        'echo "I am $SM_CURRENT_HOST"; if [ "$SM_CURRENT_HOST" = algo-2 ]; then exit 4; fi; sleep 60',
    ]
    sagemaker.create_training_job(
        **plane.request("two-hosts", fails, ResourceConfig=resources(plane, InstanceCount=2))
    )
    assert "exit code: 4" in plane.await_status("two-hosts", "Failed")["FailureReason"]
    ends = {one["host"]: one["exit_code"] for one in plane.processes("two-hosts") if one["event"] == "exit"}
    assert ends == {"algo-1": 137, "algo-2": 4}
    assert sorted(plane.log("two-hosts").splitlines()) == ["I am algo-1", "I am algo-2"]


def test_the_next_preference_is_selected_when_a_type_is_not_to_be_had(plane):
    plane.control("/capacity", {"instance_type": "ml.p5.48xlarge", "times": 1})
    preferences = [{"InstanceType": one} for one in ("ml.p5.48xlarge", "ml.p4d.24xlarge")]
    config = {"InstancePreferences": preferences, "InstanceCount": 1, "VolumeSizeInGB": 10}
    plane.client("sagemaker").create_training_job(
        **plane.request("preferring", ["true"], ResourceConfig=config)
    )
    done = plane.await_status("preferring", "Completed")
    assert done["ResourceConfig"]["SelectedInstanceType"] == "ml.p4d.24xlarge"
    assert done["ResourceConfig"]["InstancePreferences"] == preferences


def resources(plane: Plane, **changes: Any) -> Document:
    whole: Document = plane.request("", [])["ResourceConfig"] | changes
    return whole


def seconds_before_training(described: Document) -> float:
    begun = {one["Status"]: one["StartTime"] for one in described["SecondaryStatusTransitions"]}
    seconds: float = (begun["Training"] - begun["Starting"]).total_seconds()
    return seconds


def archived(plane: Plane, described: Document, member: str) -> str:
    bucket, _, key = described["ModelArtifacts"]["S3ModelArtifacts"].removeprefix("s3://").partition("/")
    body = plane.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        file = archive.extractfile(member)
        assert file is not None
        return file.read().decode()


def script_request(plane: Plane, name: str, code: str) -> Document:
    """As the SDK's script mode sends it: the source in S3, its name among the hyperparameters."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo("train.py")
        member.size = len(code.encode())
        archive.addfile(member, io.BytesIO(code.encode()))
    bucket, key = plane.twin.ready["bucket"], f"{name}/source.tar.gz"
    plane.client("s3").put_object(Bucket=bucket, Key=key, Body=buffer.getvalue())
    request = plane.request(name, [])
    del request["AlgorithmSpecification"]["ContainerEntrypoint"]
    return request | {
        "HyperParameters": {
            "sagemaker_program": json.dumps("train.py"),
            "sagemaker_submit_directory": json.dumps(f"s3://{bucket}/{key}"),
        }
    }


def signals(plane: Plane, training_job: str) -> list[str]:
    return [one["signal"] for one in plane.processes(training_job) if one["event"] == "signal"]


def refusal(call) -> str | None:
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"]
    return None


def test_a_container_calls_aws_with_the_keys_of_its_own_role(plane):
    code = "import boto3; print('I am', boto3.client('sts').get_caller_identity()['Arn'])"
    plane.client("sagemaker").create_training_job(**plane.request("who", python(code)))
    plane.await_status("who", "Completed")
    role = plane.twin.ready["role_arn"].rpartition("/")[2]
    assert f"assumed-role/{role}/SageMaker" in plane.log("who")
