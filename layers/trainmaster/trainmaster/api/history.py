"""What people see of a job's past: its attempts and its transitions."""

from trainmaster.api.views import View, instant_text, reason_view
from trainmaster.core.jobs.failures import Diagnosis
from trainmaster.core.jobs.model import Attempt
from trainmaster.core.records import HistoryLine


def story_view(
    attempts: tuple[Attempt, ...], history: tuple[HistoryLine, ...], estimated_start: View | None = None
) -> View:
    """What only the view of one job has."""
    return {
        "attempts": [_attempt_view(attempt) for attempt in attempts],
        "history": [_history_view(line) for line in history],
        "estimated_start": estimated_start,
    }


def _attempt_view(attempt: Attempt) -> View:
    return {
        "attempt": attempt.number,
        "training_job_name": attempt.training_job_name,
        "training_job_arn": attempt.training_job_arn,
        "status": attempt.status,
        "secondary_status": attempt.secondary_status,
        "capacity_type": attempt.capacity_type.value,
        "started_at": instant_text(attempt.claimed_at),
        "ended_at": instant_text(attempt.ended_at),
        "reason": reason_view(attempt.reason),
        "diagnosis": _diagnosis_view(attempt.diagnosis),
        "idle_since": instant_text(attempt.idle_since),
        "stop_due": instant_text(attempt.stop_due),
        "underused_since": instant_text(attempt.underused_since),
        "unguarded": reason_view(attempt.unguarded),
        "last_checkpoint": instant_text(attempt.last_checkpoint),
        "checkpoint_overdue": attempt.checkpoint_overdue,
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
