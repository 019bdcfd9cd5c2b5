"""Whole replays of a history; the planner's time is measured by the clock of this process."""

import time
from datetime import datetime

from trainmaster.core.policy import Policy

from trainmaster_client.simulate.engine.event_loop import PoolNames, add, engine_of, groups, nothing_yet
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.engine.plain_pool import PlainPool
from trainmaster_client.simulate.engine.pool_replay import PoolReplay
from trainmaster_client.simulate.engine.replay_progress import Progress
from trainmaster_client.simulate.engine.replays import PLAIN_QUEUE, Replay
from trainmaster_client.simulate.engine.runs import in_s
from trainmaster_client.simulate.engine.tally import Tally


def replay(
    history: History,
    policy: Policy,
    *,
    label: str,
    progress: Progress | None = None,
    until: datetime | None = None,
) -> Replay:
    """Replay the jobs of a history under a policy.

    Args:
        history: Whose jobs are submitted again, when they were.
        policy: Decides.
        label: Of the result.
        progress: Hears of the share that is done.
        until: Ends there with what is live then; None: once nothing is left to happen.
    """
    result = nothing_yet(history, policy, label=label)
    parts = groups(history, policy)
    for number, pools in enumerate(parts):
        part = _part(progress, number, len(parts))
        add(result, replay_pools(history, policy, pools, progress=part, until=until))
    return result


def plain_queue(history: History, policy: Policy, *, progress: Progress | None = None) -> Replay:
    """Replay the same jobs in the same pools in a plain queue: strict priority with preemption."""
    result = nothing_yet(history, policy, label=PLAIN_QUEUE)
    pools = tuple(pool.name for pool in policy.pools)
    add(result, plain_pools(history, policy, pools, progress=progress))
    return result


def plain_pools(
    history: History, policy: Policy, pools: PoolNames, *, progress: Progress | None = None
) -> list[Tally]:
    """Replay some pools with the plain queue in them."""
    engine = engine_of(history, policy, pools, PlainPool.of, cpu_clock=time.process_time)
    engine.run(progress=progress)
    return engine.close()


def replay_pools(
    history: History,
    policy: Policy,
    pools: PoolNames,
    *,
    progress: Progress | None = None,
    until: datetime | None = None,
) -> list[Tally]:
    """Replay one group of pools."""
    engine = engine_of(history, policy, pools, PoolReplay.of, cpu_clock=time.process_time)
    engine.run(until=None if until is None else in_s(until - history.begins), progress=progress)
    return engine.close()


def _part(progress: Progress | None, number: int, parts: int) -> Progress | None:
    return None if progress is None else lambda share: progress((number + share) / parts)
