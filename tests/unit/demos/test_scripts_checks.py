"""The checks of `make demo-scripts` pass on a script that was resumed, and fail on what is missing."""

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console
from trainmaster_client.report import Report

from demos.scripts import CASES, LIBRARIES, SAMPLES, STOPPED_IN, Script, cases_table, check_case, refusals
from demos.stage.printed import losses_of, not_seen_once, printed_in, refusal_in
from demos.stage.resumed import check_resumed, check_same_losses, steps_lost

STEPS = 20
LOSSES = [[str(step), f"{1 / step!r}"] for step in range(1, STEPS + 1)]
EVALUATIONS = [[str(step), f"{2 / step!r}"] for step in (6, 12, 18)]
SEEN = {str(step): [(4 * step + at) % SAMPLES for at in range(-4, 0)] for step in range(1, 19)}
REFUSAL = "this attempt has 1 rank, the one before had 2 ranks"


def script(first: list[list[str]], second: list[list[str]], *, exit_code: int = 143) -> dict[str, Any]:
    return {
        "script": "hf",
        "attempts": [
            {"status": "Stopped", "exit_code": exit_code, "losses": first},
            {"status": "Completed", "exit_code": 0, "losses": second},
        ],
        "undisturbed": LOSSES,
    }


def failures(one: dict[str, Any]) -> list[str]:
    report = Report(name="scripts")
    one["steps_lost"] = steps_lost(one["attempts"])
    check_resumed(report, one)
    check_same_losses(report, one, STEPS)
    return [check.id for check in report.checks if not check.ok]


@pytest.mark.parametrize("lost", [0, 1])
def test_a_script_that_lost_at_most_the_step_in_flight_passes(lost: int) -> None:
    one = script(LOSSES[:12], LOSSES[12 - lost :])
    assert failures(one) == []
    assert one["steps_lost"] == lost


@pytest.mark.parametrize(
    ("one", "failed"),
    [
        pytest.param(script(LOSSES[:12], LOSSES[10:]), ["hf-steps-lost"], id="two steps lost"),
        pytest.param(script(LOSSES[:12], LOSSES), ["hf-steps-lost"], id="from scratch"),
        pytest.param(
            script(LOSSES[:12], []), ["hf-steps-lost", "hf-same-losses"], id="it trained nothing afterwards"
        ),
        pytest.param(script(LOSSES[:12], LOSSES[12:], exit_code=137), ["hf-ends"], id="it was killed"),
        pytest.param(
            script(LOSSES[:12], [["13", "0.07692307692307694"], *LOSSES[13:]]),
            ["hf-same-losses"],
            id="a loss differs in its last digit",
        ),
    ],
)
def test_what_is_missing_fails_its_check(one: dict[str, Any], failed: list[str]) -> None:
    assert failures(one) == failed


OF_A_CASE = LOSSES[:18]


def facts(case: str, stopped_in: int = STOPPED_IN, **changed: Any) -> dict[str, Any]:
    """Make the facts of a case in which all went well, but for what is changed; ``second``: of attempt 1."""
    first, second = (
        {
            "status": status,
            "exit_code": code,
            "losses": [loss for loss in OF_A_CASE if (int(loss[0]) <= stopped_in) == is_first],
            "evaluations": [one for one in EVALUATIONS if (int(one[0]) < stopped_in) == is_first],
            "samples": {step: seen for step, seen in SEEN.items() if (int(step) <= stopped_in) == is_first},
        }
        for status, code, is_first in (("Stopped", 143, True), ("Completed", 0, False))
    )
    return {
        "script": "hf",
        "title": "HF Trainer",
        "case_title": case,
        "attempts": [first, second | changed.pop("second", {})],
        "undisturbed": OF_A_CASE,
        "undisturbed_evaluations": EVALUATIONS,
        "refused": None,
        **changed,
    }


def failures_of(case: str, one: dict[str, Any], *, library: str = "hf") -> list[str]:
    report = Report(name="scripts")
    named = next(case_ for case_ in CASES if case_.name == case)
    check_case(report, Script(library=replace(LIBRARIES[0], name=library), case=named), one)
    return [check.id for check in report.checks if not check.ok]


@pytest.mark.parametrize("case", ["evaluation", "ranks", "stream"])
def test_each_case_passes_where_all_went_well(case: str) -> None:
    one = facts(case)
    assert failures_of(case, one) == []
    assert (one["different"], one["largest_difference"], one["not_seen_once"]) == (0, 0.0, 0)


SUMMED_OTHERWISE = [[step, repr(float(loss) * (1 + 1e-6))] for step, loss in OF_A_CASE[12:]]
TWICE = {"samples": SEEN | {"13": SEEN["12"]}}


