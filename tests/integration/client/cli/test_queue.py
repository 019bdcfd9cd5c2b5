"""``trainmaster queue`` against the fake API: its forms, its filters, and an older stack."""

import csv
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted, problem, view

SDK = "pytorch-training-2026-11-21-10-03-{}-123"
JOBS = [
    view(
        SDK.format(55),
        state="running",
        position=None,
        started_at="2026-11-21T01:10:00Z",
        training_since="2026-11-21T01:12:00Z",
        ends_by="2026-11-21T02:12:00Z",
    ),
    view(SDK.format(56), position=1, team="language-models"),
]
POOLS = [
    {
        "name": "p5",
        "capacity": {"ml.p5.48xlarge": 1},
        "used": {"on-demand": {"ml.p5.48xlarge": 1}},
        "teams": [{"name": "vision"}, {"name": "language-models"}],
        "waiting": 1,
    },
    {"name": "g5", "capacity": {"ml.g5.12xlarge": 4}},
]
ESTIMATES = [
    {"name": SDK.format(56), "position": 1, "p50": "2026-11-21T02:12:00Z", "p90": "2026-11-21T03:00:00Z"}
]


@pytest.fixture
def queue(trainmaster: Trainmaster, api: FakeApi) -> Trainmaster:
    answer(api, "/jobs", {"jobs": JOBS, "next_token": None})
    answer(api, "/pools", {"pools": POOLS})
    answer(api, "/estimates", {"estimates": ESTIMATES, "truncated": False})

    def run(*arguments: str) -> Any:
        return trainmaster("queue", *arguments)

    return run


def answer(api: FakeApi, path: str, document: Any) -> None:
    api.script("GET", path, Scripted(document=document))


