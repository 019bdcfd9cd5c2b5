"""What every command does alike: widths, colours, exit codes, names it did not find, pipes and Ctrl-C."""

import io
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import pytest
import typer
from trainmaster_client import errors
from trainmaster_client.cli import connection
from trainmaster_client.cli.app import app
from trainmaster_client.cli.exit_codes import exit_code
from trainmaster_client.cli.grouped_help import Panel
from trainmaster_client.cli.screen import busy
from typer.testing import CliRunner

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted, history, problem, view

ESCAPE = "\x1b"


def script(api: FakeApi, method: str, path: str, document: Any) -> None:
    api.script(method, path, Scripted(document=document))


# ---- exit codes


EXIT_CODES: dict[type[errors.TrainmasterClientError], int] = {
    errors.ApiNotConfiguredError: 3,
    errors.InvalidApiUrlError: 3,
    errors.ApiUnreachableError: 3,
    errors.UnexpectedAnswerError: 3,
    errors.ApiFailedError: 3,
    errors.InvalidArgumentError: 2,
    errors.InvalidOptionsError: 2,
    errors.MalformedHistoryError: 2,
    errors.NotFoundError: 4,
}
"""Of every other one 1."""


def all_errors(root: type[errors.TrainmasterClientError]) -> Iterator[type[errors.TrainmasterClientError]]:
    yield root
    for one in root.__subclasses__():
        yield from all_errors(one)


def test_every_error_of_the_client_has_an_exit_code() -> None:
    ours = {one for one in all_errors(errors.TrainmasterClientError) if one.__module__ == errors.__name__}
    assert EXIT_CODES.keys() < ours
    assert {one: exit_code(one.__new__(one)) for one in ours} == dict.fromkeys(ours, 1) | EXIT_CODES


# ---- every command


