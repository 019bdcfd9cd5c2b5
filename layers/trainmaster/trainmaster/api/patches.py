"""PATCH /jobs/{name}: another priority, hold, release."""

from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

from trainmaster.api.job_context import standing_of, surroundings_of
from trainmaster.api.one_job import change_job, refuse_final
from trainmaster.api.request_context import Answer, Visit
from trainmaster.api.ringing import ring
from trainmaster.api.views import instant_text, job_view
from trainmaster.core.errors import FieldError, JobConflictError, PolicyViolationError
from trainmaster.core.jobs.model import Job, JobState, Reason
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.ordering import score_of
from trainmaster.core.request.options import MAX_PRIORITY
from trainmaster.core.request.strict_json import JsonObject, parse_object
from trainmaster.core.request_errors import invalid
from trainmaster.core.submission.admission import over_ceiling


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """None: leave it as it is."""

    priority: int | None
    held: bool | None


def patch_job(visit: Visit, name: str) -> Answer:
    """Said twice it is the same: a job that is as wanted is not written again."""
    visit.call.parameters()
    call = visit.call
    wish = _wish(parse_object(call.body, base64=call.is_base64, content_type=call.content_type))
    job = change_job(visit, name, lambda job: _change(visit, job, wish))
    ring(visit.outside.doorbell, [job.spec.pool])
    return Answer(
        status=HTTPStatus.OK, body=job_view(job, surroundings_of(job, standing_of(job, visit), visit))
    )


def _wish(body: JsonObject) -> Wish:
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
    return Wish(
        priority=priority if isinstance(priority, int) else None,
        held=held if isinstance(held, bool) else None,
    )


def _is_priority(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_PRIORITY


def _unknown(key: str) -> FieldError:
    return FieldError(field=key, message="cannot be changed", hint='send "priority", "held" or both')


def _wrong(field: str, message: str, example: str) -> FieldError:
    return FieldError(field=field, message=message, hint=f'send for example {{"{field}": {example}}}')


def _change(visit: Visit, job: Job, wish: Wish) -> Change | None:
    """What the wish makes of the job, with a line for its history; None when it is so already."""
    refuse_final(job)
    after, notes = job, list[Reason]()
    by = f"by {visit.caller.arn}"
    if wish.held is not None and wish.held is not (job.state is JobState.HELD):
        after = _held(job, by, now=visit.outside.clock()) if wish.held else steps.released(job)
        code = "held" if wish.held else "released"
        notes.append(Reason(code=code, message=f"{code} {by}"))
    if wish.priority is not None and wish.priority != job.priority:
        after = _reranked(after, wish.priority, visit)
        notes.append(Reason(code="priority", message=f"priority {job.priority} became {wish.priority} {by}"))
    if not notes:
        return None
    note = Reason(code=notes[0].code, message="; ".join(one.message for one in notes))
    return Change(before=job, after=after, note=note)


def _held(job: Job, by: str, *, now: datetime) -> Job:
    """Raises JobConflictError: what runs cannot be held, only stopped."""
    if job.is_live:
        error = FieldError(
            field="held",
            message=f"the job is {job.state}: only a waiting job can be held",
            hint="cancel it, or hold it once it waits again",
        )
        raise JobConflictError(error.message, errors=[error])
    return steps.held(job, Reason(code="held", message=f"held {by} since {instant_text(now)}"))


def _reranked(job: Job, priority: int, visit: Visit) -> Job:
    """Raises PolicyViolationError above the ceiling of the job's team."""
    refusal = over_ceiling(priority, job.spec.team, visit.policy, field="priority")
    if refusal is not None:
        raise PolicyViolationError(f"{refusal.field}: {refusal.message}", errors=[refusal])
    pool = visit.policy.pool(job.spec.pool)
    assert pool is not None, f"pool {job.spec.pool} is gone while {job.name} needs it"
    return steps.reranked(
        job, priority=priority, score=score_of(job.spec, priority, pool), ranked_by=pool.order_key
    )
