"""Admits past jobs under a policy: the pool that a job waits in, or why it is refused."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from typing import Any

from trainmaster.core import rules
from trainmaster.core.durations.learned import Known
from trainmaster.core.durations.traits import Traits
from trainmaster.core.jobs.instances import Capacity, CapacityType, Choice, Shape, lane_text, vector_text
from trainmaster.core.jobs.model import Job, JobSpec, JobState
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.planning.order import score_of
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.policy.job_rules import Mode, Rules

from trainmaster_client.simulate.engine.past_jobs import PastJob

JUDGED = frozenset(
    {"instance_types", "max_instances", "max_runtime", "max_estimated_cost_usd", "spot_needs_checkpoint"}
)
"""Rules that read nothing of a request but what a history has."""
_OF_TEAMS = ("roles", "images", "s3_prefixes")
"""Limits of a team beside its rules."""
_SECOND = timedelta(seconds=1)
_Asked = tuple[str, tuple[tuple[str, int], ...], timedelta, str, bool]
"""Team, instances, run time, capacity type, and whether it saves: all that the judged rules read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    pool: PoolPolicy
    shape: Shape
    priority: int
    """Priority that the user set, or the team's ceiling if that is lower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Admits jobs under one policy."""

    policy: Policy
    judged: Policy | None
    """The policy with only the rules that can be judged; None if there are none."""
    violations: dict[_Asked, str | None] = field(default_factory=dict)
    """Verdicts by what a job asks for: a history has few kinds of requests."""
    most: dict[str, Mapping[Capacity, int]] = field(default_factory=dict)
    """All that each pool ever has, by its name: every job is held against it."""

    @classmethod
    def of(cls, policy: Policy) -> "Admission":
        judged = replace(
            policy,
            rules=_judged(policy.rules),
            teams=tuple(
                replace(team, rules=_judged(team.rules), roles=None, images=None, s3_prefixes=None)
                for team in policy.teams
            ),
        )
        has_rules = any(
            rule_set != Rules() for rule_set in (judged.rules, *(team.rules for team in judged.teams))
        )
        return cls(policy=policy, judged=judged if has_rules else None)

    def judge(self, job: PastJob) -> Admitted | Refused:
        """Decide as a submission would be decided, as far as the history tells what was asked for."""
        policy = self.policy
        pool = policy.pool_of(job.instances)
        if pool is None:
            return Refused(reason=_no_pool(job, policy))
        vector = _vector(job)
        refusal = self._too_many(job, _least(job, vector), pool) or self._violation(job)
        if refusal is not None:
            return Refused(reason=refusal)
        team = policy.team(job.team)
        priority = job.priority if team is None else min(job.priority, team.max_priority)
        return Admitted(pool=pool, shape=_shape(job, vector), priority=priority)

    def _too_many(self, job: PastJob, vector: Mapping[Capacity, int], pool: PoolPolicy) -> str | None:
        if _fits_a_plan(job, vector, pool):
            return None
        if pool.name not in self.most:
            self.most[pool.name] = pool_vector(replace(pool, capacity=pool.most_capacity))
        there = self.most[pool.name]
        for capacity, count in sorted(vector.items()):
            most = there.get(capacity, 0)
            if count > most:
                has = f"{most} {capacity.capacity_type} {capacity.instance_type}"
                return f"asks for {count}, but pool {pool.name} has {has} in all"
        return None

    def _violation(self, job: PastJob) -> str | None:
        if self.judged is None:
            return None
        request_kind = _asked(job)
        if request_kind not in self.violations:
            self.violations[request_kind] = self._enforced(job, self.judged)
        return self.violations[request_kind]

    @staticmethod
    def _enforced(job: PastJob, judged: Policy) -> str | None:
        violations = rules.check(_request(job), team=job.team, policy=judged)
        enforced = (violation for violation in violations if violation.mode is Mode.ENFORCE)
        return next(
            (f"{violation.rule}: {violation.field} {violation.message}" for violation in enforced), None
        )


def not_judged(policy: Policy) -> tuple[str, ...]:
    """Return the rules that are written but cannot be judged from a history."""
    return tuple(
        [f"rules.{name}" for name in _written(policy.rules)]
        + [f"teams.{team.name}.rules.{name}" for team in policy.teams for name in _written(team.rules)]
        + [
            f"teams.{team.name}.{name}"
            for team in policy.teams
            for name in _OF_TEAMS
            if getattr(team, name) is not None
        ]
    )


def _written(of: Rules) -> Iterator[str]:
    names = (rule.name for rule in fields(of))
    return (name for name in names if name not in JUDGED and getattr(of, name) is not None)


def _judged(of: Rules) -> Rules:
    return Rules(**{name: getattr(of, name) for name in JUDGED})


def _asked(job: PastJob) -> _Asked:
    is_saved = job.saves_every is not None
    return (job.team, tuple(job.instances.items()), job.max_runtime, job.capacity_type, is_saved)


