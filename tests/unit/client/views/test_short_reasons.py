"""Why a job is where it is, in 40 characters, from what the queue around it shows."""

from itertools import product
from typing import Any

import pytest
from trainmaster.core.jobs.model import LIVE, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.row_words import HAPPENS, LONGEST_SHORT_REASON, WAITS_FOR
from trainmaster_client.views.queue_model import QueueAnswers, queue_model

from tests.builders import NOON
from tests.integration.client.fake_api import view

P5 = "ml.p5.48xlarge"


def reason(code: str) -> dict[str, str]:
    return {"code": code, "message": "the whole message"}


def needs(count: int, **fields: Any) -> dict[str, Any]:
    return view(instances={P5: count}, waiting=reason("capacity"), **fields)


def pool(free: Any) -> dict[str, Any]:
    return {"name": "p5", "capacity": {P5: 8}, "free": free}


def short(*jobs: dict[str, Any], pools: list[dict[str, Any]] | None = None) -> str:
    """Of the last of these jobs."""
    model = queue_model(QueueAnswers(document={"jobs": jobs}, pools=pools or []), now=NOON)
    return model.rows[-1].cells["short"]


HEAD = needs(8, name="llama-pretrain", position=1)


@pytest.mark.parametrize(
    ("free", "job", "expected"),
    [
        pytest.param({"on-demand": {P5: 6}}, needs(8), "waits for 2 of 8", id="some are free"),
        pytest.param({"on-demand": {}}, needs(8), "waits for 8 of 8", id="none is free"),
        pytest.param({"on-demand": {P5: 6}}, needs(2), "waits for free instances", id="kept for another"),
        pytest.param({"on-demand": {P5: 6}}, needs(8, capacity_type="spot"), "waits for 8 of 8", id="spot"),
        pytest.param({"on-demand": {P5: "many"}}, needs(8), "waits for free instances", id="unreadable"),
        pytest.param(None, needs(8), "waits for free instances", id="an older stack"),
    ],
)
def test_a_job_that_waits_for_capacity_says_how_much_is_missing(
    free: Any, job: dict[str, Any], expected: str
) -> None:
    assert short(job, pools=[pool(free)]) == expected


def test_instances_of_several_types_are_added_up() -> None:
    both = view(instances={P5: 2, "ml.g5.xlarge": 3}, waiting=reason("capacity"))
    assert short(both, pools=[pool({"on-demand": {P5: 1, "ml.g5.xlarge": 5}})]) == "waits for 1 of 5"


@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        pytest.param([HEAD], "behind llama-pretrain", id="its name"),
        pytest.param([view(None, team="speech", position=1)], "behind a job of speech", id="another team's"),
        pytest.param([], "behind 2 jobs", id="a page without it"),
        pytest.param([{**HEAD, "pool": "g5"}], "behind 2 jobs", id="another pool's head"),
        pytest.param(
            [view("held", position=1, waiting=reason("quota")), needs(1, name="next", position=2)],
            "behind next",
            id="one that waits for its quota keeps nobody",
        ),
    ],
)
def test_a_job_behind_others_names_the_first_of_them(ahead: list[dict[str, Any]], expected: str) -> None:
    assert short(*ahead, view("mine", position=3, waiting=reason("ahead"))) == expected


def test_the_first_in_turn_is_behind_nobody() -> None:
    assert short(view(position=1, waiting=reason("ahead"))) == "waits for free instances"


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([{"job": "prep", "type": "afterok", "state": "running"}], "after prep"),
        (
            [
                {"job": "done", "type": "afterok", "state": "completed"},
                {"job": "prep", "type": "afterok", "state": "running"},
                {"job": "clean", "type": "afterany", "state": "pending"},
            ],
            "after prep and 1 more",
        ),
        ([{"job": None, "type": "afterok", "state": "running"}], "waits for other jobs to end"),
        ([], "waits for other jobs to end"),
    ],
)
def test_a_child_names_the_first_parent_still_to_end(after: list[dict[str, Any]], expected: str) -> None:
    assert short(view(position=None, after=after, waiting=reason("dependency"))) == expected


@pytest.mark.parametrize("name", ["a", "n" * 63, "訓練" * 40])
def test_no_short_reason_is_longer_than_a_column(name: str) -> None:
    after = [{"job": name, "type": "afterok", "state": "running"}] * 30
    for code, state in product([*ReasonCode, "phase-of-the-moon", "x" * 300], [*JobState, "another"]):
        job = view(name, state=state, position=10**9, waiting=reason(code), reason=reason(code), after=after)
        assert len(short({**HEAD, "name": name}, job)) <= LONGEST_SHORT_REASON, (code, state)


@pytest.mark.parametrize("code", [code for code in WAITS_FOR if code])
def test_every_reason_to_wait_has_words_without_its_code(code: str) -> None:
    said = short(view(position=None, waiting=reason(code)))
    assert said not in {"", code}
    assert len(WAITS_FOR[code]) <= LONGEST_SHORT_REASON


def test_a_code_of_a_newer_stack_is_shown_as_it_is() -> None:
    assert short(view(waiting=reason("phase-of-the-moon"))) == "phase-of-the-moon"


def test_what_happens_to_a_live_job_is_said_and_how_one_ended() -> None:
    assert {state: short(view(state=state)) for state in LIVE} == HAPPENS
    assert short(view(state="failed", reason=reason("gpu-oom"))) == "gpu-oom"
    assert short(view(state="completed", reason=reason("completed"))) == ""


def test_of_another_teams_job_nothing_is_claimed() -> None:
    assert short(view(None, waiting=None, position=4)) == ""
