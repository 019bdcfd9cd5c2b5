"""trainmaster logs, against the fake API and CloudWatch Logs in this process."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws
from trainmaster_client.cli import job_logs as logs_command
from trainmaster_client.cli.job_logs import LogPrinter
from trainmaster_client.errors import GatewayRefusedError, LogsUnansweredError, Problem
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.jobs.progress import SILENCE_SECONDS
from trainmaster_client.logs.joined_attempts import JobLogs, cleaned

from tests.integration.client.command import Ran, Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted, history, view
from tests.unit.client.cloudwatch_logs import NOON, TrainingLogs, job, session

PREEMPTED = {"code": "preemption", "message": "job4 has priority 3"}


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[TrainingLogs]:
    monkeypatch.setattr(logs_command, "aws_client", lambda service: session().client(service))
    with mock_aws(config={"core": {"mock_credentials": False}}):
        yield TrainingLogs("eu-west-1")


def story(*names: str, **fields: Any) -> dict[str, Any]:
    attempts = job(*names, ended=range(len(names) - 1))["attempts"]
    for attempt in attempts[:-1]:
        attempt.update(status="Stopped", reason=PREEMPTED)
    return view(**{"state": "running", "attempts": attempts, "history": [], **fields})


def script(api: FakeApi, *documents: dict[str, Any]) -> None:
    api.script("GET", "/jobs/job1", *(Scripted(document=one) for one in documents))


@pytest.fixture
def two_attempts(logs: TrainingLogs, api: FakeApi) -> None:
    logs.write("job1/algo-1-100", (1, "step 1"), (2, "step 2"))
    logs.write("job1-r1-aa/algo-1-200", (9, "step 3"))
    script(api, story("job1", "job1-r1-aa"))


def test_logs_go_through_all_attempts_with_a_line_between_them(
    trainmaster: Trainmaster, two_attempts: None
) -> None:
    between = "--- attempt 1 after preemption: job4 has priority 3, training job job1-r1-aa ---"
    assert trainmaster("logs", "job1") == Ran(0, f"step 1\nstep 2\n{between}\nstep 3\n", "")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--attempt", "0"], ["step 1", "step 2"]),
        (["--tail", "2"], ["step 2", "step 3"]),
        (["--host", "1", "--attempt", "0", "--tail", "1"], ["step 2"]),
        (["--since", (NOON + timedelta(seconds=2)).isoformat()], ["step 2", "step 3"]),
        (["--since", "2h", "--attempt", "0"], ["step 1", "step 2"]),
        (["--since", "50m"], []),
    ],
)
def test_options_narrow_what_is_shown(
    options: list[str], expected: list[str], trainmaster: Trainmaster, two_attempts: None
) -> None:
    shown = trainmaster("logs", "job1", *options).out.splitlines()
    assert [line for line in shown if not line.startswith("---")] == expected


def test_hosts_are_named_where_there_are_several(
    trainmaster: Trainmaster, logs: TrainingLogs, api: FakeApi
) -> None:
    logs.write("job1/algo-1-100", (1, "a"))
    logs.write("job1/algo-2-100", (2, "b"))
    script(api, story("job1", instances={"ml.p5.48xlarge": 2}))
    assert trainmaster("logs", "job1").out == "algo-1 | a\nalgo-2 | b\n"
    assert trainmaster("logs", "job1", "--host", "2").out == "b\n"


def test_json_is_a_line_for_each_line_as_it_was_printed(
    trainmaster: Trainmaster, logs: TrainingLogs, api: FakeApi
) -> None:
    logs.write("job1/algo-1-100", (1, "\x1b[32mgreen"))
    script(api, story("job1"))
    (line,) = trainmaster("logs", "job1", "--json").out.splitlines()
    at = (NOON + timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    assert json.loads(line) == {"attempt": 0, "host": "algo-1", "at": at, "text": "\x1b[32mgreen"}


def test_nothing_printed_yet_is_said_beside_the_output(
    trainmaster: Trainmaster, logs: TrainingLogs, api: FakeApi
) -> None:
    script(api, story("job1"))
    assert trainmaster("logs", "job1") == Ran(0, "", "job1 has printed nothing yet.\n")
    assert trainmaster("logs", "job1", "--tail", "5").err == "job1 has printed nothing that matches yet.\n"


def test_an_attempt_or_a_host_that_is_not_there_is_said_with_those_that_are(
    trainmaster: Trainmaster, logs: TrainingLogs, api: FakeApi
) -> None:
    script(api, story("job1") | {"instances": {"ml.p5.48xlarge": 2}})
    assert trainmaster("logs", "job1", "--attempt", "4").err == "job1 has no attempt 4 (attempts: 0).\n"
    assert (
        trainmaster("logs", "job1", "--host", "3").err
        == "job1 has no host algo-3 (hosts: algo-1 to algo-2).\n"
    )
    script(api, story("job1") | {"attempts": []})
    assert trainmaster("logs", "job1", "--attempt", "0").err == "job1 has no attempt 0 (attempts: none).\n"


def test_following_an_attempt_that_never_came_says_which_there_are(
    trainmaster: Trainmaster, logs: TrainingLogs, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs_command, "LAST_LINES_SECONDS", 0.0)
    script(api, story("job1", state="completed"))
    ran = trainmaster("logs", "job1", "-f", "--attempt", "4")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.splitlines()[-1] == "job1 has no attempt 4 (attempts: 0)."


def test_a_job_that_is_over_will_print_nothing_more(
    trainmaster: Trainmaster, logs: TrainingLogs, api: FakeApi
) -> None:
    script(api, view(state="stopped", attempts=[]))
    assert trainmaster("logs", "job1") == Ran(0, "", "job1 printed nothing.\n")


@pytest.mark.parametrize("since", ["yesterday", "10", "9999999999d", "999999999d"])
def test_a_time_that_is_none_is_wrong_usage(since: str, trainmaster: Trainmaster, api: FakeApi) -> None:
    ran = trainmaster("logs", "job1", "--since", since)
    assert (ran.code, api.received) == (2, [])
    assert "10m, 2h, 1d" in ran.err


class Followed:
    """A job whose views and lines a test scripts; time passes where the command sleeps."""

    def __init__(self, logs: TrainingLogs) -> None:
        self.now = 0.0
        self.steps: list[Any] = []
        self.slept: list[float] = []
        self._document: dict[str, Any] = {}
        self._printer = LogPrinter(as_json=False, is_one_host=False)
        self._reader = JobLogs(logs.client)

    def look(self) -> dict[str, Any]:
        if self.steps:
            self._document = self.steps.pop(0)()
        return self._document

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)

    def run(self) -> str:
        return logs_command.follow(
            self.look,
            lambda document: self._printer.show(self._reader.lines(document), document),
            sleep=self.sleep,
            monotonic=lambda: self.now,
        )


def test_following_goes_on_until_the_job_is_final_and_its_last_lines_came(
    logs: TrainingLogs, capsys: pytest.CaptureFixture[str]
) -> None:
    followed = Followed(logs)
    ended = story("job1", state="completed", history=history(("completed", 0, "")))

    def first() -> dict[str, Any]:
        logs.write("job1/algo-1-100", (1, "a"))
        return story("job1")

    def late() -> dict[str, Any]:
        logs.write("job1/algo-1-100", (2, "last words"))
        return ended

    followed.steps = [lambda: view("job1"), first, lambda: ended, lambda: ended, late]
    assert followed.run() == "completed"
    out, err = capsys.readouterr()
    assert out == "a\nlast words\n"
    assert err.splitlines() == [
        "Waiting, position 3 in pool p5 - capacity: needs 1 ml.p5.48xlarge, 0 are free",
        "2026-11-21 01:00:00 Completed",
    ]
    assert sum(followed.slept[-5:]) == 5


def test_O15_following_outlives_the_login_and_says_once_that_it_ended(
    logs: TrainingLogs, capsys: pytest.CaptureFixture[str]
) -> None:
    expired = GatewayRefusedError(
        Problem(status=403, title="The API refused", detail="it is expired"), Trouble.EXPIRED_CREDENTIALS
    )
    expired.may_be_renewed = True
    code: Any = {"Error": {"Code": "ExpiredTokenException", "Message": "it is expired"}}
    logins = iter([True, False, False, False, *[True] * 20])

    def fail(**_: object) -> None:
        if not next(logins):
            raise ClientError(code, "DescribeLogStreams")

    def no_more() -> dict[str, Any]:
        raise expired

    logs.write("job1/algo-1-100", (1, "a"))
    logs.client.meta.events.register("before-call.cloudwatch-logs.DescribeLogStreams", fail)
    followed = Followed(logs)
    ended = story("job1", state="completed", history=history(("completed", 0, "")))
    followed.steps = [lambda: story("job1"), lambda: story("job1"), no_more, no_more, lambda: ended]
    assert followed.run() == "completed"
    out, err = capsys.readouterr()
    assert out == "a\n"
    assert err.count("To log in again") == 1
    assert "logs:GetLogEvents" not in err


@pytest.mark.parametrize("may_be_renewed", [True, False])
def test_O15_following_ends_where_no_login_comes(logs: TrainingLogs, *, may_be_renewed: bool) -> None:
    expired = GatewayRefusedError(
        Problem(status=403, title="The API refused", detail="it is expired"), Trouble.EXPIRED_CREDENTIALS
    )
    expired.may_be_renewed = may_be_renewed

    def no_more() -> dict[str, Any]:
        raise expired

    followed = Followed(logs)
    followed.steps = [lambda: story("job1"), *[no_more] * 2000]
    with pytest.raises(GatewayRefusedError):
        followed.run()
    assert followed.now >= (SILENCE_SECONDS if may_be_renewed else 0)
    assert followed.now <= SILENCE_SECONDS + 20


def test_what_a_job_printed_last_comes_before_its_end(
    logs: TrainingLogs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs_command, "say", lambda text: text and print(text))  # noqa: T201  one stream
    logs.write("job1/algo-1-100", (1, "last words"))
    followed = Followed(logs)
    followed.steps = [lambda: story("job1", state="completed", history=history(("completed", 0, "")))]
    assert followed.run() == "completed"
    assert capsys.readouterr().out == "last words\n2026-11-21 01:00:00 Completed\n"


def away(logs: TrainingLogs, *, calls: int) -> None:
    """So many calls of CloudWatch Logs have no answer."""
    left = [EndpointConnectionError(endpoint_url="https://logs.example") for _ in range(calls)]

    def refuse(**_: object) -> None:
        if left:
            raise left.pop()

    logs.client.meta.events.register("before-call.cloudwatch-logs.DescribeLogStreams", refuse)


def test_following_goes_on_where_logs_are_away_for_a_while(
    logs: TrainingLogs, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.write("job1/algo-1-100", (1, "a"))
    away(logs, calls=8)
    followed = Followed(logs)
    followed.steps = [lambda: story("job1", state="completed")]
    assert followed.run() == "completed"
    out, err = capsys.readouterr()
    assert out == "a\n"
    assert err == (
        "Cannot read the logs of training jobs: Could not connect to the endpoint URL: "
        '"https://logs.example". '
        "The job does not depend on it; the same lines can be read later. Still trying.\n"
    )


def test_after_a_quarter_of_an_hour_without_logs_following_ends(logs: TrainingLogs) -> None:
    away(logs, calls=10_000)
    followed = Followed(logs)
    followed.steps = [lambda: story("job1")]
    with pytest.raises(LogsUnansweredError):
        followed.run()
    assert 900 <= followed.now <= 910


def test_a_quiet_job_is_looked_at_less_often(logs: TrainingLogs) -> None:
    followed = Followed(logs)
    followed.steps = [*(lambda: story("job1") for _ in range(110)), lambda: story("job1", state="stopped")]
    assert followed.run() == "stopped"
    assert (followed.slept[0], max(followed.slept)) == (1, 10)


@pytest.mark.parametrize(("state", "code"), [("completed", 0), ("failed", 1), ("stopped", 1)])
def test_the_exit_code_of_following_is_the_end_of_the_job(
    state: str, code: int, trainmaster: Trainmaster, logs: TrainingLogs, api: FakeApi, monkeypatch: Any
) -> None:
    monkeypatch.setattr(logs_command, "LAST_LINES_SECONDS", 0)
    logs.write("job1/algo-1-100", (1, "a"))
    script(api, story("job1", state=state))
    assert trainmaster("logs", "job1", "-f") == Ran(code, "a\n", "")


def test_ctrl_c_leaves_the_job_and_says_how_to_cancel_it(
    trainmaster: Trainmaster, logs: TrainingLogs, api: FakeApi, monkeypatch: Any
) -> None:
    def interrupt(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(logs_command, "follow", interrupt)
    script(api, story("job1"))
    said = "No longer following. job1 is not affected; to cancel it: trainmaster cancel job1\n"
    assert trainmaster("logs", "job1", "-f") == Ran(130, "", said)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;32mloss\x1b[0m 1.5", "loss 1.5"),
        (" 10%|#   \r 20%|##  ", " 20%|##  "),
        ("done\r", "done"),
        ("a\tb", "a       b"),
        ("\x1b]0;title\x07", " ]0;title "),
        ("", ""),
    ],
)
def test_a_line_is_shown_as_a_terminal_would_in_the_end(text: str, shown: str) -> None:
    assert cleaned(text) == shown


def test_a_place_of_cloudwatch_that_is_none_is_told_without_a_traceback(
    trainmaster: Trainmaster, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(api, story("job1"))
    monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", "nonsense")
    ran = trainmaster("logs", "job1")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("trainmaster: Cannot sign the request: Invalid endpoint: nonsense.")
