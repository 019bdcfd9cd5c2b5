"""How the table calls and groups what the core calls and groups otherwise.

Fields get better names and are put into parts; rows stay as they are.
"""

from collections.abc import Mapping

from trainmaster.core.jobs.attempts import (
    Attempt,
    AttemptEnd,
    Bill,
    CheckpointState,
    Claim,
    GpuWatch,
    Preemptor,
    Progress,
    SpotState,
)
from trainmaster.core.jobs.model import Comebacks, Job, Spent, SpotRecord
from trainmaster.core.jobs.start_troubles import StartTrouble
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.planning.snapshot import ExpectedRun, RunningJob

PARTS: frozenset[type] = frozenset(
    {
        AttemptEnd,
        ExpectedRun,
        Bill,
        CheckpointState,
        Claim,
        GpuWatch,
        Preemptor,
        Progress,
        Comebacks,
        Spent,
        SpotRecord,
        SpotState,
        StartTrouble,
    }
)
"""Dataclasses that are kept among the attributes of their owner, not in an attribute of their own."""
STORED_NAMES: Mapping[type, Mapping[str, str]] = {
    OutboxMessage: {"lease_until": "taken_until"},
    Job: {"checkpointed": "survived"},
    Attempt: {"unmonitored": "unguarded"},
    RunningJob: {"unmonitored": "unguarded"},
    AttemptEnd: {"at": "ended_at"},
    Bill: {"by": "cents_by"},
    CheckpointState: {
        "last": "last_checkpoint",
        "uncertain_since": "checkpoint_uncertain_since",
        "overdue": "checkpoint_overdue",
    },
    Claim: {"at": "claimed_at"},
    ExpectedRun: {"at_most": "runs_at_most"},
    GpuWatch: {"monitored": "guarded", "monitor_again_at": "guard_again_at"},
    Preemptor: {"name": "taken_by", "team": "taken_by_team"},
    SpotRecord: {"trained": "spot_trained", "elapsed": "spot_elapsed", "left": "on_demand"},
    SpotState: {"stays": "stays_on_spot"},
    StartTrouble: {
        "refused": "refused_starts",
        "by_account": "refused_by_account",
        "by_request": "refused_by_request",
    },
}
"""By class and field: attributes that are not called as the field is."""


def stored_name(cls: type, field: str) -> str:
    """The attribute that a field is kept in."""
    return STORED_NAMES.get(cls, {}).get(field, field)
