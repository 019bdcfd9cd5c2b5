"""``make demo-training`` as a user runs it; what it claims is computed again here from its facts."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCHEDULE = ("--steps", "12", "--seed", "3", "--kill-at", "3:INT,7:KILL", "--worlds", "1,1,3")

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    place: Path = tmp_path_factory.mktemp("proof") / "new" / "training.json"
    command = [sys.executable, "-m", "demos.proof", *SCHEDULE, "--json", str(place)]
    # Without a limit: an attempt that is silent for minutes is given up.
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return place


@pytest.fixture(scope="module")
def report(path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.fixture(scope="module")
def runs(report) -> dict[str, dict[str, Any]]:
    return {run["id"]: run for run in report["facts"]["runs"]}


def losses(run: dict[str, Any]) -> list[tuple[int, float]]:
    return [(step, float.fromhex(loss)) for step, loss in run["losses"]]


def test_the_report_is_ok_and_has_a_picture_beside_it(report, path):
    assert (report["schema"], report["name"], report["ok"]) == ("trainmaster.report/1", "training", True)
    assert path.with_suffix(".png").stat().st_size > 10_000


def test_every_run_was_killed_as_the_schedule_says(runs):
    described = {
        name: (run["worlds"], run["signals"], run["exit_codes"], run["precision"])
        for name, run in runs.items()
    }
    kills, codes = ["3:INT", "7:KILL"], [143, -9, 0]
    assert described == {
        "fp32-uninterrupted": ([1], [], [0], "fp32"),
        "fp32-interrupted": ([1, 1, 3], kills, codes, "fp32"),
        "fp32-interrupted-one-world": ([1, 1, 1], kills, codes, "fp32"),
        "bf16-uninterrupted": ([1], [], [0], "bf16"),
        "bf16-interrupted-one-world": ([1, 1, 1], kills, codes, "bf16"),
    }


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_on_as_many_ranks_every_bit_is_that_of_the_uninterrupted_run(runs, precision):
    plain, killed = runs[f"{precision}-uninterrupted"], runs[f"{precision}-interrupted-one-world"]
    wanted = dict(losses(plain))
    assert sorted(wanted) == list(range(1, 13))
    assert {step for step, _ in losses(killed)} == set(wanted)
    assert [row for row in losses(killed) if wanted[row[0]] != row[1]] == []
    assert killed["final_hashes"] == plain["final_hashes"]
    assert len(killed["final_hashes"]["params"]) == len(killed["final_hashes"]["optimizer"]) == 64


def test_on_other_ranks_losses_are_within_a_millionth(runs):
    wanted, changed = dict(losses(runs["fp32-uninterrupted"])), runs["fp32-interrupted"]
    assert max(abs(loss - wanted[step]) for step, loss in losses(changed)) <= 1e-6
    assert changed["attempts"][2]["world"] == 3


def test_only_the_kill_cost_steps(runs):
    for run in runs.values():
        steps = [step for step, _ in run["losses"]]
        assert run["steps_replayed"] == len(steps) - len(set(steps))
        if run["signals"]:
            stopped, killed, last = run["attempts"]
            assert killed["first_step"] == stopped["last_step"] + 1
            assert killed["last_step"] + 1 - last["first_step"] == run["steps_replayed"] <= 10
