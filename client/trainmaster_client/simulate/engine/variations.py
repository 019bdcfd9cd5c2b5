"""Other histories and policies to compare with: without a team, without a rule, with another capacity."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainmaster.core.jobs.instances import Capacity, CapacityType
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.policy import Policy, PoolPolicy, parse_policy
from trainmaster.core.policy.job_rules import Rules
from trainmaster.core.policy.keys import keys_of

from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.simulate.engine.past_jobs import History, PastJob
from trainmaster_client.simulate.engine.replayed_plans import with_known_plans

Document = dict[str, Any]


def without_team(history: History, team: str) -> History:
    """Leave out the team's jobs. Raises InvalidArgumentError if it has none."""
    left = tuple(job for job in history.jobs if job.team != team)
    dropped = len(history.jobs) - len(left)
    if not dropped:
        known = ", ".join(sorted({job.team for job in history.jobs})) or "none"
        raise InvalidArgumentError(f"The history has no jobs of team {team!r}.", hint=f"Its teams: {known}.")
    sentence = f"The {dropped:,} jobs of team {team} are left out."
    return replace(history, jobs=left, not_known=(*history.not_known, sentence))


def without_rule(policy: Policy, rule: str) -> Policy:
    """Remove a rule, wherever it is written.

    Args:
        policy: With it.
        rule: Its key below ``rules`` (``max_runtime``): that of the policy and of each team; or one team's
            alone, as violations name it (``teams.vision.rules.max_runtime``).

    Raises:
        InvalidArgumentError: No rule is called so, or it is not written.
    """
    document = policy.to_document()
    written = {path: rules for path, rules in _rules_of(document) if rule in {path, path.rpartition(".")[2]}}
    if not written:
        known = ", ".join(path for path, _ in _rules_of(document)) or "none"
        raise InvalidArgumentError(f"The policy has no rule {rule!r}.", hint=f"Its rules: {known}.")
    for path, rules in written.items():
        del rules[path.rpartition(".")[2]]
    return _parsed(document, policy)


def _rules_of(document: Document) -> list[tuple[str, Document]]:
    """Return each written rule by its path, with the section it stands in."""
    teams = document.get("teams") or []
    of_teams = ((f"teams.{team['name']}.rules.", team.get("rules")) for team in teams)
    sections = [("rules.", document.get("rules")), *of_teams]
    known = keys_of(Rules)
    return [
        (prefix + key, section)
        for prefix, section in sections
        if isinstance(section, dict)
        for key in section
        if key in known
    ]


def with_capacity(policy: Policy, counts: Mapping[str, int]) -> Policy:
    """Set other capacities.

    Args:
        policy: With pools that have these types.
        counts: By type; ``ml.g5.xlarge:spot`` for spot instances.

    Raises:
        InvalidArgumentError: No pool has the type, or the number is below 0.
        PolicyViolationError: It does not fit the rest of the policy, such as the quotas.
    """
    document = policy.to_document()
    for text, count in counts.items():
        _set(document, policy, Capacity.parse(text), count)
    return _parsed(document, policy)


def _set(document: Document, policy: Policy, capacity: Capacity, count: int) -> None:
    pool = policy.pool_of([capacity.instance_type])
    if pool is None:
        known = (
            ", ".join(sorted(name for other_pool in policy.pools for name in other_pool.instance_types))
            or "none"
        )
        raise InvalidArgumentError(
            f"No pool has {capacity.instance_type}.", hint=f"The policy's types: {known}."
        )
    if count < 0:
        raise InvalidArgumentError(f"{capacity}={count} is below 0.", hint=f"Write {capacity}=0 or more.")
    section = "spot_capacity" if capacity.is_spot else "capacity"
    written = document["pools"][policy.pools.index(pool)]
    written[section] = {**(written.get(section) or {}), capacity.instance_type: count}


def sized_to(history: History, policy: Policy, *, load: float) -> tuple[Policy, tuple[str, ...]]:
    """Size the pools so that the history's mean demand, start-up included, is this share of them.

    For traces of other clusters, whose jobs are too many or too few for the policy's own capacity. No pool
    gets smaller than its widest job. Nominal quotas change in proportion; a type without jobs stays as it is.

    Returns:
        The policy, and a sentence on each type that was changed.
    """
    if not 0 < load <= 1:
        raise InvalidArgumentError(f"A load of {load} is no share of a pool.", hint="Give e.g. 0.9.")
    document, sentences = policy.to_document(), []
    for index, pool in enumerate(policy.pools):
        document["pools"][index]["quotas"] = _written_out(pool)
        for capacity, before in pool_vector(pool).items():
            count = _needed(history, capacity, load)
            if count is None or count == before:
                continue
            _set(document, policy, capacity, count)
            if not capacity.is_spot:
                _scale_quotas(document["pools"][index], pool, capacity.instance_type)
            sentences.append(
                f"Pool {pool.name} is sized to the history: {count:,} {capacity} instead of {before:,}, "
                f"of which it uses {load:.0%} on average."
            )
    return _parsed(document, policy), tuple(sentences)


def _needed(history: History, capacity: Capacity, load: float) -> int | None:
    """Return the instances needed for the load; None if no job asks for the type."""
    jobs = [
        (job, count)
        for job in history.jobs
        if (count := job.instances.get(capacity.instance_type)) and _is_of(job, capacity)
    ]
    if not jobs:
        return None
    horizon = (max(job.submitted_at for job in history.jobs) - history.begins).total_seconds()
    demand = sum(
        count * (job.trains_for + (job.cold_start or history.pace.cold_start)).total_seconds()
        for job, count in jobs
    )
    return max(math.ceil(demand / max(horizon, 1) / load), *(count for _, count in jobs))


def _is_of(job: PastJob, capacity: Capacity) -> bool:
    return CapacityType(job.capacity_type) is capacity.capacity_type


def _scale_quotas(written: Document, pool: PoolPolicy, instance_type: str) -> None:
    """Scale quotas and limits of borrowing to keep their share of the pool, rounded down."""
    now, before = written["capacity"][instance_type], pool.capacity[instance_type]
    for quota in written["quotas"].values():
        for counts in quota.values():
            if before and instance_type in counts:
                counts[instance_type] = counts[instance_type] * now // before


def _written_out(pool: PoolPolicy) -> Document:
    """Return the quotas without their short forms."""
    parts = {
        team: {"nominal": quota.nominal, "borrowing_limit": quota.borrowing_limit}
        for team, quota in pool.quotas.items()
    }
    return {
        team: {name: dict(counts) for name, counts in part.items() if counts} for team, part in parts.items()
    }


def _parsed(document: Document, policy: Policy) -> Policy:
    known = {arn: plan for pool in policy.pools for arn, plan in pool.seen_plans.items()}
    return with_known_plans(parse_policy(document, defaults=policy.defaults), known)
