"""Whether passes look at the first of a pool's order, by what a pass wrote down and what the table holds.

A pass that looks at the wrong jobs is as bad as none, and only somebody who reads the order can tell.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.core.planning.snapshot import WaitingJob

NAMES = 8
"""Of the first jobs that a look records: while it is read, jobs ahead may have started."""
EVERY = timedelta(minutes=1)
"""A pool's looks are recorded at most this often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a pass looked at, at the front of its pool's order."""

    at: datetime
    first: tuple[str, ...]

    @classmethod
    def over(cls, waiting: Iterable[WaitingJob], *, at: datetime) -> "Look":
        names = tuple(one.name for one in sorted(waiting, key=lambda one: one.rank)[:NAMES])
        return cls(at=at, first=names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """A job at the front of the order that looks leave out."""

    name: str
    since: datetime
    """When this was noticed first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """What the table remembers of a pool."""

    look: Look | None = None
    unseen: Unseen | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    unseen_for: timedelta
    """How long the first of the order has not been looked at."""
    unseen: Unseen | None
    """What is to be remembered."""


def judged(first: WaitingJob | None, front: Front, *, now: datetime) -> Verdict:
    """``first``: of the pool's order, None where nobody waits."""
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
