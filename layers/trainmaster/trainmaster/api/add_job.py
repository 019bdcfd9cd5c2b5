"""POST /add-job: submit a job, or show only what would happen."""

from dataclasses import replace
from http import HTTPStatus

from trainmaster.api.dry_run import UNFORESEEN, foresee
from trainmaster.api.folder_warnings import folder_warnings, foreseen_folder_warnings
from trainmaster.api.job_context import position_if_near
from trainmaster.api.known_names import known_teams, no_team, refused
from trainmaster.api.namesakes import conflict, existing, namesake
from trainmaster.api.parent_jobs import (
    parent_views,
    parents_of,
    require_known,
    states_of,
    waits_for_parents,
    with_violations,
)
from trainmaster.api.request_context import (
    Answer,
    Call,
    Outside,
    RequestContext,
    count_read,
    enter,
    flag,
    read_policy,
    wake,
    weigh,
)
from trainmaster.api.views import JobContext, View, field_error_view, job_view
from trainmaster.core.durations.learned import Known, likely_lengths
from trainmaster.core.errors import (
    HOW_TO_REPAIR,
    FieldError,
    LostRaceError,
    MissingIdentityError,
    RepairNeededError,
    ShareExceededError,
    TeamLimitError,
    TrainmasterError,
)
from trainmaster.core.jobs.instances import lane_text
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.dependents import with_conditions
from trainmaster.core.outbox import rule_violated_notice, to_tell
from trainmaster.core.policy import UNMANAGED, PoolPolicy
from trainmaster.core.records import Admission, Entrance, TeamStanding
from trainmaster.core.request.completion import in_whole_numbers
from trainmaster.core.request.request import canonical, read_request
from trainmaster.core.request.strict_json import parse_object
from trainmaster.core.request.validation import require_valid
from trainmaster.core.rules import Violation
from trainmaster.core.submission.admission import (
    Submission,
    Verdict,
    audit_record,
    judge,
    new_job,
    submission_of,
    ulid,
)
from trainmaster.core.submission.identity import team_for
from trainmaster.core.submission.parents import Parents
from trainmaster.core.submission.repeats import hash_of_key
from trainmaster.core.submission.run_time_tip import run_time_tip
from trainmaster.core.submission.team_limits import over_limit

TRIES = 3
"""Most tries to store a submission whose parents keep ending meanwhile."""
RANDOM_BYTES = 10
"""Random bytes of an entry id."""


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
    if team is None or not context.is_admin:
        wanted = team or read_request(body).options.team
        team = team_for(context.caller, context.policy, wanted, own_account=context.outside.account_id)
    made = submission_of(body, team=team, submitted_by=context.caller.arn, policy=context.policy)
    return replace(made, key_hash=key_hash)


class _PolicyChangedError(TrainmasterError):
    """The policy was changed since this process read it."""


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
        version: The policy's version, for the table to confirm. Raises _PolicyChangedError if it does not.
        tries: How often it may be stored again because a job that it is to wait for ended meanwhile.
    """
    verdict, parents = _judged(context, submission)
    if (verdict.violations or parents.errors) and (repeated := existing(context, submission)):
        return _answer(context, submission, repeated, verdict)
    require_known(parents)
    pool = verdict.accepted()
    entrance = _entrance(context, submission, pool)
    if version is not None and entrance.policy_version != version:
        raise _PolicyChangedError("the policy was changed")
    job = _new(context, submission, pool, entrance, parents)
    admission = _admission(context, submission, pool, entrance)
    try:
        context.outside.store.submit(job, canonical(submission.body), admission)
    except TeamLimitError as error:
        raise over_limit(job.spec.team, pool, error.limit, at=job.spec.submitted_at) from error
    except LostRaceError as error:
        earlier = existing(context, submission)
        if earlier is None and job.waits_for_others and tries > 1:  # most likely a parent has ended
            return _submit(context, submission, version=version, tries=tries - 1)
        if earlier is None:
            raise LostRaceError("the policy or the name was changed meanwhile; try again") from error
        return _answer(context, submission, earlier, verdict)
    _wake(context, submission, job, verdict)
    shared = folder_warnings(submission, context)
    verdict = replace(verdict, warnings=(*verdict.warnings, *shared))
    return replace(_view(context, job, verdict), status=HTTPStatus.CREATED)


def _admission(
    context: RequestContext, submission: Submission, pool: PoolPolicy, entrance: Entrance
) -> Admission:
    """Build the conditions of the write. Raises RepairNeededError if the pool lost the team's counts."""
    if entrance.standing is TeamStanding.LOST:
        raise RepairNeededError(
            f"what team {submission.team} has in pool {pool.name} cannot be read, so nothing of it is taken "
            f"there; {HOW_TO_REPAIR}",
        )
    return Admission(
        policy_version=context.stored.version,
        limits=pool.limits,
        marks_team=entrance.standing is TeamStanding.NEW,
    )


