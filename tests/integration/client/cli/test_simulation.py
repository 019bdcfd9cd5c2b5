"""``trainmaster simulate`` as a user types it, on traces of a few jobs."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.client.command import Ran, Trainmaster

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


PLAN = "type=ml.g5.12xlarge,instances=2,from=+0d,to=+6h,fee=120"


def simulated(trainmaster: Trainmaster, *options: str) -> Ran:
    return trainmaster(
        "simulate", "--trace", "trace.csv", "--policy", "policy.yaml", "--capacity-as-written", *options
    )


def test_a_plan_as_if_it_had_been_bought_is_one_more_column(folder: Path, trainmaster: Trainmaster) -> None:
    ran = simulated(trainmaster, "--plan", PLAN, "--json", "simulate.json", "--html", "p.html")
    assert ran.code == 0, ran.err
    assert max(map(len, ran.out.splitlines())) <= 80
    for text in ("of it fees of training plans", "unused instance hours of plans", "use of training plans"):
        assert text in ran.out
    assert "AWS sells no training plans for ml.g5.12xlarge" in " ".join(ran.out.split())
    report = report_of(folder)
    facts = report["facts"]
    assert facts["columns"] == ["policy.yaml", "policy.yaml, 2 ml.g5.12xlarge plan"]
    without, bought = facts["runs"][0]["replays"]
    assert "plans" not in without
    assert bought["plans_use"]["fee_usd"] == 120
    kinds = {row["job"]: row["capacity_type"] for row in csv.DictReader(bought["attempts"])}
    assert set(kinds.values()) == {"plan/what-if-1", "on-demand"}
    checks = [check["id"] for check in report["checks"]]
    assert [name for name in checks if "plan-without-instances" in name] == [
        "seed-1-column-1-nothing-trains-on-a-plan-without-instances"
    ]
    assert "unused on training plans" in (folder / "p.html").read_text()


def test_without_plans_the_report_and_the_page_have_nothing_new(
    folder: Path, trainmaster: Trainmaster
) -> None:
    ran = simulated(trainmaster, "--json", "simulate.json", "--html", "p.html")
    assert ran.code == 0, ran.err
    assert "training plan" not in ran.out
    assert "unused on training plans" not in (folder / "p.html").read_text()
    assert '"plans' not in (folder / "simulate.json").read_text()


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("ml.g5.12xlarge=2", "'ml.g5.12xlarge=2' is not one of type=, instances=, fee=, drain=, from=, to="),
        ("type=ml.g5.12xlarge,from=+0d,to=+1d", "instances is missing"),
        (PLAN.replace("=2", "=0", 1).replace("ml.g5.02", "ml.g5.12"), "instances=0 is not 1 to 256"),
        (PLAN + ",fee=1", "fee is given twice"),
        (PLAN.replace("fee=120", "fee=1,000"), "'000' is not one of"),
        (PLAN.replace("fee=120", "fee=nan"), "fee=nan is not an amount in USD"),
        (PLAN.replace("to=+6h", "to=+30m"), "jobs are stopped 40m before a window closes"),
        (PLAN.replace("from=+0d", "from=+7h"), "is not after from="),
        (PLAN.replace("to=+6h", "to=+999d"), "is longer than 182 days"),
        (PLAN.replace("from=+0d", "from=2026-10-05T08:00"), "from=2026-10-05T08:00 has no zone"),
        (PLAN.replace("from=+0d", "from=soon"), "from=soon is not a time"),
        (PLAN.replace("from=+0d,to=+6h", "from=+0d,from=+1h,to=+6h"), "give from= and to= of each window"),
        (PLAN.replace("from=+0d,to=+6h", "from=+0d,to=+6h,from=+5h,to=+9h"), "begins before the one before"),
        (PLAN.replace("from=+0d,to=+6h", "from=+50d,to=+60d"), "no window lies within the history"),
        (PLAN + ",drain=1m", "drain=1m is not 5m to 6h"),
        (PLAN.replace("ml.g5.12xlarge", "ml.p5.48xlarge"), "no pool has ml.p5.48xlarge"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused_with_an_example(
    folder: Path, trainmaster: Trainmaster, plan: str, said: str
) -> None:
    ran = simulated(trainmaster, "--plan", plan)
    assert ran.code == 2
    assert said in ran.err
