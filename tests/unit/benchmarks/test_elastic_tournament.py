"""``python -m benchmarks.tournament --elastic``: jobs with widths, what they ask for, bounds and checks."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from trainmaster.core.jobs.widths import Widths
from trainmaster_client.report import Report

from benchmarks import tournament
from benchmarks.replay import elastic_standings
from benchmarks.replay.bound import START_S, bound_of
from benchmarks.replay.cells import World, run_of
from benchmarks.replay.deciders import ELASTIC, ELASTIC_DECIDERS, LARGEST, LEAST, POLLUX
from benchmarks.replay.elastic_jobs import PER_DOUBLING, with_widths
from benchmarks.replay.elastic_standings import ElasticHeat, resize_gpu_s
from benchmarks.replay.elasticity import Asks, Elasticity
from benchmarks.replay.figures import STOP_S
from benchmarks.replay.jobs import WIDEST, TraceJob
from benchmarks.replay.rows import Row, history_of
from benchmarks.replay.standings import CLASSES, heat_figures
from tests.unit.benchmarks.test_trace import HEADER, lines
from tests.unit.benchmarks.traces import job

ROOMY = {"g1": 100}
TWICE = Elasticity(widths=Widths(counts=(1, 2, 4)), per_doubling=1.6)


def elastic(job_id: str = "a", **fields: Any) -> TraceJob:
    return job(job_id, elastic=TWICE, checkpoint_every_s=600, **fields)


def row(attempt: int, start_s: int, train_s: int, end_s: int, end: str, **fields: Any) -> Row:
    values: dict[str, Any] = {"job_id": "a", "pool": "g1", "instances": 2, "lost_s": 0, "warm": False}
    return Row(attempt=attempt, start_s=start_s, train_s=train_s, end_s=end_s, end=end, **(values | fields))


def test_a_share_of_the_jobs_becomes_elastic_whatever_the_others_are() -> None:
    trace = [job(f"j{number}") for number in range(1000)]
    drawn = with_widths(trace, ROOMY, share=0.3, seed=1)
    wide = [made for made in drawn if made.elastic is not None]
    assert 250 < len(wide) < 350
    assert {made.elastic.per_doubling for made in wide if made.elastic} == set(PER_DOUBLING)
    assert [made for made in drawn if made.elastic is None] == [
        told for told, made in zip(trace, drawn, strict=True) if made.elastic is None
    ]
    assert with_widths(trace[500:], ROOMY, share=0.3, seed=1) == drawn[500:]
    assert with_widths(trace, ROOMY, share=0.3, seed=2) != drawn


@pytest.mark.parametrize(
    ("instances", "capacity", "counts"),
    [(1, 100, (1, 2, 4)), (1, 3, (1, 2)), (1, 1, None), (8, 100, (8, WIDEST)), (WIDEST, 100, None)],
)
def test_no_width_is_wider_than_its_pool(
    instances: int, capacity: int, counts: tuple[int, ...] | None
) -> None:
    (made,) = with_widths([job("a", instances=instances)], {"g1": capacity}, share=1, seed=1)
    assert (made.elastic.widths.counts if made.elastic else None) == counts
    assert (made.checkpoint_every_s is not None) is (counts is not None)


def test_it_trains_as_in_the_trace_at_its_least_width_and_less_time_at_others() -> None:
    made = elastic(duration_s=25_600)
    (least,) = history_of([made], asks=Asks.LEAST).jobs
    (largest,) = history_of([made], asks=Asks.LARGEST).jobs
    (widths,) = history_of([made]).jobs
    assert (least.trains_for.total_seconds(), *least.instances.values()) == (25_600, 1)
    assert (largest.trains_for.total_seconds(), *largest.instances.values()) == (10_000, 4)
    assert (least.elastic, largest.elastic) == (None, None)
    assert widths.elastic is not None
    assert widths.elastic.speeds == pytest.approx({1: 1 / 2.56, 2: 1 / 1.6, 4: 1})
    assert widths.max_runtime == largest.max_runtime
    assert all(past.saves_when_stopped for past in (least, largest, widths))


def test_the_bound_counts_no_more_than_an_elastic_job_makes_use_of() -> None:
    """Two at once on four instances: each uses 2.56 of them fully, so one of the two has to be late."""
    jobs = [elastic("a", duration_s=25_600), elastic("b", duration_s=25_600)]
    alone = bound_of(jobs[:1], {"g1": 4}).figures["weighted_delay_h"]
    both = bound_of(jobs, {"g1": 4}).figures["weighted_delay_h"]
    assert 0 < alone * 3600 <= START_S
    least_s = 2 * 25_600 / 4 - 10_000  # the last of both, if all four instances work as well as a single one
    assert both * 3600 * 2 >= least_s * 0.9
    assert bound_of(jobs, {"g1": 4}).figures["goodput"] <= 1


@pytest.mark.parametrize("decider", ELASTIC_DECIDERS, ids=lambda decider: decider.label)
def test_no_decider_beats_the_bound(decider: Any) -> None:
    jobs = [
        *(elastic(f"e{number}", submit_s=900 * number, duration_s=9000) for number in range(8)),
        *(job(f"r{number}", submit_s=1300 * number, duration_s=4000) for number in range(8)),
    ]
    world = World(jobs=jobs, capacity={"g1": 6})
    found, bound = heat_figures(run_of(decider, world, seed=1)), bound_of(jobs, world.capacity)
    assert found["unfinished"] == 0
    assert found["weighted_delay_h"] >= bound.figures["weighted_delay_h"]
    assert found["goodput"] <= bound.figures["goodput"]


def test_resizes_cost_what_was_lost_the_stop_and_the_next_start_up() -> None:
    rows = [
        row(0, 0, 240, 5000, "resized", lost_s=60),
        row(1, 5000, 5300, 9000, "preempted", instances=4, lost_s=600),
        row(2, 9500, 9800, 9900, "completed"),
    ]
    assert resize_gpu_s(rows) == 2 * (60 + STOP_S) + 4 * 300


def heat(own: Mapping[str, float]) -> ElasticHeat:
    """The elastic decider has these; the rigid ones have a delay of one hour each."""
    names = ["all.weighted_delay_h", *(f"rigid.mean_delay_h.{klass}" for klass in CLASSES)]
    base = dict.fromkeys(names, 1.0)
    figures = {LARGEST: base, LEAST: base, ELASTIC: {**base, "resize_percent": 0.5, **own}}
    return ElasticHeat(window=1, load=0.95, seed=1, elastic_jobs=1, figures=figures)


@pytest.mark.parametrize(
    ("delays", "failed"),
    [
        ({}, []),
        ({"resize_percent": 1.2}, ["load-0.95-resizes-percent-of-gpu-hours"]),
        ({"all.weighted_delay_h": 1.1}, ["load-0.95-delay-to-largest", "load-0.95-delay-to-least"]),
        ({"rigid.mean_delay_h.high": 1.1}, ["load-0.95-rigid-high-to-largest"]),
    ],
    ids=["all is well", "resizes cost too much", "it is worse than rigid", "others pay for it"],
)
def test_what_is_checked(delays: Mapping[str, float], failed: list[str]) -> None:
    report = Report("tournament")
    elastic_standings.check(report, [heat(delays)])
    assert [check.id for check in report.checks if check.ok is False] == failed


def test_a_small_tournament_with_elastic_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, page, report = tmp_path / "trace.csv", tmp_path / "page.md", tmp_path / "report.json"
    trace.write_text(
        "\n".join([HEADER, *(",".join(told.values()) for told in lines(60, every_s=200))]) + "\n"
    )
    flags = ["--elastic", "0.5", "--seeds", "1", "--markdown", str(page), "--json", str(report)]
    tournament.main(["--trace", str(trace), *flags])
    document = json.loads(report.read_text())
    checks = {check["id"]: check["ok"] for check in document["checks"]}
    assert checks["jobs-that-are-not-finished"] is True
    assert checks["nobody-beats-the-bound"] is True
    (played,) = document["facts"]["elastic_heats"]
    assert list(played["figures"]) == [LARGEST, LEAST, ELASTIC, POLLUX, "bound"]
    assert played["elastic_jobs"] > 10
    assert f"| `{ELASTIC}` |" in page.read_text()
    assert "elastic jobs in each" in capsys.readouterr().out


@pytest.mark.parametrize("share", ["0", "1.5", "-0.1"])
def test_a_share_that_is_none_is_refused(share: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tournament.parser().parse_args(["--elastic", share])
    assert "is not a valid share; write more than 0 up to 1, e.g. 0.3" in capsys.readouterr().err
