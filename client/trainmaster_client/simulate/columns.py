"""The columns of a comparison: which policy, on which of the jobs; and their replays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trainmaster.core.policy import Policy

from trainmaster_client.simulate.engine import nothing_yet, plain_queue
from trainmaster_client.simulate.past_jobs import History
from trainmaster_client.simulate.processes import Progress
from trainmaster_client.simulate.recorded import recorded
from trainmaster_client.simulate.replays import Replay
from trainmaster_client.simulate.side_by_side import side_by_side
from trainmaster_client.simulate.variations import sized_to, without_team

_PLAIN_SHARE = 0.1
"""Of the work: the plain queue asks no planner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPlan:
    label: str
    policy: Policy
    is_plain: bool = False
    """The pools of the policy with the plain queue in them."""
    is_recorded: bool = False
    """How it really went; the policy is of no interest."""
    without_teams: tuple[str, ...] = ()


def replays_of(history: History, plans: Sequence[ColumnPlan], *, progress: Progress) -> list[Replay]:
    """In the order of the plans."""
    planned = [plan for plan in plans if not plan.is_plain and not plan.is_recorded]
    groups: dict[tuple[str, ...], list[ColumnPlan]] = {}
    for plan in planned:
        groups.setdefault(plan.without_teams, []).append(plan)
    found: dict[str, Replay] = {}
    for number, (teams, members) in enumerate(groups.items()):
        found |= _group(history, teams, members, progress=_part(progress, number, len(groups)))
    for plan in plans:
        if plan.is_recorded:
            found[plan.label] = recorded(history)
        elif plan.is_plain:
            found[plan.label] = plain_queue(history, plan.policy)
    return [found[plan.label] for plan in plans]


def _group(
    history: History, teams: tuple[str, ...], plans: Sequence[ColumnPlan], *, progress: Progress
) -> Mapping[str, Replay]:
    mine = history
    for team in teams:
        mine = without_team(mine, team)
    policies = [(plan.label, without_idle_budgets(mine, plan.policy)) for plan in plans]
    replays = side_by_side(mine, policies, progress=progress)
    for replay in replays:
        replay.refused |= {
            job.name: f"left out of the replay (team {job.team})" for job in history.jobs if job.team in teams
        }
    return {replay.policy: replay for replay in replays}


def sized(history: History, policy: Policy, *, load: float) -> tuple[Policy, tuple[str, ...]]:
    """Pools in which the jobs that the policy admits use this share on average.

    Who is refused for another reason than the pools' size asks for no capacity.

    Returns:
        The policy, and a sentence on each type that was changed.
    """
    large, _ = sized_to(history, policy, load=load)
    refused = nothing_yet(history, large, label="").refused
    admitted = replace(history, jobs=tuple(job for job in history.jobs if job.name not in refused))
    if not admitted.jobs:
        return policy, ()
    found, sentences = sized_to(admitted, policy, load=load)
    return found, sentences


def without_idle_budgets(history: History, policy: Policy) -> Policy:
    """Without the budgets of teams that have no jobs: pools then need not wait for each other's spending."""
    there = {job.team for job in history.jobs}
    teams = tuple(team if team.name in there else replace(team, budget=None) for team in policy.teams)
    return replace(policy, teams=teams)


def with_teams(history: History, names: Mapping[str, str]) -> History:
    """With other names of teams, by those of the history."""
    jobs = tuple(replace(job, team=names.get(job.team, job.team)) for job in history.jobs)
    return replace(history, jobs=jobs)


def guests(history: History, policy: Policy) -> list[str]:
    """Teams of the history that the policy does not name, those with most jobs first."""
    known = {team.name for team in policy.teams} | {name for pool in policy.pools for name in pool.quotas}
    jobs: dict[str, int] = {}
    for job in history.jobs:
        if job.team not in known:
            jobs[job.team] = jobs.get(job.team, 0) + 1
    return sorted(jobs, key=lambda team: (-jobs[team], team)) if known else []


def _part(progress: Progress, number: int, parts: int) -> Progress:
    return lambda share: progress((1 - _PLAIN_SHARE) * (number + share) / parts)
