"""What the account really allows: learned from ResourceLimitExceeded, forgotten after a start that worked."""

import hashlib
from datetime import datetime, timedelta

from trainmaster.core.planning.actions import Start
from trainmaster.core.planning.snapshot import AccountLimit
from trainmaster.services.scheduler.context import Pass

FIRST_WAIT = timedelta(minutes=1)
LONGEST_WAIT = timedelta(minutes=15)
SOON = timedelta(seconds=30)
RECENT_END = timedelta(minutes=3)
"""SageMaker gives quota back some time after an end: a refusal within this time says little."""


def learn(action: Start, now: Pass) -> None:
    """The account refused this start: nothing above what the pool holds now is tried for a while."""
    at, state = now.clock(), now.pools.pool_state(now.pool)
    for capacity in action.shape.vector:
        limit = after_refusal(
            state.account_limits.get(capacity),
            held=state.used.get(capacity, 0) + state.warm.get(capacity, 0),
            last_end=state.last_end.get(capacity),
            at=at,
            seed=action.job.name,
        )
        now.store.learn_limit(now.pool, capacity, limit)


def forget(action: Start, now: Pass) -> None:
    """A start above a learned limit worked: the account allows more by now."""
    for capacity in action.probes:
        now.store.learn_limit(now.pool, capacity, None)


def after_refusal(
    known: AccountLimit | None, *, held: int, last_end: datetime | None, at: datetime, seed: str
) -> AccountLimit:
    """What is known after one more refusal.

    Args:
        known: What earlier refusals in a row taught.
        held: Instances in use and warm when the account refused.
        last_end: When instances of the type last came free.
        at: Now.
        seed: Draws the jitter, so that it can be repeated.
    """
    refusals = known.refusals if known else 0
    if known is None and last_end is not None and at - last_end < RECENT_END:
        return AccountLimit(limit=held, until=at + SOON, refusals=0)
    wait: timedelta = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(refusals, 10))
    return AccountLimit(limit=held, until=at + wait * _jitter(f"{seed}:{refusals}"), refusals=refusals + 1)


def _jitter(seed: str) -> float:
    """Between a half and one."""
    digest = hashlib.blake2b(seed.encode(), digest_size=7).digest()
    return 0.5 + int.from_bytes(digest, "big") / 2**57
