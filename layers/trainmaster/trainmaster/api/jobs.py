"""GET, PATCH and DELETE /jobs/{name}: one job, by the name of any of its attempts."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus

from trainmaster.api.job_context import NO_PROSPECT, Prospect, estimated_start, job_context_of, standing_of
from trainmaster.api.paging import fitting
from trainmaster.api.request_context import Answer, RequestContext, flags, wake
from trainmaster.api.views import JobContext, View, instant_text, job_view, reason_view
from trainmaster.core.errors import (
    FieldError,
    JobConflictError,
    NotFoundError,
    PolicyViolationError,
    TeamLimit,
    invalid,
)
from trainmaster.core.jobs.attempts import Attempt, Reason
from trainmaster.core.jobs.failures import Diagnosis
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.order import score_again
from trainmaster.core.records import HistoryLine
from trainmaster.core.request.options import MAX_PRIORITY
from trainmaster.core.request.strict_json import JsonObject, parse_object
from trainmaster.core.submission.admission import over_ceiling
from trainmaster.core.submission.team_limits import over_limit
from trainmaster.services import job_steps


def story_view(
    attempts: tuple[Attempt, ...], history: tuple[HistoryLine, ...], prospect: Prospect = NO_PROSPECT
) -> View:
    """Show what only the view of a single job has; if there are too many attempts, the newest."""
    return {
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
        "started_at": instant_text(attempt.claim.at),
        "ended_at": instant_text(attempt.ended_at),
        "reason": reason_view(attempt.reason),
        "diagnosis": _diagnosis_view(attempt.diagnosis),
        "idle_since": instant_text(attempt.watch.idle_since),
        "stop_due": instant_text(attempt.watch.stop_due),
        "underused_since": instant_text(attempt.watch.underused_since),
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


# Source: SageMaker API reference, TrainingJobName.
_NAME = re.compile(r"[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62}")


def find_job(context: RequestContext, name: str) -> Job:
    """Find a job. Raises NotFoundError, the same for unknown jobs and for jobs of other teams."""
    reader = context.outside.reader
    alias = reader.alias(name) if _NAME.fullmatch(name) else None
    job = reader.job(alias.job) if alias else None
    if job is None or alias is None or job.spec.entry_id != alias.entry_id or not context.sees(job.spec.team):
        raise NotFoundError("no job of your teams has this name")
    return job


def change_job(context: RequestContext, name: str, step: Callable[[Job], Change | None]) -> Job:
    """Change a job; return it after the step, or as it is if the step changes nothing.

    Args:
        context: The caller's context.
        name: Name of the job, or of one of its attempts.
        step: As for ``job_steps.change_job``.
    """
    read, outside = partial(find_job, context, name), context.outside
    change = job_steps.change_job(read(), step, read=read, store=outside.store, clock=outside.clock)
    return read() if change is None else change.after


def refuse_final(job: Job) -> None:
    """Raise JobConflictError if the job has ended."""
    if job.is_final:
        error = FieldError(
            field="name", message=f"the job is {job.state}", hint="a job that has ended stays so"
        )
        raise JobConflictError(f"the job is {job.state}", errors=[error])


def show_job(context: RequestContext, name: str) -> Answer:
    """Show one job. ``estimate=false`` saves up to two seconds of CPU, for callers that poll.

    ``request=true`` adds the CreateTrainingJob request as it was submitted, which is one more read.
    """
    wanted = flags(context.call, estimate=True, request=False)
    job = find_job(context, name)
    attempts, history = context.outside.reader.story(job)
    standing = standing_of(job, context, estimate=wanted["estimate"])
    around = job_context_of(job, standing, context, latest=attempts[-1] if attempts else None)
    estimate = estimated_start(job, standing, context) if wanted["estimate"] else NO_PROSPECT
    request = {"request": context.outside.reader.request(job.name)} if wanted["request"] else {}
    body = job_view(job, around) | story_view(attempts, history, estimate) | request
    return Answer(status=HTTPStatus.OK, body=body)


def cancel_job(context: RequestContext, name: str) -> Answer:
    """Cancel a job: a waiting one at once, a live one as soon as SageMaker has stopped its attempt."""
    context.call.parameters()
    job = change_job(context, name, lambda job: _stop(context, job))
    wake(context.outside.wake_ups, [job.spec.pool])
    around = JobContext(now=context.outside.clock(), pool=context.policy.pool(job.spec.pool))
    return Answer(status=HTTPStatus.ACCEPTED, body=job_view(job, around))


def _stop(context: RequestContext, job: Job) -> Change | None:
    """Stop the job; None if it is being stopped already. Raises JobConflictError if it has ended."""
    refuse_final(job)
    if job.state is JobState.STOPPING:
        return None
    reason = Reason(code=ReasonCode.STOPPED_BY_USER, message=f"stopped by {context.caller.arn}")
    return Change(before=job, after=steps.cancelled(job, reason=reason, now=context.outside.clock()))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPatch:
    """Holds the fields to change; None leaves a field as it is."""

    priority: int | None
    held: bool | None


def patch_job(context: RequestContext, name: str) -> Answer:
    """Change a job. Repeating the call has no effect: a job that is as requested is not written again."""
    context.call.parameters()
    call = context.call
    patch = _patch(parse_object(call.body, base64=call.is_base64, content_type=call.content_type))
    _count(context, find_job(context, name))
    job = change_job(context, name, lambda job: _change(context, job, patch))
    wake(context.outside.wake_ups, [job.spec.pool])
    return Answer(
        status=HTTPStatus.OK, body=job_view(job, job_context_of(job, standing_of(job, context), context))
    )


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


def _patch(body: JsonObject) -> JobPatch:
    errors = [_unknown(key) for key in body if key not in {"priority", "held"}]
    priority, held = body.get("priority"), body.get("held")
    if "priority" in body and not _is_priority(priority):
        errors.append(_wrong("priority", f"is not a whole number from 0 to {MAX_PRIORITY}", "5"))
    if "held" in body and not isinstance(held, bool):
        errors.append(_wrong("held", "is neither true nor false", "true"))
    if not body:
        errors.append(_wrong("priority", "is missing, and so is held: there is nothing to change", "5"))
    if errors:
        raise invalid(errors)
    return JobPatch(
        priority=priority if isinstance(priority, int) else None,
        held=held if isinstance(held, bool) else None,
    )


def _is_priority(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_PRIORITY


def _unknown(key: str) -> FieldError:
    return FieldError(field=key, message="cannot be changed", hint='send "priority", "held" or both')


def _wrong(field: str, message: str, example: str) -> FieldError:
    return FieldError(field=field, message=message, hint=f'send for example {{"{field}": {example}}}')


def _change(context: RequestContext, job: Job, patch: JobPatch) -> Change | None:
    """Apply the patch, with a line for the job's history; None if the job already is as requested."""
    refuse_final(job)
    after, notes = job, list[Reason]()
    by = f"by {context.caller.arn}"
    if patch.held is not None and patch.held is not (job.state is JobState.HELD):
        after = _held(job, by, now=context.outside.clock()) if patch.held else steps.released(job)
        code = ReasonCode.HELD if patch.held else ReasonCode.RELEASED
        notes.append(Reason(code=code, message=f"{code} {by}"))
    if patch.priority is not None and patch.priority != job.priority:
        after = _reranked(after, patch.priority, context)
        message = f"priority {job.priority} became {patch.priority} {by}"
        notes.append(Reason(code=ReasonCode.PRIORITY, message=message))
    if not notes:
        return None
    note = Reason(code=notes[0].code, message="; ".join(note.message for note in notes))
    return Change(before=job, after=after, note=note)


def _held(job: Job, by: str, *, now: datetime) -> Job:
    """Hold the job. Raises JobConflictError for a live one, which can only be stopped."""
    if job.is_live:
        error = FieldError(
            field="held",
            message=f"the job is {job.state}: only a waiting job can be held",
            hint="cancel it, or hold it once it waits again",
        )
        raise JobConflictError(error.message, errors=[error])
    return steps.held(job, Reason(code=ReasonCode.HELD, message=f"held {by} since {instant_text(now)}"))


def _reranked(job: Job, priority: int, context: RequestContext) -> Job:
    """Change the priority. Raises PolicyViolationError above the maximum of the job's team."""
    refusal = over_ceiling(priority, job.spec.team, context.policy, field="priority")
    if refusal is not None:
        raise PolicyViolationError(f"{refusal.field}: {refusal.message}", errors=[refusal])
    pool = context.policy.pool(job.spec.pool)
    assert pool is not None, f"pool {job.spec.pool} is gone while {job.name} needs it"
    return steps.reranked(
        job, priority=priority, score=score_again(job, priority, pool), ranked_by=pool.order_key
    )
