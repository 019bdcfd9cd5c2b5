"""Finding the tests of the fault list by their names, running them, and what came of each row."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.faults.rows import Row

_TESTS = Path(__file__).parents[1]
_ROWS_OF_TEST = re.compile(r"test_((?:[A-HJ-T][0-9]+b?_)+)")
_DEFINITION = re.compile(rf"^\s*(?:async )?def {_ROWS_OF_TEST.pattern}", re.MULTILINE)
_PYTEST_ARGUMENTS = (
    "-m",
    "",
    "-q",
    "--no-header",
    "--tb=short",
    "-p",
    "no:cacheprovider",
)  # the long ones too
_RAN = frozenset({pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED})


@dataclass(slots=True)
class TestRun:
    """One test, over its phases."""

    __test__ = False

    passed: bool = False
    failed: bool = False
    seconds: float = 0.0
    skipped: str = ""
    """Why; empty: it ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowResult:
    row: Row
    tests: tuple[str, ...]
    failed: tuple[str, ...]
    """Those of them that did not pass."""
    skipped: dict[str, str]
    """Why, of those that were not played; they are among the failed."""
    passed: bool
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.row.id,
            "fault": self.row.fault,
            "outcome": self.row.outcome,
            "tests": list(self.tests),
            "failed": list(self.failed),
            "skipped": self.skipped,
            "passed": self.passed,
            "seconds": round(self.seconds, 3),
        }


@dataclass(slots=True, eq=False)  # pytest keeps its plugins in sets
class Recorder:
    """A pytest plugin: keeps the tests of the wanted rows and notes how each went."""

    wanted: frozenset[str]
    runs: dict[str, TestRun] = field(default_factory=dict)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept = [item for item in items if not self.wanted.isdisjoint(rows_of(item.name))]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        run = self.runs.setdefault(report.nodeid, TestRun())
        run.seconds += report.duration
        run.failed |= report.failed
        run.passed |= report.passed and report.when == "call"
        if report.skipped and isinstance(report.longrepr, tuple):
            run.skipped = report.longrepr[2].removeprefix("Skipped: ")


def rows_of(test_name: str) -> tuple[str, ...]:
    """The ids of the rows that a test belongs to: all that its name begins with."""
    match = _ROWS_OF_TEST.match(test_name)
    return _ids(match[1]) if match else ()


def _ids(joined: str) -> tuple[str, ...]:
    return tuple(joined.rstrip("_").split("_"))


def files_with_tests_of(wanted: Iterable[str], under: Path = _TESTS) -> list[Path]:
    """Found by text, so that a broken module elsewhere does not keep these tests from running."""
    ids = frozenset(wanted)
    return [path for path, found in rows_by_file(under).items() if not ids.isdisjoint(found)]


def rows_by_file(under: Path = _TESTS) -> dict[Path, frozenset[str]]:
    """The rows that the tests of each file belong to."""
    return {
        path: frozenset(
            row for found in _DEFINITION.findall(path.read_text(encoding="utf-8")) for row in _ids(found)
        )
        for path in sorted(under.rglob("test_*.py"))
    }


def run_rows(rows: Sequence[Row]) -> tuple[list[RowResult], bool]:
    """Run the tests of the rows. The results in the order of the rows, and whether pytest itself was well."""
    recorder = Recorder(wanted=frozenset(row.id for row in rows))
    files = files_with_tests_of(recorder.wanted)
    code = pytest.main([*_PYTEST_ARGUMENTS, *map(str, files)], plugins=[recorder]) if files else 0
    return results(rows, recorder.runs), code in _RAN


def results(rows: Sequence[Row], runs: dict[str, TestRun]) -> list[RowResult]:
    """A row has passed when it has tests and each of them has."""
    return [_result(row, runs) for row in rows]


def _result(row: Row, runs: dict[str, TestRun]) -> RowResult:
    mine = {node: run for node, run in runs.items() if row.id in rows_of(_test_name(node))}
    failed = tuple(sorted(node for node, run in mine.items() if run.failed or not run.passed))
    return RowResult(
        row=row,
        tests=tuple(sorted(mine)),
        failed=failed,
        skipped={node: run.skipped for node, run in sorted(mine.items()) if run.skipped},
        passed=bool(mine) and not failed,
        seconds=sum(run.seconds for run in mine.values()),
    )


def _test_name(node: str) -> str:
    """Without what parametrisation added, which may hold anything."""
    return node.partition("[")[0].rpartition("::")[2]
