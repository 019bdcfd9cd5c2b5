"""Several columns of a comparison, beside each other."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainmaster.core.policy import Policy

from trainmaster_client.simulate.engine.event_loop import PoolNames, add, groups, nothing_yet
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.engine.replay_progress import Progress
from trainmaster_client.simulate.engine.replays import Replay
from trainmaster_client.simulate.engine.tally import Tally
from trainmaster_client.simulate.io.processes import Work, spread
from trainmaster_client.simulate.io.replaying import plain_pools, replay_pools

FEW_JOBS = 500
"""Up to so many, of all columns together, processes of their own would cost more than they save."""
_PLAIN_SHARE = 0.2
"""Of what the same jobs take under a policy: the plain queue asks no planner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What is replayed."""

    label: str
    history: History
    """Whose jobs are submitted again, when they were."""
    policy: Policy
    is_plain: bool = False
    """The pools of the policy with the plain queue in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Pools of one column that depend on no others."""

    column: int
    pools: PoolNames


def side_by_side(
    columns: Sequence[Column], *, progress: Progress | None = None, processes: int | None = None
) -> list[Replay]:
    """A replay of each column, in their order; the same whatever the number of processes.

    Args:
        columns: To be replayed.
        progress: Hears of the share that is done, in this process.
        processes: At most; None: one for each processor.
    """
    found = [nothing_yet(one.history, one.policy, label=one.label) for one in columns]
    units = [Unit(column=number, pools=pools) for number, one in enumerate(columns) for pools in _parts(one)]
    work = Work(
        task=_replayed,
        shared=columns,
        units=units,
        weights=[_weight(columns[unit.column], unit.pools) for unit in units],
    )
    few = sum(len(one.history.jobs) for one in columns) <= FEW_JOBS
    for unit, tallies in zip(
        units, spread(work, progress=progress, processes=1 if few else processes), strict=True
    ):
        add(found[unit.column], tallies)
    return found


def _parts(column: Column) -> Sequence[PoolNames]:
    return [(pool.name,) for pool in column.policy.pools] if column.is_plain else groups(column.policy)


def _replayed(columns: Sequence[Column], unit: Unit, progress: Progress) -> list[Tally]:
    column = columns[unit.column]
    task = plain_pools if column.is_plain else replay_pools
    return task(column.history, column.policy, unit.pools, progress=progress)


def _weight(column: Column, pools: PoolNames) -> float:
    types = {one for pool in column.policy.pools if pool.name in pools for one in pool.instance_types}
    jobs = sum(not types.isdisjoint(job.instances) for job in column.history.jobs)
    return (1 + jobs) * (_PLAIN_SHARE if column.is_plain else 1)
