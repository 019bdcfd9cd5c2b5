"""Checks what the demo must have shown, from its facts alone."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from trainmaster_client.report import Report

from demos.governance import jobs
from demos.governance.evidence import kept_warm_seconds

Document = dict[str, Any]

MINUTE = timedelta(minutes=1)
PROMPT = MINUTE
"""A job that bypassed the queue is stopped within this time."""
WARNED = ((jobs.IDLE_MINUTES - 1) * MINUTE, (jobs.IDLE_MINUTES + 3) * MINUTE)
"""Least and most time between the stall and the warning; a minute busy for half a second counts as idle."""
STOPPED = (jobs.WARN_MINUTES * MINUTE, jobs.WARN_MINUTES * MINUTE + 2 * MINUTE)
"""Least and most time between the warning and the stop."""
CENT_USD = 0.01


def check(report: Report) -> None:
    _check_rules(report)
    _check_adopted(report)
    _check_idle(report)
    _check_ends(report)
    _check_ledger(report)
    _check_without_pools(report)


def _check_rules(report: Report) -> None:
    facts = report.facts
    refused = facts["refused"]
    report.check(
        "refused",
        expected={"status": 422, "rules": ["max_runtime", "required_tags"]},
        actual={
            "status": refused.get("status"),
            "rules": sorted(error["rule"] for error in refused.get("errors", ())),
        },
    )
    _check_stopped(report, "unmanaged-stopped", facts["unmanaged"])
    report.check(
        "unmanaged-reported",
        expected=["stopped, max_runtime, required_tags"],
        actual=_reported(facts["violations"], jobs.UNTAGGED.name),
    )


def _check_adopted(report: Report) -> None:
    facts = report.facts
    plain, view = facts["jobs"][jobs.PLAIN.name], facts["adopted_view"] or {}
    report.check(
        "adopted",
        expected={"reported": ["adopted"], "state": "running", "alarm": "OK"},
        actual={
            "reported": _reported(facts["violations"], jobs.PLAIN.name),
            "state": view.get("state"),
            "alarm": facts["alarms_at_work"].get(jobs.PLAIN.name),
        },
    )
    first, *later = plain["attempts"]
    trained = _seconds_in(facts["training_jobs"], first["training_job_name"], "Training")
    report.check(
        "network-failure-retried",
        expected=f"class network after {jobs.MIN_RUNTIME_HOURS} hours and more, one retry, completed",
        actual=f"class {_class(first)} after {trained / 3600:.2f} hours, "
        f"{len(later)} retries, {plain['state']}",
        ok=(_class(first), len(later), plain["state"]) == ("network", 1, "completed")
        and trained >= jobs.MIN_RUNTIME_HOURS * 3600,
    )
    stored = sorted(facts["checkpoints_at_failure"].values())
    lines = [line for attempt in later for line in facts["log_lines"][attempt["training_job_name"]]]
    resumed = sorted({line.rpartition("sha256=")[2] for line in lines if line.startswith("resumed from")})
    report.check("retried-from-checkpoint", expected=stored, actual=resumed, ok=stored == resumed != [])


def _check_idle(report: Report) -> None:
    facts = report.facts
    idle = facts["idle"]
    warned = _between(idle["stalled_at"], idle["warned_at"])
    _check_wait(report, "idle-warned", warned, WARNED)
    _check_wait(report, "idle-stopped", _between(idle["warned_at"], idle["stopped_at"]), STOPPED)
    stalled = facts["jobs"][jobs.STALLED.name]
    report.check(
        "stopped-as-idle",
        expected=["stopped", "idle"],
        actual=[stalled["state"], stalled["reason"]["code"]],
    )
    report.check(
        "busy-left-alone",
        expected=sorted([jobs.SPOT.name, jobs.STALLED.name, jobs.UNTAGGED.name]),
        actual=facts["stops"],
    )
    report.check("alarms-gone", expected={}, actual=facts["alarms_at_the_end"])


def _check_ends(report: Report) -> None:
    facts = report.facts
    bug, spot = facts["jobs"][jobs.BUG.name], facts["jobs"][jobs.SPOT.name]
    advice = (bug["attempts"][0]["diagnosis"] or {}).get("advice")
    report.check(
        "bug-not-retried",
        expected="failed after 1 attempt, class user-code, with advice",
        actual=f"{bug['state']} after {len(bug['attempts'])} attempt, class {_class(bug['attempts'][0])}, "
        f"advice: {advice}",
        ok=(bug["state"], len(bug["attempts"]), _class(bug["attempts"][0])) == ("failed", 1, "user-code")
        and bool(advice),
    )
    (first,) = [
        training_job for training_job in facts["training_jobs"] if training_job["name"] == jobs.SPOT.name
    ]
    report.check(
        "spot-ends-on-demand",
        expected={
            "interruptions": jobs.MAX_INTERRUPTIONS + 1,
            "attempts": ["spot", "on-demand"],
            "state": "completed",
        },
        actual={
            "interruptions": [transition["status"] for transition in first["transitions"]].count(
                "Interrupted"
            ),
            "attempts": [attempt["capacity_type"] for attempt in spot["attempts"]],
            "state": spot["state"],
        },
    )


def _check_ledger(report: Report) -> None:
    facts = report.facts
    lines = [line for usage in facts["ledger"] for line in usage["jobs"]]
    billed, ledger = facts["twin_billed_instance_seconds"], facts["ledger_instance_seconds"]
    report.check("ledger-time", expected=billed, actual=ledger, ok=0 < billed == ledger)
    expected = round(sum(_usd(training_job, facts["prices"]) for training_job in facts["training_jobs"]), 2)
    actual = round(sum(line["usd"] for line in lines), 2)
    report.check(
        "ledger-money",
        expected=expected,
        actual=actual,
        ok=expected > 0 and abs(expected - actual) <= CENT_USD * len(facts["training_jobs"]),
    )


def _check_without_pools(report: Report) -> None:
    late = report.facts["without_pools"]
    report.check("no-pools", expected=[], actual=late["policy"].get("pools", []))
    _check_stopped(report, "unmanaged-stopped-without-pools", late["stopped"])
    report.check(
        "unmanaged-reported-without-pools",
        expected=["stopped, required_tags"],
        actual=_reported(late["violations"], jobs.LATE.name),
    )


def _check_stopped(report: Report, check_id: str, stopped: Document) -> None:
    wait = _between(stopped["started_at"], stopped["stop_requested_at"])
    by = str(stopped["stop_requested_by"]).rpartition("/")[2]
    report.check(
        check_id,
        expected=f"stopped by schedule within {PROMPT.total_seconds():.0f} s",
        actual=f"stopped by {by} after {'-' if wait is None else wait.total_seconds()} s",
        ok=by == "schedule" and wait is not None and wait <= PROMPT,
    )


def _check_wait(
    report: Report, check_id: str, wait: timedelta | None, bounds: tuple[timedelta, timedelta]
) -> None:
    least, most = bounds
    report.check(
        check_id,
        expected=f"{least / MINUTE:.0f} to {most / MINUTE:.0f} minutes",
        actual="never" if wait is None else f"{wait / MINUTE:.1f} minutes",
        ok=wait is not None and least <= wait <= most,
    )


def _reported(violations: Iterable[Document], training_job: str) -> list[str]:
    """Return outcome and rules of each record of a training job."""
    return [
        ", ".join([violation["outcome"], *sorted(broken["rule"] for broken in violation["violations"])])
        for violation in violations
        if violation["training_job_name"] == training_job
    ]


def _class(attempt: Document) -> str | None:
    diagnosis = attempt["diagnosis"] or {}
    failure_class: str | None = diagnosis.get("class")
    return failure_class


def _seconds_in(training_jobs: Iterable[Document], name: str, status: str) -> float:
    (job,) = [job for job in training_jobs if job["name"] == name]
    times = [
        _between(transition["start"], transition["end"])
        for transition in job["transitions"]
        if transition["status"] == status
    ]
    return sum((time for time in times if time is not None), timedelta()).total_seconds()


def _usd(training_job: Document, prices: dict[str, float]) -> float:
    """Return what the twin's billable time costs at list price."""
    seconds: int = (training_job["billable_seconds"] or 0) + kept_warm_seconds(training_job)
    instances: int = training_job["instance_count"]
    return instances * seconds / 3600 * prices[training_job["instance_type"]]


def _between(earlier: str | None, later: str | None) -> timedelta | None:
    if earlier is None or later is None:
        return None
    return datetime.fromisoformat(later) - datetime.fromisoformat(earlier)