STEPS = history(*(("running", number, "a reason of some length " * 4) for number in range(3)))
ATTEMPTS = [
    {
        "attempt": 0,
        "training_job_name": "job1",
        "status": "Failed",
        "started_at": "2026-11-21T01:00:00Z",
        "ended_at": "2026-11-21T02:00:00Z",
        "last_checkpoint": "2026-11-21T01:30:00Z",
        "reason": {"code": "gpu-oom", "message": "a reason of some length " * 4},
        "diagnosis": {"class": "gpu-oom", "advice": "halve the batch, and so on and on " * 2},
    }
]
ESTIMATE = {"p50": "2099-11-21T02:00:00Z", "p90": "2099-11-21T03:00:00Z"}
JOB = view(history=STEPS, attempts=ATTEMPTS, estimated_start=ESTIMATE, cost_usd=1.5)
OVER = view("job1", state="failed", ended_at="2026-11-21T02:00:00Z", reason=ATTEMPTS[0]["reason"])
POOL = {
    "name": "p5",
    "capacity": {"ml.p5.48xlarge": 2},
    "waiting": 3,
    "oldest_waiting_since": "2026-11-21T02:00:00Z",
    "teams": [{"name": "vision", "quota": {"nominal": {"ml.p5.48xlarge": 1}}, "waiting": 2}],
    "account_limits": [
        {
            "instance_type": "ml.p5.48xlarge",
            "capacity_type": "spot",
            "limit": 3,
            "until": "2026-11-21T02:00:00Z",
        }
    ],
}
SPENT = {"instance_hours": 2.5, "usd": 3, "by": {"productive": 2, "startup": 1}}
FOUND = {
    "rule": "vpc_required",
    "field": "VpcConfig",
    "message": "is missing",
    "hint": "add",
    "mode": "audit",
}
VIOLATION = {
    "at": "2026-11-21T01:00:00.000Z",
    "training_job_name": "job1",
    "team": "vision",
    "role_arn": "arn:aws:iam::111122223333:role/vision-training",
    "unmanaged": True,
    "outcome": "stopped",
    "violations": [FOUND],
}
POLICY = {
    "revision": 4,
    "paused": True,
    "policy": {"version": 1},
    "warnings": ["teams: nobody is in one of them, and nobody can submit a job for it"],
    "changes": [
        {"job": "job1", "team": "vision", "pool": "p5", "change": "impossible", "message": "no room " * 8}
    ],
}
SPAN = {
    "job": "job1",
    "attempt": 0,
    "team": "vision",
    "pool": "p5",
    "instances": {"ml.p5.48xlarge": 2},
    "capacity_type": "on-demand",
    "claimed_at": "2026-11-21T01:00:00Z",
    "ended_at": "2026-11-21T02:00:00Z",
    "end": "preemption",
    "preempted_by": "a-job-with-a-name-of-some-length-20261121-010203",
    "lost_seconds": 60,
}
EVENT = {
    "at": "2026-11-21T02:00:00Z",
    "kind": "Job Preempted",
    "team": "vision",
    "job": "job1",
    "detail": {"what": "job1 was preempted."},
}
ANSWERS: dict[tuple[str, str], Any] = {
    ("GET", "/timeline"): {"attempts": [SPAN], "capacity": [], "warm": [], "since": None},
    ("GET", "/events"): {"events": [EVENT], "next_token": None},
    ("GET", "/jobs"): {"jobs": [JOB, OVER], "next_token": None},
    ("GET", "/jobs/job1"): JOB,
    ("PATCH", "/jobs/job1"): JOB,
    ("DELETE", "/jobs/job1"): JOB,
    ("POST", "/add-job"): {"job": JOB, "warnings": [FOUND]},
    ("GET", "/pools"): {"pools": [POOL]},
    ("GET", "/usage"): {
        "team": "vision",
        "month": "2026-11",
        "jobs": [{"name": "job1", **SPENT}],
        "total": SPENT,
    },
    ("GET", "/violations"): {"month": "2026-11", "violations": [VIOLATION], "next_token": "t"},
    ("GET", "/policy"): POLICY,
    ("PUT", "/policy"): POLICY,
    ("PUT", "/policy/paused"): POLICY,
}
COMMANDS = {
    "queue": [],
    "timeline": [],
    "show": ["job1"],
    "why": ["job1"],
    "history": ["job1"],
    "cancel": ["job1"],
    "priority": ["job1", "5"],
    "hold": ["job1"],
    "release": ["job1"],
    "submit": ["/dev/stdin"],
    "pools": [],
    "plan": ["--preset", "llama2-70b", "--instances", "ml.p5.48xlarge=2"],
    "usage": [],
    "violations": [],
    "policy show": [],
    "policy validate": ["/dev/stdin"],
    "policy diff": ["/dev/stdin"],
    "policy apply": ["/dev/stdin"],
    "policy rollback": ["3"],
    "policy pause": [],
    "policy resume": [],
}
"""Those that print what the API says, or what they compute."""


@pytest.fixture
def answers(api: FakeApi) -> None:
    for (method, path), document in ANSWERS.items():
        script(api, method, path, document)


@pytest.fixture
def run(trainmaster: Trainmaster, answers: None, tmp_path: Any) -> Any:
    """A command by its name."""
    file = tmp_path / "file.json"
    file.write_text('{"TrainingJobName": "job1"}')

    def one(command: str, *options: str) -> Any:
        arguments = [str(file) if one == "/dev/stdin" else one for one in COMMANDS[command]]
        return trainmaster(*command.split(), *arguments, *options)

    return one


