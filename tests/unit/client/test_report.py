import json
import subprocess
from pathlib import Path

import pytest
from trainmaster_client.report import Report


def report(*outcomes: bool | None) -> Report:
    made = Report("demo", argv=("demo", "--json", "x"))
    for number, outcome in enumerate(outcomes):
        if outcome is None:
            made.skip(f"c{number}", reason="no GPU here", expected=1)
        else:
            made.check(f"c{number}", expected=True, actual=outcome)
    return made


@pytest.mark.parametrize(
    ("outcomes", "ok"),
    [
        pytest.param((True,), True, id="all passed"),
        pytest.param((True, None), True, id="a skipped check does not fail the rest"),
        pytest.param((True, False), False, id="one failed"),
        pytest.param((None,), False, id="nothing but skipped checks is not ok"),
        pytest.param((), False, id="nothing checked is not ok"),
    ],
)
def test_ok_means_at_least_one_passed_and_none_failed(outcomes: tuple[bool | None, ...], *, ok: bool) -> None:
    assert report(*outcomes).ok is ok


def test_the_written_report_has_the_agreed_shape(tmp_path: Path) -> None:
    made = report(True, None)
    made.facts["calls"] = [1, 2]
    made.write(tmp_path / "new" / "demo.json")
    written = json.loads((tmp_path / "new" / "demo.json").read_text(encoding="utf-8"))
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert written.pop("seconds") >= 0
    assert isinstance(written.pop("dirty"), bool)
    assert written == {
        "schema": "trainmaster.report/1",
        "name": "demo",
        "commit": head,
        "argv": ["demo", "--json", "x"],
        "ok": True,
        "checks": [
            {"id": "c0", "ok": True, "expected": True, "actual": True},
            {"id": "c1", "ok": None, "expected": 1, "actual": None, "skipped": "no GPU here"},
        ],
        "facts": {"calls": [1, 2]},
    }


def test_a_check_may_be_more_than_equality() -> None:
    made = Report("demo")
    assert made.check("fast", expected="at most 30 ms", actual=12, ok=True)
    assert not made.check("slow", expected="at most 30 ms", actual=99, ok=False)
    assert not made.ok


def test_finishing_prints_reasons_and_gives_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(True, None).finish(tmp_path / "r.json") == 0
    assert report(False).finish(tmp_path / "r.json") == 1
    printed = capsys.readouterr().out
    assert "skip  c1: no GPU here" in printed
    assert "FAIL  c0: expected True, found False" in printed


def test_an_installed_client_names_no_commit_of_the_repository_it_lies_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project's own virtual environment is often inside that project's repository."""
    package = tmp_path / "site-packages" / "trainmaster_client"
    (package / "_checkout").mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    commit = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet"]
    subprocess.run([*commit, "--allow-empty", "-m", "theirs"], check=True)
    monkeypatch.setattr("trainmaster_client.report._PACKAGE", package)
    assert (report(True).as_json()["commit"], report(True).as_json()["dirty"]) == (None, False)
