"""How predicted lengths are held to real ones."""

import json
from pathlib import Path

import pytest
from trainmaster_client.simulate.histories.trace_draws import Klass

from benchmarks import lengths
from benchmarks.replay.jobs import DAY_S, TraceJob
from benchmarks.replay.length_predictions import LastRuns, Learned, Prediction, Requested, asked, figures


def job(number: int, seconds: int, *, submit_s: int | None = None, user: str = "ada") -> TraceJob:
    return TraceJob(
        job_id=f"p{number}",
        team="vision",
        submit_s=number * DAY_S if submit_s is None else submit_s,
        duration_s=seconds,
        pool="g1",
        instances=1,
        klass=Klass.NORMAL,
        checkpoint_every_s=None,
        user=user,
        requested_s=DAY_S,
    )


def said(seconds: float) -> Prediction:
    return Prediction(mean_s=seconds, p50_s=seconds, p90_s=seconds)


def test_figures_of_answers_that_can_be_worked_out_by_hand() -> None:
    lengths_s = [(100, 100), (200, 400), (800, 200)]
    measured = figures([(job(number, real), said(told)) for number, (real, told) in enumerate(lengths_s)])
    assert measured.questions == 3
    assert measured.log2 == pytest.approx((0 + 1 + 2) / 3)
    assert measured.pinball_p90_s == pytest.approx((0 + 0.1 * 200 + 0.9 * 600) / 3)
    assert measured.below_p90_percent == pytest.approx(100 * 2 / 3)
    assert measured.pairs_percent == 50.0  # of neighbours: 100 before 200, but 800 is put before 200


def test_a_job_that_still_runs_teaches_nothing() -> None:
    jobs = [job(0, 1000, submit_s=0), job(1, 10, submit_s=999), job(2, 10, submit_s=1000)]
    assert [answer.p50_s for _, answer in asked(jobs, LastRuns())] == [1000.0]


def test_who_requests_a_day_is_predicted_a_day() -> None:
    ((_, answer),) = asked([job(0, 60)], Requested())
    assert answer.p50_s == DAY_S


def test_the_submitter_tells_jobs_of_one_team_apart() -> None:
    """Two users with runs of their own lengths in turn, and names that say nothing."""
    jobs = [
        job(number, 600 if number % 2 else 36_000, user="ada" if number % 2 else "bob")
        for number in range(80)
    ]
    told = {given.user: answer.p50_s for given, answer in asked(jobs, Learned())}
    assert told["ada"] < 1500
    assert told["bob"] > 15_000


def test_the_command_prints_each_predictor_and_checks_the_coverage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.csv"
    lines = [f"j{number},{number * 600},{60 * (1 + number % 10)},1,vision" for number in range(400)]
    trace.write_text("\n".join(["id,submitted,seconds,gpus,group", *lines]) + "\n", encoding="utf-8")
    report = tmp_path / "report.json"
    lengths.main(["--trace", str(trace), "--requests", "day", "--json", str(report)])
    printed = capsys.readouterr().out
    assert all(label in printed for label in ("learned", "last 20", "requested time"))
    checks = {check["id"]: check["ok"] for check in json.loads(report.read_text())["checks"]}
    assert checks == {"coverage-of-p90-1-day": True, "questions": True}
