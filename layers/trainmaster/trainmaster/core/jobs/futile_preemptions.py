"""Preemptions that did not help, as AWS did not serve the job, and starts that AWS served since."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.instances import Capacity, Choice, Vector

FIRST_WAIT = timedelta(minutes=15)
"""Time that a job stops no other after its first preemption that did not help; each further one doubles
it."""
LONGEST_WAIT = timedelta(hours=4)
_MOST_DOUBLINGS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class FutilePreemptions:
    """Preemptions for one job that did not help, since an attempt of it last trained.

    The job keeps it until an attempt of its own trains. It may start into free instances at any time.
    """

    count: int
    """Number of them in a row."""
    vector: Vector
    """Instances that the last of those attempts asked for."""
    choice: Choice = Choice.FIRST_FIT
    """``SAGEMAKER``: one type of ``vector`` would have been enough."""
    since: datetime
    """End of the last of those attempts, UTC."""
    until: datetime
    """The job stops no other job before this, unless AWS is seen to serve as many instances to some job."""


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
    # Unbounded doubling would overflow ``timedelta`` long before LONGEST_WAIT cuts it.
    doubled: timedelta = FIRST_WAIT * 2 ** min(count - 1, _MOST_DOUBLINGS)
    return FutilePreemptions(
        count=count,
        vector=vector,
        choice=choice,
        since=ended_at,
        until=now + min(LONGEST_WAIT, doubled),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedStart:
    """An attempt that has ended and had reached Training before."""

    instances: int
    """Number of instances of one type."""
    at: datetime
    """When it reached Training, by SageMaker's clock."""


SizeClass: TypeAlias = tuple[Capacity, int]
"""A type, and the power of two that an attempt's number of instances of it lies in: few for each type."""
ServedStarts: TypeAlias = Mapping[SizeClass, ServedStart]


def size_class(capacity: Capacity, instances: int) -> SizeClass:
    return (capacity, instances.bit_length() - 1)


def served_by(attempt: Attempt, *, at: datetime) -> dict[SizeClass, ServedStart]:
    """Return what the end of an attempt adds to the memory of starts that AWS served.

    While it runs its own row says so; the transaction that ends it keeps the fact. One of each size class is
    kept, the last to end. A start older than the longest wait cannot end one any more, so it is left out.
    """
    since = attempt.training_since
    if since is None or at - since > LONGEST_WAIT:
        return {}
    return {
        size_class(capacity, count): ServedStart(instances=count, at=since)
        for capacity, count in attempt.vector.items()
    }
