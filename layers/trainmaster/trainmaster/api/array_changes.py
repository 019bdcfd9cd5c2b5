"""PATCH and DELETE of an array: one write of its row, then its jobs follow."""

from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus

from trainmaster.api.array_routes import find_array
from trainmaster.api.array_views import array_view
from trainmaster.api.request_context import Answer, RequestContext, wake
from trainmaster.core.arrays.array_model import Array
from trainmaster.core.arrays.tasks import ended_task, position_of
from trainmaster.core.errors import (
    FieldError,
    JobConflictError,
    LostRaceError,
    PolicyViolationError,
    TeamLimit,
    invalid,
    quoted,
)
from trainmaster.core.jobs.end_conditions import ParentEnd
from trainmaster.core.jobs.index_sets import (
    BadIndexSetError,
    all_bits,
    bits_of,
    positions,
    ranges_text,
    read_indices,
)
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle.steps import reranked
from trainmaster.core.outbox.derive import message_of_parent
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.planning.order import score_again
from trainmaster.core.request.options import MAX_PRIORITY
from trainmaster.core.request.strict_json import JsonObject, parse_object
from trainmaster.core.submission.admission import over_ceiling
from trainmaster.core.submission.team_limits import over_limit
from trainmaster.services.array_jobs import ArrayJobs, message_to_jobs

TRIES = 5
"""Tries against passes that expand the array, and other changes of it."""
_PATCH_FIELDS = ("priority", "held", "at_most")

Step = Callable[[Array], tuple[Array, list[OutboxMessage]] | None]


def change_array(context: RequestContext, name: str, step: Step) -> Array:
    """Write what a step makes of the array as it is at the write, then have a first slice of jobs follow."""
    outside = context.outside
    for _ in range(TRIES):
        array = find_array(context, name)
        made = step(array)
        if made is None:
            return array
        after, messages = made
        try:
            changed = outside.store.commit_array(array, after, messages=messages)
        except LostRaceError:
            continue
        _follow(context, changed)
        wake(outside.wake_ups, [array.template.spec.pool])
        latest = find_array(context, name)
        if latest.held is not changed.held or latest.template.priority != changed.template.priority:
            _follow(context, latest)  # another request was faster: jobs must not follow what was
        return latest
    raise LostRaceError("the array kept changing; try again")


def _follow(context: RequestContext, array: Array) -> None:
    """Have the first jobs follow at once, so that an answer shows it; passes do the rest by the message."""
    outside, pool = context.outside, context.policy.pool(array.template.spec.pool)
    if pool is None or not context.has_time:
        return
    jobs = ArrayJobs(reader=outside.reader, pools=outside.reader, store=outside.store, clock=outside.clock)
    try:
        jobs.follow(array, pool, behind=-1, releases=False)
    except LostRaceError:
        return


# ---- PATCH


def patch_array(context: RequestContext, name: str) -> Answer:
    """Change priority, throttle, or hold and release the waiting tasks; said twice it is the same."""
    context.call.parameters()
    call = context.call
    body = parse_object(call.body, base64=call.is_base64, content_type=call.content_type)
    _check_patch(body)
    _count(context, find_array(context, name))
    array = change_array(context, name, lambda array: _patched(context, array, body))
    return Answer(status=HTTPStatus.OK, body=array_view(array, context))


def _check_patch(body: JsonObject) -> None:
    errors = [unknown_field(key, _PATCH_FIELDS) for key in body if key not in _PATCH_FIELDS]
    if not body:
        errors.append(wrong("priority", "is missing, and so are held and at_most", "send one of them"))
    priority, held, at_most = (body.get(name) for name in _PATCH_FIELDS)
    if "priority" in body and not _is_whole(priority, least=0, most=MAX_PRIORITY):
        errors.append(wrong("priority", f"is not a whole number from 0 to {MAX_PRIORITY}", "send e.g. 5"))
    if "held" in body and not isinstance(held, bool):
        errors.append(wrong("held", "is neither true nor false", "send true or false"))
    if at_most is not None and not _is_whole(at_most, least=1, most=None):
        errors.append(
            wrong("at_most", "is neither null nor a whole number of at least 1", "null lifts the throttle")
        )
    if errors:
        raise invalid(errors)


def _patched(
    context: RequestContext, array: Array, body: JsonObject
) -> tuple[Array, list[OutboxMessage]] | None:
    _refuse_ended(array)
    after, releases = array, False
    if "at_most" in body:
        after = replace(after, at_most=body["at_most"])  # type: ignore[arg-type]
    held = body.get("held")
    if isinstance(held, bool) and held is not array.held:
        because = f"held by {context.caller.arn}" if held else None
        after = replace(after, held=held, held_because=because, recent=() if not held else array.recent)
        releases = not held
    priority = body.get("priority")
    if isinstance(priority, int) and priority != array.template.priority:
        after = _reranked(context, after, priority)
    if after == array:
        return None
    at = context.outside.clock()
    follows = after.held is not array.held or after.template != array.template
    changed = replace(after, ver=array.ver + 1)
    return after, [message_to_jobs(changed, at=at, releases=releases)] if follows else []


