"""``python -m benchmarks.tournament``: windows, standings, checks and tables."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.report import Report

from benchmarks import tournament
from benchmarks.replay import jobs, start_estimates
from benchmarks.replay import standings_tables as tables
from benchmarks.replay.requested_times import Requests
from benchmarks.replay.standings import COMPARED, DAY_DELAY, Heat, standing, standings
from benchmarks.replay.start_estimates import Asked, check_all
from benchmarks.replay.tournament_targets import TARGETS, Kind, unfit
from benchmarks.replay.waits import Answer
from benchmarks.replay.windows import parts
from tests.markdown import codes, table, text_of
from tests.unit.benchmarks.test_trace import HEADER, lines


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text("\n".join([HEADER, *(",".join(one.values()) for one in lines(60, every_s=200))]) + "\n")
    return path


def run(trace_file: Path, *flags: str) -> tuple[int, dict[str, Any]]:
    report = trace_file.with_name("report.json")
    code = tournament.main(["--trace", str(trace_file), "--json", str(report), *flags])
    return code, json.loads(report.read_text())


def test_windows_are_equal_parts_and_each_job_is_in_one() -> None:
    rows = lines(40, every_s=500)  # up to 19,500 s: six hours
    windows = parts(rows, 4)
    assert [(one.since_s, one.until_s) for one in windows] == [
        (0, 5400),
        (5400, 10_800),
        (10_800, 16_200),
        (16_200, 21_600),
    ]
    again = [(row["job_id"], float(row["submit_s"]) + one.since_s) for one in windows for row in one.rows]
    assert again == [(row["job_id"], float(row["submit_s"])) for row in rows]
    assert all(0 <= float(row["submit_s"]) < 5400 for one in windows for row in one.rows)


def test_a_window_without_jobs_is_refused() -> None:
    rows = [one | {"submit_s": second} for one, second in zip(lines(2), ("0", "36000"), strict=True)]
    with pytest.raises(InvalidArgumentError, match="Window 2 of 3 has no jobs"):
        parts(rows, 3)


def test_a_small_tournament_end_to_end(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, events = trace_file.with_name("tables.md"), trace_file.with_name("events.jsonl")
    flags = ["--windows", "2", "--only", "2", "--deciders", "fifo,default", "--loads", "1.3"]
    code, report = run(trace_file, *flags, "--markdown", str(page), "--events", str(events))
    assert code == 0
    assert {check["id"]: check["ok"] for check in report["checks"]}["nobody-beats-the-bound"] is True
    facts = report["facts"]
    algorithms = ["fifo", "plain", "plain-newest", "default", "bound"]
    replays = [
        (seed, requests, label)
        for seed in (1, 2, 3)
        for requests, labels in (("drawn", algorithms), ("day", algorithms[1:]))
        for label in labels
    ]
    places = [(cell["seed"], cell["requests"], cell["algorithm"]) for cell in facts["cells"]]
    assert places == replays
    assert {cell["window"] for cell in facts["cells"]} == {2}
    found = [json.loads(line) for line in events.read_text().splitlines()]
    counted = Counter((event["seed"], event["requests"], event["algorithm"]) for event in found)
    runs = [cell for cell in facts["cells"] if cell["algorithm"] != "bound"]
    assert counted == {(cell["seed"], cell["requests"], cell["algorithm"]): cell["starts"] for cell in runs}
    printed = capsys.readouterr().out.partition("\njobs-that")[0].partition("\nok ")[0]
    assert [line for line in printed.splitlines()[1:] if len(line) > 100] == []
    assert "| `default` |" in page.read_text()


def test_an_unknown_trace_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("id,start,gpus\n1,2,3\n")
    with pytest.raises(SystemExit, match="missing columns: job_id, submit_s, duration_s, vc"):
        tournament.main(["--trace", str(path)])


def test_a_policy_file_is_one_more_decider(trace_file: Path) -> None:
    policy = trace_file.with_name("mine.yaml")
    policy.write_text(
        "version: 1\npools: [{name: a, capacity: {ml.g5.xlarge: 1}, preemption: {max_per_job: 9}}]\n"
    )
    _, report = run(trace_file, "--deciders", "default", "--policy", str(policy), "--requests", "drawn")
    (pool,) = report["facts"]["policies"]["mine"]["pools"]
    assert pool == {"name": "g1", "capacity": {"ml.g5.xlarge": 1}, "preemption": {"max_per_job": 9}}
    assert [cell["algorithm"] for cell in report["facts"]["cells"]][-2:] == ["mine", "bound"]


@pytest.mark.parametrize(
    ("content", "flags", "said"),
    [
        pytest.param("pools: []", (), "mine.yaml has no policy with a pool", id="no pool"),
        pytest.param("pools: [{preemption: {max_per_job: no}}]", (), "max_per_job", id="no policy"),
        pytest.param("pools: [{}]", ("--only", "2"), "There is no window 2: there are 1", id="no window"),
    ],
)
def test_what_cannot_be_replayed_is_refused(
    trace_file: Path, content: str, flags: tuple[str, ...], said: str
) -> None:
    policy = trace_file.with_name("mine.yaml")
    policy.write_text(content)
    with pytest.raises(SystemExit, match=said):
        run(trace_file, "--policy", str(policy), *flags)


def test_openb_is_recognised_by_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "tasks.csv"
    header = "task_id,submit_s,start_s,end_s,gpus,gpu_milli,gpu_spec,qos,phase"
    path.write_text(
        f"{header}\na,0,5,900,1,500,,LS,Succeeded\nb,60,70,4000,8,1000,,BE,Failed\nc,70,80,9000,1,1000,,BE,Running\n"
    )
    _, report = run(path, "--deciders", "default")
    assert report["facts"]["trace"] | {"sha256": None} == {
        "file": "tasks.csv",
        "kind": "openb",
        "sha256": None,
        "rows": 2,
        "left_out": 1,  # nobody knows how long it would have run
    }


def test_a_workload_is_replayed_with_its_users_programs_and_requests(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    ran, never_ran = "7 60 1 -1 -1 1 120 -1 1 3 2 9", "7 -1 1 -1 -1 1 -1 -1 5 3 2 9"
    path.write_text(f"; Version: 2.2\n1 0 {ran} -1 -1 -1 -1\n2 5 {never_ran} -1 -1 -1 -1\n")
    (row,) = jobs.read_file(path).rows
    (job,) = jobs.jobs_of([row], seed=1)
    assert (job.job_id, job.team, job.user, job.requested_s) == ("program9-1", "group2", "user3", 120)
    _, report = run(path, "--deciders", "default", "--seeds", "1")
    trace = report["facts"]["trace"]
    assert (trace["kind"], trace["rows"], trace["left_out"]) == ("workload", 1, 1)


def heat(plain: float, newest: float, default: float, bound: float, **fields: Any) -> Heat:
    figures = {
        label: {"weighted_delay_h": value, "goodput": value}
        for label, value in (("plain", plain), ("plain-newest", newest), ("default", default))
    }
    found = {"weighted_delay_h": bound, "goodput": 2.0}
    return Heat(**{"window": 1, "load": 0.95, "seed": 1} | fields, figures=figures, bound=found)


def test_a_figure_is_compared_with_the_better_plain_queue_of_each_window() -> None:
    heats = [heat(4.0, 2.0, 1.0, 0.5), heat(1.0, 3.0, 1.0, 0.5, window=2)]
    found = standing(heats, "default", "weighted_delay_h")
    assert (found.ratio, found.to_oldest) == (0.75, 0.625)  # of 1/2 and 1/1; of 1/4 and 1/1
    assert found.spread == pytest.approx(0.3536, abs=1e-4)
    assert found.closed == 0.5  # of 2 + 1 down to 0.5 + 0.5, it comes to 1 + 1
    assert standing(heats, "default", "goodput").ratio == pytest.approx((1 / 4 + 1 / 3) / 2)


def test_the_spread_of_seeds_is_of_their_means_over_windows() -> None:
    heats = [
        heat(2.0, 2.0, 1.0, 0.5, seed=1),
        heat(2.0, 2.0, 3.0, 0.5, seed=1, window=2),
        heat(2.0, 2.0, 0.5, 0.5, seed=2),
        heat(2.0, 2.0, 1.5, 0.5, seed=2, window=2),
    ]
    found = standing(heats, "default", "weighted_delay_h")
    assert (found.ratio, found.least, found.most) == (0.75, 0.5, 1.0)
    assert tables.ranged(found) == "0.75 (0.50 to 1.00)"


def test_with_a_day_for_all_there_is_a_column_of_its_own() -> None:
    drawn, day = heat(2.0, 2.0, 1.0, 0.5), heat(2.0, 2.0, 1.8, 0.5, requests=Requests.DAY)
    heats = [replace(one, figures=with_all_figures(one)) for one in (drawn, day)]
    heats = [replace(one, bound=dict.fromkeys(COMPARED, 0.5)) for one in heats]
    by_decider = standings(heats)
    assert by_decider["default"]["weighted_delay_h"].ratio == 0.5
    assert by_decider["default"][DAY_DELAY].ratio == 0.9
    (by_requests,) = (table for table in tables.TABLES if "24 h for all" in table.columns)
    assert "| `default` | 0.50 (0.50 to 0.50) | 0.90 (0.90 to 0.90) |" in tables.page(by_requests, by_decider)
    assert standings([replace(heats[0])])["default"].keys() == set(COMPARED)


def test_unknown_ways_to_request_are_refused(trace_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(trace_file, "--requests", "week")
    assert "'week' is no way to request; use drawn or day" in capsys.readouterr().err


def with_all_figures(of: Heat) -> dict[str, dict[str, float]]:
    return {label: dict.fromkeys(COMPARED, found["goodput"]) for label, found in of.figures.items()}


def test_where_the_plain_queue_has_nothing_there_is_no_ratio() -> None:
    found = standing([heat(0.0, 1.0, 1.0, 0.0)], "default", "weighted_delay_h")
    assert (found.ratio, found.spread, found.closed) == (None, None, None)


def test_targets_are_asked_of_the_traces_they_are_for() -> None:
    heats = [heat(1.0, 1.0, 1.0, 0.5)]
    fits = {one.id for one in TARGETS if unfit(one, heats, kind=Kind.OWN, days=3.5) is None}
    assert {"p99-of-high", "waste", "goodput-to-the-best-other"} <= fits
    assert not any(one.startswith(("openb", "shortest-first")) for one in fits)
    assert all(unfit(one, heats, kind=Kind.OWN, days=1.0) for one in TARGETS)
    assert all(unfit(one, [], kind=Kind.OWN, days=3.5) for one in TARGETS)
    assert all(unfit(one, heats, kind=Kind.MADE_UP, days=7.0) for one in TARGETS)


def test_every_flag_is_documented() -> None:
    documented = {
        codes(row[0])[0].split()[0] for row in table(text_of("docs/benchmarks.md"), "option", "means")
    }
    flags = {flag for action in tournament.parser()._actions for flag in action.option_strings}
    assert documented == flags - {"-h", "--help"}


def test_start_estimates_are_asked_of_the_product_alone_and_checked_in_each_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_estimates, "LEAST_QUESTIONS", 3)
    path = tmp_path / "trace.csv"
    crowded = [one | {"gpus": "1"} for one in lines(240, every_s=60)]
    path.write_text("\n".join([HEADER, *(",".join(one.values()) for one in crowded)]) + "\n")
    flags = ["--windows", "2", "--deciders", "fifo,default", "--loads", "2", "--seeds", "1,2"]
    _, report = run(path, *flags, "--estimates", "4")
    found = report["facts"]["estimate_answers"]
    assert [(one["decider"], one["window"], one["questions"]) for one in found] == [
        ("default", 1, 4),
        ("default", 2, 4),
    ]
    assert [[answer["seed"] for answer in one["answers"]] for one in found] == [[1, 1, 2, 2]] * 2
    assert all(0 <= answer["p50_s"] <= answer["p90_s"] for one in found for answer in one["answers"])
    checks = {check["id"]: check["ok"] for check in report["checks"]}
    assert [checks[f"default-window-{number}-questions-answered"] for number in (1, 2)] == [True, True]
    assert [one["n"] for one in report["facts"]["estimates"]] == [4, 4]


def asked_in(window: int, *, p90_s: float, questions: int = 60) -> Asked:
    """Every tenth waits for 200 s, the others for 100 s."""
    answers = [
        Answer(
            seed=1,
            job_id=f"j{number}",
            waited_s=100 if number % 10 else 200,
            p50_s=100.0,
            p90_s=p90_s,
            past_p50_s=300.0,
            past_p90_s=900.0,
        )
        for number in range(questions)
    ]
    return Asked(window=window, decider="default", questions=questions, answers=answers)


def test_a_window_with_wide_bands_does_not_make_up_for_one_with_narrow_ones() -> None:
    report = Report("tournament", argv=())
    check_all(report, [asked_in(1, p90_s=200.0), asked_in(2, p90_s=190.0), asked_in(3, p90_s=90.0)])
    checks = {check.id: check.ok for check in report.checks}
    windows = [checks[f"default-window-{number}-starts-under-p90"] for number in (1, 2, 3)]
    assert windows == [False, True, False]


def test_a_window_in_which_hardly_a_job_waits_is_not_judged() -> None:
    report = Report("tournament", argv=())
    check_all(report, [asked_in(1, p90_s=90.0, questions=49)])
    (check,) = report.checks
    assert check.skipped == "49 jobs that could be asked about waited for more than a minute"
