"""Preemptions that did not help: other jobs were stopped for an attempt, and AWS did not let it train."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.core.jobs.instances import Choice, Vector

FIRST_WAIT = timedelta(minutes=15)
"""How long a job stops nobody after its first preemption that did not help; each further one doubles it."""
LONGEST_WAIT = timedelta(hours=4)
_MOST_DOUBLINGS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class FutilePreemptions:
    """What one job has to show for its preemptions since an attempt of it last trained: nothing.

    The job keeps it until an attempt of its own trains. It may start into free instances at any time.
    """

    count: int
    """How many there were in a row."""
    vector: Vector
    """Instances that the last of those attempts asked for."""
    choice: Choice = Choice.FIRST_FIT
    """``SAGEMAKER``: one type of ``vector`` would have been enough."""
    since: datetime
    """End of the last of those attempts, UTC."""
    until: datetime
    """The job stops nobody before, unless AWS is seen to serve as many instances to some job."""


def after_another(
    known: FutilePreemptions | None,
    *,
    vector: Vector,
    choice: Choice,
    ended_at: datetime,
    now: datetime,
) -> FutilePreemptions:
    """Count one more preemption that did not help: the wait is 15, 30, 60, 120, then 240 minutes from now.

    Args:
        known: Those before it in a row; None: it is the first.
        vector: Instances that were made free and not served.
        choice: Whether one type of them would have been enough.
        ended_at: When the attempt ended, by SageMaker's clock where it knows of it.
        now: When that is recorded.
    """
    count = 1 if known is None else known.count + 1
    doubled: timedelta = FIRST_WAIT * 2 ** min(count - 1, _MOST_DOUBLINGS)
    return FutilePreemptions(
        count=count,
        vector=vector,
        choice=choice,
        since=ended_at,
        until=now + min(LONGEST_WAIT, doubled),
    )
