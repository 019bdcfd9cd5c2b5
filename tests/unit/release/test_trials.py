"""What a release must pass: each trial fails where it should."""

from pathlib import Path

import pytest
from trainmaster_client.report import Report

from release import building, trials


@pytest.fixture
def report() -> Report:
    return Report("release", argv=())


def failed(report: Report) -> list[str]:
    return [one.id for one in report.checks if one.ok is False]


def test_other_bytes_the_second_time_fail_the_release(report: Report, tmp_path: Path) -> None:
    for name, text in {"a": "same", "b": "same", "c": "other"}.items():
        (tmp_path / name).write_text(text)
    trials.same_bytes(report, {"wheel": tmp_path / "a"}, {"wheel": tmp_path / "b"})
    assert failed(report) == []
    trials.same_bytes(report, {"stack": tmp_path / "a"}, {"stack": tmp_path / "c"})
    assert failed(report) == ["same-bytes-stack"]


def test_notes_that_are_still_unreleased_are_no_failure_and_no_success(report: Report) -> None:
    trials.changelog_section(report, "Unreleased", "0.2.0")
    assert [(one.ok, one.skipped) for one in report.checks] == [
        (None, "its notes are still under [Unreleased]: `make version VERSION=0.2.0` before the tag")
    ]
    trials.changelog_section(report, "0.2.0", "0.2.0")
    assert report.checks[1].ok


@pytest.mark.parametrize("written", [True, False], ids=["with a report", "without a report"])
def test_a_program_that_fails_fails_the_release(
    report: Report, monkeypatch: pytest.MonkeyPatch, *, written: bool
) -> None:
    def ends_badly(*command: str) -> str:
        if written:
            inner = Report("inner", argv=())
            inner.check("door", expected="open", actual="shut")
            inner.write(Path(command[-1]))
        raise building.BuildError("ended with 1")

    monkeypatch.setattr(building, "run", ends_badly)
    trials.emulator(report, Path("template.yaml"))
    assert failed(report) == ["emulator"]
    assert ("door" if written else "ended with 1") in str(report.checks[0].actual)
