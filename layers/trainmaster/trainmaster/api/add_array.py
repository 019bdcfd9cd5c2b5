"""POST /add-array, and the tag on POST /add-job: submit many tasks of one request, or only try it."""

from dataclasses import replace
from http import HTTPStatus

from trainmaster.api import submitting
from trainmaster.api.array_changes import chosen_bits, unknown_field, wrong
from trainmaster.api.array_routes import find_array
from trainmaster.api.array_views import array_view
from trainmaster.api.asked_arrays import ArraySubmission, array_submission, read_submission
from trainmaster.api.dry_run import UNFORESEEN, Foreseen, foresee
from trainmaster.api.folder_warnings import folder_warnings, foreseen_folder_warnings
from trainmaster.api.namesakes import conflict, existing_array, namesake
from trainmaster.api.parent_jobs import parent_views, require_known, states_of
from trainmaster.api.request_context import (
    Answer,
    Call,
    Outside,
    RequestContext,
    count_read,
    enter,
    flag,
    weigh,
)
from trainmaster.api.submitting import Judged, made_by
from trainmaster.api.views import View, field_error_view, instant_text
from trainmaster.core.arrays.array_model import Array, ArrayRequest, array_request
from trainmaster.core.arrays.task_rounds import tasks_beside, tasks_in_rounds
from trainmaster.core.arrays.tasks import array_entry_id
from trainmaster.core.arrays.wanted import WantedArray, request_mistakes
from trainmaster.core.errors import (
    FieldError,
    JobConflictError,
    JobNameTakenError,
    LostRaceError,
    TaskNameError,
    TeamLimitError,
    invalid,
)
from trainmaster.core.jobs.index_sets import all_bits, positions
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.run_time import likely_length
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.request.options import HOLD_OPEN
from trainmaster.core.request.strict_json import JsonObject, parse_object
from trainmaster.core.submission.repeats import RULE_NAME_TAKEN
from trainmaster.core.submission.team_limits import over_limit

RULE_MAX_TASKS = "limits.max_array_tasks"
TRIES = 3
"""Most tries to store an array whose parents keep ending meanwhile."""


def add_array(call: Call, outside: Outside) -> Answer:
    """Submit the array of a body. Raises InvalidRequestError with every mistake in it."""
    outside.reads.turn_away(call.user_arn)
    context = enter(call, outside)
    weigh(context)
    is_trial = flag(call, "dry_run", default=False)
    sweep = read_submission(context)
    if not is_trial:
        return submit_array(context, sweep)
    count_read(context)
    return try_array(context, sweep)


# ---- submit


def submit_array(
    context: RequestContext,
    sweep: ArraySubmission,
    *,
    version: int | None = None,
    tries: int = TRIES,
) -> Answer:
    """Store the array and send a wake-up.

    Crash safety: as for a job, array, request and counts are one transaction.

    Args:
        context: Holds the caller, and the policy that decides.
        sweep: What was asked for.
        version: The policy's version, for the table to confirm; None: it is the one in force.
        tries: How often it may be stored again because a job that it is to wait for ended meanwhile.
    """
    judged = _judged(context, sweep)
    if (judged.verdict.violations or judged.parents.errors) and (
        repeated := existing_array(context, sweep.submission)
    ):
        return _answer(context, repeated, judged)
    require_known(judged.parents)
    pool = judged.verdict.accepted()
    entrance = submitting.entrance_of(context, sweep.submission, pool)
    submitting.require_version(entrance, version)
    job = submitting.new_job_of(context, sweep.submission, pool, entrance, judged.parents)
    array = _new(sweep, job)
    request = _request(sweep)
    try:
        admission = submitting.admission_of(context, sweep.submission, pool, entrance)
        context.outside.store.submit_array(array, request, admission)
    except TeamLimitError as error:
        raise over_limit(
            sweep.submission.team, pool, error.limit, at=array.template.spec.submitted_at
        ) from error
    except TaskNameError as error:
        raise task_name_taken(str(error)) from error
    except LostRaceError as error:
        earlier = existing_array(context, sweep.submission)
        if earlier is None and array.template.waits_for_others and tries > 1:
            return submit_array(context, sweep, version=version, tries=tries - 1)
        if earlier is None:
            raise LostRaceError("the policy or the name was changed meanwhile; try again") from error
        return _answer(context, earlier, judged)
    submitting.wake_for(context, sweep.submission, array.template, judged.verdict)
    shared = folder_warnings(sweep.submission, context)
    judged = judged.with_warnings(shared)
    return replace(_answer(context, array, judged), status=HTTPStatus.CREATED)


