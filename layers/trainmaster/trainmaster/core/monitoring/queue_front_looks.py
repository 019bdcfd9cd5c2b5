"""Check whether passes look at the head of a pool's queue, by what a pass recorded and what the table holds.

A pass that looks at the wrong jobs is as bad as none, and only a reader of the queue can detect it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.core.planning.snapshot import WaitingJob

NAMES = 8
"""Number of the first jobs that a look records: while it is read, jobs ahead may have started."""
EVERY = timedelta(minutes=1)
"""Least time between two recorded looks of a pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The jobs that a pass looked at, at the head of its pool's queue."""

    at: datetime
    first: tuple[str, ...]

    @classmethod
    def over(cls, waiting: Iterable[WaitingJob], *, at: datetime) -> "Look":
        names = tuple(job.name for job in sorted(waiting, key=lambda job: job.rank)[:NAMES])
        return cls(at=at, first=names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """A job at the head of the queue that looks leave out."""

    name: str
    since: datetime
    """When this was noticed first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The record of a pool that the table keeps."""

    look: Look | None = None
    unseen: Unseen | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    unseen_for: timedelta
    """Time that the first job of the queue has not been looked at."""
    unseen: Unseen | None
    """The job to be recorded as unseen; None if there is none."""


def judged(first: WaitingJob | None, front: Front, *, now: datetime) -> Verdict:
    """Compare the queue's first job (None if no job waits) with what passes recorded.

    Args:
        first: First job of the pool's queue; None if no job waits.
        front: The pool's record.
        now: Instant of the check.
    """
    look = front.look
    if first is None:
        return Verdict(unseen_for=timedelta(), unseen=None)
    if look is not None and first.name in look.first:
        return Verdict(unseen_for=_since(look.at, now), unseen=None)
    if look is None or first.submitted_at > look.at:
        return Verdict(unseen_for=_since(first.submitted_at, now), unseen=None)
    same = front.unseen if front.unseen is not None and front.unseen.name == first.name else None
    unseen = same or Unseen(name=first.name, since=now)
    return Verdict(unseen_for=max(_since(unseen.since, now), _since(look.at, now)), unseen=unseen)


def _since(instant: datetime, now: datetime) -> timedelta:
    return max(now - instant, timedelta())
