"""The report of ``python -m benchmarks.trace``."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trainmaster.core.planning import planner
from trainmaster.core.planning.actions import Plan
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.policy import PoolPolicy
from trainmaster_client.report import Report

from benchmarks import trace
from benchmarks.replay.cells import Run
from benchmarks.replay.figures import figures
from benchmarks.replay.jobs import jobs_of
from benchmarks.replay.policy import AGING, RULES
from benchmarks.replay.runs import NAIVE, Setting, replay_seed
from benchmarks.replay.targets import (
    GENERAL,
    IN_ORDER,
    SHORTEST_FIRST,
    WIDE,
    check,
    check_estimates,
    targets_of,
)
from benchmarks.replay.waits import Answer
from tests.markdown import codes, table, text_of

HEADER = "job_id,submit_s,gpus,duration_s,vc"


def lines(count: int = 40, *, every_s: int = 50) -> list[dict[str, str]]:
    return [
        {
            "job_id": f"j{n:02d}",
            "submit_s": str(every_s * n),
            "gpus": "8" if n % 10 == 0 else "1",
            "duration_s": str(600 + 300 * (n % 7)),
            "vc": f"vc{n % 2}",
        }
        for n in range(count)
    ]


LONG = lines(every_s=15_000)
"""Nearly a week."""


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text("\n".join([HEADER, *(",".join(one.values()) for one in lines())]) + "\n")
    return path


def run(trace_file: Path, *flags: str) -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
    report, events = trace_file.with_name("report.json"), trace_file.with_name("events.jsonl")
    paths = ["--trace", str(trace_file), "--json", str(report), "--events", str(events)]
    code = trace.main([*paths, "--seeds", "1", *flags])
    return code, json.loads(report.read_text()), [json.loads(one) for one in events.read_text().splitlines()]


def outcomes(report: dict[str, Any]) -> dict[str, bool | None]:
    return {check["id"]: check["ok"] for check in report["checks"]}


def setting(**fields: Any) -> Setting:
    given: dict[str, Any] = {"load": 0.95, "wide": False, "shortest_first": False, "days": None}
    return Setting(**{"trace": LONG} | given | fields)


def test_with_a_planner_that_decides_nothing_nothing_starts_and_it_fails(
    trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "plan", lambda *_, **__: Plan(actions=(), reasons={}))
    code, report, events = run(trace_file)
    assert code == 1
    assert {event["algorithm"] for event in events} == {"naive"}
    assert outcomes(report)["product-leaves-no-job-unfinished"] is False


def test_the_events_hold_every_attempt_of_both_algorithms(trace_file: Path) -> None:
    _, report, events = run(trace_file)
    fields = "seed algorithm job_id attempt pool instances start_s train_s end_s end lost_s warm"
    assert all(list(event) == fields.split() for event in events)
    for algorithm in ("naive", "product"):
        completed = [e for e in events if e["algorithm"] == algorithm and e["end"] == "completed"]
        assert sorted(event["job_id"] for event in completed) == [one["job_id"] for one in lines()]
    starts = {one["algorithm"]: one["starts"] for one in report["facts"]["runs"]}
    assert starts == {
        algorithm: sum(event["algorithm"] == algorithm for event in events) for algorithm in starts
    }


def test_the_report_names_policy_model_and_capacities(trace_file: Path) -> None:
    _, report, _ = run(trace_file, "--shortest-first")
    facts = report["facts"]
    assert facts["trace"]["rows"] == 40
    assert facts["capacities"].keys() == {"1"}
    assert [pool["order"]["shortest_first"] for pool in facts["policy"]["pools"]] == [True, True]
    assert facts["model"]["stop_s"] == 90
    assert facts["passes"]["count"] > 0


def test_shortest_first_reaches_the_planner(trace_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[bool] = set()

    def noted(_: Snapshot, pool: PoolPolicy, **__: object) -> Plan:
        seen.add(pool.order.shortest_first)
        return Plan(actions=(), reasons={})

    monkeypatch.setattr(planner, "plan", noted)
    run(trace_file, "--shortest-first")
    assert seen == {True}


def test_one_policy_is_for_all_targets(trace_file: Path) -> None:
    policies = []
    for flags in ([], ["--shortest-first"]):
        _, report, _ = run(trace_file, *flags)
        for pool in report["facts"]["policy"]["pools"]:
            pool["order"].pop("shortest_first")
        policies.append(report["facts"]["policy"])
    assert policies[0] == policies[1]


def test_every_flag_is_documented() -> None:
    documented = {
        codes(row[0])[0].split()[0] for row in table(text_of("docs/benchmarks.md"), "flag", "means")
    }
    flags = {flag for action in trace.parser()._actions for flag in action.option_strings}
    assert documented == flags - {"-h", "--help"}


def test_the_documented_policy_is_the_one_that_is_replayed() -> None:
    rows = table(text_of("docs/benchmarks.md"), "key", "value", "why")
    documented = {codes(row[0])[0]: row[1] for row in rows}
    preemption, warm = RULES["preemption"], RULES["warm_pool"]
    assert documented == {
        **{f"preemption.{key}": str(value).lower() for key, value in preemption.items() if key != "cost"},
        **{f"preemption.cost.{key}": str(value).lower() for key, value in preemption["cost"].items()},
        "warm_pool": ", ".join(f"{key} {value}" for key, value in warm.items()),
        "order.aging": AGING,
    }


def test_without_a_trace_a_made_up_one_is_replayed(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    trace.main(["--seeds", "1", "--days", "0.2", "--json", str(report)])
    assert json.loads(report.read_text())["facts"]["trace"] == {"file": None, "sha256": None, "rows": 5600}


def test_a_wrong_line_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("; Version: 2.2\n1 0 7\n")
    with pytest.raises(SystemExit, match="line 2: has 3 values, the Standard Workload Format has 18"):
        trace.main(["--trace", str(path)])


def test_a_day_for_all_is_replayed_beside_drawn_requests(
    trace_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = [one | {"duration_s": "100000"} for one in lines(6)]
    trace_file.write_text("\n".join([HEADER, *(",".join(one.values()) for one in long)]) + "\n")
    _, report, _ = run(trace_file)
    drawn, day = report["facts"]["runs"], report["facts"]["day_for_all"]
    assert [(one["seed"], one["algorithm"]) for one in day] == [(1, "naive"), (1, "product")]
    assert [one["unfinished"] for one in day] == [0, 0]
    assert drawn[0]["capacity"]["g1"] > day[0]["capacity"]["g1"]  # less to train: cut to a day
    assert "24 h for all" in capsys.readouterr().out


def test_each_way_to_run_has_its_targets() -> None:
    assert targets_of(setting()) == (*GENERAL, IN_ORDER)
    assert targets_of(setting(shortest_first=True)) == (*GENERAL, SHORTEST_FIRST)
    assert targets_of(setting(wide=True)) == (*GENERAL, IN_ORDER, WIDE)


def checked(runs: Sequence[Run], of: Setting) -> dict[str, bool | None]:
    report = Report("trace", argv=())
    check(report, runs, of)
    return outcomes(report.as_json())


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"load": 0.8}, id="another load"),
        pytest.param({"trace": lines()}, id="half an hour"),
        pytest.param({"days": 5.9}, id="the first days of a week"),
        pytest.param({"made_up": True}, id="a made-up trace"),
    ],
)
def test_targets_are_skipped_where_they_are_not_meant(fields: dict[str, Any]) -> None:
    found = checked(replay_seed(setting(**fields), 1), setting(**fields))
    assert {found[target.id] for target in (*GENERAL, IN_ORDER)} == {None}


def test_where_the_plain_queue_wastes_nothing_nothing_may_be_wasted() -> None:
    naive, product = replay_seed(setting(), 1)
    wasteful = replace(product, figures=replace(product.figures, waste_gpu_h=0.1))
    assert naive.figures.waste_gpu_h == 0
    assert checked([naive, product], setting())["waste"] is True
    assert checked([naive, wasteful], setting())["waste"] is False


def test_a_missed_target_fails() -> None:
    naive, product = replay_seed(setting(), 1)
    worse = replace(product, figures=replace(product.figures, waste_gpu_h=naive.figures.waste_gpu_h))
    busy = replace(naive, figures=replace(naive.figures, waste_gpu_h=1.0))
    assert (
        checked([busy, replace(worse, figures=replace(worse.figures, waste_gpu_h=0.46))], setting())["waste"]
        is False
    )
    assert (
        checked([busy, replace(worse, figures=replace(worse.figures, waste_gpu_h=0.45))], setting())["waste"]
        is True
    )


def test_more_than_the_pool_has_fails() -> None:
    naive, product = replay_seed(setting(), 1)
    over = replace(product, most_held={"g1": product.capacity["g1"] + 1})
    assert checked([naive, product], setting())["capacity-is-never-exceeded"] is True
    assert checked([naive, over], setting())["capacity-is-never-exceeded"] is False


@pytest.mark.parametrize(
    ("p50_s", "p90_s", "expected"),
    [
        pytest.param(100, 190, (True, True, True), id="nine of ten starts under p90, close guesses"),
        pytest.param(100, 200, (False, True, True), id="all of them under p90: the band is too wide"),
        pytest.param(300, 190, (True, False, True), id="no closer than past waits"),
    ],
)
def test_estimates_must_be_honest_and_better_than_past_waits(
    p50_s: float, p90_s: float, expected: tuple[bool, ...]
) -> None:
    report = Report("trace", argv=())
    waits = [100] * 9 + [200]
    answers = [
        Answer(
            seed=1,
            job_id=f"j{number}",
            waited_s=waited_s,
            p50_s=p50_s,
            p90_s=p90_s,
            past_p50_s=300,
            past_p90_s=900,
        )
        for number, waited_s in enumerate(waits)
    ]
    check_estimates(report, answers, asked=10)
    found = outcomes(report.as_json())
    assert tuple(found[one] for one in ("starts-under-p90", "pinball-p50", "pinball-p90")) == expected
    assert len(report.facts["estimate_answers"]) == 10


def test_too_few_answers_are_a_failure() -> None:
    report = Report("trace", argv=())
    check_estimates(report, [], asked=1)
    assert outcomes(report.as_json()) == {"questions-answered": False}


def test_the_product_is_asked_when_estimates_are_wanted(trace_file: Path) -> None:
    crowded = [one | {"gpus": "1"} for one in lines(150, every_s=60)]
    trace_file.write_text("\n".join([HEADER, *(",".join(one.values()) for one in crowded)]) + "\n")
    _, report, _ = run(trace_file, "--estimates", "3", "--load", "2")
    answers = report["facts"]["estimate_answers"]
    assert len(answers) == report["facts"]["estimates"]["n"] == 3
    assert all(0 <= one["p50_s"] <= one["p90_s"] for one in answers)
    assert outcomes(report)["questions-answered"] is True


def test_the_plain_queue_is_checked_where_it_is_known() -> None:
    jobs = jobs_of(lines(), seed=1)
    known = replace(
        figures([], jobs, {"g1": 1, "g8": 1}),
        goodput=0.749,
        weighted_delay_h=3.26,
        waste_gpu_h=11_404.0,
        preemptions=2791,
    )
    philly = setting()
    philly = replace(philly, trace=[lines()[0]] * 19_163)
    _, product = replay_seed(setting(), 1)
    naive = [
        Run(seed=seed, algorithm=NAIVE, capacity={}, rows=[], figures=known, most_held={})
        for seed in (1, 2, 3)
    ]
    off = [replace(one, figures=replace(known, waste_gpu_h=10_200.0)) for one in naive]
    assert checked([*naive, product], philly)["naive-is-as-known"] is True
    assert checked([*off, product], philly)["naive-is-as-known"] is False
    assert checked([*naive[:2], product], philly)["naive-is-as-known"] is None
