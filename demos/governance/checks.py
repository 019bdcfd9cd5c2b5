"""What the demo must have shown, computed from its facts alone."""

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
"""From the stall to the warning; a minute that was busy for half a second only counts as idle."""
STOPPED = (jobs.WARN_MINUTES * MINUTE, jobs.WARN_MINUTES * MINUTE + 2 * MINUTE)
"""From the warning to the stop."""
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
            "rules": sorted(one["rule"] for one in refused.get("errors", ())),
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
    lines = [line for one in later for line in facts["log_lines"][one["training_job_name"]]]
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
    (first,) = [one for one in facts["training_jobs"] if one["name"] == jobs.SPOT.name]
    report.check(
        "spot-ends-on-demand",
        expected={
            "interruptions": jobs.MAX_INTERRUPTIONS + 1,
            "attempts": ["spot", "on-demand"],
            "state": "completed",
        },
        actual={
            "interruptions": [one["status"] for one in first["transitions"]].count("Interrupted"),
            "attempts": [one["capacity_type"] for one in spot["attempts"]],
            "state": spot["state"],
        },
    )


def _check_ledger(report: Report) -> None:
    facts = report.facts
    lines = [line for usage in facts["ledger"] for line in usage["jobs"]]
    billed, ledger = facts["twin_billed_instance_seconds"], facts["ledger_instance_seconds"]
    report.check("ledger-time", expected=billed, actual=ledger, ok=0 < billed == ledger)
    expected = round(sum(_usd(one, facts["prices"]) for one in facts["training_jobs"]), 2)
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
    """Outcome and rules of each record of a training job."""
    return [
        ", ".join([one["outcome"], *sorted(broken["rule"] for broken in one["violations"])])
        for one in violations
        if one["training_job_name"] == training_job
    ]


def _class(attempt: Document) -> str | None:
    diagnosis = attempt["diagnosis"] or {}
    found: str | None = diagnosis.get("class")
    return found


def _seconds_in(training_jobs: Iterable[Document], name: str, status: str) -> float:
    (job,) = [one for one in training_jobs if one["name"] == name]
    times = [_between(one["start"], one["end"]) for one in job["transitions"] if one["status"] == status]
    return sum((time for time in times if time is not None), timedelta()).total_seconds()


def _usd(training_job: Document, prices: dict[str, float]) -> float:
    """What the twin's billable time costs at list price."""
    seconds: int = (training_job["billable_seconds"] or 0) + kept_warm_seconds(training_job)
    instances: int = training_job["instance_count"]
    return instances * seconds / 3600 * prices[training_job["instance_type"]]


def _between(earlier: str | None, later: str | None) -> timedelta | None:
    if earlier is None or later is None:
        return None
    return datetime.fromisoformat(later) - datetime.fromisoformat(earlier)
