"""The benchmark of deep queues counts what a pass reads, and says so when that grows."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from trainmaster.adapters.dynamodb import pool_reads, queue_reads
from trainmaster.core.jobs.end_conditions import NOT_YET

from benchmarks import depth

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depth, "RUNS", 2)
    monkeypatch.setattr(depth, "PLANS", 2)


def report_of(folder: Path) -> dict[str, Any]:
    """At sizes that take little time; the times themselves say nothing then."""
    sizes = ("--sizes", "256,512", "--links", "60", "--children", "120", "--tasks", "400")
    depth.main(["--json", str(folder / "depth.json"), *sizes])
    report: dict[str, Any] = json.loads((folder / "depth.json").read_text())
    return report


def verdict(report: dict[str, Any], check: str) -> bool:
    (found,) = [one["ok"] for one in report["checks"] if one["id"] == check]
    return bool(found)


def test_a_pass_reads_the_first_in_turn_some_lanes_and_who_runs(tmp_path: Path) -> None:
    report = report_of(tmp_path)
    shallow, deep = report["facts"]["passes"]
    assert (shallow["pending"], deep["pending"]) == (256, 512)
    # Counters; 8 teams; 32 lanes; the first 64; 8 of each of 4 teams; 7 of each of 8 lanes; 16 running jobs.
    most = 1 + 8 + 32 + 64 + 8 * 4 + 7 * 8 + 16
    assert most - 7 * 8 <= min(shallow["items_read"], deep["items_read"])
    assert max(shallow["items_read"], deep["items_read"]) <= most
    # Teams, rows of lanes in two parts, the first, 4 teams, 8 lanes, running, parked, messages.
    assert shallow["queries"] == deep["queries"] == 1 + 2 + 1 + 4 + 8 + 1 + 1 + 1
    assert shallow["wcu"] == 0
    assert verdict(report, "flat-items_read")
    assert report["facts"]["first_passes"][0]["wcu"] > 96


def test_what_waits_for_others_and_tasks_that_are_no_jobs_cost_a_pass_nothing(tmp_path: Path) -> None:
    report = report_of(tmp_path)
    beside = report["facts"]["beside"]
    passes = beside["passes"]
    assert passes["chain"]["items_read"] == passes["children"]["items_read"] == passes["none"]["items_read"]
    # The array's row, its name among the open ones; its waiting jobs are behind those of their lanes.
    assert (
        passes["tasks"]["items_read"] == passes["few-tasks"]["items_read"] == passes["none"]["items_read"] + 2
    )
    assert beside["waiting_task_jobs"] == 32
    assert beside["first_passes"]["tasks"]["wcu"] > 32
    for kind in ("chain", "children", "tasks"):
        assert all(verdict(report, f"{kind}-wait-{name}") for name in ("items_read", "queries", "rcu", "wcu"))


def test_a_chain_ends_in_few_passes_with_one_notice(tmp_path: Path) -> None:
    report = report_of(tmp_path)
    ended = report["facts"]["beside"]["chain_end"]
    assert (ended["links"], ended["passes"], ended["notices"]) == (60, 1, 1)
    assert verdict(report, "chain-notices")


def test_a_pass_that_reads_every_waiting_dependent_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_reads, "LONGEST_WAIT", NOT_YET - datetime.now(UTC))
    assert not verdict(report_of(tmp_path), "children-wait-items_read")


def test_a_pass_that_reads_all_of_the_order_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_reads, "FIRST", 1000)
    assert not verdict(report_of(tmp_path), "flat-items_read")
