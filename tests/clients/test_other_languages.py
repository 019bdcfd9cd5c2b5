"""Clients of any language through the gateway, by its exports: a job's wait, its end, a stop, a refusal."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import NARROW, World, said
from tests.e2e.plane import until_exists
from tests.markdown import ROOT

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
PACKAGES = Path("/usr/share/gocode/src/github.com/aws/aws-sdk-go")
"""Where Debian's golang-github-aws-aws-sdk-go-dev puts them."""


def plain_boto3(python: Path, _: Path) -> list[Any]:
    if not python.exists():
        pytest.skip(f"there is no {python}: make test-clients makes it")
    return [python, "-m", "tests.clients.programs.plain_client"]


def oldest_boto3(folder: Path) -> list[Any]:
    return plain_boto3(ROOT / ".venv-aio/bin/python", folder)


def newest_boto3(folder: Path) -> list[Any]:
    return plain_boto3(ROOT / ".venv/bin/python", folder)


def aws_cli_v1(folder: Path) -> list[Any]:
    program = ROOT / ".venv-cli/bin/aws"
    if not program.exists():
        pytest.skip(f"there is no {program}: make test-clients makes it")
    return ["env", f"AWS_CLI={program}", *newest_boto3(folder)[:2], "tests.clients.programs.command_line"]


def javascript_v3(_: Path) -> list[Any]:
    if shutil.which("node") is None:
        pytest.skip("no node: apt-get install nodejs npm, then make test-clients")
    if not (HERE / "javascript/node_modules").is_dir():
        pytest.skip("its packages are not installed: make test-clients does it where there is npm")
    return ["node", HERE / "javascript/client.cjs"]


def go_v1(folder: Path) -> list[Any]:
    packages = next((one for one in _go_paths() if (one / "src/github.com/aws/aws-sdk-go").is_dir()), None)
    if shutil.which("go") is None or packages is None:
        pytest.skip("no Go: apt-get install golang-go golang-github-aws-aws-sdk-go-dev")
    program = folder / "client"
    env = {**os.environ, "GO111MODULE": "off", "GOPATH": str(packages)}
    said(["go", "build", "-o", program, HERE / "go/client.go"], env)
    return [program]


def _go_paths() -> list[Path]:
    """Debian's, and those of the machine's user."""
    return [Path("/usr/share/gocode"), *map(Path, os.environ.get("GOPATH", "/").split(os.pathsep))]


def java_v2(_: Path) -> list[Any]:
    pytest.skip("the SDK for Java comes from Maven Central, which is no registry that these tests may use")


CLIENTS = (oldest_boto3, newest_boto3, aws_cli_v1, javascript_v3, go_v1, java_v2)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda one: one.__name__)
def test_a_client_sees_its_job_wait_end_and_stop_and_its_name_taken(
    client: Callable[[Path], list[Any]], world: World, tmp_path: Path
) -> None:
    command = client(tmp_path)
    name, end = client.__name__.replace("_", "-"), tmp_path / "end"
    earlier = f"earlier{CLIENTS.index(client)}"
    world.plane.add(world.plane.request(earlier, until_exists(end), ResourceConfig=NARROW))
    world.plane.await_state(earlier, "running")
    request = tmp_path / "request.json"
    request.write_text(json.dumps(world.plane.request(name, ["echo", "trained"], ResourceConfig=NARROW)))
    saw = json.loads(said([*command, request, end], world.through_the_gateway).splitlines()[-1])
    assert saw == {
        "waiting": ["InProgress", "Pending"],
        "same_arn": True,
        "refused": "ResourceInUse",
        "listed": [name],
        "ended": ["Completed", "Completed"],
        "stopped": ["Stopped", "Stopped"],
    }
    assert world.creators(name, earlier) == {"schedule"}
    assert world.plane.log(name) == "trained"
