"""``python -m tests.faults [--groups A,B] [--json P]``: the fault list, its tests, and whether they pass."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from trainmaster_client.report import Report

from tests.faults.rows import ROWS
from tests.faults.running import RowResult, run_rows

_GROUPS = "A-H,J-T"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument(
        "--groups", type=_groups, default=_GROUPS, help="some of them, e.g. A,G or A-H,N; else all"
    )
    parser.add_argument(
        "--json", type=Path, default=Path("build/faults.json"), help="where to write the report"
    )
    arguments = parser.parse_args(argv)
    report = Report("faults", argv=("python", "-m", "tests.faults", *argv))
    found, ran = run_rows([row for row in ROWS if row.id[0] in arguments.groups])
    report.facts["rows"] = [result.as_json() for result in found]
    report.facts["pytest_ran"] = ran
    report.check("pytest-ran", expected=True, actual=ran)
    for result in found:
        _check(result, report)
    return report.finish(arguments.json)


def _check(result: RowResult, report: Report) -> None:
    row = result.row
    actual = f"{_told(result)}: {row.fault}"
    report.check(row.id, expected="its tests pass", actual=actual, ok=result.passed)


def _told(result: RowResult) -> str:
    if not result.tests:
        return "no test"
    passed = f"{len(result.tests) - len(result.failed)} of {len(result.tests)} tests passed"
    why = "; ".join(dict.fromkeys(result.skipped.values()))
    return f"{passed} in {result.seconds:.1f} s" + (f", skipped: {why}" if why else "")


def _groups(text: str) -> frozenset[str]:
    groups: set[str] = set()
    for part in text.upper().split(","):
        first, _, last = part.partition("-")
        groups |= {row.id[0] for row in ROWS if first <= row.id[0] <= (last or first)}
        if {first, last or first} - groups or len(first) != 1:
            raise argparse.ArgumentTypeError(f"{part!r}: groups are letters or ranges of {_GROUPS}")
    return frozenset(groups)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
