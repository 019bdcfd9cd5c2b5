"""``trainmaster run``: a program with the hooks by its environment alone, and its children."""

import json
import os
import subprocess
import sys
import textwrap
import venv
from collections.abc import Callable, Mapping
from pathlib import Path

import boto3
import pytest

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted, running_fake_api, view
from tests.markdown import ROOT

Start = Callable[..., subprocess.CompletedProcess[str]]

CREATE = """
    import botocore.session

    botocore.session.get_session().create_client("sagemaker").create_training_job(
        TrainingJobName="job1",
        RoleArn="arn:aws:iam::123456789012:role/training",
        AlgorithmSpecification={"TrainingImage": "image:1", "TrainingInputMode": "File"},
        OutputDataConfig={"S3OutputPath": "s3://bucket/out"},
        ResourceConfig={"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
        StoppingCondition={"MaxRuntimeInSeconds": 3600},
    )
"""


@pytest.fixture
def start(api: FakeApi, aws_environment: None, tmp_path: Path) -> Start:
    """A program under the command, in processes of their own. AWS is a port where nothing listens."""
    api.script("POST", "/add-job", Scripted(status=201, document={"job": view(), "warnings": []}))

    def run(
        *command: str, options: tuple[str, ...] = (), env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        own = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_MAX_ATTEMPTS": "1"}
        path = os.pathsep.join([str(ROOT / "client"), (env or {}).get("PYTHONPATH", "")])
        main = "from trainmaster_client.cli import main; main()"
        return subprocess.run(
            [sys.executable, "-c", main, "run", "--api-url", api.url, *options, "--", *command],
            env={**os.environ, **own, **(env or {}), "PYTHONPATH": path},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "prog.py"
    path.write_text(textwrap.dedent(CREATE))
    return str(path)


def test_a_program_that_knows_nothing_of_the_queue_queues(start: Start, program: str, api: FakeApi) -> None:
    ran = start(sys.executable, program)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert api.calls() == ["POST /add-job"]


def test_the_programs_it_starts_queue_too_whatever_starts_them(
    start: Start, program: str, api: FakeApi, tmp_path: Path
) -> None:
    script = tmp_path / "entry-point"
    script.write_text(f"#!{sys.executable}\nimport subprocess, sys\n")
    script.write_text(f"{script.read_text()}subprocess.run([sys.executable, {program!r}], check=True)\n")
    script.chmod(0o755)
    assert start("sh", "-c", f"{script} && exec {sys.executable} {program}").returncode == 0
    assert api.calls() == ["POST /add-job"] * 2


def test_its_arguments_and_exit_code_are_the_programs_own(start: Start, api: FakeApi) -> None:
    code = "import sys; print(sys.argv[1:]); sys.exit(7)"
    ran = start(sys.executable, "-c", code, "--api-url", "x", "--", "--help")
    assert (ran.returncode, ran.stdout) == (7, "['--api-url', 'x', '--', '--help']\n")


def test_a_sitecustomize_that_is_there_is_imported_and_the_path_is_as_it_was(
    start: Start, program: str, api: FakeApi, tmp_path: Path
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import sys; sys.customized = __file__")
    code = "import sys; print(sys.customized, sys.modules['sitecustomize'].__file__, sys.path)"
    environment = {"PYTHONPATH": str(tmp_path / "site")}
    ran = start(sys.executable, "-c", code, env=environment)
    own = str(tmp_path / "site" / "sitecustomize.py")
    assert ran.stdout.startswith(f"{own} {own} "), ran.stderr
    assert "startup" not in ran.stdout
    assert start(sys.executable, program, env=environment).returncode == 0
    assert api.calls() == ["POST /add-job"]


def test_a_sitecustomize_that_fails_is_reported_as_python_does_and_the_program_queues(
    start: Start, program: str, api: FakeApi, tmp_path: Path
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("raise RuntimeError('broken')")
    ran = start(sys.executable, program, env={"PYTHONPATH": str(tmp_path / "site")})
    assert "RuntimeError: broken" in ran.stderr
    assert (ran.returncode, api.calls()) == (0, ["POST /add-job"])


def test_a_program_without_botocore_imports_nothing_of_ours(start: Start) -> None:
    code = "import sys; print(*[one for one in sys.modules if one.startswith(('trainmaster', 'botocore'))])"
    assert start(sys.executable, "-c", code).stdout == "\n"


def test_a_python_of_another_environment_without_this_client_queues_too(
    start: Start, program: str, api: FakeApi, tmp_path: Path
) -> None:
    venv.create(tmp_path / "other", symlinks=True)
    packages = str(Path(boto3.__file__).parents[1])
    other = str(tmp_path / "other" / "bin" / "python")
    bare = f"import sys; sys.path.append({packages!r}); exec(open({program!r}).read())"
    lonely = "import sys; sys.path[:] = [one for one in sys.path if not one.endswith('client')]; "
    ran = start(other, "-c", lonely + bare)
    assert (ran.returncode, api.calls()) == (0, ["POST /add-job"]), ran.stderr


def test_a_python_that_cannot_load_the_client_says_so_and_runs(start: Start, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "trainmaster_client.py").write_text("raise SyntaxError('too new for this Python')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'old')!r}); import botocore.session; print('ran')"
    ran = start(sys.executable, "-c", code)
    assert ran.stdout == "ran\n"
    assert "what this program trains bypasses the queue: SyntaxError('too new for this Python')" in ran.stderr


def test_a_session_that_the_hooks_are_taken_from_warns_before_its_job_leaves(
    start: Start, program: str, api: FakeApi, tmp_path: Path
) -> None:
    changed = "import botocore; botocore._INITIALIZERS.clear()\n"
    text = Path(program).read_text()
    unhooked = f"import botocore.session\n{changed}{text}"
    first = f"import botocore.session\nbotocore.session.get_session()\n{unhooked}"
    Path(program).write_text(first)
    ran = start(sys.executable, program)
    assert "QueueBypassWarning: job1 bypasses trainmaster's queue" in ran.stderr
    assert api.calls() == []


def test_L12_two_programs_with_two_stacks_each_use_their_own(
    start: Start, program: str, api: FakeApi
) -> None:
    with running_fake_api() as other:
        other.script("POST", "/add-job", Scripted(status=201, document={"job": view(), "warnings": []}))
        for options in ((), ("--api-url", other.url)):
            assert start(sys.executable, program, options=options).returncode == 0
        assert (api.calls(), other.calls()) == (["POST /add-job"], ["POST /add-job"])


def test_without_an_answer_it_goes_on_as_the_option_says(start: Start, program: str, api: FakeApi) -> None:
    nowhere = ("--api-url", "http://127.0.0.1:1/prod")
    raised = start(sys.executable, program, options=nowhere)
    assert "(ServiceUnavailable)" in raised.stderr
    direct = start(sys.executable, program, options=(*nowhere, "--on-unreachable", "direct"))
    assert "QueueBypassWarning: job1 bypasses the queue" in direct.stderr
    assert "EndpointConnectionError" in direct.stderr, "it was on its way to SageMaker"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        pytest.param(("no-such-program",), "'no-such-program' is not a program", id="no program"),
        pytest.param(("python3", "-I", "x.py"), "python3 -I ignores the environment", id="isolated"),
        pytest.param(
            ("python3", "-uE", "x.py"), "python3 -uE ignores the environment", id="without PYTHONPATH"
        ),
    ],
)
def test_what_cannot_be_hooked_is_refused(
    command: tuple[str, ...], said: str, trainmaster: Trainmaster
) -> None:
    ran = trainmaster("run", "--", *command)
    assert ran.code == 2
    assert said in ran.err


def test_it_finds_the_api_once_and_hands_it_on(start: Start, api: FakeApi) -> None:
    code = "import json, os; print(json.dumps(dict(os.environ)))"
    environment = json.loads(start(sys.executable, "-c", code).stdout)
    assert (environment["TRAINMASTER_API_URL"], environment["TRAINMASTER_RUN"]) == (api.url, "raise")
    assert api.calls() == []
