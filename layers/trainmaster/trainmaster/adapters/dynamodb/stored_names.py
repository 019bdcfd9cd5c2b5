"""Map the core's fields to the attributes of stored rows, where names or grouping differ.

Fields get better names and are put into parts; stored rows stay as they are.
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
"""Dataclasses whose fields are kept among the attributes of their owner, not in one attribute."""
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
"""Attributes that are not named like their field, by class and field."""


def stored_name(cls: type, field: str) -> str:
    """Return the name of the attribute that a field is kept in."""
    return STORED_NAMES.get(cls, {}).get(field, field)