@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_wider_than_sixty_columns(command: str, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    ran = run(command)
    assert ran.code in {0, 1}
    assert ran.out
    wide = [line for line in (ran.out + ran.err).splitlines() if len(line.rstrip()) > 60]
    assert [line for line in wide if len(line.split()[-1]) <= 56] == [], "one word may be longer"


@pytest.mark.parametrize("command", COMMANDS)
def test_json_is_one_document_and_nothing_else(command: str, run: Any) -> None:
    ran = run(command, "--json")
    assert isinstance(json.loads(ran.out), dict)


def leaves(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, one in command.commands.items():
        yield from leaves(one, f"{path} {name}".strip())


def test_every_command_that_prints_can_print_json() -> None:
    without = {
        path
        for path, command in leaves(typer.main.get_command(app))
        if not any("--json" in param.opts for param in command.params)
    }
    prints_json_lines = {"history-export"}
    assert without == prints_json_lines | {
        "dashboard",
        "gateway",
        "local up",
        "mcp",
        "run",
        "top",
        "training-code",
    }


@pytest.mark.parametrize("command", ["queue", "show", "policy diff", "history"])
@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(
    command: str, variables: dict[str, str], run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    if command != "history":
        assert (ESCAPE in run(command).out) == (command != "show")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    shown = run(command).out
    assert "\x1b[3" not in shown


# ---- help


def test_every_command_is_in_a_group_of_the_help_with_its_whole_sentence(
    trainmaster: Trainmaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = trainmaster("-h")
    assert (ran.code, ran.out) == (0, trainmaster("--help").out)
    headings = [line for line in ran.out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Options:", *(f"{panel}:" for panel in Panel)]
    assert "..." not in ran.out.partition("Jobs:")[2]
    assert max(map(len, ran.out.splitlines())) <= 80


def test_every_command_takes_h() -> None:
    root = typer.main.get_command(app)
    for path, _ in leaves(root):
        if path != "local up":  # hands its options on to the twin, which takes -h
            ran = CliRunner().invoke(app, [*path.split(), "-h"])
            assert (path, ran.exit_code) == (path, 0)
            assert "-h, --help" in ran.output


@pytest.mark.parametrize(
    ("typed", "meant"), [("list", "queue"), ("squeue", "queue"), ("kill", "cancel"), ("cost", "usage")]
)
def test_a_command_of_another_tool_names_ours(typed: str, meant: str, trainmaster: Trainmaster) -> None:
    ran = trainmaster(typed)
    assert (ran.code, ran.out) == (2, "")
    assert f"Did you mean '{meant}'" in ran.err


# ---- names


def test_an_unknown_command_names_the_nearest(trainmaster: Trainmaster) -> None:
    ran = trainmaster("quue")
    assert (ran.code, ran.out) == (2, "")
    assert "Did you mean 'queue'" in ran.err


@pytest.mark.parametrize(
    "arguments", [["show"], ["why"], ["cancel"], ["hold"], ["priority", "5"], ["history"], ["logs"]]
)
def test_an_unknown_job_names_the_nearest_of_those_in_the_queue(
    arguments: list[str], trainmaster: Trainmaster, api: FakeApi
) -> None:
    jobs = [
        view("nightly-7"),
        view("nightly-8"),
        view("other"),
        {"name": None, "team": "a", "state": "running"},
    ]
    script(api, "GET", "/jobs", {"jobs": jobs})
    command, *more = arguments
    ran = trainmaster(command, "nigthly-7", *more)
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.splitlines()[-1] == "Did you mean nightly-7 or nightly-8?"


def test_an_unknown_job_names_the_nearest_of_those_that_are_over_if_none_is_in_the_queue(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    pages = [[view("other")], [view("nightly-7")], [], []]
    api.script("GET", "/jobs", *(Scripted(document={"jobs": page}) for page in pages))
    ran = trainmaster("show", "nightly-9")
    assert ran.err.splitlines()[-1] == "Did you mean nightly-7?"


@pytest.mark.parametrize("answer", [Scripted(document={"jobs": [view("other")]}), problem(500, "No", "boom")])
def test_no_name_is_suggested_where_none_is_near_or_nobody_answers(
    answer: Scripted, trainmaster: Trainmaster, api: FakeApi
) -> None:
    api.script("GET", "/jobs", answer)
    ran = trainmaster("show", "nightly-7")
    assert (ran.code, "Did you mean" in ran.err, "Traceback" in ran.err) == (4, False, False)


@pytest.mark.usefixtures("logging_again")
@pytest.mark.parametrize(("begun", "names"), [("nig", ["nightly-7"]), ("", ["nightly-7", "other"])])
def test_a_shell_completes_the_names_of_jobs_in_the_queue(
    begun: str, names: list[str], trainmaster: Trainmaster, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(api, "GET", "/jobs", {"jobs": [view("nightly-7"), view("other"), {"name": None}]})
    monkeypatch.setenv("_TRAINMASTER_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"trainmaster show {begun}")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert trainmaster().out.split() == names


@pytest.fixture
def logging_again() -> Iterator[None]:
    """What completes a name silences all loggers of its process, which ends with it for users."""
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("logging_again")
@pytest.mark.parametrize("url", ["http://127.0.0.1:1/prod", "nonsense"])
def test_a_completion_that_fails_is_silent(
    url: str, trainmaster: Trainmaster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINMASTER_API_URL", url)
    assert connection.complete_job("n") == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("logging_again")
def test_a_completion_does_not_wait_for_a_slow_api(
    trainmaster: Trainmaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answer = threading.Event(), threading.Event()

    def slow(_api: object) -> list[str]:
        asked.set()
        answer.wait(10)
        return ["late"]

    monkeypatch.setattr(connection, "visible_names", slow)
    monkeypatch.setattr(connection, "COMPLETION_SECONDS", 0.05)
    assert connection.complete_job("") == []
    assert asked.wait(10)
    answer.set()


# ---- version


def test_the_version_is_that_of_the_package(trainmaster: Trainmaster, api: FakeApi) -> None:
    assert trainmaster("--version").out == f"trainmaster {metadata.version('trainmaster')}\n"
    assert api.received == []


@pytest.mark.parametrize(
    ("answer", "stack"),
    [
        (Scripted(document={}, headers={"trainmaster-version": "0.0.9"}), "0.0.9"),
        (Scripted(document={}), None),
        (Scripted(status=403, document={}, headers={"trainmaster-version": "0.0.9"}), "0.0.9"),
    ],
)
def test_as_json_the_version_of_the_stack_is_there_too(
    answer: Scripted, stack: str | None, trainmaster: Trainmaster, api: FakeApi
) -> None:
    api.script("GET", "/pools", answer)
    ran = trainmaster("--version", "--json")
    assert json.loads(ran.out) == {"client": metadata.version("trainmaster"), "stack": stack}


def test_without_an_answer_there_is_no_version_of_the_stack(
    trainmaster: Trainmaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINMASTER_API_URL", "http://127.0.0.1:1/prod")
    ran = trainmaster("--version", "--json")
    assert (ran.code, json.loads(ran.out)["stack"]) == (0, None)


# ---- pipes and signals

COMMAND = [sys.executable, "-c", "from trainmaster_client.cli import main; main()"]


def environment(url: str) -> dict[str, str]:
    """A pipe is buffered, as it is for users."""
    ours = {"TRAINMASTER_API_URL": url, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | ours


def test_a_reader_that_leaves_early_makes_no_noise(aws_environment: None, api: FakeApi) -> None:
    script(api, "GET", "/jobs", {"jobs": [view(f"job-{number}") for number in range(700)]})
    with subprocess.Popen(
        [*COMMAND, "queue"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(api.url),
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline().startswith("JOB")
        running.stdout.close()
        assert running.stderr.read() == ""


def test_a_reader_that_never_was_makes_no_noise() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [*COMMAND, "--version"], stdout=writing, stderr=subprocess.PIPE, env=environment(""), check=False
    )
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (1, b"")


def test_ctrl_c_is_130_without_a_traceback(aws_environment: None, api: FakeApi) -> None:
    """Also where the tests run in the background of a shell, whose children are deaf to it."""
    script(api, "GET", "/jobs", {"jobs": [view("job1")]})
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [sys.executable, "-c", f"{heard}; {COMMAND[2]}", "queue", "--watch", "60"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(api.url),
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        shown = [running.stdout.readline() for _ in range(3)]
        assert shown[2].startswith("job1")
        running.send_signal(signal.SIGINT)
        assert running.stderr.read() == ""
        assert running.wait(30) == 130


# ---- what takes long


class Terminal(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.is_written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.is_written.set()
        return super().write(text)


def as_stderr(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """To be called in the test: between a fixture and its test pytest puts its own back."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    return terminal


def test_what_takes_long_is_told_on_a_terminal_and_wiped_off(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = as_stderr(monkeypatch)
    with busy("Waiting", after=0):
        assert terminal.is_written.wait(10)
    assert "Waiting ..." in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K")


def test_what_is_quick_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = as_stderr(monkeypatch)
    with busy("Waiting", after=60):
        pass
    assert terminal.getvalue() == ""


def test_a_pipe_is_told_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before = threading.active_count()
    with busy("Waiting", after=0):
        assert threading.active_count() == before
    assert capsys.readouterr() == ("", "")
