"""Records of a job on ends after which it is requeued: what they cost, and for which job it stopped."""

from collections.abc import Mapping
from datetime import timedelta

from trainmaster.core.jobs.attempts import Attempt, AttemptEnd, StopsInARow
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.recent_stops import after_stop
from trainmaster.core.lifecycle.decision import End


def stopped_for(job: Job, attempt: Attempt) -> StopsInARow | None:
    """Count one more stop in a row if the attempt was stopped for the same job as the one before it.

    Args:
        job: The job before the attempt is counted.
        attempt: The attempt, which has ended.
    """
    known, preemptor = job.stopped_for, attempt.preemptor
    if preemptor is None:
        return known
    before = known.count if known is not None and known.preemptor == preemptor else 0
    recent = known.recent if known is not None else None
    if attempt.end is not None:
        recent = after_stop(recent, at=attempt.end.at, lost=_lost_by(attempt, attempt.end))
    return StopsInARow(preemptor=preemptor, count=before + 1, recent=recent)


def _lost_by(attempt: Attempt, end: AttemptEnd) -> timedelta:
    """Return the training that its stop lost, or the start-up if it had not trained yet."""
    return end.lost if attempt.training_since is not None else max(end.at - attempt.claim.at, timedelta())


def training_lost(job: Job, end: End, lost: timedelta) -> dict[str, int]:
    """Add the training that must be repeated, in whole seconds by cause; a failed job repeats none."""
    wasted = dict(job.spent.wasted)
    seconds = int(lost.total_seconds())
    if seconds > 0 and end.becomes is not JobState.FAILED:
        wasted[end.reason.code] = wasted.get(end.reason.code, 0) + seconds
    return wasted


def startups_lost(job: Job, attempt: Attempt, *, stopped: bool) -> Mapping[str, int] | None:
    """Add the seconds since its claim of an attempt that was stopped before it trained, by cause.

    Nothing is added for one that trained, as its checkpoints tell what was lost.

    Args:
        job: The job before the attempt is counted.
        attempt: The attempt, which has ended.
        stopped: Whether we asked it to stop, and its job is requeued.
    """
    known = job.spent.startups
    if not stopped or attempt.training_since is not None or attempt.end is None or attempt.reason is None:
        return known
    seconds = int((attempt.end.at - attempt.claim.at).total_seconds())
    if seconds <= 0:
        return known
    before = dict(known or {})
    return {**before, attempt.reason.code: before.get(attempt.reason.code, 0) + seconds}
