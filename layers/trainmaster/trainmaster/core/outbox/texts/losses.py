"""What of its training an end throws away, as notices and metrics tell it."""

from trainmaster.core.costs.ledger import Cause, lost_to
from trainmaster.core.jobs.model import Attempt
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox.texts.wording import span


def loss_text(change: Change, ended: Attempt) -> str:
    if ended.lost:
        return f"{span(ended.lost)} of training are lost."
    if (
        change.after.spec.has_checkpoint
        and ended.last_checkpoint is None
        and ended.training_since is not None
    ):
        return "How much of its training is lost is unknown: no checkpoint was seen."
    return "Nothing is lost."


def lost_for(ended: Attempt) -> Cause:
    """What its lost training was lost to, as the ledger has it."""
    return lost_to(ended.reason.code if ended.reason else "")
