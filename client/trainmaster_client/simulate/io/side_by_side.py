"""Several columns of a comparison, beside each other."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainmaster.core.policy import Policy

from trainmaster_client.simulate.engine.event_loop import (
    PoolNames,
    add,
    groups,
    nothing_yet,
    pools_with_children,
)
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.engine.replay_progress import Progress
from trainmaster_client.simulate.engine.replays import Replay
from trainmaster_client.simulate.engine.tally import Tally
from trainmaster_client.simulate.io.processes import Work, spread
from trainmaster_client.simulate.io.replaying import plain_pools, replay_pools

FEW_JOBS = 500
"""Jobs of all columns together up to which processes would cost more than they save."""
_PLAIN_SHARE = 0.2
"""Share of the time that the same jobs take under a policy: the plain queue asks no planner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column to replay."""

    label: str
    history: History
    """History whose jobs are submitted again, when they were."""
    policy: Policy
    is_plain: bool = False
    """Whether the pools of the policy run the plain queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Pools of one column that depend on no others."""

    column: int
    pools: PoolNames


def side_by_side(
    columns: Sequence[Column], *, progress: Progress | None = None, processes: int | None = None
) -> list[Replay]:
    """Replay each column, in their order; the result does not depend on the number of processes.

    Args:
        columns: To be replayed.
        progress: Hears of the share that is done, in this process.
        processes: At most; None: one for each processor.
    """
    results = [nothing_yet(column.history, column.policy, label=column.label) for column in columns]
    units = [
        Unit(column=number, pools=pools) for number, column in enumerate(columns) for pools in _parts(column)
    ]
    work = Work(
        task=_replayed,
        shared=columns,
        units=units,
        weights=[_weight(columns[unit.column], unit.pools) for unit in units],
    )
    few = sum(len(column.history.jobs) for column in columns) <= FEW_JOBS
    for unit, tallies in zip(
        units, spread(work, progress=progress, processes=1 if few else processes), strict=True
    ):
        add(results[unit.column], tallies)
    return results


def _parts(column: Column) -> Sequence[PoolNames]:
    grouped = pools_with_children if column.is_plain else groups
    return grouped(column.history, column.policy)


def _replayed(columns: Sequence[Column], unit: Unit, progress: Progress) -> list[Tally]:
    column = columns[unit.column]
    task = plain_pools if column.is_plain else replay_pools
    return task(column.history, column.policy, unit.pools, progress=progress)


def _weight(column: Column, pools: PoolNames) -> float:
    types = {
        instance_type
        for pool in column.policy.pools
        if pool.name in pools
        for instance_type in pool.instance_types
    }
    jobs = sum(not types.isdisjoint(job.instances) for job in column.history.jobs)
    return (1 + jobs) * (_PLAIN_SHARE if column.is_plain else 1)
