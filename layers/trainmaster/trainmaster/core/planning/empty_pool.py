"""Whether a job could start at all: in an empty pool, at the beginning of a month."""

from dataclasses import replace
from datetime import datetime

from trainmaster.core.costs.ledger import MonthAccount
from trainmaster.core.planning.actions import Start
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import Snapshot, WaitingJob
from trainmaster.core.policy import PoolPolicy


def starts_in_empty_pool(job: WaitingJob, snapshot: Snapshot, pool: PoolPolicy, *, now: datetime) -> bool:
    """False: as the policy is the job never starts, however long it waits.

    Args:
        job: Waits.
        snapshot: The pool as it is; prices and budgets are taken from it, and nothing of what is now.
        pool: Its section of the policy.
        now: Any instant.
    """
    budgets = {
        team: replace(budget, account=MonthAccount(), warned=True)
        for team, budget in snapshot.budgets.items()
    }
    waits = replace(job, refused=None, not_before=None)
    empty = Snapshot(
        waiting=(waits,), budgets=budgets, prices=snapshot.prices, spot_max_wait=snapshot.spot_max_wait
    )
    actions = plan(empty, pool, now=now).actions
    return any(isinstance(action, Start) for action in actions)
