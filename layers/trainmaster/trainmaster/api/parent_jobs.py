"""The jobs that a job waits for: looked up by the names that a caller wrote, and shown with their states."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.api.request_context import RequestContext
from trainmaster.api.views import View
from trainmaster.core.arrays.array_model import Array
from trainmaster.core.arrays.tasks import array_as_job, parse_task_name, position_of, virtual_task
from trainmaster.core.errors import invalid
from trainmaster.core.field_paths import path_text
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.end_conditions import Condition, ConditionKind
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.request.options import AFTER_TAGS, WantedCondition, read_conditions
from trainmaster.core.submission.admission import Submission, Verdict
from trainmaster.core.submission.array_conditions import WrittenCondition
from trainmaster.core.submission.parents import NO_PARENTS, Child, Parents, after_itself, judge_parents

MOST_LOOKED_UP = 200
"""Names of one request that are looked up; the pool allows far fewer parents."""
MOST_STATES = 200
"""Parents whose states are read for one list; of further ones the list shows no state."""


def parents_of(
    context: RequestContext,
    submission: Submission,
    pool: PoolPolicy | None,
    *,
    indices: tuple[int, ...] | None = None,
) -> Parents:
    """Look up what the tags of a submission name, as it is now; costs nothing where there are none.

    Args:
        context: Who asks.
        submission: What was sent.
        pool: Where the job would wait; None: its types have no common pool, which is refused anyway.
        indices: Of the tasks of an array; None: it is a job.
    """
    options = submission.ask.options
    if not options.after or pool is None:
        return NO_PARENTS
    written = tuple(_written(submission))
    own = tuple(after_itself(written, submission.ask.name))
    if own:
        return Parents(errors=own)
    child = Child(
        name=submission.ask.name,
        team=submission.team,
        most_parents=pool.limits.max_parents,
        hold_when_impossible=options.holds_after_failure,
        indices=indices,
    )
    parents = look_up(context, options.after)
    return judge_parents(written, parents.jobs, child, arrays=parents.arrays)


def _written(submission: Submission) -> Iterable[WrittenCondition]:
    for index, tag in enumerate(submission.body.get("Tags", [])):
        if tag["Key"] in AFTER_TAGS:
            field = path_text(("Tags", index, "Value"))
            for wanted in read_conditions(tag["Value"]):
                yield WrittenCondition(field=field, wanted=wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUp:
    """Parents that are there and that the caller may see, by the names that were written."""

    jobs: Mapping[str, Job]
    """The job itself; for an array, or a task that is no job yet, a job that stands for it."""
    arrays: Mapping[str, Array]
    """The array itself, or that of the task."""


def look_up(context: RequestContext, wanted: Sequence[WantedCondition]) -> LookedUp:
    """Look up jobs, arrays and tasks by name; the name of any attempt of a job will do."""
    names = list(dict.fromkeys(condition.job for condition in wanted))[:MOST_LOOKED_UP]
    reader = context.outside.reader
    jobs, arrays = dict(reader.jobs(names)), dict[str, Array]()
    for name in names:
        if name in jobs:
            continue
        alias = reader.alias(name)
        job = reader.job(alias.job) if alias is not None else None
        if alias is not None and job is not None and job.spec.entry_id == alias.entry_id:
            jobs[name] = job
        elif (parent := _array_or_task(context, name)) is not None:
            jobs[name], arrays[name] = parent
    seen = {name: job for name, job in jobs.items() if context.sees(job.spec.team)}
    return LookedUp(jobs=seen, arrays=arrays)


def _array_or_task(context: RequestContext, name: str) -> tuple[Job, Array] | None:
    """Return what stands for an array, or for a task that is no job, with the array."""
    reader, task = context.outside.reader, parse_task_name(name)
    array = reader.array(name)
    if array is not None:
        return array_as_job(array), array
    array = None if task is None else reader.array(task.array)
    position = None if task is None or array is None else position_of(array, task.index)
    if array is None or position is None:
        return None
    return virtual_task(array, position), array


def parents_named(context: RequestContext, names: Sequence[str]) -> dict[str, Job]:
    """Read jobs, and what stands for arrays and for tasks that are no jobs, of any team."""
    jobs = dict(context.outside.reader.jobs(names))
    for name in names:
        if name not in jobs and (parent := _array_or_task(context, name)) is not None:
            jobs[name] = parent[0]
    return jobs


def require_known(parents: Parents) -> None:
    """Raise InvalidRequestError with every condition that says nothing."""
    if parents.errors:
        raise invalid(parents.errors)


def with_violations(verdict: Verdict, parents: Parents) -> Verdict:
    return replace(verdict, violations=(*verdict.violations, *parents.violations))


States = Mapping[str, JobState]
"""States of parents that have not ended, by entry id."""


def states_of(context: RequestContext, jobs: Iterable[Job]) -> States:
    """Read the states of the parents that these jobs wait for, in a call or two for all of them."""
    open_conditions = [condition for job in jobs for condition in _open(job)]
    names = list(dict.fromkeys(condition.job for condition in open_conditions))[:MOST_STATES]
    if not names:
        return {}
    reader = context.outside.reader
    states = {job.spec.entry_id: job.state for job in reader.jobs(names).values()}
    of_arrays = {condition.array for condition in open_conditions if condition.array is not None}
    arrays = reader.arrays(sorted(of_arrays)) if of_arrays else {}
    for condition in open_conditions:
        array = arrays.get(condition.array or "")
        if array is not None and condition.entry_id not in states:
            states[condition.entry_id] = _state_in(array, condition)
    return states


def _state_in(array: Array, condition: Condition) -> JobState:
    """Return the state of an array, or of a task of it that is no job."""
    task = None if condition.job == array.name else parse_task_name(condition.job)
    position = None if task is None else position_of(array, task.index)
    return JobState(array.state.value) if position is None else virtual_task(array, position).state


def _open(job: Job) -> tuple[Condition, ...]:
    """Return the conditions whose parents have not ended, as far as the job was informed."""
    if job.after is None or job.is_final:
        return ()
    if job.waits_for_others:
        return job.after.open
    return tuple(part for part in job.after.conditions if part.kind is ConditionKind.AFTER_CORR)


def parent_views(job: Job, context: RequestContext, states: States) -> tuple[View, ...]:
    """Return ``JobView.after``; a job of a team that the caller may not see has no name."""
    conditions = () if job.after is None else job.after.conditions
    return tuple(
        {
            "job": condition.job if context.sees(condition.team) else None,
            "type": condition.kind.value,
            "state": _state(condition, states),
        }
        for condition in conditions
    )


def _state(condition: Condition, states: States) -> str | None:
    if condition.end is not None:
        return condition.end.value
    state = states.get(condition.entry_id)
    return None if state is None else state.value


def waits_for_parents(job: Job, states: States, ends: Mapping[str, datetime] | None = None) -> Reason | None:
    """Name the parents that a job waits for, with their states and likely ends; None: it waits for none.

    Args:
        job: Any.
        states: Of its parents.
        ends: When each is likely to end, by entry id, as far as that was worked out.
    """
    if not job.waits_for_others or not job.is_waiting or not _open(job):
        return None
    texts = [_waits_text(condition, job, states, ends or {}) for condition in _open(job)]
    return Reason(code=ReasonCode.DEPENDENCY, message=f"waits for {'; '.join(texts)}")


def _waits_text(condition: Condition, job: Job, states: States, ends: Mapping[str, datetime]) -> str:
    state, end = states.get(condition.entry_id), ends.get(condition.entry_id)
    is_now = "" if state is None else f", which is {state}"
    likely = "" if end is None else f" and likely ends {end:%Y-%m-%d %H:%M} UTC"
    return f"{condition.text(to=job.spec.team)}{is_now}{likely}"
