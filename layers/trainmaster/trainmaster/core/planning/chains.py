"""Passes in a row over one pool, each asking for the next: one chain a pool, to which others leave it.

Until when the chain goes on stands in the pool's counters; what is decided on it here is written only where
it is still what the pass has read.
"""

from datetime import datetime, timedelta
from enum import Enum

MOST_HOPS = 50
"""Passes in a row that do nothing and each ask for the next one; then the minute's wake-up goes on. Those
that do something are not counted: a thousand starts at the account's rate take long, and nothing is wrong."""
GOES_ON_FOR = timedelta(seconds=90)
"""How long a pool is left to the pass that was asked for: it waits its turn, and takes its time. One that
never comes keeps the pool from the others for as long."""


def goes_on(until: datetime | None, *, now: datetime) -> bool:
    """Whether a chain does. Nobody says so for longer than is usual; such an instant says nothing."""
    return until is not None and now < until <= now + 2 * GOES_ON_FOR


class Next(Enum):
    """What a pass leaves behind."""

    NOTHING = "nothing"
    ONE_MORE = "one more"
    """The chain goes on: the next pass is asked for."""
    LAST_LOOK = "last look"
    """It is over. Who left the pool to it may have come while its last look was under way: one look more."""
    MINUTE = "minute"
    """It is broken off: the pool is anybody's, from the next wake-up on."""


def hops_of_next(hops: int, *, did_something: bool) -> int:
    """Passes in a row before the next one, from the last one on that did something; 0: it is in no chain."""
    return 1 if did_something else hops + 1


def what_next(
    hops: int, *, until: datetime | None, unfinished: bool, failed: bool, did_something: bool
) -> Next:
    """What comes after a pass.

    Args:
        hops: As of ``hops_of_next``.
        until: When the chain goes on, as its first look has read it; None: there was none.
        unfinished: Its time was over before there was nothing left to do.
        failed: The queue sends its wake-up again.
        did_something: It started or stopped somebody, or whatever else a plan asks for.
    """
    is_of_chain = hops > 0 and until is not None
    if failed or (unfinished and hops >= MOST_HOPS and not did_something):
        return Next.MINUTE if is_of_chain else Next.NOTHING
    if unfinished:
        return Next.ONE_MORE
    return Next.LAST_LOOK if is_of_chain else Next.NOTHING
