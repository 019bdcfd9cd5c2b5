"""Chains of passes over one pool, each asking for the next: one chain a pool, to which other passes leave it.

The time until which the chain continues is in the pool's counters; a decision on it is written only where it
is still as the pass has read it.
"""

from datetime import datetime, timedelta
from enum import Enum

MOST_HOPS = 50
"""Most passes in a row that do nothing and each ask for the next one; then the minute's wake-up continues.
Passes that do something are not counted: a thousand starts at the account's rate take long, and nothing is
wrong."""
GOES_ON_FOR = timedelta(seconds=90)
"""Time that a pool is left to the next pass of a chain, which waits its turn and then takes its time. One
that never comes keeps the pool from the others for this long."""


def goes_on(until: datetime | None, *, now: datetime) -> bool:
    """Tell whether a chain continues. An instant further off than is usual is not believed."""
    return until is not None and now < until <= now + 2 * GOES_ON_FOR


class Next(Enum):
    """Follow-ups that a pass can leave."""

    NOTHING = "nothing"
    ONE_MORE = "one more"
    """The chain continues: the next pass is requested."""
    LAST_LOOK = "last look"
    """The chain is over. Others may have left the pool to it during its last look, so one more look
    follows."""
    MINUTE = "minute"
    """The chain is broken off: any pass may take the pool, from the next wake-up on."""


def hops_of_next(hops: int, *, did_something: bool) -> int:
    """Return the passes in a row before the next one, since one that did something; 0: it is in no chain."""
    return 1 if did_something else hops + 1


def what_next(
    hops: int, *, until: datetime | None, unfinished: bool, failed: bool, did_something: bool
) -> Next:
    """Decide what comes after a pass.

    Args:
        hops: As of ``hops_of_next``.
        until: Until when the chain continues, as its first look has read it; None: there was none.
        unfinished: Its time was over before there was nothing left to do.
        failed: The queue sends its wake-up again.
        did_something: It carried out an action of a plan, such as a start or a stop.
    """
    is_of_chain = hops > 0 and until is not None
    if failed or (unfinished and hops >= MOST_HOPS and not did_something):
        return Next.MINUTE if is_of_chain else Next.NOTHING
    if unfinished:
        return Next.ONE_MORE
    return Next.LAST_LOOK if is_of_chain else Next.NOTHING