def _request(job: PastJob) -> Mapping[str, Any]:
    """Rebuild as much of CreateTrainingJob as the rules read."""
    groups = [
        {"InstanceType": instance_type, "InstanceCount": count}
        for instance_type, count in job.instances.items()
    ]
    body: dict[str, Any] = {
        "ResourceConfig": groups[0] if len(groups) == 1 else {"InstanceGroups": groups},
        "StoppingCondition": {"MaxRuntimeInSeconds": job.max_runtime // _SECOND},
        "EnableManagedSpotTraining": job.capacity_type == "spot",
    }
    return body if job.saves_every is None else body | {"CheckpointConfig": {"S3Uri": _checkpoints(job)}}


def _checkpoints(job: PastJob) -> str:
    return f"s3://checkpoints/{job.name}"


def _vector(job: PastJob) -> dict[Capacity, int]:
    capacity_type = CapacityType(job.capacity_type)
    return {Capacity(instance_type, capacity_type): count for instance_type, count in job.instances.items()}


def _shape(job: PastJob, vector: dict[Capacity, int]) -> Shape:
    """Return the job's shape; a warm pool is kept only of on-demand instances of one type."""
    is_kept = len(vector) == 1 and job.capacity_type == "on-demand"
    key = job.warm_key or f"{job.team}/{vector_text(vector)}"
    return Shape(
        vector=vector, warm_key=key if is_kept else None, avoids_plans=True if job.avoids_plans else None
    )


def _least(job: PastJob, vector: dict[Capacity, int]) -> dict[Capacity, int]:
    """Return what the job needs at least: an elastic one its least width."""
    return vector if job.elastic is None else dict.fromkeys(vector, job.elastic.widths.least)


def shapes_of(job: PastJob, admitted: Admitted) -> tuple[Shape, ...]:
    """Return the shapes that the job may start in: an elastic one's widths, the largest first."""
    if job.elastic is None:
        return (admitted.shape,)
    (capacity,) = admitted.shape.vector
    avoids = admitted.shape.avoids_plans
    return tuple(
        Shape(vector={capacity: count}, avoids_plans=avoids) for count in reversed(job.elastic.widths.counts)
    )


def _fits_a_plan(job: PastJob, least: Mapping[Capacity, int], pool: PoolPolicy) -> bool:
    """Tell whether a plan has what the job needs at least; one that was named is taken as any of them."""
    if len(least) > 1 or job.avoids_plans:
        return False
    ((capacity, count),) = least.items()
    return any(
        plan.instance_type == capacity.instance_type and count <= plan.total and entry.is_open_to(job.team)
        for entry, plan in pool.known_plans
    )


def _no_pool(job: PastJob, policy: Policy) -> str:
    homeless = sorted(
        instance_type for instance_type in job.instances if policy.pool_of([instance_type]) is None
    )
    if not homeless:
        return f"{', '.join(sorted(job.instances))} belong to different pools"
    return f"{', '.join(homeless)} {'belongs' if len(homeless) == 1 else 'belong'} to no pool"


def traits_of(job: PastJob, admitted: Admitted) -> Traits:
    """Return the traits in the history that tell how long a job trains."""
    return Traits(
        team=job.team,
        lane=lane_text(shapes_of(job, admitted), Choice.FIRST_FIT),
        limit=job.max_runtime,
        name=job.name,
        image=job.image,
        hyperparameters=job.hyperparameters,
        submitter=job.submitted_by,
    )


def learned_in(job: PastJob, admitted: Admitted) -> tuple[str, ...]:
    """Return the histograms that its run time is added to, the most specific first."""
    return traits_of(job, admitted).keys if job.learned_in is None else job.learned_in


def submitted(job: PastJob, admitted: Admitted, known: Known) -> Job:
    """Return the job as it enters the queue."""
    at = job.submitted_at
    spec = JobSpec(
        name=job.name,
        entry_id=job.entry_id or job.name,
        team=job.team,
        pool=admitted.pool.name,
        submitted_by=job.submitted_by,
        submitted_at=at.replace(microsecond=at.microsecond // 1000 * 1000),  # the table keeps milliseconds
        shapes=shapes_of(job, admitted),
        widths=None if job.elastic is None else job.elastic.widths,
        preemptible=job.preemptible,
        max_runtime=job.max_runtime,
        max_wait=job.max_wait,
        body_hash=job.name,
        checkpoint_uri=None if job.saves_every is None else _checkpoints(job),
        predicted=known.predicted,
        learned_in=learned_in(job, admitted),
        likely=known.likely,
    )
    return Job(
        spec=spec,
        state=JobState.PENDING,
        priority=admitted.priority,
        score=score_of(spec, admitted.priority, admitted.pool),
        ranked_by=admitted.pool.order_key,
    )
