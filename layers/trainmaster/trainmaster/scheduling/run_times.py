"""How long jobs train: what a team's earlier jobs say about its next one. A guess, never a promise."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

BUCKETS_PER_DOUBLING = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """How long the completed jobs of one team trained in one lane."""

    last: timedelta
    previous: timedelta
    """The one before; equal to ``last`` after the first."""
    counts: Mapping[int, int]
    """Jobs by length, see ``bucket``."""
    by_limit: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    """The same by the bucket of MaxRuntimeInSeconds first: who asks for more time also trains for longer."""
    by_priority: Mapping[int, int] = field(default_factory=dict)
    """How many there were."""
    since: datetime | None = None
    """When the first of them ended; None: not known."""

    @property
    def predicted(self) -> timedelta:
        """The mean of the last two. Source: Tsafrir, Etsion and Feitelson (2007), on backfilling."""
        return (self.last + self.previous) / 2


def bucket(trained: timedelta) -> int:
    """Logarithmic: bucket b holds lengths from 2**(b/2) up to 2**((b+1)/2) seconds."""
    return int(BUCKETS_PER_DOUBLING * math.log2(max(trained.total_seconds(), 1)))
