"""Notices about rules, training jobs that bypassed the queue, and budgets."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trainmaster.core.costs.prices import usd_text
from trainmaster.core.lifecycle.change import Change, stop_denied
from trainmaster.core.outbox.messages import Notice, NoticeKind
from trainmaster.core.outbox.texts.wording import quoted
from trainmaster.core.rules.violation import Outcome, Violation, ViolationRecord, causes

MOST_NAMED = 5
"""Violations that a sentence names; the rest is counted."""
_QUEUE_IT = "Submit such jobs to the queue: `trainmaster submit FILE.json`, or the session of the client."
_BECAME = {
    Outcome.AUDITED: "It keeps running; this was recorded (`trainmaster violations`).",
    Outcome.STOPPED: "It is being stopped.",
    Outcome.ADOPTED: "It was adopted: it keeps running as a job of the queue, counted and monitored.",
    Outcome.NOT_STOPPED: "It should be stopped, but AWS denies it. It keeps running.",
}
_BELONGS_INTO_THE_QUEUE = "Training jobs of this account belong in the queue."
_HAD_ENDED = "It has already ended; this was recorded (`trainmaster violations`)."
_UNDO = {
    Outcome.AUDITED: "",
    Outcome.NOT_STOPPED: "",
    Outcome.STOPPED: "An admin can except its role in `unmanaged_jobs.except_principals` of the policy.",
    Outcome.ADOPTED: "`trainmaster cancel {name}` stops it.",
}


def unmanaged_notice(record: ViolationRecord, *, runs: bool) -> Notice:
    """Return the notice of a training job that was started outside the queue, and what was done about it."""
    name = record.training_job_name
    became = _BECAME[record.outcome] if runs else _HAD_ENDED
    return Notice(
        kind=NoticeKind.UNMANAGED_JOB,
        team=record.team,
        training_job_name=name,
        job=name if record.outcome is Outcome.ADOPTED else None,
        what=f"Training job {name} bypassed the queue. {became}",
        why=_named(causes(record)) or _BELONGS_INTO_THE_QUEUE,
        todo=_QUEUE_IT,
        undo=_UNDO[record.outcome].format(name=name),
        detail=_detail(record),
    )


def not_stopped_notice(training_job_name: str, *, team: str, why: str) -> Notice:
    """Return the notice of a training job that was to be stopped, which AWS denies."""
    return Notice(
        kind=NoticeKind.UNMANAGED_JOB,
        team=team,
        training_job_name=training_job_name,
        what=f"Training job {training_job_name} bypassed the queue and could not be stopped."
        " It keeps running.",
        why=quoted(why),
        todo=(
            "Stop it by hand: `aws sagemaker stop-training-job --training-job-name"
            f" {training_job_name}`, or deploy the stack with StopUnmanagedJobs=true."
        ),
        detail={"outcome": Outcome.NOT_STOPPED.value},
    )


def job_not_stopped_notice(change: Change) -> Notice | None:
    """Return the same of an adopted job, which is a job of the queue; None if its stop is not denied."""
    job, why = change.after, stop_denied(change)
    if job.live is None or why is None:
        return None
    notice = not_stopped_notice(job.live.training_job_name, team=job.spec.team, why=why.message)
    return replace(notice, job=job.name)


def rule_violated_notice(record: ViolationRecord) -> Notice:
    """Return the notice of a queued job that violates audited rules, so that it runs anyway."""
    name = record.training_job_name
    return Notice(
        kind=NoticeKind.RULE_VIOLATED,
        team=record.team,
        training_job_name=name,
        job=name,
        what=f"Job {name} breaks a rule that is audited, not enforced. It runs anyway.",
        why=_named(record.violations),
        todo="Change the request before the rule is enforced.",
        detail=_detail(record),
    )


def _detail(record: ViolationRecord) -> dict[str, Any]:
    return {
        "outcome": record.outcome.value,
        "role_arn": record.role_arn,
        "violations": [
            {
                "rule": violation.rule,
                "field": violation.field,
                "message": quoted(violation.message),
                "mode": violation.mode.value,
            }
            for violation in record.violations
        ],
    }


def _named(violations: Sequence[Violation]) -> str:
    """Render the first few violations as ``rule: field message (hint)``, and count the rest."""
    named = [
        f"{violation.rule}: {violation.field} {quoted(violation.message)} ({quoted(violation.hint)})"
        for violation in violations[:MOST_NAMED]
    ]
    left_out = len(violations) - len(named)
    return "; ".join(named) + (f"; and {left_out} more" if left_out else "")


def budget_notice(team: str, *, month: str, spent_cents: int, limit_cents: int) -> Notice:
    return Notice(
        kind=NoticeKind.BUDGET_WARNING,
        team=team,
        what=f"Team {team} has spent {usd_text(spent_cents)} of its {usd_text(limit_cents)} for {month}.",
        why="That is 80 % or more. A job starts only if its worst case is covered by what is left.",
        todo=f"`trainmaster usage --team {team}` shows what it was spent on.",
        undo="An admin can raise `budget.usd_per_month` of the team.",
        detail={"month": month, "spent_cents": spent_cents, "budget_cents": limit_cents},
    )
