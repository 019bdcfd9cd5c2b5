"""Replays of what twins did start jobs when the twins did; a simulator that decides otherwise is caught."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from trainmaster_client.report import Report

from tests.simulate_twin import __main__ as simulate_twin
from tests.simulate_twin.comparison import LEAST_SHARE, Deviation, deviations, share_close, worst
from tests.simulate_twin.recorded_starts import Start, creations, starts_of
from tests.simulate_twin.recordings import BEGINS, Recording
from tests.simulate_twin.replayed import Replayed, check, replayed

RECORDED = Path(__file__).parents[1] / "fixtures" / "twin_recordings.json"
"""Of ``--only four-jobs,random-1 --jobs 60``: real submissions to real twins."""
SCHEDULER = "arn:aws:sts::123456789012:assumed-role/trainmaster-ScheduleFunctionRole/schedule"


def recording(name: str) -> Recording:
    return Recording(**json.loads(RECORDED.read_text(encoding="utf-8"))[name])


def outcomes(one: Replayed) -> list[bool | None]:
    report = Report("simulate-twin")
    report.facts["runs"] = {}
    check(report, one)
    return [found.ok for found in report.checks]


@pytest.mark.parametrize("name", ["four-jobs", "random-1"])
def test_what_a_twin_did_is_replayed_within_a_minute(name: str) -> None:
    assert outcomes(replayed(recording(name))) == [True, True]


def with_other_capacity(one: Recording) -> Replayed:
    policy = deepcopy(dict(one.policy))
    for pool in policy["pools"]:
        pool["capacity"] = {kind: count + 1 for kind, count in pool["capacity"].items()}
    return replayed(one, policy=policy)


def with_priorities_reversed(one: Recording) -> Replayed:
    lines = [json.loads(line) for line in one.exported]
    turned = [json.dumps({**line, "priority": 1000 - line["priority"]}) for line in lines]
    fields = {**one.as_json(), "exported": turned}
    return replayed(Recording(**fields))


def without_preemption(one: Recording) -> Replayed:
    policy = deepcopy(dict(one.policy))
    for pool in policy["pools"]:
        pool["preemption"] = {"enabled": False}
    return replayed(one, policy=policy)


@pytest.mark.parametrize("name", ["four-jobs", "random-1"])
@pytest.mark.parametrize("broken", [with_other_capacity, with_priorities_reversed, without_preemption])
def test_a_simulator_that_decides_otherwise_is_caught(
    broken: Callable[[Recording], Replayed], name: str
) -> None:
    assert outcomes(broken(recording(name))) == [False, False]


def test_starts_are_read_from_the_schedulers_own_calls() -> None:
    def call(name: str, attempt: int, seconds: str, **more: Any) -> dict[str, Any]:
        tags = {"trainmaster:job": "entry-1", "trainmaster:attempt": str(attempt)}
        params = {
            "TrainingJobName": name,
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        }
        usual = {"seq": 1, "kind": "call", "principal": SCHEDULER, "operation": "CreateTrainingJob"}
        return {**usual, "clock": f"2026-10-05T00:{seconds}Z", "error_code": None, "params": params, **more}

    journal = [
        {"kind": "process", "training_job": "mine"},
        call("mine", 0, "01:00.500", error_code="ThrottlingException"),
        call("mine", 0, "02:00.500"),
        call("mine", 0, "02:01.000", principal="arn:aws:iam::123456789012:user/local-admin"),
        call("mine-r1-abcdef", 1, "09:00.000"),
    ]
    assert starts_of(creations(journal), begins=BEGINS) == [Start("mine", 0, 120.5), Start("mine", 1, 540.0)]


def test_an_attempt_that_only_one_of_the_two_had_is_not_close() -> None:
    twin = [Start("a", 0, 0.0), Start("a", 1, 100.0), Start("b", 0, 50.0)]
    replay = [Start("a", 0, 60.0), Start("b", 0, 111.0), Start("b", 1, 300.0)]
    found = deviations(twin, replay)
    assert [(one.job, one.attempt, one.is_close) for one in found] == [
        ("a", 0, True),
        ("b", 0, False),
        ("a", 1, False),
        ("b", 1, False),
    ]
    assert share_close(found) == 0.25
    assert worst(found)[-1] == Deviation(job="b", attempt=0, twin_s=50.0, replay_s=111.0)
    assert share_close([]) == 0.0, "where nothing started nothing is shown"


def test_a_run_that_there_is_not_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        simulate_twin.main(["--only", "four-jobs,five-jobs"])
    assert "there is no five-jobs; there are four-jobs, reclaim" in capsys.readouterr().err


def test_recordings_of_an_earlier_report_are_replayed_again(tmp_path: Path) -> None:
    runs = {"four-jobs": json.loads(RECORDED.read_text(encoding="utf-8"))["four-jobs"] | {"replay": []}}
    earlier, path = tmp_path / "earlier.json", tmp_path / "report.json"
    earlier.write_text(json.dumps({"facts": {"runs": runs}}), encoding="utf-8")
    assert simulate_twin.main(["--replay", str(earlier), "--json", str(path)]) == 0
    report = json.loads(path.read_text(encoding="utf-8"))
    assert len(report["facts"]["runs"]["four-jobs"]["replay"]) == 5


@pytest.mark.thorough
def test_the_four_jobs_and_forty_drawn_ones_are_played_and_replayed(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    code = simulate_twin.main(["--only", "four-jobs,random-1", "--jobs", "40", "--json", str(path)])
    report = json.loads(path.read_text(encoding="utf-8"))
    assert code == 0, [one for one in report["checks"] if not one["ok"]]
    assert len(report["facts"]["runs"]["random-1"]["exported"]) == 40


@pytest.mark.long
def test_every_run_of_the_proof_is_replayed_within_a_minute(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    code = simulate_twin.main(["--jobs", "60", "--json", str(path)])
    report = json.loads(path.read_text(encoding="utf-8"))
    assert code == 0, [one for one in report["checks"] if not one["ok"]]
    assert LEAST_SHARE == 0.95
