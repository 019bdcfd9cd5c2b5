"""Decide about training jobs that bypassed the queue: their demand, their team, and their outcome."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.core.errors import BadOptionError
from trainmaster.core.jobs.observations import Described
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.policy import (
    DEFAULT_TEAM,
    UNMANAGED,
    UNMANAGED_TEAM,
    Policy,
    PoolPolicy,
    TeamPolicy,
    role_matches,
)
from trainmaster.core.policy.governance import UnmanagedJobs, UnmanagedThen
from trainmaster.core.policy.job_rules import Allowed
from trainmaster.core.request.completion import DEFAULT_RUNTIME
from trainmaster.core.request.options import READERS, TAG_PREFIX, TEAM
from trainmaster.core.request.request import Ask, read_request
from trainmaster.core.rules.violation import Outcome

RUNS = "InProgress"
"""TrainingJobStatus of one that can still be stopped or adopted. Source: SageMaker API."""
_AWS_PREFIX = "aws:"
"""Prefix of tags that only AWS may set."""
_MOST_TAGS = 46
"""Most tags kept in a request of ours: SageMaker takes 50, and four are ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmanagedJob:
    """A training job without a job in the table."""

    described: Described
    tags: Mapping[str, str]
    is_ours: bool
    """Whether it carries the tag of our stack: the table has lost it, or the tag is forged."""
    name_taken: bool = False
    """Whether another job in the table has its name."""

    @property
    def name(self) -> str:
        return self.described.observation.training_job_name

    @property
    def role_arn(self) -> str:
        arn: str = self.described.request["RoleArn"]
        return arn

    @property
    def runs(self) -> bool:
        return self.described.observation.status == RUNS


def body_of(unmanaged: UnmanagedJob) -> dict[str, Any]:
    """Return the request that would make it again through the queue, without tags of ours or AWS's."""
    body = dict(unmanaged.described.request)
    stopping = {"MaxRuntimeInSeconds": int(DEFAULT_RUNTIME.total_seconds())} | body.get(
        "StoppingCondition", {}
    )
    if body.get("EnableManagedSpotTraining"):
        stopping.setdefault("MaxWaitTimeInSeconds", stopping["MaxRuntimeInSeconds"])
    kept = [key for key in unmanaged.tags if not key.startswith((TAG_PREFIX, _AWS_PREFIX))]
    tags = [{"Key": key, "Value": unmanaged.tags[key]} for key in kept[:_MOST_TAGS]]
    return {**body, "StoppingCondition": stopping, "Tags": tags}


def ask_of(body: Mapping[str, Any]) -> Ask | None:
    """Return its demand; None if there are no instances to count (a serverless job).

    Options in its tags do not count here: SageMaker runs what the request says.
    """
    if not _has_countable_instances(body.get("ResourceConfig", {})):
        return None
    return read_request({**body, "Tags": []})


def options_of(tags: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of ``UserOptions`` that its tags set.

    Invalid ones are left out, as none was checked.
    """
    options: dict[str, Any] = {}
    for key in tags.keys() & READERS.keys():
        field, read = READERS[key]
        try:
            options[field] = read(tags[key])
        except BadOptionError:
            continue
    return options


def team_of(unmanaged: UnmanagedJob, policy: Policy) -> str:
    """Return the team that its tag names, else the one that owns its role; neither has been checked."""
    if not policy.teams:
        return DEFAULT_TEAM
    named = unmanaged.tags.get(TEAM)
    if named is not None and policy.team(named) is not None:
        return named
    owners = (team.name for team in policy.teams if _may_use(team, unmanaged.role_arn))
    return next(owners, UNMANAGED_TEAM)


def _may_use(team: TeamPolicy, role_arn: str) -> bool:
    """Tell whether a team lists the role; a team that may use any role owns none."""
    return isinstance(team.roles, Allowed) and role_arn in team.roles.allow


def is_excepted(unmanaged: UnmanagedJob, rules: UnmanagedJobs) -> bool:
    """Tell whether the policy excepts it; one that carries our tag is never excepted."""
    if unmanaged.is_ours:
        return False
    if rules.then is UnmanagedThen.ALLOW:
        return True
    if rules.except_tuning_jobs and unmanaged.described.tuning_job_arn is not None:
        return True
    return any(role_matches(pattern, unmanaged.role_arn) for pattern in rules.except_principals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """All facts that the outcome depends on."""

    then: UnmanagedThen
    runs: bool
    could_be_queued: bool
    """Whether a pool has its instance types."""
    can_be_adopted: bool
    """Whether its instances can be counted, and its name is free."""
    breaks_a_rule: bool
    """Whether it violates a rule that is enforced."""


def case_of(unmanaged: UnmanagedJob, policy: Policy, *, ask: Ask | None, breaks_a_rule: bool) -> Case:
    """Collect the facts.

    One that carries our tag is adopted at least, never stopped for bypassing the queue.

    Args:
        unmanaged: The training job.
        policy: The policy in force.
        ask: Its demand; None: its instances cannot be counted.
        breaks_a_rule: Whether it violates a rule that is enforced.
    """
    then = UnmanagedThen.ADOPT if unmanaged.is_ours else policy.governing.unmanaged_jobs.then
    return Case(
        then=then,
        runs=unmanaged.runs,
        could_be_queued=ask is not None and policy.pool_of(types_of(ask)) is not None,
        can_be_adopted=ask is not None and not unmanaged.name_taken,
        breaks_a_rule=breaks_a_rule,
    )


def outcome_of(case: Case) -> Outcome:
    """Decide the outcome of one that is not excepted.

    ``stop`` is about the queue: a job that could have waited in a pool is stopped, one that no pool could
    have taken is left to the rules. So a policy without pools still governs by its rules alone.
    """
    if not case.runs or case.then is UnmanagedThen.AUDIT:
        return Outcome.AUDITED
    if case.breaks_a_rule or (case.then is UnmanagedThen.STOP and case.could_be_queued):
        return Outcome.STOPPED
    if case.then is UnmanagedThen.ADOPT and case.can_be_adopted:
        return Outcome.ADOPTED
    return Outcome.AUDITED


def types_of(ask: Ask) -> list[str]:
    return sorted({capacity.instance_type for shape in ask.shapes for capacity in shape.vector})


def _has_countable_instances(resources: Mapping[str, Any]) -> bool:
    common = {"InstanceCount": resources.get("InstanceCount")}
    preferences = [common | preference for preference in resources.get("InstancePreferences", [])]
    parts = preferences or resources.get("InstanceGroups") or [resources]
    return all(part.get("InstanceType") and part.get("InstanceCount") for part in parts)


AMPLE = 1_000_000
"""Instances of each type in the pool ``UNMANAGED``; the account's real limit is learned as in any pool."""


def rules_for(pool: PoolPolicy, snapshot: Snapshot) -> PoolPolicy:
    """Return the pool as it is written; ``UNMANAGED`` gets capacity for all jobs in it."""
    if pool.name != UNMANAGED:
        return pool
    vectors = [shape.vector for job in (*snapshot.waiting, *snapshot.due) for shape in job.shapes]
    types = sorted({capacity.instance_type for vector in (snapshot.used, *vectors) for capacity in vector})
    room = dict.fromkeys(types, AMPLE)
    return replace(pool, capacity=room, spot_capacity=room)
