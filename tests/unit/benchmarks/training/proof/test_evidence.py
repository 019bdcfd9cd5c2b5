"""Each check holds of what a good run leaves, and fails of what it is about; the table and the curves too."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.image import imread
from trainmaster_client.report import Report

from benchmarks.training.proof.evidence import check, draw, print_runs
from tests.unit.benchmarks.training.proof.facts import REFERENCE, Facts, facts, interrupted, uninterrupted


def outcomes(*runs: Facts) -> dict[str, bool | None]:
    report = Report("training", facts=facts(*runs))
    check(report)
    return {one.id: one.ok for one in report.checks}


def failed(*runs: Facts) -> set[str]:
    return {name for name, ok in outcomes(*runs).items() if not ok}


def with_loss(run: Facts, step: int, loss: float) -> Facts:
    """Of the last time the step was trained."""
    last = max(place for place, (one, _) in enumerate(run["losses"]) if one == step)
    run["losses"][last] = [step, loss.hex()]
    return run


def test_a_run_that_went_on_as_if_nothing_had_happened_passes() -> None:
    assert outcomes(uninterrupted(), interrupted()) == {
        "fp32-uninterrupted-exit-codes": True,
        "fp32-uninterrupted-steps-missing": True,
        "fp32-interrupted-exit-codes": True,
        "fp32-interrupted-steps-missing": True,
        "fp32-interrupted-steps-lost-when-asked": True,
        "fp32-interrupted-same-bits": True,
        "fp32-interrupted-final-hashes": True,
    }


def test_steps_that_a_kill_cost_are_trained_again_and_no_more_than_two_intervals() -> None:
    name = "fp32-interrupted-steps-lost-when-killed"
    assert outcomes(uninterrupted(), interrupted(signal="5:KILL", resumed=1))[name] is True
    assert failed(uninterrupted(), interrupted(signal="5:KILL", resumed=0)) == {name}


def test_on_other_ranks_losses_may_differ_by_a_ten_millionth_and_hashes_are_not_compared() -> None:
    run = with_loss(interrupted(worlds=(2, 4)), 7, REFERENCE[7] + 9e-8)
    run["final_hashes"] = {"params": "cc", "optimizer": "dd"}
    found = outcomes(uninterrupted(), run)
    assert found["fp32-interrupted-close"] is True
    assert "fp32-interrupted-final-hashes" not in found
    assert False not in found.values()


def spoiled(run: Facts, **changes: object) -> Facts:
    return {**run, **changes}


@pytest.mark.parametrize(
    ("run", "check_id"),
    [
        pytest.param(lambda: spoiled(interrupted(), exit_codes=[0, 0]), "exit-codes", id="it did not stop"),
        pytest.param(lambda: spoiled(interrupted(), exit_codes=[143]), "exit-codes", id="an attempt is gone"),
        pytest.param(lambda: interrupted(resumed=6), "steps-missing", id="a step was left out"),
        pytest.param(lambda: interrupted(resumed=4), "steps-lost-when-asked", id="a step was lost"),
        pytest.param(
            lambda: with_loss(interrupted(), 7, math.nextafter(REFERENCE[7], 9)),
            "same-bits",
            id="one bit of one loss is another",
        ),
        pytest.param(
            lambda: with_loss(interrupted(worlds=(2, 4)), 7, REFERENCE[7] + 1.1e-7),
            "close",
            id="on other ranks a loss is too far off",
        ),
        pytest.param(
            lambda: with_loss(interrupted(worlds=(2, 4)), 7, math.nan), "close", id="a loss is no number"
        ),
        pytest.param(
            lambda: with_loss(interrupted(worlds=(2, 4)), 3, math.nextafter(REFERENCE[3], 9)),
            "same-bits",
            id="a bit is another before the ranks changed",
        ),
        pytest.param(
            lambda: spoiled(interrupted(), final_hashes={"params": "aa" * 32, "optimizer": "cc"}),
            "final-hashes",
            id="the optimizer ends differently",
        ),
        pytest.param(
            lambda: spoiled(interrupted(), final_hashes=None), "final-hashes", id="no final checkpoint"
        ),
    ],
)
def test_what_differs_is_found(run: Callable[[], Facts], check_id: str) -> None:
    assert failed(uninterrupted(), run()) == {f"fp32-interrupted-{check_id}"}


def test_a_run_that_was_done_before_it_could_stop_is_none_that_ignored_the_signal() -> None:
    done = interrupted(signal="6:TERM")
    done["attempts"] = [
        {**done["attempts"][0], "sent_at": 6, "last_step": 8, "steps_trained": 8, "exit_code": 0},
        {**done["attempts"][1], "first_step": None, "last_step": None, "steps_trained": 0},
    ]
    done["exit_codes"] = [0, 0]
    assert failed(uninterrupted(), done) == set()
    nothing_left = {**done["attempts"][1], "signal": "7:TERM", "sent_at": None}
    again = {**done, "signals": ["6:TERM", "7:TERM"], "worlds": [2, 2, 2], "exit_codes": [0, 0, 0]}
    again["attempts"] = [done["attempts"][0], nothing_left, done["attempts"][1]]
    assert failed(uninterrupted(), again) == set()
    done["attempts"][0]["sent_at"] = 5
    assert failed(uninterrupted(), done) == {"fp32-interrupted-exit-codes"}


def test_two_runs_without_a_final_checkpoint_are_not_equal() -> None:
    nothing = spoiled(uninterrupted(), final_hashes=None)
    assert failed(nothing, spoiled(interrupted(), final_hashes=None)) == {"fp32-interrupted-final-hashes"}


def with_spoiled(**changes: object) -> Facts:
    """Its newest checkpoint was that of step 5, and it went on from step 4."""
    run = interrupted(signal="5:KILL", resumed=4)
    second = {
        **run["attempts"][1],
        "spoiled": "step-00000005: flip: bit 1 of byte 2 of __0_0.distcp",
        "said": ["skipping torn checkpoint step-00000005: rank 0: DamagedError: __0_0.distcp is damaged"],
    }
    return {**run, "spoils": True, "attempts": [run["attempts"][0], {**second, **changes}]}


def test_a_spoiled_checkpoint_must_be_named_and_passed_over() -> None:
    assert failed(uninterrupted(), with_spoiled()) == set()
    check_id = "fp32-interrupted-passed-over"
    assert check_id in outcomes(uninterrupted(), with_spoiled())
    assert failed(uninterrupted(), with_spoiled(said=["resumed from step=5"])) == {check_id}
    assert failed(uninterrupted(), with_spoiled(first_step=6)) == {check_id}
    assert failed(uninterrupted(), with_spoiled(spoiled=None)) == {check_id}


def test_every_trial_of_a_spoiled_shard_must_be_found() -> None:
    trials = [{"what": "flip: bit 1", "found": "damaged"}, {"what": "swap: a and b", "found": ""}]
    report = Report("training", facts={**facts(uninterrupted()), "spoilings": trials})
    check(report)
    (found,) = (one for one in report.checks if one.id == "spoiled-shards-found")
    assert (found.ok, found.actual) == (False, "1 of 2; missed swap: a and b")


def test_the_table_says_how_far_the_losses_are_apart(capsys: pytest.CaptureFixture[str]) -> None:
    other = interrupted(worlds=(2, 4), signal="5:KILL", resumed=3) | {"id": "other", "final_hashes": None}
    other["losses"][-1] = [8, (4.5 + 2e-7).hex()]
    print_runs(facts(uninterrupted(), interrupted(), other))
    assert capsys.readouterr().out.split() == [
        *("RUN", "RANKS", "EXIT", "CODES", "REPLAYED", "LARGEST", "DIFFERENCE", "WEIGHTS", "OPTIMIZER"),
        *("fp32-uninterrupted", "2", "0", "0", "-", "aaaaaaaaaaaa", "bbbbbbbbbbbb"),
        *("fp32-interrupted", "2,2", "143,0", "0", "0", "aaaaaaaaaaaa", "bbbbbbbbbbbb"),
        *("other", "2,4", "-9,0", "2", "2.0e-07", "-", "-"),
    ]


def test_curves_are_drawn_with_differences_and_without(tmp_path: Path) -> None:
    shifted = interrupted(worlds=(2, 4), signal="5:KILL", resumed=3)
    shifted["id"] = "other"
    shifted["losses"][-1] = [8, (4.5 + 1e-8).hex()]
    path = tmp_path / "new" / "curves.png"
    draw(facts(uninterrupted(), interrupted(), shifted), path)
    height, width, _ = imread(path).shape
    assert (height, width) == (825, 1210)


def test_a_run_that_trained_no_step_is_drawn_as_nothing(tmp_path: Path) -> None:
    nothing = interrupted() | {"losses": []}
    nothing["attempts"] = [
        one | {"first_step": None, "last_step": None, "steps_trained": 0} for one in nothing["attempts"]
    ]
    draw(facts(uninterrupted(), nothing), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").exists()
