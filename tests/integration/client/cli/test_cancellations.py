"""Several jobs cancelled at once: by name, or all that match, after a question."""

import json
import sys
from typing import Any

import pytest

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted, problem, view


def cancels(api: FakeApi, *names: str, **answers: Scripted) -> None:
    for name in names:
        api.script("DELETE", f"/jobs/{name}", Scripted(document=view(name, state="stopped")))
    for name, answer in answers.items():
        api.script("DELETE", f"/jobs/{name}", answer)


def lists(api: FakeApi, *jobs: dict[str, Any]) -> None:
    api.script("GET", "/jobs", Scripted(document={"jobs": list(jobs), "next_token": None}))


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Types an answer at a terminal."""

    def type_it(text: str) -> None:
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
        monkeypatch.setattr("typer.confirm", lambda *_, **__: text == "y")

    return type_it


def deleted(api: FakeApi) -> list[str]:
    return [call.removeprefix("DELETE /jobs/") for call in api.calls() if call.startswith("DELETE")]


def test_several_names_are_cancelled_without_a_question(trainmaster: Trainmaster, api: FakeApi) -> None:
    cancels(api, "a", "b")
    ran = trainmaster("cancel", "a", "b", "a")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == ["a: stopped", "b: stopped", "Cancelled 2 jobs."]
    assert deleted(api) == ["a", "b"]


@pytest.mark.parametrize(
    ("second", "code"),
    [
        pytest.param(problem(404, "Not found", "no job b"), 4, id="unknown"),
        pytest.param(problem(409, "Conflict", "b has ended"), 1, id="ended"),
        pytest.param(problem(403, "Forbidden", "not your team"), 1, id="not yours"),
    ],
)
def test_a_job_that_is_refused_does_not_keep_the_others_and_shows_in_the_exit_code(
    second: Scripted, code: int, trainmaster: Trainmaster, api: FakeApi
) -> None:
    cancels(api, "a", "c", b=second)
    lists(api)
    ran = trainmaster("cancel", "a", "b", "c")
    assert ran.code == code
    assert ran.out.splitlines() == ["a: stopped", "c: stopped", "Cancelled 2 jobs, 1 failed: b."]
    assert ran.err.startswith("b: ")


def test_failures_of_different_kinds_are_exit_code_1(trainmaster: Trainmaster, api: FakeApi) -> None:
    cancels(api, a=problem(404, "Not found", "no job a"), b=problem(409, "Conflict", "b has ended"))
    lists(api)
    assert trainmaster("cancel", "a", "b").code == 1


def test_an_api_that_fails_ends_it_and_says_how_far_it_came(trainmaster: Trainmaster, api: FakeApi) -> None:
    cancels(api, "a", "c", b=problem(500, "Internal error", "boom"))
    ran = trainmaster("cancel", "a", "b", "c")
    assert ran.code == 3
    assert "Before that: Cancelled 1 job." in ran.err
    assert "c" not in deleted(api)


def test_what_matches_is_counted_named_and_asked_about(
    trainmaster: Trainmaster, api: FakeApi, answer: Any
) -> None:
    others = [view(f"j{number}") for number in range(5)]
    skipped = [view(None), view("going", state="stopping"), view("over", state="failed")]
    lists(api, view("runs", state="running"), *others, *skipped)
    cancels(api, "runs", *(job["name"] for job in others))
    answer("n")
    ran = trainmaster("cancel", "--mine")
    assert (ran.code, ran.out, deleted(api)) == (1, "", [])
    assert ran.err.splitlines() == [
        "This cancels 6 jobs (5 waiting, 1 started): runs, j0, j1, j2, j3 and 1 more.",
        "Nothing was cancelled.",
    ]
    assert api.received[0].query == {"mine": ["true"], "limit": ["1000"]}
    answer("y")
    ran = trainmaster("cancel", "--mine")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "Cancelled 6 jobs.")
    assert len(deleted(api)) == 6


def test_without_a_terminal_only_yes_agrees(trainmaster: Trainmaster, api: FakeApi) -> None:
    lists(api, view("a"))
    cancels(api, "a")
    ran = trainmaster("cancel", "--team", "vision", "--state", "pending", "--pool", "p5")
    assert (ran.code, deleted(api)) == (2, [])
    assert "--yes" in ran.err
    ran = trainmaster("cancel", "--team", "vision", "--state", "pending", "--pool", "p5", "--yes")
    assert (ran.code, ran.out.splitlines()) == (0, ["a: stopped", "Cancelled 1 job."])
    wanted = {"team": ["vision"], "state": ["pending"], "pool": ["p5"], "limit": ["1000"]}
    assert api.received[0].query == wanted


def test_all_pages_are_read_before_the_first_cancel(trainmaster: Trainmaster, api: FakeApi) -> None:
    pages = [{"jobs": [view("a")], "next_token": "t"}, {"jobs": [view("b")], "next_token": None}]
    api.script("GET", "/jobs", *(Scripted(document=page) for page in pages))
    cancels(api, "a", "b")
    assert trainmaster("cancel", "--mine", "-y").out.splitlines()[-1] == "Cancelled 2 jobs."
    methods = [call.split()[0] for call in api.calls()]
    assert methods == ["GET", "GET", "GET", "DELETE", "DELETE"], "the third is for arrays without jobs"


def test_a_job_that_ended_meanwhile_is_no_failure_of_what_matched(
    trainmaster: Trainmaster, api: FakeApi
) -> None:
    lists(api, view("a"), view("b"))
    cancels(api, "a", b=problem(409, "Conflict", "b has ended"))
    ran = trainmaster("cancel", "--mine", "--yes")
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "Cancelled 1 job, 1 had ended.")


def test_nothing_that_matches_is_said_and_done(trainmaster: Trainmaster, api: FakeApi) -> None:
    lists(api)
    ran = trainmaster("cancel", "--mine")
    assert (ran.code, ran.out) == (0, "Cancelled 0 jobs.\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Which jobs?"),
        (["a", "--mine"], "Names do not go with"),
        (["--state", "pendng"], "did you mean pending?"),
        (["--state", "failed"], "have ended"),
    ],
)
def test_what_makes_no_sense_is_exit_code_2_and_nothing_is_sent(
    arguments: list[str], said: str, trainmaster: Trainmaster, api: FakeApi
) -> None:
    ran = trainmaster("cancel", *arguments)
    assert (ran.code, ran.out, api.received) == (2, "", [])
    assert said in ran.err


def test_as_json_several_are_one_document(trainmaster: Trainmaster, api: FakeApi) -> None:
    cancels(api, "a", b=problem(409, "Conflict", "b has ended"))
    ran = trainmaster("cancel", "a", "b", "--json")
    document = json.loads(ran.out)
    assert [job["name"] for job in document["jobs"]] == ["a"]
    assert [job["name"] for job in document["failed"]] == ["b"]
    assert ran.code == 1
