"""Show the story of a single job: its attempts, its transitions, and when it may start."""

from trainmaster.api.capacity_views import by_type
from trainmaster.api.job_context import NO_PROSPECT, Prospect
from trainmaster.api.paging import fitting
from trainmaster.api.views import View, instant_text, reason_view
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.failures import Diagnosis
from trainmaster.core.jobs.model import Job
from trainmaster.core.records import HistoryLine


def story_view(
    job: Job,
    attempts: tuple[Attempt, ...],
    history: tuple[HistoryLine, ...],
    prospect: Prospect = NO_PROSPECT,
) -> View:
    """Show what only the view of a single job has; if there are too many attempts, the newest."""
    return {
        "shapes_because": job.spec.measured,
        "set_by_pool": list(job.spec.set_by_pool or ()),
        "attempts": fitting(map(_attempt_view, reversed(attempts)))[::-1],
        "history": [_history_view(line) for line in history],
        "estimated_start": prospect.start,
        "estimate_note": prospect.note,
    }


def _attempt_view(attempt: Attempt) -> View:
    return {
        "attempt": attempt.number,
        "training_job_name": attempt.training_job_name,
        "training_job_arn": attempt.training_job_arn,
        "status": attempt.progress.status if attempt.progress else None,
        "secondary_status": attempt.progress.secondary_status if attempt.progress else None,
        "capacity_type": attempt.capacity_type.value,
        "instances": by_type(attempt.vector),
        "started_at": instant_text(attempt.claim.at),
        "ended_at": instant_text(attempt.ended_at),
        "reason": reason_view(attempt.reason),
        "diagnosis": _diagnosis_view(attempt.diagnosis),
        "idle_since": instant_text(attempt.watch.idle_since),
        "stop_due": instant_text(attempt.watch.stop_due),
        "underused_since": instant_text(attempt.watch.underused_since),
        "underused_stop_due": instant_text(attempt.watch.underused_stop_due),
        "loss": reason_view(attempt.loss.finding if attempt.loss else None),
        "loss_stop_due": instant_text(attempt.loss.stop_due if attempt.loss else None),
        "unguarded": reason_view(attempt.unmonitored),
        "last_checkpoint": instant_text(attempt.checkpoint.last),
        "last_checkpoint_is_lower_bound": attempt.checkpoint.uncertain_since is not None,
        "checkpoint_overdue": attempt.checkpoint.overdue,
    }


def _history_view(line: HistoryLine) -> View:
    return {
        "at": instant_text(line.at),
        "attempt": line.attempt,
        "from": line.from_state.value if line.from_state else None,
        "to": line.to_state.value,
        "reason": reason_view(line.reason),
    }


def _diagnosis_view(diagnosis: Diagnosis | None) -> View | None:
    if diagnosis is None:
        return None
    return {
        "class": diagnosis.failure_class.value,
        "advice": diagnosis.advice,
        "evidence": diagnosis.evidence,
        "exit_code": diagnosis.exit_code,
    }
