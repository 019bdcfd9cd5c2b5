"""The columns of a comparison: which policy, on which of the jobs; and their replays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trainmaster.core.policy import Policy

from trainmaster_client.simulate.engine.event_loop import nothing_yet
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.engine.recorded import recorded
from trainmaster_client.simulate.engine.replay_progress import Progress
from trainmaster_client.simulate.engine.replayed_plans import with_bought, without_plans
from trainmaster_client.simulate.engine.replays import Replay
from trainmaster_client.simulate.engine.variations import sized_to, without_team
from trainmaster_client.simulate.io.bought_plans import WrittenPlan, bought, plan_sentences
from trainmaster_client.simulate.io.side_by_side import Column, side_by_side


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPlan:
    label: str
    policy: Policy
    is_plain: bool = False
    """The pools of the policy with the plain queue in them."""
    is_recorded: bool = False
    """Whether the column is how it really went; the policy then does not count."""
    without_teams: tuple[str, ...] = ()


def columns_with_plans(
    label: str, policy: Policy, plans: Sequence[WrittenPlan], history: History
) -> tuple[list[ColumnPlan], list[str]]:
    """Return the column of a policy with training plans as if they had been bought, and sentences on them.

    Without plans there is neither.

    Raises:
        InvalidArgumentError: A plan does not fit the history, or no pool has its instance type.
    """
    if not plans:
        return [], []
    added = bought(plans, history)
    text = ", ".join(plan.label for plan in plans)
    column = ColumnPlan(label=f"{label}, {text}", policy=with_bought(policy, added))
    return [column], list(plan_sentences(added, history))


def replays_of(history: History, plans: Sequence[ColumnPlan], *, progress: Progress) -> list[Replay]:
    """Replay the plans, in their order."""
    replayed = [plan for plan in plans if not plan.is_recorded]
    histories = {teams: _without(history, teams) for teams in {plan.without_teams for plan in replayed}}
    columns = [_column(plan, histories[plan.without_teams]) for plan in replayed]
    results = iter(side_by_side(columns, progress=progress))
    return [
        recorded(history) if plan.is_recorded else _with_left_out(next(results), history, plan.without_teams)
        for plan in plans
    ]


def _with_left_out(result: Replay, history: History, teams: Sequence[str]) -> Replay:
    """Add the jobs that were left out, with that reason."""
    result.refused |= {
        job.name: f"left out of the replay (team {job.team})" for job in history.jobs if job.team in teams
    }
    return result


def _column(plan: ColumnPlan, history: History) -> Column:
    policy = without_plans(plan.policy) if plan.is_plain else without_idle_budgets(history, plan.policy)
    return Column(label=plan.label, history=history, policy=policy, is_plain=plan.is_plain)


def _without(history: History, teams: Sequence[str]) -> History:
    for team in teams:
        history = without_team(history, team)
    return history


def sized(history: History, policy: Policy, *, load: float) -> tuple[Policy, tuple[str, ...]]:
    """Size the pools so that the jobs that the policy admits use this share on average.

    Who is refused for another reason than the pools' size asks for no capacity.

    Returns:
        The policy, and a sentence on each type that was changed.
    """
    large, _ = sized_to(history, policy, load=load)
    refused = nothing_yet(history, large, label="").refused
    admitted = replace(history, jobs=tuple(job for job in history.jobs if job.name not in refused))
    if not admitted.jobs:
        return policy, ()
    larger, sentences = sized_to(admitted, policy, load=load)
    return larger, sentences


def without_idle_budgets(history: History, policy: Policy) -> Policy:
    """Remove budgets of teams without jobs: pools then need not wait for each other's spending."""
    there = {job.team for job in history.jobs}
    teams = tuple(team if team.name in there else replace(team, budget=None) for team in policy.teams)
    return replace(policy, teams=teams)


def with_teams(history: History, names: Mapping[str, str]) -> History:
    """Rename teams, by their names in the history."""
    jobs = tuple(replace(job, team=names.get(job.team, job.team)) for job in history.jobs)
    return replace(history, jobs=jobs)


def guests(history: History, policy: Policy) -> list[str]:
    """Return teams of the history that the policy does not name, those with most jobs first."""
    known = {team.name for team in policy.teams} | {name for pool in policy.pools for name in pool.quotas}
    jobs: dict[str, int] = {}
    for job in history.jobs:
        if job.team not in known:
            jobs[job.team] = jobs.get(job.team, 0) + 1
    return sorted(jobs, key=lambda team: (-jobs[team], team)) if known else []
