"""``python -m local up`` as a process: what it writes, how it refuses, and that nothing outlives it."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from local.config import ReadyInfo
from tests.integration.local.running_twin import POLICY, RunningTwin, eventually

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[3]
START_SECONDS = 90.0
READY_FIELDS = {
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

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the command; what it started is gone after the test even if the test fails."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "local", "up", "--port", "0", *arguments]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            process.kill()
        process.communicate(timeout=START_SECONDS)


def await_ready(process: subprocess.Popen[str], file: Path) -> dict[str, Any]:
    assert eventually(lambda: file.exists() or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    ready: dict[str, Any] = json.loads(file.read_text())
    return ready


def below(pid: int) -> set[int]:
    """Every process below this one."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(stat.parent.name)] = int(parent)
    found: set[int] = set()
    while more := {each for each, parent in parents.items() if parent in found | {pid}} - found:
        found |= more
    return found


def is_gone(pids: set[int]) -> bool:
    def lives(pid: int) -> bool:
        with suppress(OSError):
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        return False

    return not any(lives(pid) for pid in pids)


def refusal(process: subprocess.Popen[str]) -> str:
    """The one line with which the command refuses."""
    _, errors = process.communicate(timeout=START_SECONDS)
    assert process.returncode == 2, errors
    (line,) = errors.splitlines()
    return line


def test_it_writes_the_ready_file_and_ends_cleanly_when_it_is_told_to(start: Start, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\npools: [{name: cpu, capacity: {ml.m5.large: 2}}]\n")
    ready_file, journal = tmp_path / "ready", tmp_path / "journal"
    process = start("--policy", str(policy), "--ready", str(ready_file), "--journal", str(journal))
    ready = await_ready(process, ready_file)
    assert ready.keys() == READY_FIELDS
    assert ready["pid"] == process.pid
    assert ready_file.stat().st_mode & 0o777 == 0o600
    twin = RunningTwin(ready=ReadyInfo(**ready), folder=tmp_path)
    assert twin.api("GET", "/policy").json["policy"]["pools"][0]["name"] == "cpu"
    assert twin.control("POST", "/clock", {"advance_seconds": 1}).status == 409
    children = below(process.pid)
    assert len(children) >= 2
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=START_SECONDS)
    assert (process.returncode, errors) == (0, "")
    assert f"export AWS_ENDPOINT_URL={ready['endpoint_url']}" in output
    assert is_gone(children)
    assert not ready_file.exists()


def test_ctrl_c_ends_it_cleanly(start: Start, tmp_path: Path) -> None:
    process = start("--ready", str(tmp_path / "ready"))
    await_ready(process, tmp_path / "ready")
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
    _, errors = process.communicate(timeout=START_SECONDS)
    assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize("victim", ["the process a user would kill", "the twin below it"])
def test_nothing_outlives_a_kill_9(start: Start, tmp_path: Path, victim: str) -> None:
    process = start("--ready", str(tmp_path / "ready"))
    ready = await_ready(process, tmp_path / "ready")
    twin = RunningTwin(ready=ReadyInfo(**ready), folder=tmp_path)
    twin.client("sagemaker").create_training_job(
        TrainingJobName="orphan",
        RoleArn=ready["role_arn"],
        AlgorithmSpecification={
            "TrainingInputMode": "File",
            "TrainingImage": f"{ready['account_id']}.dkr.ecr.us-east-1.amazonaws.com/any:1",
            # It leaves a grandchild in a session of its own, whose parent is gone.
            "ContainerEntrypoint": ["sh", "-c", "setsid sh -c 'setsid sleep 1000 &'; sleep 1000"],
        },
        OutputDataConfig={"S3OutputPath": f"s3://{ready['bucket']}/out"},
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        StoppingCondition={"MaxRuntimeInSeconds": 3600},
    )
    (twin_pid,) = {pid for pid in below(process.pid) if os.getpgid(pid) == process.pid}

    def sleepers() -> set[int]:
        found = set()
        for pid in below(process.pid):
            with suppress(OSError):
                if b"sleep\x001000" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"-c")[0]:
                    found.add(pid)
        return found

    assert eventually(lambda: len(sleepers()) == 2)
    everybody = below(process.pid)
    os.kill(process.pid if victim == "the process a user would kill" else twin_pid, signal.SIGKILL)
    assert eventually(lambda: is_gone(everybody))
    assert process.wait(START_SECONDS) != 0
    assert eventually(lambda: not (tmp_path / "ready").exists())