def task_name_taken(message: str) -> JobNameTakenError:
    """Make the answer to a caller who wants the name of a task of an array."""
    hint = "choose another name"
    error = FieldError(field="TrainingJobName", message=message, hint=hint, rule=RULE_NAME_TAKEN)
    return JobNameTakenError(f"{message}: {hint}", errors=[error])


_NOT_HELD_OPEN = FieldError(
    field="Tags",
    message=f"{HOLD_OPEN} is for single jobs: each task would wait for a visitor, and be billed",
    hint="submit one task by itself with the tag, and the array without it",
    rule="hold-open",
)


def _judged(context: RequestContext, sweep: ArraySubmission) -> Judged:
    judged = submitting.judged(context, sweep.submission, indices=sweep.wanted.indices)
    if sweep.submission.ask.options.hold_open is not None:
        judged = judged.with_violation(_NOT_HELD_OPEN)
    pool = judged.verdict.pool
    count = len(sweep.wanted.indices)
    if pool is None or count <= pool.limits.max_array_tasks:
        return judged
    most = pool.limits.max_array_tasks
    too_many = FieldError(
        field="tasks" if sweep.prefix else "Tags",
        message=f"are {count} tasks, and the pool allows {most} in one array",
        hint="split it into several arrays",
        rule=RULE_MAX_TASKS,
    )
    return judged.with_violation(too_many)


def _new(sweep: ArraySubmission, job: Job) -> Array:
    """Make the array of a job that stands for any of its tasks."""
    spec = replace(job.spec, entry_id=array_entry_id(job.spec.entry_id))
    return Array(
        template=replace(job, spec=spec),
        indices=sweep.wanted.indices,
        unexpanded=all_bits(len(sweep.wanted.indices)),
        at_most=sweep.wanted.at_most,
        stop_after_failures=sweep.wanted.stop_after_failures,
        rerun_of=sweep.rerun_of,
        first_numbering=sweep.first_numbering,
        folder=sweep.folder,
    )


def _request(sweep: ArraySubmission) -> ArrayRequest:
    return array_request(sweep.submission.body, sweep.wanted.values)


def _answer(context: RequestContext, array: Array, judged: Judged) -> Answer:
    body = {"array": array_view(array, context), "warnings": submitting.warnings_of(judged.verdict)}
    return Answer(status=HTTPStatus.OK, body=body)


# ---- only try


def try_array(context: RequestContext, sweep: ArraySubmission) -> Answer:
    """Show what would become of the array; store nothing."""
    judged = _judged(context, sweep)
    require_known(judged.parents)
    judged = judged.with_warnings(foreseen_folder_warnings(sweep.submission, context))
    taken = conflict(context, sweep.submission, namesake(context, sweep.submission))
    violations = [*([] if taken is None else [taken]), *judged.verdict.violations]
    pool, foreseen, after, end = judged.verdict.pool, UNFORESEEN, list[View](), None
    if pool is not None and not violations:
        entrance = submitting.entrance_of(context, sweep.submission, pool)
        job = submitting.new_job_of(context, sweep.submission, pool, entrance, judged.parents)
        array = _new(sweep, job)
        foreseen = foresee(array.template, pool, context)
        after = list(parent_views(array.template, context, states_of(context, [array.template])))
        end = _last_end(array, pool, foreseen)
    count = len(sweep.wanted.indices)
    body = {
        "valid": not violations,
        "violations": [field_error_view(violation) for violation in violations],
        "warnings": submitting.warnings_of(judged.verdict),
        "pool": pool.name if pool else None,
        "tasks": count,
        "at_most": sweep.wanted.at_most,
        "position": foreseen.position.number,
        "after": after,
        "estimated_start": foreseen.prospect.start,
        "estimated_end": end,
        "estimate_note": foreseen.prospect.note,
        "would_preempt": list(foreseen.victims),
        "usd_per_hour": foreseen.usd_per_hour,
        "estimated_cost_usd": None if foreseen.cost_usd is None else round(foreseen.cost_usd * count, 2),
        "spot_record": list(foreseen.spot_record),
    }
    return Answer(status=HTTPStatus.OK, body=body)


