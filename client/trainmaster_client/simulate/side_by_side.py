"""Several policies on one history, beside each other."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainmaster.core.policy import Policy

from trainmaster_client.simulate.engine import PoolNames, add, groups, nothing_yet, replay_pools
from trainmaster_client.simulate.past_jobs import History
from trainmaster_client.simulate.processes import Progress, Work, spread
from trainmaster_client.simulate.replays import Replay
from trainmaster_client.simulate.tally import Tally

FEW_JOBS = 500
"""Up to so many, of all replays together, processes of their own would cost more than they save."""

Labelled = Sequence[tuple[str, Policy]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Pools of one replay that depend on no others."""

    replay: int
    """Which of the policies."""
    pools: PoolNames


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    history: History
    policies: Labelled


def side_by_side(
    history: History,
    policies: Labelled,
    *,
    progress: Progress | None = None,
    processes: int | None = None,
) -> list[Replay]:
    """A replay of each policy, in their order; the same whatever the number of processes.

    Args:
        history: Whose jobs are submitted again, when they were.
        policies: With the label of each.
        progress: Hears of the share that is done, in this process.
        processes: At most; None: one for each processor.
    """
    found = [nothing_yet(history, policy, label=label) for label, policy in policies]
    units = [
        Unit(replay=number, pools=pools)
        for number, (_, policy) in enumerate(policies)
        for pools in groups(policy)
    ]
    work = Work(
        task=_replayed,
        shared=_Shared(history=history, policies=policies),
        units=units,
        weights=[1 + _jobs(history, policies[unit.replay][1], unit.pools) for unit in units],
    )
    few = len(history.jobs) * len(policies) <= FEW_JOBS
    for unit, tallies in zip(
        units, spread(work, progress=progress, processes=1 if few else processes), strict=True
    ):
        add(found[unit.replay], tallies)
    return found


def _replayed(shared: _Shared, unit: Unit, progress: Progress) -> list[Tally]:
    _, policy = shared.policies[unit.replay]
    return replay_pools(shared.history, policy, unit.pools, progress=progress)


def _jobs(history: History, policy: Policy, pools: PoolNames) -> int:
    types = {one for pool in policy.pools if pool.name in pools for one in pool.instance_types}
    return sum(not types.isdisjoint(job.instances) for job in history.jobs)
