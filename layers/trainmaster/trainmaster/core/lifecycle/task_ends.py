"""Decides how the job of a task follows a change of its array."""

from datetime import datetime

from trainmaster.core.arrays.array_model import Array
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.order import score_again
from trainmaster.core.policy import PoolPolicy


def followed(job: Job, array: Array, *, pool: PoolPolicy, releases: bool, now: datetime) -> Change | None:
    """Return the change that makes a task's job as its array wants it; None if it is so already.

    Args:
        job: A task of the array.
        array: As it is now.
        pool: The pool's section of the policy, for the score of another priority.
        releases: Whether the array was released, so that its held tasks are, too.
        now: When that is decided.
    """
    task = job.spec.array
    if task is None or job.is_final:
        return None
    if array.to_stop >> task.position & 1:
        return _stopped(job, array, now=now)
    changed, notes = job, list[Reason]()
    if misses_the_hold(job, array):
        changed = steps.held(job, Reason(code=ReasonCode.HELD, message=why_held(array)))
        notes.append(Reason(code=ReasonCode.HELD, message=why_held(array)))
    elif misses_the_release(job, array) or (releases and not array.held and job.state is JobState.HELD):
        changed = steps.released(job)
        notes.append(Reason(code=ReasonCode.RELEASED, message="released with its array"))
    if array.template.priority != changed.priority:
        changed = _reranked(changed, array, pool)
        message = f"priority {job.priority} became {changed.priority} with its array"
        notes.append(Reason(code=ReasonCode.PRIORITY, message=message))
    if not notes:
        return None
    note = Reason(code=notes[0].code, message="; ".join(note.message for note in notes))
    return Change(before=job, after=changed, note=note)


def misses_the_hold(job: Job, array: Array) -> bool:
    """Tell whether a task's job waits for instances although its array is held."""
    return array.held and job.is_waiting and job.spec.array is not None


def misses_the_release(job: Job, array: Array) -> bool:
    """Tell whether a task's job is held by its array although that was released.

    A request that holds the array may be overtaken by one that releases it, and then still hold a job.
    """
    if array.held or job.state is not JobState.HELD or job.waiting is None or job.spec.array is None:
        return False
    return job.waiting.message.startswith(_is_held(array))


def why_held(array: Array) -> str:
    """Say why the tasks of a held array wait."""
    return _is_held(array) + (f": {array.held_because}" if array.held_because else "")


def _is_held(array: Array) -> str:
    return f"array {array.name} is held"


def _stopped(job: Job, array: Array, *, now: datetime) -> Change | None:
    if job.state is JobState.STOPPING:
        return None
    message = f"stopped by {array.stopped_by}"
    reason = Reason(code=ReasonCode.STOPPED_BY_USER, message=message)
    return Change(before=job, after=steps.cancelled(job, reason=reason, now=now))


def _reranked(job: Job, array: Array, pool: PoolPolicy) -> Job:
    priority = array.template.priority
    score = score_again(job, priority, pool)
    return steps.reranked(job, priority=priority, score=score, ranked_by=pool.order_key)