def _last_end(array: Array, pool: PoolPolicy, foreseen: Foreseen) -> str | None:
    """Estimate the end of the last task if as many run as the pool holds and the throttle lets."""
    likely = foreseen.prospect.likely
    if likely is None:
        return None
    spec = array.template.spec
    length = likely_length(spec) or spec.max_runtime
    span = tasks_in_rounds(len(array.indices), tasks_beside(array, pool_vector(pool)), length)
    return instant_text(likely.p50 + span)


_RERUN_FIELDS = ("tasks", "name", "fresh")
_AGAIN = "again"


def rerun_array(context: RequestContext, name: str) -> Answer:
    """Submit an array of some tasks of another: the same indices, values and checkpoints, so they resume."""
    context.call.parameters()
    call = context.call
    body = parse_object(call.body, base64=call.is_base64, content_type=call.content_type)
    array = find_array(context, name)
    chosen = _rerun_tasks(array, body)
    request = context.outside.reader.array_request(array.name)
    number, base = _next_number(context, array)
    new_name = body.get("name") or f"{base}-{_AGAIN}{number}"
    wanted = WantedArray(
        indices=tuple(array.indices_at(chosen)),
        values=tuple(request.values(position) for position in positions(chosen)),
        at_most=array.at_most,
        stop_after_failures=array.stop_after_failures,
    )
    fresh = {**request.body, "TrainingJobName": new_name}
    mistakes = request_mistakes(fresh, wanted)
    if mistakes:
        raise invalid([replace(mistake, field="name") for mistake in mistakes])
    submission = made_by(context, fresh)
    folder = f"{_AGAIN}{number}" if body.get("fresh") else array.folder
    again = array_submission(submission, wanted, rerun_of=array.name, folder=folder)
    return submit_array(context, replace(again, first_numbering=array.numbering))


def _rerun_tasks(array: Array, body: JsonObject) -> int:
    errors = [unknown_field(key, _RERUN_FIELDS) for key in body if key not in _RERUN_FIELDS]
    tasks, name, fresh = body.get("tasks", "failed"), body.get("name"), body.get("fresh", False)
    if not isinstance(tasks, str):
        errors.append(wrong("tasks", "is no text", 'send "failed" or indices, e.g. "3-7"'))
    if name is not None and (not isinstance(name, str) or not name):
        errors.append(
            wrong("name", "is not a valid name", "leave it out for a name that is made of the array's")
        )
    if not isinstance(fresh, bool):
        errors.append(wrong("fresh", "is neither true nor false", "true trains from the start"))
    if errors or not isinstance(tasks, str):
        raise invalid(errors)
    if tasks != "failed":
        return chosen_bits(array, tasks, field="tasks")
    if not array.ends.failed:
        message = f"no task of {array.name} has failed"
        raise JobConflictError(message, errors=[wrong("tasks", message, 'name tasks, e.g. {"tasks": "3-7"}')])
    return array.ends.failed


def _next_number(context: RequestContext, array: Array) -> tuple[int, str]:
    """Return the first number whose name is free, and the name before it, which all reruns share."""
    base, stem, digits = array.name, *array.name.rpartition(f"-{_AGAIN}")[::2]
    if array.rerun_of is not None and stem and digits.isdigit():
        base = stem
    number = 1
    while context.outside.reader.alias(f"{base}-{_AGAIN}{number}") is not None:
        number += 1
    return number, base
