"""Warnings about defaults that have changed since a policy was written, for keys that its author left out."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from trainmaster.core.errors import FieldError
from trainmaster.core.policy.pool_policy import PoolPolicy

DEFAULTS_RULE = "defaults"
"""Rule named by warnings about what the next put of a policy changes although no key says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A changed default of one key."""

    field: str
    is_felt: Callable[[PoolPolicy, PoolPolicy], bool]
    """Tells whether the pool behaves differently, given the pool as it is now read and as it was read
    before."""
    becomes: str
    hint: str


def _kept_for(pool: PoolPolicy) -> timedelta | None:
    """Return how long the pool keeps instances that nobody waits for; None: by worth, or it keeps none."""
    return pool.warm_pool.retain if pool.warm_pool.keep_alive else None


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
        field="preemption.cost.longest_wait",
        is_felt=lambda now, then: (
            _has_price(now)
            and _has_price(then)  # else the price itself is news, and it says so
            and now.preemption.cost.longest_wait is not None
            and now.preemption.cost.longest_wait != then.preemption.cost.longest_wait
        ),
        becomes="a job of the highest priority that has waited 3 minutes stops others whatever it costs",
        hint="write preemption: {cost: {longest_wait: off}} to have every preemption be worth its cost",
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
        is_felt=lambda now, then: _kept_for(then) == timedelta() and now.warm_pool.retain is None,
        becomes="idle instances are kept although no waiting job can use them, as long as that is likely to "
        "pay",
        hint="write warm_pool: {retain: 0s} to keep them for waiting jobs alone",
    ),
    _Change(
        field="warm_pool.retain",
        is_felt=lambda now, then: (
            (_kept_for(then) or timedelta()) > timedelta() and now.warm_pool.retain is None
        ),
        becomes="idle instances that no waiting job can use are kept only as long as that is likely to pay",
        hint="write warm_pool: {retain: 10m} to keep them for 10 minutes as before",
    ),
)


def changed_in_pools(kept: Iterable[tuple[PoolPolicy, PoolPolicy]]) -> Iterator[FieldError]:
    """Yield one warning for each key, however many pools it is about.

    Args:
        kept: Pairs of the same pool, read with today's defaults and with the earlier ones.
    """
    pools = tuple(kept)
    for change in _CHANGES:
        names = [now.name for now, then in pools if change.is_felt(now, then)]
        if names:
            others = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield FieldError(
                field=f"pools[].{change.field}",
                message=f"is missing in pool {names[0]}{others}: {change.becomes} from this revision on; "
                "the one before was written under other defaults",
                hint=change.hint,
                rule=DEFAULTS_RULE,
            )
