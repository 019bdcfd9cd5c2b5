"""Decide on a job that waits for others: it becomes eligible, or ends because it never can."""

from dataclasses import replace
from datetime import datetime

from trainmaster.core.arrays.array_model import Array
from trainmaster.core.arrays.array_steps import ended_array
from trainmaster.core.arrays.tasks import parse_task_name, position_of, task_entry_id, virtual_task
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.end_conditions import (
    NOT_YET,
    Condition,
    Dependencies,
    EndedParent,
    ParentEnd,
    Root,
)
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.order import score_again
from trainmaster.core.policy import PoolPolicy

MOST_QUOTED = 300
"""Characters of a root's reason that travel with those that ended for it."""


def ended_parent(job: Job) -> EndedParent:
    """Describe a final job to those that wait for it; a job that ended for another passes on that one."""
    assert job.is_final, job.state
    own = Root(name=job.name, entry_id=job.spec.entry_id, team=job.spec.team, message=_end_text(job))
    passed_on = (
        job.after.root if job.after and job.reason and job.reason.code is ReasonCode.DEPENDENCY else None
    )
    return EndedParent(entry_id=job.spec.entry_id, end=ParentEnd(job.state.value), root=passed_on or own)


def ended_in_array(array: Array, condition: Condition) -> EndedParent | None:
    """Describe an array, or a task of it that is no job, to those that wait for it; None: it has not ended.

    Args:
        array: As it is now; its end counts once it is noted, as that is what leaves the message.
        condition: Names the array or the task; of an earlier array of the name nothing is known.
    """
    if condition.entry_id == array.entry_id:
        return None if array.ended_at is None else ended_array(array)
    task = parse_task_name(condition.job)
    position = None if task is None or task.array != array.name else position_of(array, task.index)
    if position is None or task_entry_id(array.entry_id, array.indices[position]) != condition.entry_id:
        return None
    job = virtual_task(array, position)
    return ended_parent(job) if job.is_final else None


def _end_text(job: Job) -> str:
    if job.reason is None or job.state is JobState.COMPLETED:
        return str(job.state)
    return f"{job.state} ({job.reason.code}): {job.reason.message[:MOST_QUOTED]}"


def after_parent(job: Job, parent: EndedParent, *, pool: PoolPolicy, now: datetime) -> Change | None:
    """Return what a parent's end makes of a job; None: it changes nothing.

    Args:
        job: Which has, or had, a condition on that parent.
        parent: As ``ended_parent`` describes it.
        pool: The job's, whose order it enters.
        now: When that is decided.
    """
    before = job.after
    if before is None or not job.waits_for_others:
        return None
    known = before.with_end(parent.entry_id, parent.end)
    if known == before:
        return None
    if known.impossible and known.root is None:
        known = replace(known, root=parent.root)
        return _impossible(job, known, now=now)
    informed = replace(job, after=known)
    if known.all_hold:
        return Change(
            before=job, after=eligible(informed, pool=pool, now=now), note=_note_of_eligible(known, job)
        )
    waiting = informed.waiting if job.state is JobState.HELD else why_it_waits(informed)
    return Change(before=job, after=replace(informed, waiting=waiting))


def eligible(job: Job, *, pool: PoolPolicy, now: datetime) -> Job:
    """Let the job's time in the queue begin: its score is of this instant. One that is held stays held."""
    at = now.replace(microsecond=now.microsecond // 1000 * 1000)
    begun = replace(job, eligible_at=at)
    begun = replace(begun, score=score_again(begun, job.priority, pool), ranked_by=pool.order_key)
    return begun if job.state is JobState.HELD else replace(begun, not_before=None, waiting=None)


def waiting_for_others(job: Job) -> Job:
    """Return a job in state ``pending`` as it waits for its conditions."""
    return replace(job, not_before=NOT_YET, waiting=why_it_waits(job))


def why_it_waits(job: Job) -> Reason:
    """Name the conditions that are open; views say in addition what their parents do."""
    assert job.after is not None, job.name
    texts = [condition.text(to=job.spec.team) for condition in job.after.open]
    return Reason(code=ReasonCode.DEPENDENCY, message=f"waits for {', '.join(texts)}")


def impossible_text(after: Dependencies, *, team: str) -> str:
    """Say which condition can hold no more, and the job at which that began, as ``team`` may hear of it."""
    condition = after.impossible[0]
    return f"{condition.text(to=team)} can hold no more: {root_text(after, team=team)}"


def root_text(after: Dependencies, *, team: str) -> str:
    """Name the root and its reason; of another team's job only its state."""
    root = after.root
    assert root is not None, after
    if root.team != team:
        return f"a job of team {root.team} {root.message.partition(' ')[0]}"
    return f"{root.name} {root.message}"


def _impossible(job: Job, known: Dependencies, *, now: datetime) -> Change:
    message = impossible_text(known, team=job.spec.team)
    informed = replace(job, after=known, not_before=None)
    reason = Reason(code=ReasonCode.DEPENDENCY, message=message)
    if not known.hold_when_impossible:
        stopped = informed.moved_to(JobState.STOPPED)
        return Change(before=job, after=replace(stopped, waiting=None, reason=reason, ended_at=now))
    held = informed if job.state is JobState.HELD else informed.moved_to(JobState.HELD)
    return Change(before=job, after=replace(held, waiting=reason), note=reason)


def _note_of_eligible(known: Dependencies, job: Job) -> Reason:
    texts = [_held_text(condition, team=job.spec.team) for condition in known.conditions]
    return Reason(code=ReasonCode.DEPENDENCY, message=f"eligible: {', '.join(texts)}")


def _held_text(condition: Condition, *, team: str) -> str:
    assert condition.end is not None, condition
    return f"{condition.known_as(to=team)} {condition.end}"


def with_conditions(job: Job, after: Dependencies | None, *, pool: PoolPolicy, now: datetime) -> Job:
    """Return the job with other conditions, none of which is impossible; None: it waits for nobody.

    One that was held because a condition could hold no more stays held until it is released.
    """
    changed = replace(job, after=after or Dependencies(conditions=()))
    if job.state is JobState.HELD and job.waiting is not None and job.waiting.code is ReasonCode.DEPENDENCY:
        held = Reason(code=ReasonCode.HELD, message="held until it is released; its conditions were changed")
        changed = replace(changed, waiting=held)
    if after is None or after.all_hold:
        return eligible(changed, pool=pool, now=now)
    return changed if job.state is JobState.HELD else waiting_for_others(changed)
