"""POST /add-array, and the tag on POST /add-job: submit many tasks of one request, or only try it."""

from dataclasses import replace
from http import HTTPStatus
from math import ceil

from trainmaster.api import submissions
from trainmaster.api.array_views import array_view
from trainmaster.api.asked_arrays import ArraySubmission, read_submission
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
from trainmaster.api.submissions import Judged
from trainmaster.api.views import View, field_error_view, instant_text
from trainmaster.core.arrays.model import Array
from trainmaster.core.arrays.tasks import array_entry_id
from trainmaster.core.arrays.values import ArrayRequest, array_request
from trainmaster.core.errors import (
    FieldError,
    JobNameTakenError,
    LostRaceError,
    TaskNameError,
    TeamLimitError,
)
from trainmaster.core.jobs.index_sets import all_bits
from trainmaster.core.jobs.run_time import likely_length
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.policy import PoolPolicy
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
    asked = read_submission(context)
    if not is_trial:
        return submit_array(context, asked)
    count_read(context)
    return try_array(context, asked)


# ---- submit


def submit_array(
    context: RequestContext, asked: ArraySubmission, *, version: int | None = None, tries: int = TRIES
) -> Answer:
    """Store the array and send a wake-up.

    Crash safety: as for a job, array, request and counts are one transaction.

    Args:
        context: Holds the caller, and the policy that decides.
        asked: What was asked for.
        version: The policy's version, for the table to confirm; None: it is the one in force.
        tries: How often it may be stored again because a job that it is to wait for ended meanwhile.
    """
    judged = _judged(context, asked)
    if (judged.verdict.violations or judged.parents.errors) and (
        repeated := existing_array(context, asked.submission)
    ):
        return _answer(context, repeated, judged)
    require_known(judged.parents)
    pool = judged.verdict.accepted()
    entrance = submissions.entrance_of(context, asked.submission, pool)
    submissions.require_version(entrance, version)
    array = _new(context, asked, pool, judged)
    request = _request(asked)
    try:
        admission = submissions.admission_of(context, asked.submission, pool, entrance)
        context.outside.store.submit_array(array, request, admission)
    except TeamLimitError as error:
        raise over_limit(
            asked.submission.team, pool, error.limit, at=array.template.spec.submitted_at
        ) from error
    except TaskNameError as error:
        raise task_name_taken(str(error)) from error
    except LostRaceError as error:
        earlier = existing_array(context, asked.submission)
        if earlier is None and array.template.waits_for_others and tries > 1:
            return submit_array(context, asked, version=version, tries=tries - 1)
        if earlier is None:
            raise LostRaceError("the policy or the name was changed meanwhile; try again") from error
        return _answer(context, earlier, judged)
    submissions.wake_for(context, asked.submission, array.template, judged.verdict)
    shared = folder_warnings(asked.submission, context)
    judged = judged.with_warnings(shared)
    return replace(_answer(context, array, judged), status=HTTPStatus.CREATED)


def task_name_taken(message: str) -> JobNameTakenError:
    """Make the answer to a caller who wants the name of a task of an array."""
    hint = "choose another name"
    error = FieldError(field="TrainingJobName", message=message, hint=hint, rule=RULE_NAME_TAKEN)
    return JobNameTakenError(f"{message}: {hint}", errors=[error])


def _judged(context: RequestContext, asked: ArraySubmission) -> Judged:
    judged = submissions.judged(context, asked.submission)
    pool = judged.verdict.pool
    count = len(asked.wanted.indices)
    if pool is None or count <= pool.limits.max_array_tasks:
        return judged
    most = pool.limits.max_array_tasks
    too_many = FieldError(
        field="tasks" if asked.prefix else "Tags",
        message=f"are {count} tasks, and the pool allows {most} in one array",
        hint="split it into several arrays",
        rule=RULE_MAX_TASKS,
    )
    return judged.with_violation(too_many)


def _new(context: RequestContext, asked: ArraySubmission, pool: PoolPolicy, judged: Judged) -> Array:
    entrance = submissions.entrance_of(context, asked.submission, pool)
    job = submissions.new_job_of(context, asked.submission, pool, entrance, judged.parents)
    spec = replace(job.spec, entry_id=array_entry_id(job.spec.entry_id))
    return Array(
        template=replace(job, spec=spec),
        indices=asked.wanted.indices,
        unexpanded=all_bits(len(asked.wanted.indices)),
        at_most=asked.wanted.at_most,
        stop_after_failures=asked.wanted.stop_after_failures,
        rerun_of=asked.rerun_of,
        folder=asked.folder,
    )


def _request(asked: ArraySubmission) -> ArrayRequest:
    return array_request(asked.submission.body, asked.wanted.values)


def _answer(context: RequestContext, array: Array, judged: Judged) -> Answer:
    body = {"array": array_view(array, context), "warnings": submissions.warnings_of(judged.verdict)}
    return Answer(status=HTTPStatus.OK, body=body)


# ---- only try


def try_array(context: RequestContext, asked: ArraySubmission) -> Answer:
    """Show what would become of the array; store nothing."""
    judged = _judged(context, asked)
    require_known(judged.parents)
    judged = judged.with_warnings(foreseen_folder_warnings(asked.submission, context))
    taken = conflict(context, asked.submission, namesake(context, asked.submission))
    violations = [*([] if taken is None else [taken]), *judged.verdict.violations]
    pool, foreseen, after, end = judged.verdict.pool, UNFORESEEN, list[View](), None
    if pool is not None and not violations:
        array = _new(context, asked, pool, judged)
        foreseen = foresee(array.template, pool, context)
        after = list(parent_views(array.template, context, states_of(context, [array.template])))
        end = _last_end(array, pool, foreseen)
    count = len(asked.wanted.indices)
    body = {
        "valid": not violations,
        "violations": [field_error_view(violation) for violation in violations],
        "warnings": submissions.warnings_of(judged.verdict),
        "pool": pool.name if pool else None,
        "tasks": count,
        "at_most": asked.wanted.at_most,
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
    template, count = array.template, len(array.indices)
    capacity = pool_vector(pool)
    fit = max(
        min(capacity.get(kind, 0) // needed for kind, needed in shape.vector.items())
        for shape in template.shapes
    )
    beside = max(1, min(count, fit, array.at_most or count))
    length = likely_length(template.spec) or template.spec.max_runtime
    return instant_text(likely.p50 + ceil(count / beside) * length)
