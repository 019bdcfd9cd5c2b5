"""The layer: what goes in, and that the built one is small, pure Python and complete."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.template.stack import ROOT

LAYER = ROOT / "layers" / "trainmaster"
LARGEST_BYTES = 16 * 1024 * 1024
"""Lambda unpacks it at each cold start. It is 10 MB today."""
SERVICES = ["cloudwatch", "dynamodb", "events", "logs", "s3", "sagemaker", "sns", "sqs", "ssm", "sts"]
IMPORT_ALL = """
import importlib.util, json, pkgutil, sys
layer, *apps = sys.argv[1:]
sys.path.append(layer)
import botocore.session, trainmaster
for module in pkgutil.walk_packages(trainmaster.__path__, "trainmaster."):
    importlib.import_module(module.name)
for app in apps:
    spec = importlib.util.spec_from_file_location("app", app)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
session = botocore.session.get_session()
print(json.dumps(session.get_available_services()))
for service in session.get_available_services():
    session.create_client(service, region_name="eu-west-1")
"""


def _pins(path: Path) -> set[str]:
    """Each package with its version and its hashes."""
    lines = path.read_text().replace("\\\n", "").splitlines()
    return {" ".join(line.split()) for line in lines if line and not line.startswith("#")}


def test_the_layer_has_the_wheels_that_everything_is_tested_with():
    assert _pins(LAYER / "requirements.txt") <= _pins(ROOT / "requirements.lock")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`sam build` as on a machine that has no Python but the one of this environment."""
    target = tmp_path_factory.mktemp("built")
    bare = {"HOME": os.environ["HOME"], "PATH": "/usr/bin:/bin"}
    sam = Path(sys.executable).parent / "sam"
    for _ in ("first", "again"):
        _run(
            [sam, "build", "--build-dir", target],
            {**bare, "LAYER_PYTHON": sys.executable, "SAM_CLI_TELEMETRY": "0"},
        )
    return target


def _run(command: list[str | Path], environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_the_build_is_pure_python_and_small(built: Path):
    files = [path for path in (built / "Layer").rglob("*") if path.is_file()]
    assert {path.relative_to(built / "Layer").parts[0] for path in files} == {"python"}
    assert (built / "Layer" / "python" / "trainmaster" / "settings.py").is_file()
    assert not [path for path in files if ".so" in path.suffixes or path.suffix in {".pyc", ".pyd"}]
    assert sum(path.stat().st_size for path in files) < LARGEST_BYTES
    wheels = (path for path in files if path.name == "WHEEL")
    assert all("Root-Is-Purelib: true" in wheel.read_text() for wheel in wheels)


@pytest.mark.long
def test_with_lambdas_python_the_build_has_bytecode_that_is_never_checked(tmp_path: Path):
    """Another Python stands in for 3.13: what is tested is what make does with it."""
    source, stand_in = tmp_path / "layer", tmp_path / "python"
    shutil.copytree(LAYER, source, ignore=shutil.ignore_patterns("__pycache__"))
    stand_in.write_text(f'#!/bin/sh\n[ "$1" = -c ] || exec {sys.executable} "$@"\n')
    stand_in.chmod(0o755)
    settings = {"LAYER_PYTHON": sys.executable, "BYTECODE_PYTHON": str(stand_in)}
    target = {"ARTIFACTS_DIR": str(tmp_path / "out")}
    done = subprocess.run(
        ["make", "build-Layer"],
        cwd=source,
        env=os.environ | settings | target,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "layer: with bytecode" in done.stdout
    (compiled,) = (tmp_path / "out" / "python" / "trainmaster" / "__pycache__").glob("settings.*.pyc")
    flags = int.from_bytes(compiled.read_bytes()[4:8], "little")
    assert flags == 0b01  # hash-based, source not checked: PEP 552
    assert str(tmp_path).encode() not in compiled.read_bytes()


@pytest.mark.long
def test_the_built_layer_imports_alone_and_makes_every_client(built: Path):
    apps = [str(path) for path in ROOT.glob("functions/*/app.py")]
    bare = [sys.executable, "-I", "-S", "-c", IMPORT_ALL]  # -S: nothing but the standard library
    services = _run([*bare, str(built / "Layer" / "python"), *apps], {})
    assert json.loads(services) == SERVICES
