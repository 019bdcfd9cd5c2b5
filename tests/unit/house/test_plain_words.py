"""Plain words: sentences in docstrings, names that say what they hold, subjects that fit on a line."""

import subprocess
from pathlib import Path

import pytest

from tests.house import subjects
from tests.house.plain_words import (
    LOOP_VARIABLES_WITH_A_REASON,
    comment_share,
    fragments,
    statements,
    vague_loop_variables,
    vague_names,
)
from tests.house.subjects import subject_error
from tests.house.tracked import ROOT
from tests.house.tree import Module, read_modules

CODE = '''"""Of a module."""

LIMIT = 3
"""As many as there are."""
GOOD = 4
"""Seconds between two looks."""


class Queue:
    """Hold the jobs that wait."""

    def first(self, found, *, limit):
        """None: there is nothing."""
        for one in found:
            print(one)
        told = [it for it in found]  # a comment
        return [job for job in told if job]
'''


def modules(root: Path) -> list[Module]:
    (root / "m.py").write_text(CODE, encoding="utf-8")
    return list(read_modules(root, ["m.py"]).values())


def test_a_fragment_is_found_in_docstrings_and_in_notes_under_constants(tmp_path: Path) -> None:
    assert [str(place) for place in fragments(modules(tmp_path))] == [
        "m.py:1 Of a module.",
        "m.py:4 As many as there are.",
        "m.py:13 None: there is nothing.",
    ]


def test_vague_loop_variables_are_found_in_loops_and_comprehensions(tmp_path: Path) -> None:
    assert [str(place) for place in vague_loop_variables(modules(tmp_path))] == ["m.py:14 one", "m.py:16 it"]


def test_vague_names_are_found_in_parameters_and_assignments(tmp_path: Path) -> None:
    assert [str(place) for place in vague_names(modules(tmp_path))] == ["m.py:12 found", "m.py:16 told"]


def test_comments_and_statements_are_counted_without_docstrings(tmp_path: Path) -> None:
    (module,) = modules(tmp_path)
    assert statements(module.syntax) == 8
    assert comment_share([CODE]) == pytest.approx(1 / 13)


def test_at_most_twenty_vague_loop_variables_have_a_reason() -> None:
    assert len(LOOP_VARIABLES_WITH_A_REASON) <= 20
    assert all(LOOP_VARIABLES_WITH_A_REASON.values())


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ("planner: let a shrinking job keep its place\n\nWhy, and what it costs.\n", None),
        ("Merge branch 'main' into " + "x" * 80, None),
        ("x" * 72, None),
        ("x" * 73, "has 73 characters"),
        ("one line\nand the next\n", "second line"),
        ("# only what git says\n", "empty"),
    ],
)
def test_the_subject_of_a_commit_fits_on_one_line(message: str, part: str | None) -> None:
    error = subject_error(message)
    assert (error is None) if part is None else (error is not None and part in error)


def test_the_subjects_since_the_hook_fit(capsys: pytest.CaptureFixture[str]) -> None:
    """Read the commits after the one that brought the hook; older ones stay as they were written."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else ""

    path = Path(subjects.__file__).relative_to(ROOT).as_posix()
    hook = git("log", "--diff-filter=A", "--format=%H", "--", path).split()
    if not hook or git("rev-parse", "--is-shallow-repository").strip() != "false":
        pytest.skip("no git history: there are no subjects to read")
    long = [
        line
        for line in git("log", "--no-merges", "--format=%h %s", f"{hook[-1]}..HEAD").splitlines()
        if subject_error(line.partition(" ")[2]) is not None
    ]
    assert long == []