@pytest.mark.parametrize(
    ("case", "one", "failed"),
    [
        pytest.param(
            "ranks", facts("ranks", second={"losses": SUMMED_OTHERWISE}), [], id="another order of sums"
        ),
        pytest.param(
            "stream",
            facts("stream", second={"losses": SUMMED_OTHERWISE}),
            ["hf-same-losses"],
            id="which is no excuse on as many ranks",
        ),
        pytest.param(
            "ranks",
            facts("ranks", second={"losses": [["13", "0.08"], *OF_A_CASE[13:]]}),
            ["hf-close-losses"],
            id="another loss",
        ),
        pytest.param("ranks", facts("ranks", second=TWICE), ["hf-samples"], id="samples twice"),
        pytest.param(
            "evaluation",
            facts("evaluation", stopped_in=11),
            ["hf-samples"],
            id="it was not stopped on an evaluation step",
        ),
        pytest.param(
            "evaluation",
            facts("evaluation", second={"evaluations": EVALUATIONS[2:]}),
            ["hf-evaluations"],
            id="the evaluation was not made up",
        ),
        pytest.param(
            "evaluation",
            facts("evaluation", second={"evaluations": [["12", "0.1"], EVALUATIONS[2]]}),
            ["hf-evaluations"],
            id="the evaluation found something else",
        ),
    ],
)
def test_what_is_missing_in_a_case_fails_its_check(case: str, one: dict[str, Any], failed: list[str]) -> None:
    assert failures_of(case, one) == failed


def test_a_refusal_passes_where_the_library_refuses() -> None:
    refused = {"status": "Failed", "exit_code": 1, "losses": [], "samples": {}, "evaluations": []}
    one = facts("stream-ranks", second=refused, refused=REFUSAL)
    assert failures_of("stream-ranks", one, library="lightning") == []
    wordless = facts("stream-ranks", second=refused)
    assert failures_of("stream-ranks", wordless, library="lightning") == ["hf-refused"]
    went_on = facts("stream-ranks", refused=REFUSAL)
    assert failures_of("stream-ranks", went_on, library="lightning") == ["hf-ends", "hf-refused"]


def test_the_table_has_each_library_in_each_case_and_refusals_have_their_sentence() -> None:
    close = facts("from 2 ranks to 1", second={"losses": SUMMED_OTHERWISE})
    once, refused = facts("on a stream"), facts("on a stream", refused=REFUSAL)
    for case, one in (("ranks", close), ("stream", once), ("stream", refused)):
        failures_of(case, one)
    console = Console(width=80, file=io.StringIO(), record=True)
    console.print(cases_table([close, once, refused]))
    rows = [
        [word.strip() for word in re.split(r"  +", line.strip())]
        for line in console.export_text().splitlines()
    ]
    assert rows == [
        ["STOPPED", "LIBRARY", "LOST", "LOSSES THAT DIFFER", "SAMPLES ONCE"],
        ["from 2 ranks to 1", "HF Trainer", "0", "6 of 18, by 1e-06", "all"],
        ["on a stream", "HF Trainer", "0", "0 of 18", "all"],
        ["HF Trainer", "-", "refused, see below", "-"],
    ]
    assert list(refusals([close, once, refused])) == [f"HF Trainer, on a stream, refuses: {REFUSAL}"]


def test_a_job_that_was_started_twice_in_vain_has_lost_nothing_by_it() -> None:
    assert steps_lost([{"losses": LOSSES[:3]}, {"losses": []}, {"losses": LOSSES[3:]}]) == 0


def test_losses_are_read_as_they_were_printed() -> None:
    lines = ["resuming", "step=2 loss=0.30000000000000004", "{'loss': '0.3'}"]
    assert losses_of(lines) == [["2", "0.30000000000000004"]]


def test_samples_of_a_step_are_those_of_all_ranks() -> None:
    lines = ["step=2 samples=[3, 1]", "evaluation=2 loss=0.5", "step=2 samples=[2, 0]", "step=2 loss=0.25"]
    assert printed_in(lines) == {
        "losses": [["2", "0.25"]],
        "evaluations": [["2", "0.5"]],
        "samples": {"2": [3, 1, 2, 0]},
    }


def test_a_refusal_is_the_sentence_without_its_traceback() -> None:
    assert refusal_in(["Traceback (most recent call last):", f"ValueError: {REFUSAL}"]) == REFUSAL
    assert refusal_in([f"[rank0]: ValueError: {REFUSAL}"]) == REFUSAL
    assert refusal_in(["step=1 loss=0.5"]) is None


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        pytest.param([{"1": [2, 0], "2": [1, 3]}], [], id="each once"),
        pytest.param([{"1": [0, 1], "2": [2, 3], "3": [0, 2]}], [], id="an epoch that has begun"),
        pytest.param([{"9": [0, 1], "10": [2, 3], "11": [0, 1]}], [], id="steps by number, not by letters"),
        pytest.param([{"1": [0, 1]}, {"2": [1, 3]}], [1, 2], id="one twice and one never"),
        pytest.param([{"1": [0, 1], "2": [2, 3], "3": [0, 0]}], [0], id="twice in an epoch that has begun"),
    ],
)
def test_samples_that_an_epoch_did_not_see_once(parts: list[dict[str, list[int]]], wrong: list[int]) -> None:
    assert not_seen_once(parts, samples=4) == wrong
