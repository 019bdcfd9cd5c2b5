"""Derive from starts and ends how soon jobs of a warm key follow each other, and what a warm start saves."""

from datetime import datetime, timedelta

from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.warm_history import KeyStart, WarmLesson

_SECOND = timedelta(seconds=1)


def warm_lesson(change: Change, *, at: datetime) -> WarmLesson | None:
    """Return what a start or an end adds to the record of its warm key; None if it adds nothing.

    Only attempts with a keep-alive count: without one there are no warm pools to decide about.

    Args:
        change: A change of a job, as it is written.
        at: When it is written.
    """
    before, after = change.before, change.after
    if not before.is_live and after.live is not None:
        key = _key(after.live)
        if key is None:
            return None
        # A job that came back waited for its turn or for a pause to end: nobody would have foreseen it.
        ready = after.queued_since if not after.attempt else None
        start = KeyStart(at=at, ready=ready, team=after.spec.team)
        return WarmLesson(key=key, start=start, job=after.name)
    ended, left = change.ended, change.leaves_warm
    key = None if ended is None else _key(ended)
    if ended is None or key is None:
        return None
    startup = _startup(ended)
    if left is None and startup is None:
        return None
    return WarmLesson(
        key=key,
        ended_at=None if left is None else left.since,
        startup=startup,
        is_warm=bool(ended.warm_start),
    )


def _key(attempt: Attempt) -> str | None:
    return attempt.shape.warm_key if attempt.keep_alive else None


def _startup(attempt: Attempt) -> timedelta | None:
    """Return the paid time that the attempt needed until it trained; None if it never did.

    The wait for capacity is part of the time since the claim and is not paid for.
    """
    if attempt.training_since is None or not attempt.shape.instances:
        return None
    since_claim = attempt.training_since - attempt.claim.at
    up = attempt.bill.instance_seconds / attempt.shape.instances * _SECOND
    return max(min(since_claim, up - (attempt.trained or timedelta())), timedelta())


def startup_saved(attempt: Attempt) -> timedelta:
    """Return the start-up that its warm pool saved an ended attempt; 0 if it took over none."""
    usual = attempt.claim.cold_startup
    if not attempt.warm_start or usual is None or attempt.training_since is None:
        return timedelta()
    return max(usual - (attempt.training_since - attempt.claim.at), timedelta())
