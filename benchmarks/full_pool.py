"""The scheduler over a pool that is full: a pass starts nothing, so it has nobody to call but the table."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

from trainmaster.adapters.dynamodb import DynamoFronts, DynamoJobStore, DynamoPolicyStore, DynamoReader
from trainmaster.adapters.threads import beside
from trainmaster.ports import AlarmKeeper, Mailer, Notifier, TrainingApi, Turns
from trainmaster.services.policy_in_force import RecentPolicy
from trainmaster.services.scheduler.passes import Scheduler
from trainmaster.services.scheduler.score_updates import Reranker

from benchmarks.deep_queue import RETENTION_DAYS


def scheduler_of(client: Any, table: str) -> Scheduler:
    reader = DynamoReader(client, table=table)
    store = DynamoJobStore(client, table=table, retention_days=RETENTION_DAYS)
    clock, began = partial(datetime.now, UTC), datetime.now(UTC)
    nobody = _Nobody()
    return Scheduler(
        # Read once: which pass reads it again would depend on how busy the machine is.
        policy=RecentPolicy(policies=DynamoPolicyStore(client, table=table), clock=lambda: began),
        snapshots=reader,
        store=store,
        messages=store,
        reader=reader,
        pools=reader,
        training=cast("TrainingApi", nobody),
        alarms=cast("AlarmKeeper", nobody),
        notifier=cast("Notifier", nobody),
        mailer=cast("Mailer", nobody),
        reranker=Reranker(store=store, queue=reader, reader=reader, clock=clock),
        turns=cast("Turns", nobody),
        beside=beside,
        fronts=DynamoFronts(client, table=table),
        clock=clock,
        stack="depth",
    )


class _Nobody:
    """Stands for what a pass that starts nothing must not call."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AssertionError(f"a pass over a full pool called {name}")
