"""What stands for something else in a pool because a default has changed, though nobody writes the key."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from trainmaster.core.errors import FieldError
from trainmaster.core.policy.pool_policy import PoolPolicy

DEFAULTS_RULE = "defaults"
"""Named by the warnings about what the next put of a policy changes that nobody wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """Of one key that is not written."""

    field: str
    is_felt: Callable[[PoolPolicy, PoolPolicy], bool]
    """Whether the pool acts otherwise, given as it is now read and as it was."""
    becomes: str
    hint: str


def _has_price(pool: PoolPolicy) -> bool:
    return pool.preemption.enabled and pool.preemption.cost.enabled


_CHANGES = (
    _Change(
        field="preemption.cost.enabled",
        is_felt=lambda now, then: _has_price(now) and not _has_price(then),
        becomes="a preemption has to be worth what it costs",
        hint="write preemption: {cost: {enabled: false}} to preempt whatever it costs",
    ),
    _Change(
        field="preemption.max_per_job",
        is_felt=lambda now, then: (
            now.preemption.enabled and now.preemption.max_per_job != then.preemption.max_per_job
        ),
        becomes="a job may be preempted 100 times, not 3",
        hint="write preemption: {max_per_job: 3} to leave it as it was",
    ),
    _Change(
        field="warm_pool.keep_alive",
        is_felt=lambda now, then: now.warm_pool.keep_alive != then.warm_pool.keep_alive,
        becomes="instances are kept for the next job",
        hint="write warm_pool: {keep_alive: 0s} to keep none",
    ),
    _Change(
        field="warm_pool.retain",
        is_felt=lambda now, then: (
            then.warm_pool.keep_alive > timedelta() and now.warm_pool.retain != then.warm_pool.retain
        ),
        becomes="idle instances are kept for a while although no waiting job can use them",
        hint="write warm_pool: {retain: 0s} to keep them for waiting jobs alone",
    ),
)


def changed_in_pools(kept: Iterable[tuple[PoolPolicy, PoolPolicy]]) -> Iterator[FieldError]:
    """One warning for each key, however many pools it is about.

    Args:
        kept: The same pools of one document, read with the defaults of today and with those of before.
    """
    pools = tuple(kept)
    for change in _CHANGES:
        names = [now.name for now, then in pools if change.is_felt(now, then)]
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield FieldError(
                field=f"pools[].{change.field}",
                message=f"is missing in pool {names[0]}{more}: {change.becomes} from this revision on; "
                "the one before was written under other defaults",
                hint=change.hint,
                rule=DEFAULTS_RULE,
            )
