"""The benchmark of the twin's items holds what it promises and writes its report."""

import json
from pathlib import Path

import pytest

from benchmarks import transactions


@pytest.mark.long
def test_the_cost_of_items_does_not_grow_with_the_table(tmp_path: Path) -> None:
    assert transactions.main(["--json", str(tmp_path / "report.json")]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert [check["id"] for check in report["checks"]] == [
        "flat-TransactWriteItems",
        "flat-GetItem",
        "flat-Query",
        "flat-PutItem",
        "front-door-GetItem",
    ]
    assert len(report["facts"]["seconds"]["TransactWriteItems"]["20000"]) == transactions.RUNS
