"""PATCH /jobs/{name}: priority, hold and release, and the jobs that a job waits for."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus

from trainmaster.api.job_context import standing_of
from trainmaster.api.jobs import dependents_count, find_job, full_view, refuse_final
from trainmaster.api.parent_jobs import look_up, parents_named
from trainmaster.api.request_context import Answer, RequestContext, wake
from trainmaster.api.task_routes import refuse_virtual
from trainmaster.api.views import instant_text
from trainmaster.core.errors import (
    BadOptionError,
    FieldError,
    JobConflictError,
    LostRaceError,
    PolicyViolationError,
    TeamLimit,
    UnavailableError,
    invalid,
    quoted,
)
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.end_conditions import Dependencies
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.dependents import impossible_text, with_conditions
from trainmaster.core.planning.order import score_again
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.request.options import MAX_PRIORITY, WantedCondition, read_conditions
from trainmaster.core.request.strict_json import JsonObject, parse_object
from trainmaster.core.submission.admission import over_ceiling
from trainmaster.core.submission.array_conditions import WrittenCondition
from trainmaster.core.submission.dependency_cycles import Walk
from trainmaster.core.submission.parents import Child, judge_parents
from trainmaster.core.submission.team_limits import over_limit
from trainmaster.services import job_steps

AFTER = "after"
_FIELDS = ("priority", "held", AFTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPatch:
    """A patch of a job; a field that is None is left as it is."""

    priority: int | None
    held: bool | None
    after: tuple[WantedCondition, ...] | None
    """Empty: it is to wait for nobody."""


def patch_job(context: RequestContext, name: str) -> Answer:
    """Said twice it is the same: a job that is as wanted is not written again."""
    context.call.parameters()
    call = context.call
    patch = _patch(parse_object(call.body, base64=call.is_base64, content_type=call.content_type))
    refuse_virtual(context, name)
    _count(context, find_job(context, name))
    job = _changed(context, name, patch)
    wake(context.outside.wake_ups, [job.spec.pool])
    view = full_view(job, standing_of(job, context), context)
    return Answer(status=HTTPStatus.OK, body=view | dependents_count(job, context))


def _changed(context: RequestContext, name: str, patch: JobPatch) -> Job:
    """Write what the patch makes of the job as it is at the write. Raises LostRaceError."""
    read, outside = partial(find_job, context, name), context.outside
    if patch.after is None:
        change = job_steps.change_job(
            read(),
            lambda job: _change(context, job, patch),
            read=read,
            store=outside.store,
            clock=outside.clock,
        )
        return read() if change is None else change.after
    for _ in range(job_steps.TRIES):
        version = outside.reader.graph_version()  # first: what the walk reads later is at least as new
        job = read()
        after = _new_conditions(context, job, patch.after)
        change = _change(context, job, patch, after=after)
        if change is None:
            return job
        try:
            return outside.store.commit_conditions(change, graph_version=version, at=outside.clock())
        except LostRaceError:
            continue
    raise LostRaceError("the job, or what it is to wait for, kept changing; try again")


def _count(context: RequestContext, job: Job) -> None:
    """Count the change with the submissions of the job's team; an admin's changes are not counted.

    Raises TooManyRequestsError.
    """
    pool = context.policy.pool(job.spec.pool)
    if context.is_admin or pool is None:
        return
    team, now = job.spec.team, context.outside.clock()
    most = pool.limits.max_submissions_per_minute
    if not context.outside.store.count_change(pool.name, team, most=most, at=now):
        raise over_limit(team, pool, TeamLimit.MAX_SUBMISSIONS_PER_MINUTE, at=now)


# ---- what was sent


def _patch(body: JsonObject) -> JobPatch:
    errors = [_unknown(key) for key in body if key not in _FIELDS]
    priority, held = body.get("priority"), body.get("held")
    if "priority" in body and not _is_priority(priority):
        errors.append(_wrong("priority", f"is not a whole number from 0 to {MAX_PRIORITY}", "5"))
    if "held" in body and not isinstance(held, bool):
        errors.append(_wrong("held", "is neither true nor false", "true"))
    if not body:
        errors.append(_wrong("priority", "is missing, and so are held and after: nothing is to change", "5"))
    after, mistakes = _conditions(body)
    if errors or mistakes:
        raise invalid([*errors, *mistakes])
    return JobPatch(
        priority=priority if isinstance(priority, int) else None,
        held=held if isinstance(held, bool) else None,
        after=after,
    )


def _conditions(body: JsonObject) -> tuple[tuple[WantedCondition, ...] | None, list[FieldError]]:
    if AFTER not in body:
        return None, []
    text = body[AFTER]
    if text is None:
        return (), []
    if not isinstance(text, str):
        return None, [_wrong(AFTER, "is neither text nor null", '"afterok:prepare"')]
    try:
        return read_conditions(text), []
    except BadOptionError as error:
        return None, [FieldError(field=AFTER, message=error.message, hint=error.hint)]


def _is_priority(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_PRIORITY


def _unknown(key: str) -> FieldError:
    hint = f"send one or more of {', '.join(quoted(name) for name in _FIELDS)}"
    return FieldError(field=key, message="cannot be changed", hint=hint)


def _wrong(field: str, message: str, example: str) -> FieldError:
    return FieldError(field=field, message=message, hint=f'send for example {{"{field}": {example}}}')


# ---- what it makes of the job


def _change(
    context: RequestContext, job: Job, patch: JobPatch, *, after: "_NewConditions | None" = None
) -> Change | None:
    """Return the job as the patch makes it, with a line for its history; None if it is so already."""
    refuse_final(job)
    changed, notes = job, list[Reason]()
    by = f"by {context.caller.arn}"
    if after is not None and not after.is_as_before:
        changed = with_conditions(job, after.conditions, pool=after.pool, now=context.outside.clock())
        message = f"conditions became {after.text or 'none'} {by}"
        notes.append(Reason(code=ReasonCode.DEPENDENCY, message=message))
    if patch.held is not None and patch.held is not (changed.state is JobState.HELD):
        changed = _held(changed, by, now=context.outside.clock()) if patch.held else _released(changed)
        code = ReasonCode.HELD if patch.held else ReasonCode.RELEASED
        notes.append(Reason(code=code, message=f"{code} {by}"))
    if patch.priority is not None and patch.priority != job.priority:
        changed = _reranked(changed, patch.priority, context)
        message = f"priority {job.priority} became {patch.priority} {by}"
        notes.append(Reason(code=ReasonCode.PRIORITY, message=message))
    if not notes:
        return None
    note = Reason(code=notes[0].code, message="; ".join(note.message for note in notes))
    return Change(before=job, after=changed, note=note)


def _held(job: Job, by: str, *, now: datetime) -> Job:
    """Raises JobConflictError: what runs cannot be held, only stopped."""
    if job.is_live:
        raise _conflict(
            "held",
            f"the job is {job.state}: only a waiting job can be held",
            "cancel it, or hold it once it waits again",
        )
    return steps.held(job, Reason(code=ReasonCode.HELD, message=f"held {by} since {instant_text(now)}"))


def _released(job: Job) -> Job:
    """Raises JobConflictError for a job that could never start: one of its conditions can hold no more."""
    if job.waits_for_others and job.after is not None and job.after.root is not None:
        text = impossible_text(job.after, team=job.spec.team)
        raise _conflict("held", text, 'change its conditions first: send {"after": ..., "held": false}')
    return steps.released(job)


def _conflict(field: str, message: str, hint: str) -> JobConflictError:
    return JobConflictError(message, errors=[FieldError(field=field, message=message, hint=hint)])


def _reranked(job: Job, priority: int, context: RequestContext) -> Job:
    """Raises PolicyViolationError above the ceiling of the job's team."""
    refusal = over_ceiling(priority, job.spec.team, context.policy, field="priority")
    if refusal is not None:
        raise PolicyViolationError(f"{refusal.field}: {refusal.message}", errors=[refusal])
    pool = _pool(job, context)
    return steps.reranked(
        job, priority=priority, score=score_again(job, priority, pool), ranked_by=pool.order_key
    )


