"""The handlers of the plane over the tables of one state."""

from datetime import datetime
from typing import Any

from trainmaster.api.jobs import cancel_job
from trainmaster.api.request_context import Call, Outside, enter
from trainmaster.core.errors import JobConflictError
from trainmaster.services.policy_in_force import RecentPolicy
from trainmaster.services.read_counts import ReadCounts
from trainmaster.services.scheduler.passes import Scheduler
from trainmaster.services.scheduler.score_updates import Reranker

from tests.builders import NOON
from tests.memory.edges import (
    MemoryAlarms,
    MemoryFronts,
    MemoryMailer,
    MemoryNotifier,
    MemoryReadCounts,
    MemoryRegister,
    MemoryRepairs,
    MemoryTurns,
    MemoryWakeUps,
    one_by_one,
)
from tests.memory.policies import MemoryPolicyStore
from tests.memory.tables import Tables
from tests.model.replay import Replay

USER = "arn:aws:iam::123456789012:user/ada"


def scheduler(replay: Replay, tables: Tables, store: Any, reader: Any, training: Any) -> Scheduler:
    def clock() -> datetime:
        return NOON

    return Scheduler(
        policy=RecentPolicy(policies=replay.watched(MemoryPolicyStore(tables)), clock=clock),
        snapshots=reader,
        store=store,
        messages=store,
        reader=reader,
        pools=reader,
        training=training,
        alarms=MemoryAlarms(),
        notifier=MemoryNotifier(),
        mailer=MemoryMailer(),
        reranker=Reranker(store=store, queue=reader, reader=reader, clock=clock),
        turns=MemoryTurns(),
        beside=one_by_one,
        fronts=MemoryFronts(),
        clock=clock,
        stack="trainmaster",
    )


def cancel(name: str, replay: Replay, tables: Tables, store: Any, reader: Any) -> bool:
    outside = Outside(
        store=store,
        reader=reader,
        policies=replay.watched(MemoryPolicyStore(tables)),
        wake_ups=MemoryWakeUps(),
        clock=lambda: NOON,
        register=MemoryRegister(),
        repairs=MemoryRepairs(),
        random_bytes=bytes,
        account_id="123456789012",
        admin_principal_arns=(USER,),
        reads=ReadCounts(MemoryReadCounts()),
    )
    call = Call(user_arn=USER, query={}, body=None, is_base64=False, content_type=None)
    try:
        cancel_job(enter(call, outside), name)
    except JobConflictError:
        return False
    return True
