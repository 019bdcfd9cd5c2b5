"""boto3 alone: create_training_job, then a loop around describe_training_job and the log stream."""

import io
import tarfile
import time
from datetime import UTC, datetime
from typing import Any

import boto3
from trainmaster_client.hook import install
from trainmaster_client.launcher import LAUNCHER

from demos.programs import training_settings as settings
from demos.programs.sight import Sight

GROUP = "/aws/sagemaker/TrainingJobs"
POLL_SECONDS = 1.0


def main() -> None:
    session = boto3.Session()
    sight = Sight()
    sight.listen(session.events)
    install(session)
    client = session.client("sagemaker")
    name = f"{settings.LABEL}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    code = uploaded(session, f"s3://{settings.BUCKET}/{name}/source.tar.gz")
    client.create_training_job(**request(name, code))
    lines = Lines(session, name)
    while True:
        job = client.describe_training_job(TrainingJobName=name)
        lines.print_new()
        if job["TrainingJobStatus"] in {"Completed", "Failed", "Stopped"}:
            break
        time.sleep(POLL_SECONDS)
    artifacts = job["ModelArtifacts"]["S3ModelArtifacts"]
    sight.write(f"boto3 {boto3.__version__}", job=name, model_artifacts=artifacts)


def uploaded(session: boto3.Session, uri: str) -> str:
    """Pack the training program as an SDK would, and upload the archive to S3; return its URI."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(settings.SOURCE, arcname=".", filter=_without_caches)
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    session.client("s3").put_object(Bucket=bucket, Key=key, Body=packed.getvalue())
    return uri


def _without_caches(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if entry.name.endswith("__pycache__") else entry


def request(name: str, code: str) -> dict[str, Any]:
    """Return the request; ``code`` is the S3 URI of the source archive."""
    return {
        "TrainingJobName": name,
        "RoleArn": settings.ROLE,
        "AlgorithmSpecification": {
            "TrainingImage": settings.IMAGE,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": LAUNCHER,
        },
        "HyperParameters": {key: str(value) for key, value in settings.HYPERPARAMETERS.items()}
        | {"sagemaker_submit_directory": code, "sagemaker_program": "train.py"},
        "ResourceConfig": {
            "InstanceType": settings.INSTANCE_TYPE,
            "InstanceCount": 1,
            "VolumeSizeInGB": 30,
        },
        "CheckpointConfig": {"S3Uri": settings.CHECKPOINTS},
        "OutputDataConfig": {"S3OutputPath": settings.OUTPUT},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    }


class Lines:
    """The log of a job's first host, read as it grows."""

    def __init__(self, session: boto3.Session, job: str) -> None:
        self._logs = session.client("logs")
        self._job = job
        self._at: dict[str, str] = {}

    def print_new(self) -> None:
        try:
            streams = self._logs.describe_log_streams(
                logGroupName=GROUP, logStreamNamePrefix=f"{self._job}/algo-1"
            )
        except self._logs.exceptions.ResourceNotFoundException:
            return  # nobody has logged anything in this account yet
        for stream in streams["logStreams"][:1]:
            self._print_stream(stream["logStreamName"])

    def _print_stream(self, name: str) -> None:
        while True:
            token = self._at.get(name)
            onwards: dict[str, Any] = {"nextToken": token} if token else {}
            answer = self._logs.get_log_events(
                logGroupName=GROUP, logStreamName=name, startFromHead=True, **onwards
            )
            for event in answer["events"]:
                print(event["message"], flush=True)
            if answer["nextForwardToken"] == token:
                return
            self._at[name] = answer["nextForwardToken"]


if __name__ == "__main__":
    main()
