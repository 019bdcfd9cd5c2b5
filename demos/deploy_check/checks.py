"""Checks what the deployment must have shown, from its facts alone."""

from itertools import takewhile
from typing import Any

from trainmaster_client.report import Report

from demos.main_job.checks import STORY, followed
from demos.main_job.evidence import most_at_once

Document = dict[str, Any]

WRITES = frozenset({"CreateTrainingJob", "StopTrainingJob", "UpdateTrainingJob"})
PREEMPTION = ("job1", "preempting")
AFTERWARDS = STORY[STORY.index(PREEMPTION) :]
"""Steps after the preemption; before it job1 and job2 run, in either order."""

EDGES = {
    "schedule": "doorbell-rings-schedule",
    "reconcile": "scheduler-runs-reconcile",
    "on-training-job-event": "event-reaches-its-function",
    "on-idle-alarm": "alarm-reaches-its-function",
}
"""Function -> check."""
ENDED_BY_UPDATE = "ReconcileDeadLetterQueue"
"""MiniStack ends a function that runs while it is updated; a run of reconcile is not tried again."""


def check(report: Report, *, capacity: int) -> None:
    _check_stack(report)
    _check_refusals(report)
    _check_jobs(report, capacity)
    _check_update(report)
    _check_edges(report)


def _check_stack(report: Report) -> None:
    facts = report.facts
    report.check("stack", expected="CREATE_COMPLETE", actual=facts["stack_status"])
    statuses = sorted({resource["status"] for resource in facts["resources"]})
    report.check("resources", expected=["CREATE_COMPLETE"], actual=statuses)
    report.check("api-url", expected=facts["outputs"]["ApiUrl"], actual=facts["api_url_found"])


def _check_refusals(report: Report) -> None:
    refusals = report.facts["refusals"]
    report.check("unsigned-refused", expected=403, actual=refusals["unsigned"])
    for who in ("wrong_secret", "no_right", "root_user"):
        refusal = refusals[who]
        name = f"{who.replace('_', '-')}-refused"
        report.check(name, expected="403", actual=refusal, ok=refusal is not None and "(403)" in refusal)
    report.check("no-user-arn-refused", expected=500, actual=refusals["no_user_arn"]["status"])
    report.check("refused-writes-nothing", expected=refusals["items_before"], actual=refusals["items_after"])


def _check_jobs(report: Report, capacity: int) -> None:
    facts = report.facts
    steps = [(step["job"], step["to"]) for step in facts["transitions"]]
    report.check("first", expected=["job1", "job2"], actual=_running_before_the_preemption(steps))
    report.check("order", expected=[list(step) for step in AFTERWARDS], actual=followed(AFTERWARDS, steps))
    ends = {job: [to for name, to in steps if name == job][-1] for job in sorted({name for name, _ in steps})}
    report.check("ends", expected=dict.fromkeys(("job1", "job2", "job3", "job4"), "completed"), actual=ends)
    report.check("capacity", expected=capacity, actual=most_at_once(facts["processes"]))
    resumption = facts["resumption"]
    expected = f"resumed from checkpoint.txt sha256={resumption['stored']}"
    report.check("resumed-from", expected=expected, actual=resumption["first_line"])


def _running_before_the_preemption(steps: list[tuple[str, str]]) -> list[str]:
    before = takewhile(lambda step: step != PREEMPTION, steps)
    return sorted(job for job, to in before if to == "running")


def _check_update(report: Report) -> None:
    update = report.facts["update"]
    report.check("update", expected="UPDATE_COMPLETE", actual=update["stack_status"])
    changed = {"TRAINMASTER_RETENTION_DAYS": update["changed"]["RetentionDays"]}
    report.check("update-took", expected=changed, actual=update["environment"])
    report.check("update-lost-nothing", expected=update["before"], actual=update["after"])


def _check_edges(report: Report) -> None:
    """Check what each event sets off, and that nothing was set off in vain."""
    facts = report.facts
    writers = sorted({call["access_key_id"] for call in facts["calls"] if call["operation"] in WRITES})
    report.check("one-hand-on-the-lever", expected=1, actual=len(writers))
    for name, edge in EDGES.items():
        runs = facts["functions"][name]["runs"]
        report.check(edge, expected="at least 1 run", actual=runs, ok=runs > 0)
    errors = {name: found["errors"] for name, found in facts["functions"].items() if found["errors"]}
    report.check("no-function-failed", expected={}, actual=errors)
    refused = {name: found["refused"] for name, found in facts["functions"].items() if found["refused"]}
    report.check("no-right-missing", expected={}, actual=refused)
    report.check("events-carried", expected=[], actual=facts["events_failed"])
    letters = facts["dead_letters"]
    most = dict.fromkeys(letters, 0) | {ENDED_BY_UPDATE: 1}
    few = all(letters[name] <= most[name] for name in letters)
    report.check("dead-letters", expected={"at most": most}, actual=letters, ok=few)
    alarm = facts["alarm"]
    report.check("idle-noted", expected=True, actual=alarm["idle_since"] is not None)
    report.check("busy-again", expected=None, actual=alarm["idle_after_ok"])
    report.check("alarms-tidied", expected=[], actual=facts["alarms_left"])
