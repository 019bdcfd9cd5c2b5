"""POST /add-job: submit a job, or show only what would happen."""

from dataclasses import replace
from http import HTTPStatus

from trainmaster.api.add_array import submit_array, task_name_taken, try_array
from trainmaster.api.asked_arrays import tagged
from trainmaster.api.dry_run import UNFORESEEN, foresee, measured_speeds
from trainmaster.api.folder_warnings import folder_warnings, foreseen_folder_warnings
from trainmaster.api.job_context import position_if_near
from trainmaster.api.known_names import known_teams, no_team, refused
from trainmaster.api.namesakes import conflict, existing, namesake
from trainmaster.api.parent_jobs import parent_views, require_known, states_of, waits_for_parents
from trainmaster.api.request_context import (
    Answer,
    Call,
    Outside,
    RequestContext,
    count_read,
    enter,
    flag,
    read_policy,
    weigh,
)
from trainmaster.api.submitting import (
    admission_of,
    entrance_of,
    judged,
    made_by,
    new_job_of,
    require_version,
    wake_for,
    warnings_of,
)
from trainmaster.api.views import JobContext, View, field_error_view, job_view
from trainmaster.core.errors import (
    FieldError,
    LostRaceError,
    MissingIdentityError,
    ShareExceededError,
    TaskNameError,
    TeamLimitError,
    TrainmasterError,
)
from trainmaster.core.jobs.model import Job
from trainmaster.core.request.completion import in_whole_numbers
from trainmaster.core.request.strict_json import canonical, parse_object
from trainmaster.core.request.validation import require_valid
from trainmaster.core.submission.admission import Submission, Verdict
from trainmaster.core.submission.repeats import hash_of_key
from trainmaster.core.submission.run_time_tip import run_time_tip
from trainmaster.core.submission.team_limits import over_limit

TRIES = 3
"""Most tries to store a submission whose parents keep ending meanwhile."""


def add_job(call: Call, outside: Outside) -> Answer:
    """Decide by the policy this process knows; the table confirms it with what is read anyway.

    A refusal, or a decision by a policy that is no longer in force, is decided again by the policy in force,
    and counts twice in the team's share.
    """
    outside.reads.turn_away(call.user_arn)
    known = outside.last_policy.in_force
    if known is not None and not call.query:
        try:
            context = enter(call, outside, known=known)
            weigh(context)
            return _submit(context, _read(context), version=known.stored.version)
        except (MissingIdentityError, ShareExceededError):
            raise
        except TrainmasterError:
            if read_policy(outside).stored.version == known.stored.version:
                raise
    context = enter(call, outside)
    weigh(context)
    if "team" not in call.query and not flag(call, "dry_run", default=False):
        return _submit(context, _read(context))
    count_read(context)
    return _dry_run(context, _read(context, team=_team_asked(context)))


def _team_asked(context: RequestContext) -> str | None:
    """Read the team that a dry run names, which an admin may choose freely. Raises InvalidRequestError."""
    given = context.call.parameters("dry_run", "team")
    team = given.get("team")
    if given.get("dry_run") not in {"true", "false", None}:
        raise refused("dry_run", "is neither true nor false", "write true or false")
    if team is not None and given.get("dry_run") != "true":
        raise refused("team", "is for dry runs", "add dry_run=true, or submit with the tag 'team'")
    if team is not None and context.is_admin and team not in known_teams(context):
        raise no_team(context, team)
    return team


def _read(context: RequestContext, *, team: str | None = None) -> Submission:
    """Read the submission; a dry run's ``team`` replaces the tag. Raises InvalidRequestError."""
    call = context.call
    key_hash = hash_of_key(call.idempotency_key)
    body = parse_object(call.body, base64=call.is_base64, content_type=call.content_type)
    body = in_whole_numbers(body)
    require_valid(body)
    made = made_by(context, body, team=team)
    return replace(made, key_hash=key_hash)


