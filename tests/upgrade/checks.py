"""What an upgrade, and the way back, must leave as it was; from the facts alone."""

from collections.abc import Mapping
from typing import Any

from trainmaster_client.report import Report

DEPLOYED = {"earlier": "CREATE_COMPLETE", "new": "UPDATE_COMPLETE", "rolled_back": "UPDATE_COMPLETE"}
LEFT = {
    "done": ["completed", 1],
    "taken": ["preempted", 1],
    "steady": ["running", 1],
    "waits": ["pending", 0],
    "held": ["held", 0],
    "gone": ["stopped", 0],
    "urgent": ["running", 1],
}
"""A job in each state that lasts: the earlier release has to have left these, or nothing is shown."""
ENDS = {
    "done": ["completed", 1],
    "taken": ["completed", 2],
    "steady": ["completed", 1],
    "waits": ["completed", 1],
    "held": ["completed", 1],
    "gone": ["stopped", 0],
    "urgent": ["completed", 1],
    "of-the-new": ["completed", 1],
    "rolled-back": ["completed", 1],
}


def check(report: Report, commit: str) -> None:
    """Judge the upgrade from a commit, whose facts are under its name."""
    facts: Mapping[str, Any] = report.facts[commit]

    def equal(name: str, expected: Any, actual: Any) -> None:
        report.check(f"{commit}-{name}", expected=expected, actual=actual)

    equal("deployments", DEPLOYED, facts["deployments"])
    equal("left", LEFT, facts["left"])
    for name in ("upgraded", "upgraded_later", "resumed"):
        equal(name.replace("_", "-"), facts["left"], facts[name])
    policy = facts["policy"]
    equal("policy-kept", policy["put"], policy["shown"]["policy"])
    equal("policy-understood", [], [one for one in policy["shown"]["warnings"] if one["field"] == "policy"])
    equal("repair-leaves-nothing", [], facts["repairs"][-1]["differences"])
    equal("rows-set-aside", [], facts["repairs"][-1]["set_aside"])
    resumption = facts["resumption"]
    stored = f"resumed from checkpoint.txt sha256={resumption['stored']}"
    equal("resumes-from-its-checkpoint", stored, resumption["first_line"])
    refused = [one for one in facts["old_client"] if one["code"] != 0]
    equal("older-client-is-served", [], refused)
    equal("rollback-ends-nothing", facts["before_rollback"], facts["rolled_back"])
    equal("ends", ENDS, facts["ends"])
    equal("no-function-failed", {}, facts["errors"])
