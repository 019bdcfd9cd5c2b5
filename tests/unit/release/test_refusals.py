"""``python -m release``: what it refuses before it builds, and what it writes for the next version."""

from pathlib import Path

import pytest

import release.__main__ as program
from release import building, versions

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A timeline.\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of 0.1.0 without changes; the tags are those of the file ``tags``."""
    home = tmp_path / versions.HOME
    home.parent.mkdir(parents=True)
    home.write_text('__version__ = "0.1.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "tags").touch()
    (tmp_path / "status").touch()

    def git(*command: str) -> str:
        return (tmp_path / {"tag": "tags", "status": "status"}[command[1]]).read_text()

    monkeypatch.setattr(building, "run", git)
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.setattr(program, "CHANGELOG", tmp_path / "CHANGELOG.md")
    return tmp_path


def test_a_tree_with_changes_is_not_released(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "status").write_text(" M README.md\n")
    assert program.main(["build"]) == 2
    assert "M README.md" in capsys.readouterr().err
    assert not (root / "build").exists()


def test_a_version_with_a_tag_is_not_released_again(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "tags").write_text("v0.1.0\n")
    assert program.main(["build"]) == 2
    assert "there is a tag v0.1.0" in capsys.readouterr().err
    assert not (root / "build").exists()


def test_the_next_version_is_written_in_both_places(root: Path) -> None:
    assert program.main(["prepare", "0.2.0"]) == 0
    assert versions.read(root) == "0.2.0"
    assert "\n## [Unreleased]\n\n## [0.2.0] - 20" in (root / "CHANGELOG.md").read_text()


def test_a_refused_version_changes_nothing(root: Path) -> None:
    assert program.main(["prepare", "0.0.9"]) == 2
    assert versions.read(root) == "0.1.0"
    assert (root / "CHANGELOG.md").read_text() == CHANGELOG


def test_the_notes_of_a_version_are_printed_alone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["notes", "0.1.0"]) == 0
    assert capsys.readouterr().out == "### Added\n\n- A timeline.\n"
