"""The benchmark of growth runs, and says what it has reckoned."""

import json
from pathlib import Path

from benchmarks import scale


def test_its_quick_run_writes_a_report(tmp_path: Path) -> None:
    path = tmp_path / "scale.json"
    scale.main(["--quick", "--json", str(path)])
    report = json.loads(path.read_text())
    assert (report["schema"], report["name"]) == ("trainmaster.report/1", "scale")
    assert {one["computed"] for one in report["facts"]["minutes"]} == {True}
    assert report["checks"][0]["actual"] == sorted(report["facts"]["plans"][0]["cpu_s"])[1]
