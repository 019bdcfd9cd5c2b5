"""The wheel alone, in empty environments away from the checkout, does what the checkout does."""

import json
import os
import re
import shlex
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from trainmaster import __version__

from local.twin_process import running_twin
from tests.e2e.installed import Installed, built, installed, pip_install
from tests.e2e.plane import Plane, pool
from tests.markdown import ROOT, documents

pytestmark = pytest.mark.long

SDK3 = "TRAINMASTER_TEST_SDK3"
"""Set, the SDK v3 is installed too: a gigabyte."""
PROGRAMS = ("training", "tools", "benchmarks/training")
"""What `training-code` copies from."""
NEEDS = {
    "airflow": "airflow",
    "assistants.mcp_server": "mcp",
    "cli.full_screen": "textual",
    "dashboard.dashboard_routes": "starlette",
    "gateway.gateway_server": "uvicorn",
    "gateway.web_app": "anyio",  # which starlette brings
    "gateway.web_pages": "starlette",
    "sdk.v2_session": "sagemaker",
    "session": "sagemaker",
}
"""Modules and packages of the client that need an extra, with what it brings; all others need none."""
HELP = """
import json, typer
from typer.testing import CliRunner
from trainmaster_client.cli.app import app

def walk(group, path):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from walk(command, [*path, name])
        yield [*path, name]

def told(command):
    ran = CliRunner().invoke(app, [*command, "--help"], prog_name="trainmaster")
    return [" ".join(command), ran.exit_code, ran.stdout]

print(json.dumps([told(command) for command in walk(typer.main.get_command(app), [])]))
"""
IMPORTS = """
import importlib, json, pkgutil, sys
package = importlib.import_module(sys.argv[1])
failed = {}
for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    try:
        importlib.import_module(found.name)
    except ImportError as error:
        failed[found.name.partition(".")[2]] = error.name
unwanted = {"sagemaker", "moto", "torch", "flask", "numpy", "local"}
print(json.dumps([failed, sorted(unwanted & sys.modules.keys())]))
"""
BOTO3_USER = """
import json, sys, time, boto3
from trainmaster_client.hook import install

session = boto3.Session()
install(session)
sagemaker, request = session.client("sagemaker"), json.loads(sys.argv[1])
sagemaker.create_training_job(**request)
name = request["TrainingJobName"]
while True:
    job = sagemaker.describe_training_job(TrainingJobName=name)
    if job["TrainingJobStatus"] != "InProgress":
        break
    time.sleep(0.2)
print(job["TrainingJobStatus"], "sagemaker" in sys.modules)
"""
SDK2_USER = """
import sys, boto3
from sagemaker.estimator import Estimator
from trainmaster_client.session import QueueTrainingJobSession

role, image, bucket = sys.argv[1:]
quiet = {"SchemaVersion": "1.0", "SageMaker": {"PythonSDK": {"Modules": {"TelemetryOptOut": True}}}}
session = QueueTrainingJobSession(
    boto3.Session(), poll_seconds=0.2, default_bucket=bucket, sagemaker_config=quiet
)
estimator = Estimator(
    image_uri=image,
    role=role,
    instance_count=1,
    instance_type="ml.m5.xlarge",
    output_path=f"s3://{bucket}/output",
    container_entry_point=["python", "-c", "print('trained')"],
    disable_profiler=True,
    sagemaker_session=session,
)
estimator.fit(job_name="by-sdk2", wait=True)
print(estimator.latest_training_job.describe()["TrainingJobStatus"])
"""
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return built(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def base(wheel, tmp_path_factory) -> Installed:
    return installed(wheel, tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def local(wheel, tmp_path_factory) -> Installed:
    """Made as the command says that is run without the extra."""
    there = installed(wheel, tmp_path_factory.mktemp("local"))
    told = there.run("trainmaster", "local", "up").stderr.strip().rpartition("Run: ")[2]
    assert told.startswith("pip install ")
    assert "trainmaster" not in told
    pip_install(there, *shlex.split(told)[2:])
    return there


@pytest.fixture(scope="module")
def plane(local, tmp_path_factory) -> Iterator[Plane]:
    """A twin out of the wheel."""
    clean = local.environment()
    program = ["env", "-i", *(f"{name}={value}" for name, value in clean.items())]
    program += [str(local.bin / "trainmaster"), "local", "up"]
    folder = tmp_path_factory.mktemp("twin")
    with running_twin(folder, policy=pool(2), checkout=local.empty, program=program) as twin:
        yield Plane(twin=twin)


@pytest.fixture(scope="module")
def twin(plane) -> Mapping[str, str]:
    """What a user of the twin exports."""
    return {**plane.twin.environment(), "SAGEMAKER_SUPPRESS_V2_WARNING": "1"}


def test_the_same_tree_makes_the_same_wheel_byte_for_byte(wheel, tmp_path):
    assert built(tmp_path).read_bytes() == wheel.read_bytes()


def test_every_printed_install_line_names_extras_that_the_wheel_has(wheel, base):
    """Pip only warns of an extra that is not there, and installs nothing for it."""
    printed = re.compile(r"pip install '?(?:dist/)?trainmaster-[\w.]+-py3-none-any\.whl(\[[\w,]+\])?")
    extras = {match[1] or "" for page in documents() for match in printed.finditer(page.read_text("utf-8"))}
    assert {"", "[dashboard]", "[sdk2,local]"} <= extras
    for extra in sorted(extras):
        ran = base.run("python", "-m", "pip", "install", "--dry-run", "--no-deps", f"{wheel}{extra}")
        assert (ran.returncode, "does not provide" in ran.stderr) == (0, False), ran.stderr


def test_the_wheel_brings_two_packages_and_no_general_names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    top = {name.partition("/")[0] for name in names}
    assert top == {"trainmaster", "trainmaster_client", f"trainmaster-{__version__}.dist-info"}
    assert not [name for name in names if "demo" in name or "test" in Path(name).name or ".pyc" in name]


def test_the_wheel_brings_every_file_of_the_dashboard(wheel):
    folder = ROOT / "client" / "trainmaster_client" / "dashboard" / "web"
    wanted = {str(path.relative_to(ROOT / "client")) for path in folder.rglob("*") if path.is_file()}
    with zipfile.ZipFile(wheel) as archive:
        assert wanted <= set(archive.namelist())
    assert len(wanted) > 10


def test_the_folder_in_the_wheel_has_all_of_the_checkout_that_works_without_it(base):
    copy = base.site_packages / "trainmaster_client" / "_checkout"
    for folder in ("functions", "layers/trainmaster/trainmaster", "local", *PROGRAMS):
        wanted = {path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.py")}
        found = {path.relative_to(copy) for path in (copy / folder).rglob("*.py")}
        assert found == {path for path in wanted if is_no_tool(path)}
    for file in ("template.yaml", "policy.example.yaml"):
        assert (copy / file).read_bytes() == (ROOT / file).read_bytes()


def is_no_tool(path: Path) -> bool:
    return not path.parts[1].startswith(("setup", "twin_process"))


def test_what_is_installed_belongs_together(base, local):
    for environment in (base, local):
        assert "No broken requirements" in environment.done("python", "-m", "pip", "check")


def test_every_command_tells_how_to_use_it(base):
    told = {command: (code, text) for command, code, text in json.loads(base.python(HELP))}
    assert told.pop("local up")[0] != 0  # it has its own, which needs the twin
    assert {"queue", "submit", "policy apply", "doctor", "training-code"} <= told.keys()
    for command, (code, text) in told.items():
        assert code == 0, command
        assert f"Usage: trainmaster {command}" in text


def test_every_module_of_the_client_but_those_of_extras_can_be_imported_and_brings_no_sdk_and_no_twin(base):
    failed, brought = json.loads(base.done("python", "-c", IMPORTS, "trainmaster_client"))
    parts = {name: part_with_an_extra(name) for name in failed}
    assert failed == {name: NEEDS.get(part) for name, part in parts.items()}
    assert set(parts.values()) == NEEDS.keys()
    assert brought == []


def part_with_an_extra(name: str) -> str:
    """The module itself, or the package around it."""
    return next((part for part in NEEDS if f"{name}.".startswith(f"{part}.")), name)


def test_with_the_twin_every_module_of_the_plane_can_be_imported(local):
    assert json.loads(local.done("python", "-c", IMPORTS, "trainmaster")) == [{}, []]


def test_the_twin_without_its_packages_is_one_line(base):
    for arguments in ((), ("--help",), ("--port", "0")):
        ran = base.run("trainmaster", "local", "up", *arguments)
        assert (ran.returncode, ran.stdout) == (2, "")
        (line,) = ran.stderr.splitlines()
        assert "moto" in line
        assert "Run: pip install " in line


def test_commands_that_ask_nobody_work_anywhere(base):
    plan = base.done("trainmaster", "plan", "--preset", "llama2-7b", "--instances", "ml.p5.48xlarge=1")
    assert "GiB" in plan
    assert __version__ in base.done("trainmaster", "--version")


def test_the_training_program_comes_with_the_wheel(base):
    assert base.done("trainmaster", "training-code", "source") == "source: {} files\n".format(
        sum(1 for _ in (ROOT / "training").rglob("*.py"))
    )
    base.done("trainmaster", "training-code", "own", "--launcher-only")
    assert {path.name for path in (base.empty / "own").iterdir()} == {"launch.py"}
    assert (base.empty / "own/launch.py").read_bytes() == (ROOT / "training/launch.py").read_bytes()


def test_the_tools_come_with_the_wheel_and_answer_to_their_old_names(base):
    base.done("trainmaster", "training-code", "bench", "--tools")
    names = ("tools.training.plan", "training.plan", "training.prepare", "training.bench", "training.proof")
    for name in names:
        code = (
            f"import os, runpy, sys; os.chdir('bench'); sys.argv = ['x', '--help']; runpy.run_module({name!r}"
        )
        ran = base.run("python", "-c", f"{code}, run_name='__main__', alter_sys=True)")
        assert "--" in ran.stdout or "No module named 'torch'" in ran.stderr, (name, ran.stderr)


def test_the_command_line_drives_a_twin_that_came_with_the_wheel(base, plane, twin):
    request = base.empty / "request.json"
    request.write_text(json.dumps(plane.request("by-hand", ["true"])))
    assert "by-hand" in base.done("trainmaster", "submit", str(request), env=twin)
    assert plane.await_state("by-hand", "completed")["attempt"] == 0
    assert json.loads(base.done("trainmaster", "queue", "--json", env=twin))["jobs"] == []
    assert json.loads(base.done("trainmaster", "show", "by-hand", "--json", env=twin))["state"] == "completed"
    for command in (("pools",), ("usage",), ("policy", "show"), ("why", "by-hand"), ("violations",)):
        assert base.done("trainmaster", *command, env=twin)


def test_plain_boto3_goes_through_the_queue(base, plane, twin):
    request = plane.request("by-boto3", ["true"])
    assert base.done("python", "-c", BOTO3_USER, json.dumps(request), env=twin) == "Completed False\n"
    assert plane.job("by-boto3")["state"] == "completed"


def test_sdk2_fit_goes_through_the_queue(wheel, plane, twin, tmp_path):
    there = installed(wheel, tmp_path, extra="sdk2")
    ready = plane.twin.ready
    out = there.done("python", "-c", SDK2_USER, ready["role_arn"], IMAGE, ready["bucket"], env=twin)
    assert out.splitlines()[-1] == "Completed"
    assert plane.job("by-sdk2")["state"] == "completed"


@pytest.mark.skipif(SDK3 not in os.environ, reason=f"{SDK3} is not set: a gigabyte of packages")
def test_sdk3_is_an_extra_beside_which_every_module_can_be_imported(wheel, tmp_path):
    there = installed(wheel, tmp_path, extra="sdk3")
    assert there.python("import trainmaster_client.trainer, sagemaker.train; print('ok')") == "ok\n"
