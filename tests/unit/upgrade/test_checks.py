"""An upgrade is judged by what the jobs, the policy and older clients show before and after it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from trainmaster_client.report import Report

from tests.upgrade.checks import DEPLOYED, ENDS, LEFT, check

FACTS: dict[str, Any] = {
    "deployments": DEPLOYED,
    "left": LEFT,
    "upgraded": LEFT,
    "upgraded_later": LEFT,
    "resumed": LEFT,
    "policy": {
        "put": {"version": 1},
        "shown": {"policy": {"version": 1}, "warnings": [{"field": "rules.secrets"}]},
    },
    "repairs": [{"differences": ["a counter"], "set_aside": []}, {"differences": [], "set_aside": []}],
    "resumption": {"stored": "ab12", "first_line": "resumed from checkpoint.txt sha256=ab12"},
    "old_client": [{"command": "queue", "code": 0, "printed": []}],
    "before_rollback": {"taken": ["running", 2]},
    "rolled_back": {"taken": ["running", 2]},
    "ends": ENDS,
    "errors": {},
}


def failed(change: Callable[[dict[str, Any]], Any]) -> list[str]:
    facts = json.loads(json.dumps(FACTS))
    change(facts)
    report = Report("upgrade", argv=())
    report.facts["v0.1.0"] = facts
    check(report, "v0.1.0")
    return [one.id.removeprefix("v0.1.0-") for one in report.checks if not one.ok]


def test_an_upgrade_that_changes_nothing_passes() -> None:
    assert failed(lambda _: None) == []


@pytest.mark.parametrize(
    ("change", "name"),
    [
        pytest.param(
            lambda facts: facts["deployments"].update(new="UPDATE_ROLLBACK_COMPLETE"),
            "deployments",
            id="deploy",
        ),
        pytest.param(
            lambda facts: facts["left"].pop("held"), "left", id="the earlier stack had less to lose"
        ),
        pytest.param(
            lambda facts: facts["upgraded"].update(steady=["failed", 1]), "upgraded", id="a job ended"
        ),
        pytest.param(
            lambda facts: facts["upgraded_later"].update(waits=["running", 1]),
            "upgraded-later",
            id="started in the pause",
        ),
        pytest.param(
            lambda facts: facts["resumed"].update(taken=["pending", 1]), "resumed", id="another state"
        ),
        pytest.param(
            lambda facts: facts["policy"]["shown"].update(policy={}), "policy-kept", id="another policy"
        ),
        pytest.param(
            lambda facts: facts["policy"]["shown"]["warnings"].append({"field": "policy"}),
            "policy-understood",
            id="policy",
        ),
        pytest.param(
            lambda facts: facts["repairs"][1]["differences"].append("x"), "repair-leaves-nothing", id="repair"
        ),
        pytest.param(
            lambda facts: facts["repairs"][1].update(set_aside=[{"key": "J#a/job"}]),
            "rows-set-aside",
            id="a row",
        ),
        pytest.param(
            lambda facts: facts["resumption"].update(first_line="started"),
            "resumes-from-its-checkpoint",
            id="checkpoint",
        ),
        pytest.param(
            lambda facts: facts["old_client"][0].update(code=1), "older-client-is-served", id="client"
        ),
        pytest.param(
            lambda facts: facts["rolled_back"].update(taken=["failed", 2]), "rollback-ends-nothing", id="back"
        ),
        pytest.param(
            lambda facts: facts["ends"].update(held=["held", 0]), "ends", id="a job that never ends"
        ),
        pytest.param(
            lambda facts: facts["errors"].update(api=["ERROR"]), "no-function-failed", id="an error"
        ),
    ],
)
def test_each_loss_fails_its_check(change: Callable[[dict[str, Any]], Any], name: str) -> None:
    assert name in failed(change)
