"""Every story of ``python -m tests.scenarios`` comes true, and one that does not is reported so."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios import __main__ as scenarios
from tests.scenarios.__main__ import SCENARIOS, Scenario
from tests.scenarios.stage import StoryError


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_story_comes_true(scenario: Scenario, tmp_path: Path) -> None:
    path = tmp_path / "scenarios.json"
    code = scenarios.main(["--only", scenario.name, "--json", str(path)])
    report = json.loads(path.read_text())
    wrong = [one for one in report["checks"] if not one["ok"]]
    assert not wrong, report["facts"]["scenarios"][scenario.name]["error"]
    assert code == 0
    assert scenario.name in [one["id"] for one in report["checks"]]
    assert report["facts"]["scenarios"][scenario.name]["journal"]


class EmptyStage:
    """Without a twin."""

    def __init__(self) -> None:
        self.checks: list[Any] = []
        self.records: list[Any] = []

    def journal(self) -> list[Any]:
        return []


def good(stage: Any) -> None:
    stage.checks.append({"what": "true", "expected": 1, "actual": 1, "ok": True})


def wrong(stage: Any) -> None:
    good(stage)
    stage.checks.append({"what": "false", "expected": 1, "actual": 2, "ok": False})


def breaks_off(stage: Any) -> None:
    good(stage)
    raise StoryError("nothing happened")


def silent(stage: Any) -> None:
    """Checks nothing."""


@pytest.mark.parametrize(
    ("stories", "ok"),
    [
        pytest.param((good,), {"good": True}, id="all checks true"),
        pytest.param((wrong, good), {"wrong": False, "good": True}, id="a check is false"),
        pytest.param((breaks_off, good), {"breaks_off": False, "good": True}, id="a story breaks off"),
        pytest.param((silent,), {"silent": False}, id="a story checks nothing"),
    ],
)
def test_a_story_is_true_when_it_was_told_to_its_end_and_all_of_its_checks_are(
    stories: Any, ok: dict[str, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def on_stage(folder: Path, policy: Any, **_: Any) -> Iterator[EmptyStage]:
        yield EmptyStage()

    told = tuple(Scenario(name=story.__name__, story=story, policy={}) for story in stories)
    monkeypatch.setattr(scenarios, "on_stage", on_stage)
    monkeypatch.setattr(scenarios, "SCENARIOS", told)
    names = ",".join(ok)
    code = scenarios.main(["--only", names, "--json", str(tmp_path / "report.json")])
    report = json.loads((tmp_path / "report.json").read_text())
    assert {one["id"]: one["ok"] for one in report["checks"] if one["id"] in ok} == ok
    assert code == (0 if all(ok.values()) else 1)


def test_a_name_that_is_no_story_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        scenarios.main(["--only", "reclaim,recliam"])
    assert "no recliam; there are reclaim, wide-not-starved" in capsys.readouterr().err
