"""The SDK v3 against the queue on the twin. Only for `make test-v3`: v2 and v3 are one package by name.

The twin runs from .venv, as its jobs do; here is what a user's machine has, SDK and client.
"""

import importlib.metadata
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.namespace import namespaces_refused
from local.twin_process import TwinProcess, running_twin

ROOT = Path(__file__).parents[2]
POLICY = {"version": 1, "pools": [{"name": "cpu", "capacity": {"ml.m5.xlarge": 1}}]}


def _has_sdk_v3() -> bool:
    try:
        importlib.metadata.version("sagemaker-train")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


collect_ignore_glob = [] if _has_sdk_v3() else ["test_*.py"]


@pytest.fixture(scope="session")
def can_run_jobs() -> None:
    """ModelTrainer's jobs need namespaces on the twin. A machine of the project has to have them."""
    refused = namespaces_refused()
    if refused is None:
        return
    reason = f"this machine refuses the namespaces that jobs of the SDK v3 need on the twin: {refused}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwinProcess]:
    folder = tmp_path_factory.mktemp("twin")
    program = (str(ROOT / ".venv/bin/python"), "-m", "local", "up")
    with running_twin(folder, policy=POLICY, checkout=ROOT, program=program) as process:
        yield process


@pytest.fixture(autouse=True)
def own_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK keeps its clients: one that a test before gave answers of its own would answer here."""
    for kept in ("SingletonMeta", "_ClientCacheMeta"):
        monkeypatch.setattr(f"sagemaker.core.utils.utils.{kept}._instances", {})


@pytest.fixture
def configured(twin: TwinProcess, monkeypatch: pytest.MonkeyPatch) -> TwinProcess:
    """What a user of the twin exports."""
    for name, value in twin.environment().items():
        monkeypatch.setenv(name, value)
    return twin
