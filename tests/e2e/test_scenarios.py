"""Every story of ``python -m tests.scenarios`` comes true, and a story that does not is told so."""

import json
from pathlib import Path

import pytest

from tests.scenarios.__main__ import SCENARIOS, Scenario, main

pytestmark = pytest.mark.long


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_story_comes_true(scenario: Scenario, tmp_path: Path) -> None:
    path = tmp_path / "scenarios.json"
    code = main(["--only", scenario.name, "--json", str(path)])
    report = json.loads(path.read_text())
    wrong = [one for one in report["checks"] if not one["ok"]]
    assert not wrong, report["facts"]["scenarios"][scenario.name]["error"]
    assert code == 0
    assert scenario.name in [one["id"] for one in report["checks"]]
    assert report["facts"]["scenarios"][scenario.name]["journal"]