def _submit(
    context: RequestContext, submission: Submission, *, version: int | None = None, tries: int = TRIES
) -> Answer:
    """Store the job and send a wake-up; an earlier job of the name is looked up only to explain a failure.

    Crash safety: the job and everything that belongs to it are one transaction; a death before the wake-up
    costs up to a minute, until the reconciler sends one. Findings of auditing rules are written after it: if
    that is lost, sending the same request again writes them.

    Args:
        context: Holds the caller, and the policy that decides.
        submission: The request as read.
        version: The policy's version, for the table to confirm. Raises PolicyChangedError if it does not.
        tries: How often it may be stored again because a job that it is to wait for ended meanwhile.
    """
    if (array := tagged(submission)) is not None:
        return submit_array(context, array, version=version)
    held = judged(context, submission)
    verdict, parents = held.verdict, held.parents
    if (verdict.violations or parents.errors) and (repeated := existing(context, submission)):
        return _answer(context, submission, repeated, verdict)
    require_known(parents)
    pool = verdict.accepted()
    entrance = entrance_of(context, submission, pool)
    require_version(entrance, version)
    job = new_job_of(context, submission, pool, entrance, parents)
    admission = admission_of(context, submission, pool, entrance)
    try:
        context.outside.store.submit(job, canonical(submission.body), admission)
    except TeamLimitError as error:
        raise over_limit(job.spec.team, pool, error.limit, at=job.spec.submitted_at) from error
    except TaskNameError as error:
        raise task_name_taken(str(error)) from error
    except LostRaceError as error:
        earlier = existing(context, submission)
        if earlier is None and job.waits_for_others and tries > 1:  # most likely a parent has ended
            return _submit(context, submission, version=version, tries=tries - 1)
        if earlier is None:
            raise LostRaceError("the policy or the name was changed meanwhile; try again") from error
        return _answer(context, submission, earlier, verdict)
    wake_for(context, submission, job, verdict)
    shared = folder_warnings(submission, context)
    verdict = replace(verdict, warnings=(*verdict.warnings, *shared))
    return replace(_view(context, job, verdict), status=HTTPStatus.CREATED)


def _answer(context: RequestContext, submission: Submission, job: Job, verdict: Verdict) -> Answer:
    """Show the job of this very request, which is stored already."""
    wake_for(context, submission, job, verdict)
    return _view(context, job, verdict)


def _view(context: RequestContext, job: Job, verdict: Verdict) -> Answer:
    pool, position = context.policy.pool(job.spec.pool), position_if_near(job, context)
    states = states_of(context, [job])
    around = JobContext(
        now=context.outside.clock(),
        pool=pool,
        position=position,
        why=waits_for_parents(job, states),
        parents=parent_views(job, context, states),
    )
    if job.is_waiting and not job.waits_for_others and pool is not None:
        verdict = _with_tip(verdict, run_time_tip(job.spec, pool, position))
    return Answer(status=HTTPStatus.OK, body={"job": job_view(job, around), "warnings": warnings_of(verdict)})


def _with_tip(verdict: Verdict, tip: FieldError | None) -> Verdict:
    return verdict if tip is None else replace(verdict, warnings=(*verdict.warnings, tip))


def _dry_run(context: RequestContext, submission: Submission) -> Answer:
    """Ask the planner about the pool as it is with the job added; store nothing."""
    if (array := tagged(submission)) is not None:
        return try_array(context, array)
    held = judged(context, submission)
    verdict, parents = held.verdict, held.parents
    require_known(parents)
    verdict = replace(verdict, warnings=(*verdict.warnings, *foreseen_folder_warnings(submission, context)))
    taken = conflict(context, submission, namesake(context, submission))
    violations = (*([] if taken is None else [taken]), *verdict.violations)
    foreseen, after = UNFORESEEN, tuple[View, ...]()
    if verdict.pool is not None and not violations:
        pool = verdict.pool
        entrance = entrance_of(context, submission, pool)
        job = new_job_of(context, submission, pool, entrance, parents)
        foreseen, after = foresee(job, pool, context), parent_views(job, context, states_of(context, [job]))
        if foreseen is not UNFORESEEN and not job.waits_for_others:
            verdict = _with_tip(verdict, run_time_tip(job.spec, pool, foreseen.position))
    body = {
        "valid": not violations,
        "violations": [field_error_view(violation) for violation in violations],
        "warnings": warnings_of(verdict),
        "pool": verdict.pool.name if verdict.pool else None,
        "position": foreseen.position.number,
        "after": list(after),
        "estimated_start": foreseen.prospect.start,
        "estimate_note": foreseen.prospect.note,
        "would_preempt": list(foreseen.victims),
        "usd_per_hour": foreseen.usd_per_hour,
        "estimated_cost_usd": foreseen.cost_usd,
        "spot_record": list(foreseen.spot_record),
        "measured_speeds": measured_speeds(submission, verdict.pool, context),
        "widths": None if foreseen.widths is None else list(foreseen.widths),
    }
    return Answer(status=HTTPStatus.OK, body=body)
