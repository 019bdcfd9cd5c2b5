from pathlib import Path

import pytest

from tests.faults.rows import ROWS, Row
from tests.faults.running import TestRun, files_with_tests_of, results, rows_by_file, rows_of

ROW = Row(id="A1", fault="f", outcome="o")
PASSED = TestRun(passed=True, seconds=0.5)
FAILED = TestRun(passed=True, failed=True, seconds=0.5)  # passed, then failed while tearing down
SKIPPED = TestRun(skipped="it needs a browser")


@pytest.mark.parametrize(
    ("row", "runs", "passed"),
    [
        pytest.param(
            ROW, {"t.py::test_A1_x": PASSED, "t.py::test_A1_y[A7-::b]": PASSED}, True, id="all pass"
        ),
        pytest.param(ROW, {"t.py::test_A1_x": PASSED, "t.py::test_A1_y": FAILED}, False, id="one fails"),
        pytest.param(ROW, {"t.py::test_A1_x": SKIPPED}, False, id="a skipped test has not passed"),
        pytest.param(ROW, {"t.py::test_A10_x": PASSED}, False, id="no test of its own"),
        pytest.param(ROW, {}, False, id="no test at all"),
    ],
)
def test_a_row_passes_when_it_has_tests_and_all_of_them_pass(
    row: Row, runs: dict[str, TestRun], *, passed: bool
) -> None:
    (result,) = results([row], runs)
    assert result.passed is passed
    assert len(result.tests) == sum("test_A10" not in node for node in runs)
    assert result.as_json()["passed"] is passed


def test_a_row_says_why_a_test_of_it_was_not_played() -> None:
    (result,) = results([ROW], {"t.py::test_A1_x": SKIPPED, "t.py::test_A1_y": PASSED})
    assert result.as_json()["skipped"] == {"t.py::test_A1_x": "it needs a browser"}


def test_every_group_is_complete() -> None:
    sizes = {"A": 13, "B": 13, "C": 15, "D": 15, "E": 12, "F": 19, "G": 12, "H": 12}
    sizes |= {"N": 22, "J": 19, "K": 15, "L": 14, "M": 10, "O": 18, "P": 12, "Q": 8, "R": 6, "S": 12, "T": 6}
    expected = {f"{group}{number}" for group, size in sizes.items() for number in range(1, size + 1)} | {
        "G2b"
    }
    assert len(ROWS) == len(expected)
    assert {row.id for row in ROWS} == expected
    assert all(row.fault and row.outcome for row in ROWS)


def test_every_row_has_tests() -> None:
    found = frozenset().union(*rows_by_file().values())
    assert [row.id for row in ROWS if row.id not in found] == []


def test_tests_are_found_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_A1_x() -> None: ...\n", encoding="utf-8")
    (tmp_path / "test_b.py").write_text(
        "class TestB:\n    async def test_G2b_x(self): ...\n", encoding="utf-8"
    )
    (tmp_path / "test_c.py").write_text('"""About test_A1_x."""\ndef test_A10_x(): ...\n', encoding="utf-8")
    (tmp_path / "test_d.py").write_text("def test_B1_C2_x(): ...\n", encoding="utf-8")
    (tmp_path / "rows.py").write_text("def test_A1_x(): ...\n", encoding="utf-8")
    assert [path.name for path in files_with_tests_of(["A1"], under=tmp_path)] == ["test_a.py"]
    assert [path.name for path in files_with_tests_of(["G2b", "A10"], under=tmp_path)] == [
        "test_b.py",
        "test_c.py",
    ]
    assert [path.name for path in files_with_tests_of(["C2"], under=tmp_path)] == ["test_d.py"]
    assert rows_of("test_A1_x[A2]") == ("A1",)
    assert rows_of("test_A1_G2b_x") == ("A1", "G2b")
    assert rows_of("test_about_A1_x") == ()


def test_rows_have_no_tests_that_need_another_environment() -> None:
    """The runner collects in this one; rows that need others start them, as L4 and L5 do."""
    elsewhere = {"aio", "airflow", "clients", "v3"}
    found = files_with_tests_of(row.id for row in ROWS)
    assert [path for path in found if path.parent.name in elsewhere] == []