def _pool(job: Job, context: RequestContext) -> PoolPolicy:
    pool = context.policy.pool(job.spec.pool)
    assert pool is not None, f"pool {job.spec.pool} is gone while {job.name} needs it"
    return pool


# ---- other conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewConditions:
    conditions: Dependencies | None
    """Conditions that the job is to have; None if it is to wait for no job."""
    text: str
    is_as_before: bool
    pool: PoolPolicy


def _new_conditions(context: RequestContext, job: Job, wanted: tuple[WantedCondition, ...]) -> _NewConditions:
    """Check the conditions that a job is to have instead of those it has.

    Raises:
        InvalidRequestError: A condition names no job, or one job twice.
        PolicyViolationError: A condition can hold no more, or the job would wait for itself.
        JobConflictError: The job has ended, or waits for no other job and is not held before its start.
    """
    refuse_final(job)
    pool, before = _pool(job, context), job.after
    written = [WrittenCondition(field=AFTER, wanted=condition) for condition in wanted]
    hold = before is not None and before.hold_when_impossible
    child = Child(
        name=job.name,
        team=job.spec.team,
        most_parents=pool.limits.max_parents,
        hold_when_impossible=hold,
    )
    known = look_up(context, wanted)
    parents = judge_parents(written, known.jobs, child, arrays=known.arrays)
    if parents.errors:
        raise invalid(parents.errors)
    after = parents.after
    cycle = None if after is None or job.is_live else _cycle(context, job, after)
    violations = [*parents.violations, *([] if cycle is None else [cycle])]
    if violations:
        raise PolicyViolationError(f"{AFTER}: {violations[0].message}", errors=violations)
    if not (job.waits_for_others or _is_held_and_new(job)):
        hint = "hold it first if it never started, else submit it again with the tag trainmaster:after"
        raise _conflict(AFTER, f"the job is {job.state} and waits for no other job", hint)
    text = " ".join(condition.text(to=job.spec.team) for condition in after.conditions) if after else ""
    return _NewConditions(conditions=after, text=text, is_as_before=after == before, pool=pool)


def _is_held_and_new(job: Job) -> bool:
    """Tell whether a job may get its first conditions: it is held, had none before and never started.

    No pass can start it while the patch is written, and no budget was charged for it.
    """
    return job.state is JobState.HELD and job.after is None and job.attempt == 0 and job.started_at is None


def _cycle(context: RequestContext, job: Job, after: Dependencies) -> FieldError | None:
    """Walk up from the new parents. Raises UnavailableError where there is no time to walk on."""
    walk = Walk.up_from(job, after)
    while walk.next_parents:
        if not context.has_time:
            raise UnavailableError("there was no time to look for a cycle; try again")
        walk.go_on(parents_named(context, walk.next_parents))
    return walk.refusal(field=AFTER)
