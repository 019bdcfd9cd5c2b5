"""What of its training an end throws away, as notices and metrics tell it."""

from datetime import timedelta

from trainmaster.jobs import FINAL, Attempt, JobState
from trainmaster.ledger import Cause, lost_to
from trainmaster.notices.wording import span
from trainmaster.ports import Change


def loss_text(change: Change, ended: Attempt) -> str:
    lost = timedelta(seconds=lost_seconds(change, ended))
    if lost:
        return f"{span(lost)} of training are lost."
    if (
        change.after.spec.has_checkpoint
        and ended.last_checkpoint is None
        and ended.training_since is not None
    ):
        return "How much of its training is lost is unknown: no checkpoint was seen."
    return "Nothing is lost."


def lost_seconds(change: Change, ended: Attempt) -> int:
    """Training to be done again, or for nothing; 0 too where nobody saw what is saved."""
    before, after = change.before, change.after
    if after.state not in FINAL:
        return sum(after.wasted.values()) - sum(before.wasted.values())
    if ended.training_since is None or ended.ended_at is None:
        return 0
    if after.state is JobState.STOPPED:
        idle = ended.idle_since if lost_for(ended) is Cause.IDLE else None
        return _seconds(ended.ended_at - (idle or ended.ended_at))
    unknown = after.spec.has_checkpoint and ended.last_checkpoint is None
    if after.state is not JobState.FAILED or unknown:
        return 0
    return _seconds(ended.ended_at - ended.training_since - (after.survived - before.survived))


def _seconds(time: timedelta) -> int:
    return max(int(time.total_seconds()), 0)


def lost_for(ended: Attempt) -> Cause:
    """What its lost training was lost to, as the ledger has it."""
    return lost_to(ended.reason.code if ended.reason else "")
