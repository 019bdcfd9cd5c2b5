"""What becomes of a valid request: the pool it waits in, what the policy has against it, the new job."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainmaster.core import rules
from trainmaster.core.durations.learned import NOTHING_KNOWN, Known
from trainmaster.core.durations.traits import Traits
from trainmaster.core.errors import FieldError, Path, PolicyViolationError, path_text
from trainmaster.core.jobs.instances import Capacity, CapacityType, Choice, vector_text
from trainmaster.core.jobs.model import Job, JobSpec, JobState, epoch_ms
from trainmaster.core.planning.order import score_of
from trainmaster.core.planning.refusal_records import role_digest
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.policy.job_rules import Mode
from trainmaster.core.request.options import ALTERNATIVES, MAX_PRIORITY, PRIORITY, OnOom
from trainmaster.core.request.request import Ask, body_hash, traits_of
from trainmaster.core.rules.violation import Outcome, Violation, ViolationRecord

RULE_NO_POOL = "no-pool"
RULE_ONE_POOL = "one-pool"
RULE_NEVER_FITS = "never-fits"
RULE_MAX_PRIORITY = "max-priority"

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID_CHARACTERS = 26
_RANDOM_BITS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One valid request of one caller for one of the teams he is in."""

    body: Mapping[str, Any]
    ask: Ask
    team: str
    submitted_by: str
    key_hash: str | None = None
    """SHA-256 (hex) of its idempotency key; None: it was sent without one."""

    @property
    def traits(self) -> Traits:
        return traits_of(self.ask, self.body, team=self.team)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the policy says to a submission."""

    pool: PoolPolicy | None
    """Where the job would wait; None when its types have no common pool."""
    violations: tuple[FieldError, ...]
    audited: tuple[Violation, ...] = ()
    """Of rules that are not enforced: the job is accepted, and they are recorded."""

    def accepted(self) -> PoolPolicy:
        """The pool. Raises PolicyViolationError with everything the policy has against the submission."""
        if self.violations or self.pool is None:
            first = f"{self.violations[0].field}: {self.violations[0].message}"
            more = f" (and {len(self.violations) - 1} more)" if len(self.violations) > 1 else ""
            raise PolicyViolationError(first + more, errors=self.violations)
        return self.pool


def judge(submission: Submission, policy: Policy) -> Verdict:
    """Find the pool and every rule and limit of the policy that the submission violates."""
    found = rules.check(submission.body, team=submission.team, policy=policy, is_submission=True)
    return Verdict(
        pool=policy.pool_of(_types(submission.ask)),
        violations=(
            *_pool_violations(submission, policy),
            *_priority_violations(submission, policy),
            *(one.as_field_error() for one in found if one.mode is Mode.ENFORCE),
        ),
        audited=tuple(one for one in found if one.mode is Mode.AUDIT),
    )


def new_job(
    submission: Submission,
    pool: PoolPolicy,
    *,
    entry_id: str,
    now: datetime,
    known: Known = NOTHING_KNOWN,
) -> Job:
    """The job as it enters the queue.

    Args:
        submission: Accepted.
        pool: Where it waits.
        entry_id: Of the submission.
        now: Of the submission.
        known: What the ended jobs say of it.
    """
    ask = submission.ask
    entered = now.replace(microsecond=now.microsecond // 1000 * 1000)  # the table keeps milliseconds
    spec = JobSpec(
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
        learned_in=submission.traits.keys,
        likely=known.likely,
        max_runtime=ask.max_runtime,
        max_wait=ask.max_wait,
        body_hash=body_hash(submission.body),
        key_hash=submission.key_hash,
        retries=ask.options.retries,
        halves_batch=ask.options.on_oom is OnOom.HALVE_BATCH,
        role=role_digest(ask.role_arn),
    )
    priority = ask.options.priority
    return Job(
        spec=spec,
        state=JobState.PENDING,
        priority=priority,
        score=score_of(spec, priority, pool),
        ranked_by=pool.order_key,
    )


def audit_record(
    job: Job, submission: Submission, audited: tuple[Violation, ...], *, revision: int
) -> ViolationRecord:
    """What is kept of an accepted job with violations; the same for the same job, however often."""
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
    """True where the job was made from the same body for the same team, whenever that was."""
    return job.spec.team == submission.team and job.spec.body_hash == body_hash(submission.body)


def ulid(now: datetime, randomness: bytes) -> str:
    """An entry id: 48 bits of milliseconds and 80 random ones, in Crockford's base 32.

    Source: github.com/ulid/spec.
    """
    number = (epoch_ms(now) << _RANDOM_BITS) | (int.from_bytes(randomness, "big") & ((1 << _RANDOM_BITS) - 1))
    return "".join(_CROCKFORD[number >> 5 * place & 31] for place in reversed(range(_ULID_CHARACTERS)))


def _types(ask: Ask) -> list[str]:
    return sorted({capacity.instance_type for shape in ask.shapes for capacity in shape.vector})


def _pool_violations(submission: Submission, policy: Policy) -> Iterator[FieldError]:
    types = _types(submission.ask)
    homeless = [name for name in types if policy.pool_of([name]) is None]
    for name in homeless:
        yield _no_pool(submission, name, policy)
    pool = policy.pool_of(types)
    if pool is not None:
        yield from _never_fits(submission, pool)
    elif not homeless:
        yield _two_pools(types, policy)


def _no_pool(submission: Submission, instance_type: str, policy: Policy) -> FieldError:
    known = sorted(name for pool in policy.pools for name in pool.instance_types)
    hint = f"use one of: {', '.join(known)}" if known else "the policy has no pools yet; ask an admin for one"
    return FieldError(
        field=_where(submission, instance_type, "InstanceType"),
        message=f"{instance_type} belongs to no pool",
        hint=hint,
        rule=RULE_NO_POOL,
    )


def _two_pools(types: list[str], policy: Policy) -> FieldError:
    owners = {pool.name for name in types if (pool := policy.pool_of([name]))}
    return FieldError(
        field="ResourceConfig",
        message=f"{', '.join(types)} belong to different pools: {', '.join(sorted(owners))}",
        hint="use instance types of one pool",
        rule=RULE_ONE_POOL,
    )


def _never_fits(submission: Submission, pool: PoolPolicy) -> Iterator[FieldError]:
    """Each shape that does not fit into the empty pool, also where another does.

    One that can never start would only make a lane of its own for passes to look at.
    """
    for number, shape in enumerate(submission.ask.shapes):
        for capacity, count in sorted(shape.vector.items()):
            if count > _room(pool, capacity):
                yield _too_many(submission, number, capacity, count, pool)


def _too_many(
    submission: Submission, number: int, capacity: Capacity, count: int, pool: PoolPolicy
) -> FieldError:
    most, kind, ask = _room(pool, capacity), capacity.capacity_type.value, submission.ask
    fewer = f"ask for at most {most}" if most else f"the pool has no {kind} instances of this type"
    has = f"{most} {kind} {capacity.instance_type}"
    subject = f"{vector_text(ask.shapes[number].vector)} " if len(ask.shapes) > 1 else ""
    return FieldError(
        field=_where_counted(submission, number, capacity.instance_type),
        message=f"{subject}asks for {count}, but pool {pool.name} has {has} in all",
        hint=f"{fewer}, or leave it out of the list" if subject else fewer,
        rule=RULE_NEVER_FITS,
    )


def _room(pool: PoolPolicy, capacity: Capacity) -> int:
    spot = capacity.capacity_type is CapacityType.SPOT
    return (pool.spot_capacity if spot else pool.capacity).get(capacity.instance_type, 0)


def over_ceiling(priority: int, team: str, policy: Policy, *, field: str) -> FieldError | None:
    """What is wrong with the priority for a job of the team; None: nothing."""
    found = policy.team(team)
    ceiling = found.max_priority if found else MAX_PRIORITY
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
    field = _tag(submission, PRIORITY) if priority else PRIORITY
    refusal = over_ceiling(priority, submission.team, policy, field=field)
    if refusal is not None:
        yield refusal


def _tag(submission: Submission, key: str) -> str:
    tags = submission.body.get("Tags", [])
    index = next(index for index, tag in enumerate(tags) if tag["Key"] == key)
    return path_text(("Tags", index, "Value"))


def _where_counted(submission: Submission, number: int, instance_type: str) -> str:
    """The path of the count of the job's shape of this number."""
    preferences = submission.body["ResourceConfig"].get("InstancePreferences", [])
    if submission.ask.choice is Choice.SAGEMAKER and "InstanceCount" in preferences[number]:
        return path_text(("ResourceConfig", "InstancePreferences", number, "InstanceCount"))
    return _where(submission, instance_type, "InstanceCount")


def _where(submission: Submission, instance_type: str, field: str) -> str:
    """The path of a field of the first shape that names the type."""
    if submission.ask.options.alternatives:
        return _tag(submission, ALTERNATIVES)
    resources = submission.body["ResourceConfig"]
    path: Path = ("ResourceConfig",)
    for key in ("InstanceGroups", "InstancePreferences"):
        for index, part in enumerate(resources.get(key, [])):
            if part["InstanceType"] == instance_type and (field in part or field not in resources):
                return path_text((*path, key, index, field))
    return path_text((*path, field))