def _entrance(context: RequestContext, submission: Submission, pool: PoolPolicy) -> Entrance:
    keys, now = submission.traits.keys, context.outside.clock()
    lane = lane_text(submission.ask.shapes, submission.ask.choice)
    return context.outside.reader.entrance(pool.name, submission.team, lane, learned=keys, now=now)


def _judged(context: RequestContext, submission: Submission) -> tuple[Verdict, Parents]:
    """Hold a submission, and the conditions in its tags, to the policy."""
    verdict = judge(submission, context.policy)
    parents = parents_of(context, submission, verdict.pool)
    return with_violations(verdict, parents), parents


def _new(
    context: RequestContext, submission: Submission, pool: PoolPolicy, entrance: Entrance, parents: Parents
) -> Job:
    now = context.outside.clock()
    likely = likely_lengths(entrance.learned, limit=submission.ask.max_runtime)
    job = new_job(
        submission,
        pool,
        entry_id=ulid(now, context.outside.random_bytes(RANDOM_BYTES)),
        now=now,
        known=Known(predicted=entrance.predicted, likely=likely),
    )
    return job if parents.after is None else with_conditions(job, parents.after, pool=pool, now=now)


def _answer(context: RequestContext, submission: Submission, job: Job, verdict: Verdict) -> Answer:
    """Show the job of this very request, which is stored already."""
    _wake(context, submission, job, verdict)
    return _view(context, job, verdict)


def _wake(context: RequestContext, submission: Submission, job: Job, verdict: Verdict) -> None:
    """Record the audited findings about the job, and request a pass."""
    unmanaged = _written_down(context, submission, job, verdict.audited)
    if job.is_waiting:
        wake(context.outside.wake_ups, [job.spec.pool, *unmanaged])


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
    return Answer(status=HTTPStatus.OK, body={"job": job_view(job, around), "warnings": _warnings(verdict)})


def _with_tip(verdict: Verdict, tip: FieldError | None) -> Verdict:
    return verdict if tip is None else replace(verdict, warnings=(*verdict.warnings, tip))


def _warnings(verdict: Verdict) -> list[View]:
    """List findings of rules that only audit, then likely mistakes of the author."""
    audited = (violation.as_field_error() for violation in verdict.audited)
    return [field_error_view(warning) for warning in (*audited, *verdict.warnings)]


def _written_down(
    context: RequestContext, submission: Submission, job: Job, audited: tuple[Violation, ...]
) -> tuple[str, ...]:
    """Record audited findings; return the pools whose notices are due, none if recorded already."""
    if not audited:
        return ()
    record = audit_record(job, submission, audited, revision=context.stored.revision)
    tell = to_tell(rule_violated_notice(record), cause=f"audited#{job.spec.entry_id}", at=record.at)
    return (UNMANAGED,) if context.outside.store.record_violation(record, messages=[tell]) else ()


def _dry_run(context: RequestContext, submission: Submission) -> Answer:
    """Ask the planner about the pool as it is with the job added; store nothing."""
    verdict, parents = _judged(context, submission)
    require_known(parents)
    verdict = replace(verdict, warnings=(*verdict.warnings, *foreseen_folder_warnings(submission, context)))
    taken = conflict(context, submission, namesake(context, submission))
    violations = (*([] if taken is None else [taken]), *verdict.violations)
    foreseen, after = UNFORESEEN, tuple[View, ...]()
    if verdict.pool is not None and not violations:
        pool = verdict.pool
        entrance = _entrance(context, submission, pool)
        job = _new(context, submission, pool, entrance, parents)
        foreseen, after = foresee(job, pool, context), parent_views(job, context, states_of(context, [job]))
        if foreseen is not UNFORESEEN and not job.waits_for_others:
            verdict = _with_tip(verdict, run_time_tip(job.spec, pool, foreseen.position))
    body = {
        "valid": not violations,
        "violations": [field_error_view(violation) for violation in violations],
        "warnings": _warnings(verdict),
        "pool": verdict.pool.name if verdict.pool else None,
        "position": foreseen.position.number,
        "after": list(after),
        "estimated_start": foreseen.prospect.start,
        "estimate_note": foreseen.prospect.note,
        "would_preempt": list(foreseen.victims),
        "usd_per_hour": foreseen.usd_per_hour,
        "estimated_cost_usd": foreseen.cost_usd,
        "spot_record": list(foreseen.spot_record),
    }
    return Answer(status=HTTPStatus.OK, body=body)
