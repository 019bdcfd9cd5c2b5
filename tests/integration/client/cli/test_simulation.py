"""``trainmaster simulate`` as a user types it, on traces of a few jobs."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.client.command import Trainmaster

POLICY: dict[str, Any] = {
    "version": 1,
    "pools": [{"name": "g5", "capacity": {"ml.g5.12xlarge": 1}, "preemption": {"min_runtime": "0s"}}],
}
JOBS = [("big", 0, 4, 7200, "vision"), ("mid", 600, 4, 1800, "language"), ("small", 1200, 4, 900, "vision")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(POLICY))
    other = POLICY | {"pools": [POLICY["pools"][0] | {"order": {"shortest_first": True}}]}
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(other))
    lines = ["job_id,submit_s,gpus,duration_s,vc", *(",".join(map(str, job)) for job in JOBS)]
    (tmp_path / "trace.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def report_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "simulate.json").read_text())
    return found


def test_a_trace_and_one_policy_are_compared_with_the_plain_queue(
    folder: Path, trainmaster: Trainmaster
) -> None:
    ran = trainmaster(
        "simulate",
        "--trace",
        "trace.csv",
        "--policy",
        "policy.yaml",
        "--json",
        "simulate.json",
        "--html",
        "p.html",
    )
    assert ran.code == 0, ran.err
    assert "plain queue" in ran.out
    report = report_of(folder)
    assert (report["schema"], report["ok"]) == ("trainmaster.report/1", True)
    assert report["facts"]["columns"] == ["plain queue", "policy.yaml"]
    assert (folder / "p.html").read_text().startswith("<!DOCTYPE html>")


def test_every_line_fits_on_eighty_columns_and_the_first_say_the_capacity(
    folder: Path, trainmaster: Trainmaster
) -> None:
    ran = trainmaster("simulate", "--trace", "trace.csv", "--policy", "policy.yaml")
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "ml.g5.12xlarge" in "".join(ran.out.splitlines()[:6])


def test_the_records_of_the_report_are_enough_to_work_its_figures_out_again(
    folder: Path, trainmaster: Trainmaster
) -> None:
    trainmaster(
        "simulate", "--trace", "trace.csv", "--policy", "policy.yaml", "--policy", "other.yaml",
        "--capacity-as-written", "--json", "simulate.json",
    )  # fmt: skip
    facts = report_of(folder)["facts"]
    (run,) = facts["runs"]
    submitted = {row["name"]: int(row["submit_s"]) for row in csv.DictReader(run["jobs"])}
    for replay in run["replays"]:
        starts: dict[str, int] = {}
        for row in csv.DictReader(replay["attempts"]):
            starts[row["job"]] = min(int(row["start_s"]), starts.get(row["job"], int(row["start_s"])))
        waits = sorted(starts[name] - second for name, second in submitted.items())
        assert replay["waits"]["p50_s"] == waits[1]
        assert replay["capacity"]["g5"]["on-demand"] == {"ml.g5.12xlarge": 1}
    assert facts["cpu_s"] > 0


def test_other_capacities_and_teams_that_are_left_out_are_said(
    folder: Path, trainmaster: Trainmaster
) -> None:
    ran = trainmaster(
        "simulate", "--trace", "trace.csv", "--policy", "policy.yaml", "--capacity", "ml.g5.12xlarge=3",
        "--without", "team:language", "--json", "simulate.json",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    facts = report_of(folder)["facts"]
    assert facts["columns"] == ["policy.yaml", "policy.yaml without language"]
    _, without = facts["runs"][0]["replays"]
    assert without["capacity"]["g5"]["on-demand"] == {"ml.g5.12xlarge": 3}
    assert without["fates"]["refused"] == 1
    assert "left out of the replay (team language)" in without["refused"].values()


def test_several_seeds_have_a_mean_and_a_deviation(folder: Path, trainmaster: Trainmaster) -> None:
    ran = trainmaster(
        "simulate",
        "--trace",
        "trace.csv",
        "--policy",
        "policy.yaml",
        "--seeds",
        "1,2",
        "--json",
        "simulate.json",
    )
    assert ran.code == 0, ran.err
    assert "Mean and standard deviation of seeds 1, 2:" in ran.out
    facts = report_of(folder)["facts"]
    assert [run["seed"] for run in facts["runs"]] == [1, 2]
    assert facts["spread"][0]["standard_deviations"] is not None


def test_a_job_that_is_asked_about_starts_at_each_hour(folder: Path, trainmaster: Trainmaster) -> None:
    (folder / "job.json").write_text('{"instance_type": "ml.g5.12xlarge", "priority": 100}')
    ran = trainmaster(
        "simulate", "--trace", "trace.csv", "--policy", "policy.yaml", "--ask", "job.json",
        "--json", "simulate.json", "--html", "p.html",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    (asked,) = report_of(folder)["facts"]["asked"]
    assert (asked["submissions"], len(asked["waits_s"])) == (1, 1)
    assert "When would it have started?" in (folder / "p.html").read_text()


def test_names_of_a_trace_become_teams_of_the_policy(folder: Path, trainmaster: Trainmaster) -> None:
    teams = [{"name": "research", "principals": ["arn:aws:iam::111122223333:role/r"], "roles": "any"}]
    (folder / "teams.yaml").write_text(yaml.safe_dump(POLICY | {"teams": teams}))
    ran = trainmaster(
        "simulate", "--trace", "trace.csv", "--policy", "teams.yaml", "--team-map", "vision=research",
        "--json", "simulate.json",
    )  # fmt: skip
    assert "does not name 1 teams of the history (language)" in " ".join(ran.out.split())
    (run,) = report_of(folder)["facts"]["runs"]
    assert {row["team"] for row in csv.DictReader(run["jobs"])} == {"research", "language"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param((), "No history is given.", id="no source"),
        pytest.param(
            ("--trace", "trace.csv", "--from-account", "30d"),
            "--from-account and --trace exclude",
            id="two sources",
        ),
        pytest.param(("--trace", "trace.csv"), "--policy is missing.", id="no policy"),
        pytest.param(
            ("--trace", "trace.csv", "--policy", "policy.yaml", "--capacity", "many"),
            "--capacity: 'many'",
            id="capacity",
        ),
        pytest.param(
            ("--trace", "trace.csv", "--policy", "policy.yaml", "--without", "x:y"),
            "--without: 'x:y'",
            id="without",
        ),
        pytest.param(
            ("--trace", "trace.csv", "--policy", "policy.yaml", "--seeds", "1,1"),
            "--seeds: '1,1'",
            id="seeds",
        ),
        pytest.param(
            ("--trace", "trace.csv", "--policy", "trace.csv"), "holds no policy document", id="not a policy"
        ),
        pytest.param(
            ("--trace", "trace.csv", "--policy", "policy.yaml", "--team-map", "x"),
            "--team-map: 'x'",
            id="team map",
        ),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_replayed(
    folder: Path, trainmaster: Trainmaster, arguments: tuple[str, ...], said: str
) -> None:
    ran = trainmaster("simulate", *arguments)
    assert ran.code == 2
    assert said in " ".join(ran.err.split())
