"""The benchmark of deep queues counts what a pass reads, and says so when that grows."""

import json
from pathlib import Path
from typing import Any

import pytest
from trainmaster.core.planning import candidates

from benchmarks import depth

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depth, "RUNS", 2)
    monkeypatch.setattr(depth, "PLANS", 2)


def report_of(folder: Path) -> dict[str, Any]:
    """At sizes that take little time; the times themselves say nothing then."""
    depth.main(["--json", str(folder / "depth.json"), "--sizes", "256,512"])
    report: dict[str, Any] = json.loads((folder / "depth.json").read_text())
    return report


def verdict(report: dict[str, Any], check: str) -> bool:
    (found,) = [one["ok"] for one in report["checks"] if one["id"] == check]
    return bool(found)


def test_a_pass_reads_the_heads_of_each_lane_and_who_runs(tmp_path: Path) -> None:
    report = report_of(tmp_path)
    shallow, deep = report["facts"]["passes"]
    assert (shallow["pending"], deep["pending"]) == (256, 512)
    # Policy and counters; 8 teams; 8 heads of each of 32 lanes; 16 running jobs.
    assert shallow["items_read"] == deep["items_read"] == 2 + 8 + 8 * 32 + 16
    # Teams, lanes, running, parked, messages.
    assert shallow["queries"] == 1 + 32 + 1 + 1 + 1
    assert shallow["wcu"] == 0
    assert verdict(report, "flat-items_read")
    assert report["facts"]["first_passes"][0]["wcu"] > 256


def test_a_pass_that_reads_all_of_a_lane_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainmaster.adapters.dynamodb.reads.HEADS", 1000)
    monkeypatch.setattr(candidates, "HEADS", 1000)
    assert not verdict(report_of(tmp_path), "flat-items_read")