def _reranked(context: RequestContext, array: Array, priority: int) -> Array:
    """Raises PolicyViolationError above the ceiling of the team."""
    template, pool = array.template, context.policy.pool(array.template.spec.pool)
    refusal = over_ceiling(priority, template.spec.team, context.policy, field="priority")
    if refusal is not None:
        raise PolicyViolationError(f"{refusal.field}: {refusal.message}", errors=[refusal])
    if pool is None:
        return replace(array, template=replace(template, priority=priority))
    score = score_again(template, priority, pool)
    ranked = reranked(template, priority=priority, score=score, ranked_by=pool.order_key)
    return replace(array, template=ranked)


def _count(context: RequestContext, array: Array) -> None:
    """Count the change with the submissions of the team, as a change of a job; an admin's are not counted."""
    spec, pool = array.template.spec, context.policy.pool(array.template.spec.pool)
    if context.is_admin or pool is None:
        return
    now, most = context.outside.clock(), pool.limits.max_submissions_per_minute
    if not context.outside.store.count_change(pool.name, spec.team, most=most, at=now):
        raise over_limit(spec.team, pool, TeamLimit.MAX_SUBMISSIONS_PER_MINUTE, at=now)


# ---- DELETE


def cancel_array(context: RequestContext, name: str) -> Answer:
    """Cancel the array or some of its tasks: waiting ones at once, live ones as soon as SageMaker stopped."""
    text = context.call.parameters("tasks").get("tasks")
    if text is None and "tasks" in context.call.query:
        # As of a script whose list is empty: it must not cancel all of them.
        raise invalid([wrong("query.tasks", "is empty", "name tasks, or leave it out for the whole array")])
    array = change_array(context, name, lambda array: _cancelled(context, array, text))
    return Answer(status=HTTPStatus.ACCEPTED, body=array_view(array, context))


def _cancelled(
    context: RequestContext, array: Array, text: str | None
) -> tuple[Array, list[OutboxMessage]] | None:
    _refuse_ended(array)
    chosen = all_bits(len(array.indices)) if text is None else chosen_bits(array, text, field="query.tasks")
    return cancel_tasks(context, array, chosen, whole=text is None)


def cancel_tasks(
    context: RequestContext, array: Array, chosen: int, *, whole: bool
) -> tuple[Array, list[OutboxMessage]] | None:
    """Return the array without these tasks; None if they have all ended or are being stopped.

    Args:
        context: Who asks.
        array: As it is now.
        chosen: Bits of the tasks.
        whole: Whether all of the array is cancelled.
    """
    at_once, live = array.unexpanded & chosen, array.existing & chosen & ~array.to_stop
    if not at_once and not live and (array.cancelled or not whole):
        return None
    by = context.caller.arn
    after = replace(
        array,
        unexpanded=array.unexpanded & ~at_once,
        ends=replace(array.ends, stopped=array.ends.stopped | at_once),
        to_stop=array.to_stop | live,
        stopped_by=by,
        cancelled=array.cancelled or whole,
    )
    at = context.outside.clock()
    text = f"{ParentEnd.STOPPED} ({ReasonCode.STOPPED_BY_USER}): stopped by {by}"
    messages = [
        message_of_parent(ended_task(array, position, ParentEnd.STOPPED, text), at=at)
        for position in positions(at_once)
        if array.indices[position] in array.awaited
    ]
    if live:
        messages.append(message_to_jobs(replace(after, ver=array.ver + 1), at=at))
    return after, messages


def chosen_bits(array: Array, text: str, *, field: str) -> int:
    """Read a set of indices of an array.

    Raises InvalidRequestError for an index that it does not have, and for a throttle, which would be lost.
    """
    try:
        written = read_indices(text)
    except BadIndexSetError as error:
        raise invalid([FieldError(field=field, message=error.message, hint=error.hint)]) from error
    if written.at_most is not None:
        hint = "change an array's throttle by PATCH: at_most"
        raise invalid([wrong(field, "has a throttle, which is not changed here", hint)])
    indices = written.indices
    places = [position_of(array, index) for index in indices]
    missing = sorted(index for index, place in zip(indices, places, strict=True) if place is None)
    if missing:
        known = ranges_text(array.indices)
        raise invalid([wrong(field, f"names tasks {ranges_text(missing)}", f"the array has {known}")])
    return bits_of(place for place in places if place is not None)


def _refuse_ended(array: Array) -> None:
    if array.is_ended:
        message = f"the array has ended: it is {array.state}"
        hint = "rerun some of its tasks as a new array: POST /arrays/{name}/rerun"
        raise JobConflictError(message, errors=[wrong("name", message, hint)])


def _is_whole(value: object, *, least: int, most: int | None) -> bool:
    is_int = isinstance(value, int) and not isinstance(value, bool)
    return is_int and least <= int(str(value)) and (most is None or int(str(value)) <= most)


def unknown_field(key: str, known: tuple[str, ...]) -> FieldError:
    hint = f"send one or more of {', '.join(quoted(name) for name in known)}"
    return FieldError(field=key, message="cannot be given", hint=hint)


def wrong(field: str, message: str, hint: str) -> FieldError:
    return FieldError(field=field, message=message, hint=hint)