def test_a_line_a_pool_then_the_jobs_with_their_likely_start(
    queue: Trainmaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = queue()
    lines = ran.out.splitlines()
    assert (ran.code, ran.err) == (0, "")
    assert lines[:3] == [
        "p5: 1/1 used, 0 free, 0 warm, 1 waiting, next certain end due",
        "g5: 0/4 used, 0 free, 0 warm, 0 waiting",
        "",
    ]
    assert lines[3].split() == ["JOB", "TEAM", "POOL", "STATE", "N", "RAN", "LEFT", "STARTS", "REASON"]
    assert lines[5].split()[-2:] == ["now", "capacity"]
    assert len(lines) == 6
    assert max(map(len, lines)) <= 80


def test_an_older_stack_has_no_column_of_starts(
    queue: Trainmaster, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = {"content-type": "application/json", "x-amzn-ErrorType": "MissingAuthenticationTokenException"}
    refusal = Scripted(status=403, document={"message": "Missing Authentication Token"}, headers=missing)
    api.script("GET", "/estimates", refusal)
    monkeypatch.setenv("COLUMNS", "80")
    ran = queue()
    assert (ran.code, ran.err) == (0, "")
    assert "STARTS" not in ran.out
    assert "REASON" in ran.out


def test_wide_shortens_nothing_on_the_narrowest_screen(
    queue: Trainmaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = queue().out
    monkeypatch.setenv("COLUMNS", "40")
    assert queue("--wide").out == piped
    assert "capacity: needs 1 ml.p5.48xlarge, 0 are free" in piped
    assert "…" not in piped


def test_csv_is_a_row_a_job_and_no_cell_is_a_formula(queue: Trainmaster, api: FakeApi) -> None:
    reason = {"code": "held", "message": '=HYPERLINK("http://x","y")'}
    answer(api, "/jobs", {"jobs": [JOBS[0], view("job2", waiting=reason, position=1)]})
    ran = queue("-o", "csv")
    first, second = csv.DictReader(io.StringIO(ran.out))
    assert (first["job"], first["state"], first["left_seconds"]) == (SDK.format(55), "running", "0")
    assert first["ends_by"] == "2026-11-21T02:12:00Z"
    assert (second["reason_code"], second["reason"]) == ("held", '\'=HYPERLINK("http://x","y")')
    assert "/pools" not in str(api.calls())


def test_output_json_is_json(queue: Trainmaster, api: FakeApi) -> None:
    assert queue("-o", "json") == queue("--json")
    assert json.loads(queue("-o", "json").out) == {"jobs": JOBS, "next_token": None}
    assert set(api.calls()) == {"GET /jobs"}


def test_mine_asks_the_api_for_the_callers_own(queue: Trainmaster, api: FakeApi) -> None:
    queue("--mine")
    assert api.received[0].query == {"mine": ["true"]}


def test_a_stack_that_does_not_know_mine_is_said_to_be_older(queue: Trainmaster, api: FakeApi) -> None:
    unknown = {"field": "query.mine", "message": "unknown parameter", "hint": "use state, team"}
    api.script("GET", "/jobs", problem(400, "Invalid request", "1 problem", unknown))
    ran = queue("--mine")
    assert (ran.code, ran.err.splitlines()[-1]) == (1, "The deployed stack is older than --mine.")


# ---- what is not there


def test_an_empty_queue_points_to_what_has_ended(queue: Trainmaster, api: FakeApi) -> None:
    answer(api, "/jobs", {"jobs": [], "next_token": None})
    assert "No jobs in the queue. Those that have ended: trainmaster history" in queue().out
    assert "trainmaster history" not in queue("--mine").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--pool", "p4"], "--pool: 'p4' is not a pool; did you mean p5?", id="near"),
        pytest.param(["--pool", "P5"], "--pool: 'P5' is not a pool; did you mean p5?", id="case"),
        pytest.param(
            ["--pool", "zzz"],
            "--pool: 'zzz' is not a pool; trainmaster pools shows which there are.",
            id="far",
        ),
        pytest.param(
            ["--state", "runing"],
            "--state: 'runing' is not a state; did you mean running?",
            id="state",
        ),
        pytest.param(
            ["--state", "zzz"],
            "--state: 'zzz' is not a state; use one of pending, held, starting, running, preempting,"
            " preempted, stopping, completed, failed, stopped.",
            id="no state",
        ),
        pytest.param(["-o", "csv", "--watch"], "-o csv prints once, and nothing else.", id="csv and watch"),
        pytest.param(["-w", "--wide"], "--wide is for a queue that is printed once.", id="wide and watch"),
    ],
)
def test_a_wrong_name_is_an_error_with_the_nearest(
    arguments: list[str], message: str, queue: Trainmaster, api: FakeApi
) -> None:
    answer(api, "/jobs", {"jobs": [], "next_token": None})
    ran = queue(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


@pytest.mark.parametrize(("option", "name", "near"), [("--pool", "p4", "p5"), ("--team", "vison", "vision")])
def test_a_name_that_the_api_refuses_gets_the_nearest_beside_its_words(
    option: str, name: str, near: str, queue: Trainmaster, api: FakeApi
) -> None:
    api.script("GET", "/jobs", problem(400, "Bad request", f"unknown: {name}; known: p5, g5"))
    ran = queue(option, name)
    assert (ran.code, ran.out) == (1, "")
    assert f"unknown: {name}" in ran.err
    assert ran.err.splitlines()[-1] == f"Did you mean {near}?"


def test_what_the_api_says_itself_is_not_said_twice(queue: Trainmaster, api: FakeApi) -> None:
    detail = 'there is no team "vison"; did you mean vision?'
    api.script("GET", "/jobs", problem(400, "Invalid request", detail))
    assert queue("--team", "vison").err.lower().count("did you mean") == 1


def test_a_team_of_which_an_older_stack_knows_nothing_is_said_beside_the_empty_queue(
    queue: Trainmaster, api: FakeApi
) -> None:
    answer(api, "/jobs", {"jobs": [], "next_token": None})
    ran = queue("--team", "vison")
    assert ran.err == "No team 'vison' uses a pool. Did you mean vision?\n"
    assert "No jobs." in ran.out


# ---- the tab key


@pytest.fixture
def _logging_again() -> Iterator[None]:
    """What completes a name silences all loggers of its process, which ends with it for users."""
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("_logging_again")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        pytest.param("--state r", ["running"], id="state"),
        pytest.param("--pool ", ["p5", "g5"], id="pool"),
        pytest.param("--team ", ["speech", "vision", "language-models"], id="team"),
    ],
)
def test_a_shell_completes_states_pools_and_teams(
    words: str,
    found: list[str],
    queue: Trainmaster,
    trainmaster: Trainmaster,
    api: FakeApi,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer(api, "/me", {"principal": "ann", "admin": False, "teams": [{"name": "speech"}]})
    monkeypatch.setenv("_TRAINMASTER_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"trainmaster queue {words}")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert trainmaster().out.split() == found