def test_a_second_twin_on_a_state_folder_is_refused_and_leaves_the_first_s_files_alone(
    start: Start, tmp_path: Path
) -> None:
    shared = ("--state", str(tmp_path / "state"), "--ready", str(tmp_path / "ready"))
    first = start(*shared)
    ready = await_ready(first, tmp_path / "ready")
    line = refusal(start(*shared))
    assert line.startswith(
        f"local up: the state folder {tmp_path / 'state'} is in use by the twin with the process id"
    )
    assert line.endswith("end that one, or choose another folder with --state")
    assert json.loads((tmp_path / "ready").read_text()) == ready
    first.kill()
    assert eventually(lambda: not (tmp_path / "ready").exists())
    (tmp_path / "ready").write_text("left by a machine that lost its power")
    after = start(*shared)
    assert eventually(
        lambda: (tmp_path / "ready").exists() and "left by" not in (tmp_path / "ready").read_text()
    )
    assert await_ready(after, tmp_path / "ready")["pid"] == after.pid


def test_the_state_folder_remembers_the_policy(start: Start, tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(POLICY))
    state = str(tmp_path / "state")
    for number, options in enumerate((["--policy", str(policy)], [])):
        ready_file = tmp_path / f"ready-{number}"
        process = start("--state", state, "--ready", str(ready_file), *options)
        twin = RunningTwin(ready=ReadyInfo(**await_ready(process, ready_file)), folder=tmp_path)
        assert [pool["name"] for pool in twin.api("GET", "/pools").json["pools"]] == ["cpu"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(START_SECONDS) == 0


def test_a_port_in_use_is_one_clear_line(start: Start) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert refusal(start("--port", str(port))) == (
            f"local up: port {port} is in use; choose another one with --port"
        )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("pools: [{name: p, capacity: {ml.m5.large: two}}]", "pools", id="the API refuses it"),
        pytest.param("pools: [", "policy.yaml", id="not YAML"),
        pytest.param("- 1", "must be a map", id="not a map"),
        pytest.param(None, "No such file", id="no file"),
    ],
)
def test_a_bad_policy_is_one_clear_line(start: Start, tmp_path: Path, text: str | None, named: str) -> None:
    policy = tmp_path / "policy.yaml"
    if text is not None:
        policy.write_text(text)
    assert named in refusal(start("--policy", str(policy)))


def test_a_bad_world_is_one_clear_line_with_what_there_is(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "world.yaml"
    file.write_text("rate: {CreateTrainingJob: 1}")
    assert refusal(start("--world", str(file))).startswith(
        f"local up: world {file}: rate: is no value of a world; there are quotas, "
    )
    assert (
        refusal(start("--world", "harhs")) == "local up: world harhs: neither a file nor one of kind, harsh"
    )


def test_an_unknown_parameter_is_one_clear_line_with_those_there_are(start: Start) -> None:
    line = refusal(start("--parameter", "RetentionDayz=3"))
    assert line.startswith("local up: parameter RetentionDayz: no such parameter")
    assert "RetentionDays" in line


@pytest.mark.parametrize(
    "options",
    [
        ["--port", "70000"],
        ["--speed", "0"],
        ["--parameter", "x"],
        ["--clock", "sundial"],
        ["--start", "2026-11-22T08:00:00Z"],
        ["--clock", "manual", "--start", "noon"],
        ["--clock", "manual", "--start", "2026-11-22T08:00:00"],
    ],
)
def test_a_bad_option_is_refused_with_the_usage(start: Start, options: list[str]) -> None:
    process = start(*options)
    _, errors = process.communicate(timeout=START_SECONDS)
    assert process.returncode == 2
    assert "usage:" in errors
    assert "Traceback" not in errors
