"""Admission of a valid request: the pool it waits in, its violations of the policy, the new job."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from trainmaster.core import rules
from trainmaster.core.durations.learned import NOTHING_KNOWN, Known
from trainmaster.core.durations.traits import Traits
from trainmaster.core.errors import FieldError, PolicyViolationError
from trainmaster.core.jobs.model import Job, JobSpec, JobState, epoch_ms
from trainmaster.core.monitoring.loss_judgement import unjudged_loss
from trainmaster.core.planning.loans import promised_quota, why_fixed
from trainmaster.core.planning.order import score_of
from trainmaster.core.planning.refusal_records import role_digest
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.policy.job_rules import Mode
from trainmaster.core.request.completion import has_runtime, with_runtime
from trainmaster.core.request.options import MAX_PRIORITY, PRIORITY, OnOom, near_misses
from trainmaster.core.request.request import Ask, read_request, traits_of
from trainmaster.core.request.strict_json import body_hash
from trainmaster.core.rules.violation import Outcome, Violation, ViolationRecord
from trainmaster.core.submission.held_container_bounds import hold_open_violations, hold_open_warnings
from trainmaster.core.submission.never_fits import Bounds, no_pool, two_pools
from trainmaster.core.submission.plan_refusals import PlanRefusals
from trainmaster.core.submission.request_places import Places
from trainmaster.core.submission.run_time_tip import default_run_time_warnings
from trainmaster.core.submission.set_by_pool import (
    fields_set_by_pool,
    measured_warnings,
    override_violations,
    override_warnings,
    volume_violations,
    with_overrides,
)

RULE_MAX_PRIORITY = "max-priority"

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID_CHARACTERS = 26
_RANDOM_BITS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One valid request of one caller for one of the caller's teams."""

    body: Mapping[str, Any]
    ask: Ask
    team: str
    submitted_by: str
    sent: Mapping[str, Any] | None = None
    """The request as sent, if the queue has added to it; None: nothing was added."""
    key_hash: str | None = None
    """SHA-256 (hex) of its idempotency key; None: it was sent without one."""
    measured: str | None = None  # why its shapes are in this order; None: their author has listed them
    tasks_hash: str | None = None
    """SHA-256 (hex) of the tasks and their values, of the request of an array."""

    @property
    def as_sent(self) -> Mapping[str, Any]:
        return self.body if self.sent is None else self.sent

    @property
    def identity(self) -> str:
        """Equal for the same request sent again, whatever the policy has the queue add to it."""
        own = body_hash(self.as_sent)
        if self.tasks_hash is not None:
            return sha256(f"{own}{self.tasks_hash}".encode()).hexdigest()
        return own

    @property
    def places(self) -> Places:
        return Places(body=self.body, ask=self.ask)

    @property
    def traits(self) -> Traits:
        return traits_of(self.ask, self.body, team=self.team, submitter=self.submitted_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The policy's judgement of a submission."""

    pool: PoolPolicy | None
    """Pool in which the job would wait; None when its types have no common pool."""
    violations: tuple[FieldError, ...]
    audited: tuple[Violation, ...] = ()
    """Violations of rules that are not enforced: the job is accepted, and they are recorded."""
    warnings: tuple[FieldError, ...] = ()
    """Parts of the request that are accepted, but perhaps not what its author means."""

    def accepted(self) -> PoolPolicy:
        """Return the pool. Raises PolicyViolationError with every violation of the submission."""
        if self.violations or self.pool is None:
            first = f"{self.violations[0].field}: {self.violations[0].message}"
            others = f" (and {len(self.violations) - 1} more)" if len(self.violations) > 1 else ""
            raise PolicyViolationError(first + others, errors=self.violations)
        return self.pool


def submission_of(body: Mapping[str, Any], *, team: str, submitted_by: str, policy: Policy) -> Submission:
    """Complete a valid request as the queue keeps it: with a run time, and with what its pool sets.

    The run time is its own or a default within the rules. All of it is stored with the request, so that a
    start judges what was accepted.
    """
    completed: Mapping[str, Any] = with_runtime(body, longest=rules.longest_runtime(policy, team))
    pool = policy.pool_of(_types(read_request(completed)))
    kept = completed if pool is None else with_overrides(completed, pool.overrides)
    sent = body if kept is not completed or not has_runtime(body) else None
    return Submission(body=kept, ask=read_request(kept), team=team, submitted_by=submitted_by, sent=sent)


def judge(submission: Submission, policy: Policy) -> Verdict:
    """Find the pool and every rule and limit of the policy that the submission violates."""
    broken = rules.check(submission.body, team=submission.team, policy=policy, is_submission=True)
    pool = policy.pool_of(_types(submission.ask))
    return Verdict(
        pool=pool,
        violations=(
            *(override_violations(submission.places, pool.overrides) if pool else ()),
            *(volume_violations(submission.as_sent, pool.overrides) if pool else ()),
            *_pool_violations(submission, policy),
            *_priority_violations(submission, policy),
            *(violation.as_field_error() for violation in broken if violation.mode is Mode.ENFORCE),
        ),
        audited=tuple(violation for violation in broken if violation.mode is Mode.AUDIT),
        warnings=(
            *default_run_time_warnings(submission.as_sent, submission.ask),
            *(override_warnings(submission.as_sent, submission.body, pool=pool.name) if pool else ()),
            *measured_warnings(submission.places, submission.measured),
            *unjudged_loss(submission.body, policy.governing.loss),
            *hold_open_warnings(submission.ask, policy.price_table, submission.places),
            *near_misses(submission.body),
        ),
    )


def new_job(
    submission: Submission,
    pool: PoolPolicy,
    *,
    entry_id: str,
    now: datetime,
    known: Known = NOTHING_KNOWN,
) -> Job:
    """Make the job as it enters the queue.

    Args:
        submission: The accepted submission.
        pool: The pool in which it waits.
        entry_id: Id of the submission.
        now: Instant of the submission.
        known: Predictions from ended jobs like it.
    """
    spec, priority = _spec(submission, pool, entry_id, now, known), submission.ask.options.priority
    return Job(
        spec=spec,
        state=JobState.PENDING,
        priority=priority,
        score=score_of(spec, priority, pool),
        ranked_by=pool.order_key,
    )


def _spec(submission: Submission, pool: PoolPolicy, entry_id: str, now: datetime, known: Known) -> JobSpec:
    """Write down what was submitted, to the millisecond that the table keeps."""
    ask, traits = submission.ask, submission.traits
    entered = now.replace(microsecond=now.microsecond // 1000 * 1000)
    return JobSpec(
        name=ask.name,
        entry_id=entry_id,
        team=submission.team,
        pool=pool.name,
        submitted_by=submission.submitted_by,
        submitted_at=entered,
        shapes=ask.shapes,
        choice=ask.choice,
        preemptible=ask.options.preemptible,
        checkpoint_uri=ask.checkpoint_uri,
        keep_alive=ask.keep_alive,
        predicted=known.predicted,
        learned_in=traits.keys,
        work_kind=traits.work_kind,
        measured=submission.measured,
        likely=known.likely,
        max_runtime=ask.max_runtime,
        max_wait=ask.max_wait,
        body_hash=submission.identity,
        key_hash=submission.key_hash,
        retries=ask.options.retries,
        halves_batch=ask.options.on_oom is OnOom.HALVE_BATCH,
        own_quota=_own_quota(submission, pool),
        role=role_digest(ask.role_arn),
        widths=ask.options.elastic and replace(ask.options.elastic, measured=known.widths),
        hold_open=ask.options.hold_open,
        set_by_pool=fields_set_by_pool(submission.as_sent, submission.body) or None,
    )


def _own_quota(submission: Submission, pool: PoolPolicy) -> Mapping[str, int] | None:
    """Return how much of the pool a job that cannot be stopped may use; None if the job can be stopped.

    Spot jobs have such a bound too, as they may be moved off spot.
    """
    ask = submission.ask
    why = why_fixed(
        preemptible=ask.options.preemptible,
        has_checkpoint=ask.checkpoint_uri is not None,
        rules=pool.preemption,
    )
    return None if why is None else promised_quota(pool, submission.team, _types(ask))


def audit_record(
    job: Job, submission: Submission, audited: tuple[Violation, ...], *, revision: int
) -> ViolationRecord:
    """Make the record of an accepted job with violations.

    It is the same for the same job, however often made.
    """
    return ViolationRecord(
        at=job.spec.submitted_at,
        training_job_name=job.name,
        team=job.spec.team,
        role_arn=submission.ask.role_arn,
        unmanaged=False,
        outcome=Outcome.AUDITED,
        violations=audited,
        revision=revision,
    )


def is_same_request(job: Job, submission: Submission) -> bool:
    """Tell whether the job was made from the same body for the same team, whenever that was."""
    return job.spec.team == submission.team and job.spec.body_hash == submission.identity


def ulid(now: datetime, randomness: bytes) -> str:
    """Make an entry id: 48 bits of milliseconds and 80 random ones, in Crockford's base 32.

    Source: github.com/ulid/spec.
    """
    # Milliseconds come first, so ids sort by the time of submission.
    number = (epoch_ms(now) << _RANDOM_BITS) | (int.from_bytes(randomness, "big") & ((1 << _RANDOM_BITS) - 1))
    return "".join(_CROCKFORD[number >> 5 * place & 31] for place in reversed(range(_ULID_CHARACTERS)))


def _types(ask: Ask) -> list[str]:
    return sorted({capacity.instance_type for shape in ask.shapes for capacity in shape.vector})


def _pool_violations(submission: Submission, policy: Policy) -> Iterator[FieldError]:
    types = _types(submission.ask)
    homeless = [name for name in types if policy.pool_of([name]) is None]
    for name in homeless:
        yield no_pool(submission.places, name, policy)
    pool = policy.pool_of(types)
    if pool is not None:
        yield from _bounds(submission, pool, policy).violations()
        yield from hold_open_violations(submission.ask, pool, submission.places)
        yield from PlanRefusals(
            ask=submission.ask, team=submission.team, pool=pool, places=submission.places
        ).violations()
    elif not homeless:
        yield two_pools(types, policy)


def _bounds(submission: Submission, pool: PoolPolicy, policy: Policy) -> Bounds:
    ask, places = submission.ask, submission.places
    return Bounds(ask=ask, team=submission.team, pool=pool, policy=policy, places=places)


def over_ceiling(priority: int, team: str, policy: Policy, *, field: str) -> FieldError | None:
    """Return the error if the priority is too high for a job of the team; None if it is allowed."""
    ceiling = named.max_priority if (named := policy.team(team)) else MAX_PRIORITY
    if priority <= ceiling:
        return None
    return FieldError(
        field=field,
        message=f"priority {priority} is above the ceiling of team {team}, {ceiling}",
        hint=f"ask for at most {ceiling}",
        rule=RULE_MAX_PRIORITY,
    )


def _priority_violations(submission: Submission, policy: Policy) -> Iterator[FieldError]:
    priority = submission.ask.options.priority
    field = submission.places.tag(PRIORITY) if priority else PRIORITY
    refusal = over_ceiling(priority, submission.team, policy, field=field)
    if refusal is not None:
        yield refusal
