"""The benchmark of growth runs, and says what it has reckoned."""

import json
from pathlib import Path

import pytest

from benchmarks import scale


@pytest.mark.thorough
def test_its_quick_run_writes_a_report(tmp_path: Path) -> None:
    path = tmp_path / "scale.json"
    scale.main(["--quick", "--json", str(path)])
    report = json.loads(path.read_text())
    assert (report["schema"], report["name"]) == ("trainmaster.report/1", "scale")
    assert {one["computed"] for one in report["facts"]["idle_minutes"]} == {True}
    plan, largest = report["checks"]
    assert plan["actual"] == min(report["facts"]["plans"][0]["cpu_s"])
    rows = report["facts"]["sizes"][0]["largest_rows_bytes"]
    assert {"J/job", "P/counters", "P/told", "T", "L", "O", "OT", "Q", "R"} <= set(rows)
    assert largest["actual"] == max(rows.values()) == rows["J/job"]
