"""Submits jobs and arrays, as far as both go the same way: judge, look up, store on conditions, wake."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from trainmaster.api.parent_jobs import parents_of, with_violations
from trainmaster.api.request_context import RequestContext, wake
from trainmaster.api.views import View, field_error_view
from trainmaster.core.durations.learned import Known, likely_lengths
from trainmaster.core.durations.work_speeds import MeasuredWidths
from trainmaster.core.errors import (
    HOW_TO_REPAIR,
    FieldError,
    RepairNeededError,
    TrainmasterError,
    UnavailableError,
)
from trainmaster.core.jobs.instances import lane_text
from trainmaster.core.jobs.measured_runs import measured_widths
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.dependents import with_conditions
from trainmaster.core.outbox import rule_violated_notice, to_tell
from trainmaster.core.policy import UNMANAGED, PoolPolicy
from trainmaster.core.records import Admission, Entrance, TeamStanding
from trainmaster.core.request.request import read_request
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
from trainmaster.core.submission.cheapest_shapes import Market, wants_cheapest, with_cheapest
from trainmaster.core.submission.identity import team_for
from trainmaster.core.submission.parents import Parents

RANDOM_BYTES = 10
"""Random bytes of an entry id."""


class PolicyChangedError(TrainmasterError):
    """The policy was changed since this process read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A submission held to the policy, and the conditions in its tags."""

    verdict: Verdict
    parents: Parents

    def with_violation(self, violation: FieldError) -> "Judged":
        verdict = replace(self.verdict, violations=(*self.verdict.violations, violation))
        return replace(self, verdict=verdict)

    def with_warnings(self, warnings: tuple[FieldError, ...]) -> "Judged":
        verdict = replace(self.verdict, warnings=(*self.verdict.warnings, *warnings))
        return replace(self, verdict=verdict)


def made_by(context: RequestContext, body: Mapping[str, Any], *, team: str | None = None) -> Submission:
    """Make the submission of a valid request; an admin's dry run names any ``team`` instead of the tag's."""
    if team is None or not context.is_admin:
        wanted = team or read_request(body).options.team
        team = team_for(context.caller, context.policy, wanted, own_account=context.outside.account_id)
    made = submission_of(body, team=team, submitted_by=context.caller.arn, policy=context.policy)
    return _with_shapes(context, made) if wants_cheapest(made) else made


def _with_shapes(context: RequestContext, submission: Submission) -> Submission:
    """Write the shapes for ``cheapest``. Raises InvalidRequestError if too little was measured."""
    types = sorted({capacity.instance_type for capacity in submission.ask.vector})
    pool = context.policy.pool_of(types)
    if pool is None:
        return submission  # the verdict says so
    market = Market(
        pool=pool,
        prices=context.policy.price_table,
        saves_checkpoints=submission.ask.checkpoint_uri is not None,
    )
    kind = submission.traits.work_kind
    runs = context.outside.reader.work_speeds(pool.name, submission.team, kind)
    return with_cheapest(submission, runs, market, now=context.outside.clock())


def require_version(entrance: Entrance, version: int | None) -> None:
    """Raise PolicyChangedError if the policy is not the one that this process decided by."""
    if version is not None and entrance.policy_version != version:
        raise PolicyChangedError("the policy was changed")


def admission_of(
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


def entrance_of(context: RequestContext, submission: Submission, pool: PoolPolicy) -> Entrance:
    keys, now = submission.traits.keys, context.outside.clock()
    lane = lane_text(submission.ask.shapes, submission.ask.choice)
    return context.outside.reader.entrance(pool.name, submission.team, lane, learned=keys, now=now)


def judged(
    context: RequestContext, submission: Submission, *, indices: tuple[int, ...] | None = None
) -> Judged:
    """Hold a submission, and the conditions in its tags, to the policy."""
    verdict = judge(submission, context.policy)
    parents = parents_of(context, submission, verdict.pool, indices=indices)
    return Judged(verdict=with_violations(verdict, parents), parents=parents)


def new_job_of(
    context: RequestContext, submission: Submission, pool: PoolPolicy, entrance: Entrance, parents: Parents
) -> Job:
    now = context.outside.clock()
    likely = likely_lengths(entrance.learned, limit=submission.ask.max_runtime)
    measured = _measured_widths(context, submission, pool, now=now)
    job = new_job(
        submission,
        pool,
        entry_id=ulid(now, context.outside.random_bytes(RANDOM_BYTES)),
        now=now,
        known=Known(predicted=entrance.predicted, likely=likely, widths=measured),
    )
    return job if parents.after is None else with_conditions(job, parents.after, pool=pool, now=now)


def _measured_widths(
    context: RequestContext, submission: Submission, pool: PoolPolicy, *, now: datetime
) -> MeasuredWidths | None:
    """Read how fast the program of an elastic job was at other widths; None where the table does not answer.

    A job needs no such speeds: without them each doubling counts as usual.
    """
    if submission.ask.options.elastic is None:
        return None
    (instance_type,) = {capacity.instance_type for capacity in submission.ask.vector}
    kind = submission.traits.work_kind
    try:
        runs = context.outside.reader.work_speeds(pool.name, submission.team, kind)
    except UnavailableError:
        return None
    return measured_widths(runs, instance_type, settings=kind.partition(":")[2], now=now)


def wake_for(context: RequestContext, submission: Submission, job: Job, verdict: Verdict) -> None:
    """Record the audited findings about the job, and request a pass."""
    unmanaged = _written_down(context, submission, job, verdict.audited)
    if job.is_waiting:
        wake(context.outside.wake_ups, [job.spec.pool, *unmanaged])


def warnings_of(verdict: Verdict) -> list[View]:
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
