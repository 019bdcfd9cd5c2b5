"""One twin and one gateway for all clients. Only for `make test-clients`: each client is its own process.

A client's environment that is not there, or cannot be made on this machine, is a skip with its reason.
"""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from local.twin_process import end
from tests.e2e.plane import Plane, eventually, pool, running_plane
from tests.markdown import ROOT

TRAINMASTER = (sys.executable, "-c", "from trainmaster_client.cli import main; main()")
LONGEST_SECONDS = 420
NARROW = {"InstanceType": "ml.m5.2xlarge", "InstanceCount": 1, "VolumeSizeInGB": 10}
"""Of a pool with one such instance: whoever comes second waits."""
POLICY = pool(16)
POLICY["pools"].append({"name": "narrow", "capacity": {NARROW["InstanceType"]: 1}})

Notebook: TypeAlias = dict[str, Any]
"""What one saw, as ``recorded_notebooks`` writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    plane: Plane
    gateway_url: str
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Of a user's shell: the twin's exports."""
        return {**os.environ, **self.plane.twin.environment(), "PYTHONPATH": str(ROOT)}

    @property
    def through_the_gateway(self) -> dict[str, str]:
        """The same shell after ``eval "$(trainmaster gateway --print-env)"``."""
        exports = {"AWS_ENDPOINT_URL_SAGEMAKER": self.gateway_url, "NO_PROXY": "127.0.0.1"}
        return {**self.environment, **exports}

    def under_run(self, python: Path, module: str, *wanted: str) -> dict[str, Notebook]:
        """What the notebooks of a module saw, by name: a program of this Python under ``trainmaster run``."""
        results = self.folder / f"{module}.json"
        command = [python, "-m", f"tests.clients.programs.{module}", str(results), *wanted]
        run = [python.with_name("trainmaster"), "run", "--", *command]
        printed = said(run, self.environment)
        assert results.exists(), printed
        return {
            one["notebook"]: {**one, "printed": printed} for one in json.loads(results.read_text("utf-8"))
        }

    def creators(self, *names: str) -> set[str]:
        """Who asked SageMaker for these training jobs, or the attempts of these jobs."""
        return {
            call["principal"].rpartition("/")[2]
            for call in self.plane.calls("CreateTrainingJob")
            if call["params"]["TrainingJobName"].startswith(names)
        }


def said(command: list[Any], environment: dict[str, str], **options: Any) -> str:
    """What a program printed; its end has to be a good one."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        list(map(str, command)),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def notebooks_of(module: str) -> list[str]:
    """Names of its notebooks. The module itself is for a process that has its SDK."""
    source = (ROOT / "tests/clients/programs" / f"{module}.py").read_text("utf-8")
    functions = [one for one in ast.parse(source).body if isinstance(one, ast.FunctionDef)]
    return [one.name for one in functions if one.decorator_list]


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("clients")
    with running_plane(folder, policy=POLICY) as plane:
        ready = folder / "gateway.json"
        env = {**os.environ, **plane.twin.environment(), "XDG_STATE_HOME": str(folder)}
        gateway = subprocess.Popen([*TRAINMASTER, "gateway", "--port", "0", "--ready", str(ready)], env=env)
        try:
            eventually(ready.exists, bool)
            url = json.loads(ready.read_text("utf-8"))["endpoint_url"]
            yield World(plane=plane, gateway_url=url, folder=folder)
            strangers = {call["principal"].rpartition("/")[2] for call in plane.calls("CreateTrainingJob")}
            assert strangers <= {"schedule"}, "somebody trained past the queue"
        finally:
            end(gateway)
