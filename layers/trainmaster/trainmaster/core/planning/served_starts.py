"""What AWS was seen to serve: how many instances of a type attempts had that reached Training."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.futile_preemptions import LONGEST_WAIT
from trainmaster.core.jobs.instances import Capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedStart:
    """An attempt that has ended and had reached Training before."""

    instances: int
    """Of one type."""
    at: datetime
    """When it reached Training, by SageMaker's clock."""


SizeClass: TypeAlias = tuple[Capacity, int]
"""A type, and the power of two that an attempt's number of instances of it lies in: few for each type."""
ServedStarts: TypeAlias = Mapping[SizeClass, ServedStart]


def size_class(capacity: Capacity, instances: int) -> SizeClass:
    return (capacity, instances.bit_length() - 1)


def served_by(attempt: Attempt, *, at: datetime) -> dict[SizeClass, ServedStart]:
    """Tell what the end of an attempt leaves to be remembered of what AWS served.

    While it runs its own row says so; the transaction that ends it keeps the fact. One of each size class is
    kept, the last to end. What is older than the longest wait can end none any more.
    """
    since = attempt.training_since
    if since is None or at - since > LONGEST_WAIT:
        return {}
    return {
        size_class(capacity, count): ServedStart(instances=count, at=since)
        for capacity, count in attempt.vector.items()
    }
