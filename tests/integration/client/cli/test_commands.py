"""The command line against the fake API: what it prints, where, and its exit codes."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.integration.client.command import Ran, Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted, history, problem, view


def script(api: FakeApi, method: str, path: str, document: Any, status: int = 200) -> None:
    api.script(method, path, Scripted(status=status, document=document))


RUNNING = view("job1", state="running", waiting=None, position=None, attempt=1)
MASKED = {"name": None, "team": "speech", "pool": "p5", "state": "pending", "priority": 3, "position": 2}


def test_queue_lists_own_jobs_and_masked_ones(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, "GET", "/jobs", {"jobs": [RUNNING, view("job2"), MASKED], "next_token": None})
    ran = trainmaster("queue", "--state", "pending", "--team", "a", "--pool", "p5")
    assert [line.split()[0] for line in ran.out.splitlines()] == ["JOB", "job1", "job2", "(other"]
    assert "capacity: needs 1 ml.p5.48xlarge, 0 are free" in ran.out
    assert (ran.code, ran.err) == (0, "")
    assert api.received[0].query == {"state": ["pending"], "team": ["a"], "pool": ["p5"]}


def test_queue_shows_one_page_and_says_how_to_see_all(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, "GET", "/jobs", {"jobs": [RUNNING], "next_token": "t"})
    assert "--all" in trainmaster("queue").err


def test_queue_all_reads_every_page(trainmaster: Trainmaster, api: FakeApi) -> None:
    pages = [{"jobs": [RUNNING], "next_token": "t=1"}, {"jobs": [view("job2")], "next_token": None}]
    api.script("GET", "/jobs", *(Scripted(document=page) for page in pages))
    ran = trainmaster("queue", "--all", "--json")
    assert json.loads(ran.out) == {"jobs": [RUNNING, view("job2")], "next_token": None}
    assert [received.query for received in api.received] == [
        {"limit": ["1000"]},
        {"limit": ["1000"], "next_token": ["t=1"]},
    ]


def test_no_line_of_a_pipe_ends_in_blanks(trainmaster: Trainmaster, api: FakeApi) -> None:
    long = view("long-name", reason={"code": "held", "message": "a long reason, " * 5})
    api.script("GET", "/jobs", Scripted(document={"jobs": [view(), long]}))
    lines = trainmaster("queue").out.splitlines()
    assert [line for line in lines if line.endswith(" ")] == []
    assert len(lines) == 3


def test_show_tells_the_state_the_attempts_and_the_history(trainmaster: Trainmaster, api: FakeApi) -> None:
    attempts = [
        {
            "attempt": 0,
            "training_job_name": "job1",
            "status": "Stopped",
            "secondary_status": "Stopped",
            "capacity_type": "on-demand",
            "started_at": "2026-11-21T01:02:00Z",
            "ended_at": "2026-11-21T01:04:00Z",
            "last_checkpoint": "2026-11-21T01:03:30Z",
            "reason": {"code": "preemption", "message": "job4 has priority 3"},
        }
    ]
    steps = history(("pending", 0, ""), ("starting", 0, ""), ("running", 0, ""), ("preempted", 1, ""))
    estimate = {"p50": "2001-11-21T02:00:00Z", "p90": "2001-11-21T03:00:00Z"}
    more: dict[str, Any] = {
        "estimated_start": estimate,
        "wasted_seconds": {"preemption": 120, "idle": 0},
        "cost_usd": 1.2,
        "set_by_pool": ["RoleArn", "Tags.owner"],
    }
    job = view(state="preempted", attempts=attempts, history=steps, **more)
    script(api, "GET", "/jobs/job1", job)
    assert trainmaster("show", "job1").out.splitlines() == [
        (
            "job1: preempted. Waiting to resume, position 3 in pool p5"
            " - capacity: needs 1 ml.p5.48xlarge, 0 are free"
        ),
        "  instances: 1x ml.p5.48xlarge",
        "  team: default",
        "  submitted by: arn:aws:iam::123456789012:user/ann",
        "  pool: p5",
        "  priority: 1",
        "  effective priority: 1",
        "  submitted: 2026-11-21T01:00:00Z",
        "  preemptions: 0",
        "  retries: 0",
        "  cost in USD: 1.20 (estimate)",
        "  set by the pool: RoleArn, Tags.owner",
        "  Likely start: any moment now",
        "  lost 2m00s to preemption",
        "Attempts",
        (
            "  0  job1, Stopped, on-demand, 2026-11-21 01:02:00 to 2026-11-21 01:04:00,"
            " preemption: job4 has priority 3"
        ),
        "     newest checkpoint: 2026-11-21 01:03:30",
        "History",
        "  2026-11-21 01:00:00 Pending",
        "  2026-11-21 01:01:00 Starting - attempt 0, training job job1",
        "  2026-11-21 01:02:00 Running - attempt 0, training job job1",
        "  2026-11-21 01:03:00 Preempted",
    ]


def test_sixty_columns_are_kept_also_in_a_pipe(
    trainmaster: Trainmaster, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = history(("failed", 0, "a very long reason " * 20))
    script(api, "GET", "/jobs/job1", view(state="failed", history=steps))
    monkeypatch.setenv("COLUMNS", "60")
    lines = trainmaster("show", "job1").out.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 60
    assert "History" in lines


def test_cancel_says_what_became_of_the_job(trainmaster: Trainmaster, api: FakeApi) -> None:
    script(api, "DELETE", "/jobs/job1", view(state="stopping"), status=202)
    assert trainmaster("cancel", "job1") == Ran(0, "job1: stopping\n", "")


@pytest.mark.parametrize(
    ("arguments", "method", "path"),
    [
        (["queue"], "GET", "/jobs"),
        (["show", "job1"], "GET", "/jobs/job1"),
        (["cancel", "job1"], "DELETE", "/jobs/job1"),
        (["why", "job1"], "GET", "/jobs/job1"),
        (["priority", "job1", "5"], "PATCH", "/jobs/job1"),
        (["hold", "job1"], "PATCH", "/jobs/job1"),
        (["release", "job1"], "PATCH", "/jobs/job1"),
        (["pools"], "GET", "/pools"),
        (["usage"], "GET", "/usage"),
        (["violations"], "GET", "/violations"),
        (["policy", "show"], "GET", "/policy"),
        (["policy", "pause"], "PUT", "/policy/paused"),
        (["policy", "resume"], "PUT", "/policy/paused"),
    ],
)
def test_json_is_exactly_what_the_api_said(
    arguments: list[str], method: str, path: str, trainmaster: Trainmaster, api: FakeApi
) -> None:
    document = {"new": ["field", 1.50, None], "jobs": [], "next_token": "t", "text": "é\x1b[31m"}
    script(api, method, path, document)
    ran = trainmaster(*arguments, "--json")
    assert json.loads(ran.out) == document
    assert (ran.code, ran.err) == (0, "")


def test_a_policy_that_is_shown_can_be_applied_again(
    trainmaster: Trainmaster, api: FakeApi, tmp_path: Path
) -> None:
    policy = {"version": 1, "pools": [{"name": "p5", "capacity": {"ml.p5.48xlarge": 2}}]}
    answer = {"revision": 4, "paused": True, "policy": policy, "warnings": []}
    script(api, "GET", "/policy", answer)
    script(api, "PUT", "/policy", {**answer, "revision": 5, "warnings": ["teams: nobody is in one"]})
    shown = trainmaster("policy", "show").out
    assert shown.splitlines()[0] == "# revision 4, paused: nothing starts"
    file = tmp_path / "policy.yaml"
    file.write_text(shown)
    applied = trainmaster("policy", "apply", str(file))
    assert applied.out == "Policy revision 5 is in force.\nWarning: teams: nobody is in one\n"
    assert json.loads(api.received[1].body)["policy"] == policy


def test_a_refused_policy_prints_every_error_with_its_path(
    trainmaster: Trainmaster, api: FakeApi, tmp_path: Path
) -> None:
    wrong = [
        {"field": "pools[0].capacity", "message": "is missing", "hint": "say how many instances"},
        {"field": "polls", "message": "is no key", "hint": "did you mean pools?"},
    ]
    api.script("PUT", "/policy", problem(422, "Not allowed by the policy", "2 errors", *wrong))
    file = tmp_path / "policy.json"
    file.write_text("{}")
    assert trainmaster("policy", "apply", str(file)) == Ran(
        1,
        "",
        "trainmaster: Not allowed by the policy (422): 2 errors\n"
        "  pools[0].capacity: is missing; say how many instances\n"
        "  polls: is no key; did you mean pools?\n",
    )


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        pytest.param(problem(403, "Forbidden", "no team"), 1, "no team", id="forbidden: 1"),
        pytest.param(problem(404, "Not found", "no job job1"), 4, "no job job1", id="no such job: 4"),
        pytest.param(problem(409, "Conflict", "is completed"), 1, "is completed", id="conflict: 1"),
        pytest.param(problem(500, "Internal error", "boom"), 3, "boom", id="the API's failure: 3"),
        pytest.param(Scripted(raw=b"<html>"), 3, "Something else answers there", id="not the API: 3"),
        pytest.param(Scripted(document={}), 1, "as new as", id="another version: 1"),
    ],
)
def test_an_error_is_one_message_on_stderr_and_its_exit_code(
    answer: Scripted, code: int, message: str, trainmaster: Trainmaster, api: FakeApi
) -> None:
    api.script("GET", "/jobs/job1", answer)
    ran = trainmaster("show", "job1")
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("trainmaster: ")
    assert message in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("variable", "value", "code", "message"),
    [
        ("TRAINMASTER_API_URL", "http://127.0.0.1:1/prod", 3, "http://127.0.0.1:1/prod"),
        ("TRAINMASTER_API_URL", "http://example.com/prod", 3, "http:// is for this machine alone"),
        ("AWS_PROFILE", "nobody", 1, "profile (nobody) could not be found"),
    ],
)
def test_a_wrong_environment_is_told_with_what_is_wrong(
    variable: str,
    value: str,
    code: int,
    message: str,
    trainmaster: Trainmaster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, value)
    ran = trainmaster("queue")
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["quue"], id="no such command"),
        pytest.param(["show"], id="no job"),
        pytest.param(["show", "../policy"], id="no job name"),
        pytest.param(["queue", "--stat", "x"], id="no such option"),
        pytest.param(["queue", "5"], id="seconds without --watch"),
        pytest.param(["queue", "--watch", "0.1"], id="too often"),
        pytest.param(["priority", "job1"], id="no priority"),
        pytest.param(["priority", "job1", "high"], id="a priority is a number"),
        pytest.param(["priority", "job1", "1001"], id="a priority is at most 1000"),
        pytest.param(["hold", "a/b"], id="no job name to hold"),
        pytest.param(["submit", "/nonexistent.json"], id="no such request"),
        pytest.param(["submit", "/dev/null"], id="an empty file is no request"),
        pytest.param(["policy", "apply", "/nonexistent.yaml"], id="no such file"),
        pytest.param(["policy", "diff", "/dev/null"], id="an empty file is no policy"),
        pytest.param(["policy", "rollback"], id="no revision"),
        pytest.param(["policy", "rollback", "0"], id="revisions begin with 1"),
        pytest.param(["policy", "show", "--revision", "latest"], id="a revision is a number"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_nothing_is_sent(
    arguments: list[str], trainmaster: Trainmaster, api: FakeApi
) -> None:
    assert trainmaster(*arguments).code == 2
    assert api.received == []


def test_local_up_hands_all_its_options_to_the_twin(
    trainmaster: Trainmaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[list[str]] = []
    twin = ModuleType("local.up")
    twin.main = lambda argv: given.append(argv) or 7  # type: ignore[attr-defined, func-returns-value]
    monkeypatch.setitem(sys.modules, "local.up", twin)
    options = ["--port", "4599", "--parameter", "A=1", "--parameter", "B=2", "--clock", "manual", "--json"]
    assert trainmaster("local", "up", *options, "--help").code == 7
    assert given == [[*options, "--help"]]
