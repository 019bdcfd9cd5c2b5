"""The gateway as a process before a whole plane: boto3 and the AWS CLI through it, a kill after a create."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config

from tests.e2e.plane import PATIENCE_SECONDS, Plane, eventually, running_plane

pytestmark = pytest.mark.thorough

TRAINMASTER = [sys.executable, "-c", "from trainmaster_client.cli import main; main()"]
POLICY = {"version": 1, "pools": [{"name": "cpu", "capacity": {"ml.m5.xlarge": 1}}]}


@pytest.fixture(scope="module")
def plane(tmp_path_factory) -> Iterator[Plane]:
    with running_plane(tmp_path_factory.mktemp("plane"), policy=POLICY) as running:
        yield running


@contextmanager
def running_gateway(plane: Plane, folder: Path, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and its URL."""
    ready = folder / "ready.json"
    env = {**os.environ, **plane.twin.environment(), "XDG_STATE_HOME": str(folder)}
    command = [*TRAINMASTER, "gateway", "--port", str(port), "--ready", str(ready)]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    try:
        eventually(ready.exists, bool)
        yield process, json.loads(ready.read_text())["endpoint_url"]
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
        assert process.stdout is not None
        process.stdout.close()


def client(plane: Plane, url: str, **config: Any) -> Any:
    return boto3.client(
        "sagemaker",
        endpoint_url=url,
        region_name=plane.twin.ready["region"],
        aws_access_key_id="AKIAOFANOTHER",
        aws_secret_access_key="any",
        config=Config(**config),
    )


def test_L8_a_job_goes_through_the_gateway_from_its_wait_to_its_end(plane, tmp_path):
    with running_gateway(plane, tmp_path) as (_, url):
        sagemaker = client(plane, url)
        sagemaker.create_training_job(**plane.request("first", ["sleep", "2"]))
        request = plane.request("second", ["true"])
        arn = sagemaker.create_training_job(**request)["TrainingJobArn"]
        assert sagemaker.describe_training_job(TrainingJobName="second")["SecondaryStatus"] == "Pending"
        assert sagemaker.create_training_job(**request)["TrainingJobArn"] == arn
        with pytest.raises(sagemaker.exceptions.ResourceInUse):
            sagemaker.create_training_job(**{**request, "HyperParameters": {"a": "1"}})
        pages = sagemaker.get_paginator("list_training_jobs").paginate(PaginationConfig={"PageSize": 1})
        assert [one["TrainingJobName"] for page in pages for one in page["TrainingJobSummaries"]] == [
            "first",
            "second",
        ]
        waiter = sagemaker.get_waiter("training_job_completed_or_stopped")
        waiter.wait(TrainingJobName="second", WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        assert sagemaker.describe_training_job(TrainingJobName="second")["TrainingJobStatus"] == "Completed"
        assert len({call["principal"] for call in plane.calls("CreateTrainingJob")}) == 1


def cli_is_new_enough() -> bool:
    found = shutil.which("aws")
    if found is None:
        return False
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    version = re.search(r"aws-cli/(\d+)\.(\d+)", said.stdout + said.stderr)
    oldest = {"1": 29, "2": 13}
    return version is not None and int(version.group(2)) >= oldest.get(version.group(1), 0)


@pytest.mark.skipif(not cli_is_new_enough(), reason="no AWS CLI that knows AWS_ENDPOINT_URL_SAGEMAKER")
def test_L8_the_aws_cli_creates_describes_lists_and_stops_by_the_exports_alone(plane, tmp_path):
    with running_gateway(plane, tmp_path) as (_, url):

        def aws(*arguments: str) -> Any:
            env = {**os.environ, **plane.twin.environment(), "AWS_ENDPOINT_URL_SAGEMAKER": url}
            command = ["aws", "sagemaker", *arguments, "--output", "json"]
            said = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
            assert said.returncode == 0, said.stderr
            return json.loads(said.stdout or "{}")

        for name in ("cli-first", "cli-second"):
            request = plane.request(name, ["sleep", "600"])
            aws("create-training-job", "--cli-input-json", json.dumps(request))
        seen = aws("describe-training-job", "--training-job-name", "cli-second")
        assert (seen["TrainingJobStatus"], seen["SecondaryStatus"]) == ("InProgress", "Pending")
        listed = aws("list-training-jobs", "--name-contains", "cli-")["TrainingJobSummaries"]
        assert {one["TrainingJobName"] for one in listed} == {"cli-first", "cli-second"}
        for name in ("cli-second", "cli-first"):
            aws("stop-training-job", "--training-job-name", name)
        plane.await_state("cli-first", "stopped")
        stopped = aws("describe-training-job", "--training-job-name", "cli-second")
        assert stopped["TrainingJobStatus"] == "Stopped"


def test_L11_a_gateway_killed_after_a_create_and_started_again_makes_one_job_of_the_retry(plane, tmp_path):
    retried = tmp_path / "retried"  # until then the job runs: the name of one that has ended would be taken
    request = plane.request("once", ["sh", "-c", f"until [ -e '{retried}' ]; do sleep 0.1; done"])
    with running_gateway(plane, tmp_path) as (process, url):
        port = urlsplit(url).port
    with running_gateway(plane, tmp_path, port or 0) as (process, url):
        client(plane, url).create_training_job(**request)
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_SECONDS)
        (tmp_path / "ready.json").unlink()
        with running_gateway(plane, tmp_path, port or 0) as (_, again):
            assert again == url
            client(plane, url).create_training_job(**request)
    retried.touch()
    plane.await_state("once", "completed")
    created = [call for call in plane.calls("CreateTrainingJob") if "once" in json.dumps(call)]
    assert len(created) == 1


def test_the_exports_of_a_gateway_that_runs_are_printed_for_another_shell_and_of_none_that_does_not(
    plane, tmp_path
):
    with running_gateway(plane, tmp_path) as (process, url):
        port = str(urlsplit(url).port)
        command = [*TRAINMASTER, "gateway", "--print-env", "--port", port]
        env = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "NO_PROXY": "corp.example"}
        env.pop("no_proxy", None)
        said = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        assert said.stdout.splitlines() == [
            f"export AWS_ENDPOINT_URL_SAGEMAKER={url}",
            "export NO_PROXY=127.0.0.1,corp.example",
        ]
        assert (tmp_path / "ready.json").stat().st_mode & 0o777 == 0o600
        first = json.loads((tmp_path / "ready.json").read_text())["ui_url"]
        opened = {first, re.findall(r"http://\S+/ui/\S+", said.stderr)[0]}
        assert len(opened) == 2, "a link is good once"
        for ui_url in opened:
            page, _, token = ui_url.partition("#token=")
            exchange = urllib.request.Request(
                f"{page}session", method="POST", headers={"trainmaster-token": token}
            )
            with urllib.request.urlopen(exchange) as answer:
                assert json.loads(answer.read())["session"]
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 0
        assert not (tmp_path / "ready.json").exists()
        assert list((tmp_path / "trainmaster").iterdir()) == []
        said = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert (said.returncode, said.stdout) == (2, "")
