"""The errand that ends the alarms of a training job."""

from collections.abc import Sequence
from datetime import datetime

from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring.alarms import names_of
from trainmaster.core.outbox.messages import Errand, ErrandKind


def errands_of_end(change: Change, *, at: datetime) -> tuple[Errand, ...]:
    """What the end of an attempt leaves to be deleted: with the names it has by its size, not with a list."""
    ended = change.ended
    if ended is None or ended.guarded is None:
        return ()
    names = names_of(ended.training_job_name, hosts=ended.shape.instances)
    return (deletion(ended.training_job_name, names, at=at),)


def deletion(training_job_name: str, alarms: Sequence[str], *, at: datetime) -> Errand:
    """``alarms`` without the stack's name; one errand for each training job, however often it is left."""
    return Errand(
        id=f"alarms#{training_job_name}",
        kind=ErrandKind.DELETE_ALARMS,
        at=at,
        training_job_name=training_job_name,
        alarms=tuple(alarms),
    )
