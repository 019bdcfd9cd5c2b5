"""``trainmaster ssh`` and ``forward`` with a fake API, a fake SageMaker and a fake AWS CLI."""

import json
import os
import shlex
import socket
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import REGION, FakeApi, Scripted, problem, view

COMMAND = f"aws ssm start-session --target sagemaker-training-job:job1-r1-abc123_algo-1 --region {REGION}"
RUNNING = view(state="running", attempt=1, training_job_name="job1-r1-abc123")
DESCRIPTION: dict[str, Any] = {
    "TrainingJobStatus": "InProgress",
    "SecondaryStatus": "Training",
    "RemoteDebugConfig": {"EnableRemoteDebug": True},
    "ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2},
    "RoleArn": "arn:aws:iam::111122223333:role/vision-training",
}


class SageMaker:
    """Describes, or raises."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] | Exception = DESCRIPTION
        self.described: list[str] = []

    def describe_training_job(self, **names: str) -> dict[str, Any]:
        self.described.append(names["TrainingJobName"])
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def sagemaker(monkeypatch: pytest.MonkeyPatch) -> SageMaker:
    found = SageMaker()
    monkeypatch.setattr(boto3.Session, "client", lambda _session, service: {"sagemaker": found}[service])
    return found


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the only programs there are."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(folder: Path, name: str, body: str = "") -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def script(api: FakeApi, document: dict[str, Any] = RUNNING) -> None:
    api.script("GET", "/jobs/job1", Scripted(document=document))


def test_the_command_for_the_live_attempt_is_printed(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker, tools: Path
) -> None:
    """Without any of the programs that it needs: it may be meant for another machine."""
    script(api)
    ran = trainmaster("ssh", "job1", "--print")
    assert (ran.code, ran.out, ran.err) == (0, f"{COMMAND}\n", "")
    assert sagemaker.described == ["job1-r1-abc123"]
    found = json.loads(trainmaster("ssh", "job1", "--host", "2", "--json").out)
    assert found["target"] == "sagemaker-training-job:job1-r1-abc123_algo-2"
    assert found["command"][:3] == ["aws", "ssm", "start-session"]


def test_the_command_is_run_and_its_exit_code_passed_on(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker, tools: Path
) -> None:
    script(api)
    program(tools, "session-manager-plugin")
    program(tools, "aws", f'echo "aws $@" > {tools}/ran')
    ran = trainmaster("ssh", "job1")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert (tools / "ran").read_text() == f"{COMMAND}\n"


def test_when_aws_refuses_its_codes_are_explained(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker, tools: Path
) -> None:
    script(api)
    program(tools, "session-manager-plugin")
    program(tools, "aws", "exit 254")
    ran = trainmaster("ssh", "job1")
    assert ran.code == 254
    assert "AccessDeniedException: you need ssm:StartSession" in ran.err
    assert "TargetNotConnected: the agent in the container" in ran.err


def test_programs_that_are_missing_are_named(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker, tools: Path
) -> None:
    script(api)
    program(tools, "aws")
    ran = trainmaster("ssh", "job1")
    assert (ran.code, ran.out) == (1, "")
    (line,) = ran.err.splitlines()
    assert line.startswith(
        "trainmaster: no session with job1: session-manager-plugin is not installed, see docs"
    )


def test_a_job_that_waits_has_no_container_and_sagemaker_is_not_asked(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker
) -> None:
    script(api, view())
    ran = trainmaster("ssh", "job1", "--print")
    assert (ran.code, ran.out, sagemaker.described) == (1, "", [])
    assert "job1 does not run yet. Waiting, position 3" in ran.err


def test_remote_debugging_that_is_off_is_told_with_how_to_turn_it_on(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker
) -> None:
    script(api)
    sagemaker.answer = DESCRIPTION | {"RemoteDebugConfig": {"EnableRemoteDebug": False}}
    ran = trainmaster("ssh", "job1", "--print")
    assert (ran.code, ran.out) == (1, "")
    assert "remote debugging is off" in ran.err
    assert "enable_remote_debug=True" in ran.err


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(
            ClientError(
                {"Error": {"Code": "AccessDeniedException", "Message": "not authorized"}},
                "DescribeTrainingJob",
            ),
            "SageMaker does not describe job1-r1-abc123: AccessDeniedException: not authorized.",
            id="no right",
        ),
        pytest.param(
            EndpointConnectionError(endpoint_url="https://sagemaker"),
            "SageMaker cannot be asked",
            id="no network",
        ),
    ],
)
def test_a_sagemaker_that_does_not_answer_is_one_line(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker, answer: Exception, said: str
) -> None:
    script(api)
    sagemaker.answer = answer
    ran = trainmaster("ssh", "job1", "--print")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (1, "", 1)
    assert said in ran.err


def test_an_unknown_job_is_exit_code_4(trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker) -> None:
    api.script("GET", "/jobs/job1", problem(404, "Not found", "no job job1"))
    assert trainmaster("ssh", "job1", "--print").code == 4


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def forwarding(line: str) -> tuple[list[str], dict[str, list[str]]]:
    """The document and its parameters."""
    words = shlex.split(line)
    at = words.index("--parameters")
    return words[words.index("--document-name") + 1 : at], json.loads(words[at + 1])


def test_the_command_that_forwards_a_port_is_printed(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker, tools: Path
) -> None:
    script(api)
    ran = trainmaster("forward", "job1", "6006", "--host", "2", "--print")
    assert (ran.code, ran.err) == (0, "")
    assert forwarding(ran.out) == (
        ["AWS-StartPortForwardingSession"],
        {"portNumber": ["6006"], "localPortNumber": ["6006"]},
    )
    found = json.loads(trainmaster("forward", "job1", "8000:5678", "--json").out)
    assert found["target"] == "sagemaker-training-job:job1-r1-abc123_algo-1"
    parameters = json.loads(found["command"][found["command"].index("--parameters") + 1])
    assert parameters == {"portNumber": ["5678"], "localPortNumber": ["8000"]}


def test_a_forwarded_port_is_told_with_its_address_and_how_to_end_it(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker, tools: Path
) -> None:
    script(api)
    program(tools, "session-manager-plugin")
    program(tools, "aws", f'echo "$@" > {tools}/ran')
    port = free_port()
    ran = trainmaster("forward", "job1", f"{port}:6006")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == f"http://localhost:{port} is port 6006 of job1-r1-abc123, host 1. Ctrl-C ends it.\n"
    assert f'"localPortNumber": ["{port}"]' in (tools / "ran").read_text()


def test_ctrl_c_ends_a_forwarded_port_without_a_complaint(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker, tools: Path
) -> None:
    script(api)
    program(tools, "session-manager-plugin")
    program(tools, "aws", "trap 'exit 130' INT; kill -INT $PPID; while :; do /bin/sleep 0.01; done")
    ran = trainmaster("forward", "job1", f"{free_port()}:6006")
    assert ran.code == 0
    assert "AccessDenied" not in ran.err


def test_a_second_ctrl_c_ends_a_session_that_hangs_at_the_first(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker, tools: Path
) -> None:
    """As reported of the AWS CLI: it says that it exits, and does not."""
    script(api)
    program(tools, "session-manager-plugin")
    program(tools, "aws", "trap 'kill -INT $PPID' INT; kill -INT $PPID; while :; do /bin/sleep 0.01; done")
    assert trainmaster("forward", "job1", f"{free_port()}:6006").code == 0


def test_a_plugin_that_outlives_the_aws_cli_does_not_keep_the_port(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker, tools: Path
) -> None:
    script(api)
    os.mkfifo(tools / "told")
    heard = os.open(tools / "told", os.O_RDONLY | os.O_NONBLOCK)
    began = tools / "began"
    program(tools, "session-manager-plugin", f"exec 3>{tools}/told; >{began}; /bin/sleep 20; echo stayed >&3")
    program(tools, "aws", f"session-manager-plugin & while [ ! -e {began} ]; do :; done; exit 254")
    assert trainmaster("forward", "job1", f"{free_port()}:6006").code == 254
    os.set_blocking(heard, True)
    assert os.read(heard, 100) == b"", "it had to end with the AWS CLI"
    os.close(heard)


def test_when_aws_refuses_to_forward_the_document_is_named_as_well(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker, tools: Path
) -> None:
    script(api)
    program(tools, "session-manager-plugin")
    program(tools, "aws", "exit 254")
    ran = trainmaster("forward", "job1", f"{free_port()}:6006")
    assert ran.code == 254
    assert "document/AWS-StartPortForwardingSession" in ran.err


def test_a_port_of_this_machine_that_is_in_use_is_refused_before_anything_starts(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker, tools: Path
) -> None:
    script(api)
    program(tools, "session-manager-plugin")
    program(tools, "aws", f"touch {tools}/ran")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = trainmaster("forward", "job1", f"{port}:6006")
    assert (ran.code, ran.out) == (1, "")
    assert f"port {port} of this machine cannot be opened: Address already in use; name another" in ran.err
    assert not (tools / "ran").exists()


@pytest.mark.parametrize(
    "ports",
    ["0", "65536", "-1", "http", "60.06", "", ":", ":6006", "8000:", "0:6006", "1:2:3", "\uff18\uff10"],
)
def test_what_is_no_port_is_wrong_usage(trainmaster: Trainmaster, api: FakeApi, ports: str) -> None:
    ran = trainmaster("forward", "job1", "--", ports)
    assert ran.code == 2
    assert "8000:6006" in ran.err


def test_a_job_without_remote_debugging_forwards_nothing_and_says_why(
    trainmaster: Trainmaster, api: FakeApi, sagemaker: SageMaker
) -> None:
    script(api)
    sagemaker.answer = DESCRIPTION | {"RemoteDebugConfig": {"EnableRemoteDebug": False}}
    ran = trainmaster("forward", "job1", "6006", "--print")
    assert (ran.code, ran.out) == (1, "")
    assert "remote debugging is off" in ran.err
