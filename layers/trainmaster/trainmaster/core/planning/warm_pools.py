"""Upkeep of warm pools: which to keep, and for how long: only while a job that can use one is due."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.core.jobs.instances import Capacity, Shape, Vector
from trainmaster.core.jobs.row_words import length
from trainmaster.core.planning.actions import Action, KeepWarm, ReleaseWarm, SettleWarm
from trainmaster.core.planning.capacity import lacking
from trainmaster.core.planning.snapshot import WaitingJob, WarmPool
from trainmaster.core.planning.warm_history import WarmHistory
from trainmaster.core.planning.warm_worth import WarmWorth, worth_of
from trainmaster.core.policy import WarmPool as WarmRules

LAST_MOMENT = timedelta(seconds=60)
"""Least time to its expiry at which a warm pool is reused: a later training job may not reach it."""
EXTEND_BEFORE = timedelta(minutes=2)
"""Time before its end at which it is extended: reconciling comes each minute, and one run may fail."""
WORTH_A_CALL = timedelta(seconds=30)
"""Least time that an extension gains: if less is kept than ``EXTEND_BEFORE``, the end is always near."""


def is_leaving(pool: WarmPool, *, now: datetime) -> bool:
    """Tell whether its instances are free as soon as SageMaker reports it."""
    return pool.releasing or pool.expires_at <= now


def reusable(pool: WarmPool, *, now: datetime) -> bool:
    return not pool.releasing and pool.expires_at - now > LAST_MOMENT


def matching(shape: Shape, pools: Iterable[WarmPool], *, now: datetime) -> WarmPool | None:
    """Return the warm pool that the shape lands in: of several the one that ends first."""
    if shape.warm_key is None:
        return None
    matches = [pool for pool in pools if pool.warm_key == shape.warm_key and reusable(pool, now=now)]
    return min(matches, key=lambda pool: (pool.expires_at, pool.training_job_name), default=None)


def to_release(
    needed: Vector, free: Vector, pools: Sequence[WarmPool], *, wanted: frozenset[str]
) -> tuple[WarmPool, ...]:
    """Return the warm pools to give up so that ``needed`` fits; none if that is not enough.

    Those that no waiting job can use go first, then those that end first.

    Args:
        needed: Instances that are to fit.
        free: Instances that are free without warm pools.
        pools: Warm pools that may be given up.
        wanted: Warm keys of jobs that wait.
    """
    missing = lacking(needed, free)
    chosen: list[WarmPool] = []
    for pool in sorted(
        pools, key=lambda pool: (pool.warm_key in wanted, pool.expires_at, pool.training_job_name)
    ):
        if not missing:
            break
        if not missing.keys().isdisjoint(pool.vector):
            chosen.append(pool)
            missing = lacking(missing, pool.vector)
    return () if missing else tuple(chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """Decisions of the rest of the pass about the warm pools."""

    rules: WarmRules
    reused: frozenset[str]
    released: frozenset[str]
    """Pools that were given up, by training-job name; likewise ``reused``."""
    wanted: frozenset[str]
    """Warm keys of jobs that wait."""
    limited: frozenset[Capacity]
    """Types that the account has refused to start more of: what is warm counts towards its limit."""
    now: datetime
    histories: Mapping[str, WarmHistory] = field(default_factory=dict)
    """Records of the warm pools' keys, as far as there are any."""

    def actions(self, pools: Iterable[WarmPool]) -> list[Action]:
        planned = (self._action(pool) for pool in pools if pool.training_job_name not in self.reused)
        return [action for action in planned if action is not None]

    def _action(self, pool: WarmPool) -> Action | None:
        idle = max(self.now - pool.since, timedelta())  # SageMaker's clock may be ahead of ours
        if is_leaving(pool, now=self.now):
            return SettleWarm(warm_pool=pool)
        if pool.training_job_name in self.released:
            return ReleaseWarm(warm_pool=pool, because="its capacity is needed")
        if idle >= self.rules.max_idle:
            return ReleaseWarm(warm_pool=pool, because="it has been idle for too long")
        if pool.warm_key in self.wanted:
            return self._extended(pool, upto=pool.since + self.rules.max_idle)
        return self._unwanted(pool, idle)

    def _unwanted(self, pool: WarmPool, idle: timedelta) -> Action | None:
        """Decide about a pool that no waiting job can use, although one that is submitted soon may.

        A ``retain`` that is written is what the policy pays for that; else it is kept by its worth.
        """
        why = "no waiting job can use it"
        if not self.limited.isdisjoint(pool.vector):  # what is warm would keep others from starting
            return ReleaseWarm(warm_pool=pool, because=why)
        if self.rules.retain is not None:
            retain = min(self.rules.retain, self.rules.max_idle)
            if idle < retain:
                return self._extended(pool, upto=pool.since + retain)
            return ReleaseWarm(warm_pool=pool, because=why)
        worth = worth_of_pool(pool, self.rules, self.histories, now=self.now)
        if worth.keep_for > timedelta():
            return self._extended(pool, upto=self.now + worth.keep_for)
        return ReleaseWarm(warm_pool=pool, because=f"{why}: {worth.text}")

    def _extended(self, pool: WarmPool, *, upto: datetime) -> Action | None:
        """Extend it when its end is near, it may still be kept, and that gains more than a moment."""
        until = min(self.now + self.rules.keep_alive, upto)
        near = pool.expires_at - self.now <= EXTEND_BEFORE
        gained = until - pool.expires_at
        worth_it = gained >= WORTH_A_CALL or (until == upto and gained > timedelta())
        return KeepWarm(warm_pool=pool, until=until) if near and worth_it else None


def worth_of_pool(
    pool: WarmPool, rules: WarmRules, histories: Mapping[str, WarmHistory], *, now: datetime
) -> WarmWorth:
    """Return what it is worth to keep a pool that no waiting job can use.

    Args:
        pool: The warm pool.
        rules: The policy's rules about warm pools.
        histories: Records by warm key.
        now: Instant of the decision.
    """
    idle = max(now - pool.since, timedelta())
    return worth_of(histories.get(pool.warm_key), idle=idle, horizon=rules.max_idle, now=now)


def why_kept(pool: WarmPool, rules: WarmRules, histories: Mapping[str, WarmHistory], *, now: datetime) -> str:
    """Say in a clause why instances are kept or are being given up, without a look at the queue.

    Args:
        pool: The warm pool.
        rules: The policy's rules about warm pools.
        histories: Records by warm key.
        now: The instant to speak of.
    """
    if is_leaving(pool, now=now):
        return f"being given up: {pool.because or 'its time is over'}"
    if rules.retain is not None:
        return f"kept for {length(rules.retain)} after their job, longer for a waiting job that can use them"
    worth = worth_of_pool(pool, rules, histories, now=now)
    if worth.keep_for > timedelta():
        return f"kept for {length(worth.keep_for)} more unless a job takes them over: {worth.text}"
    return f"kept for a waiting job that can use them, else given up next: {worth.text}"


def keys_wanted(waiting: Iterable[WaitingJob]) -> frozenset[str]:
    """Return the warm keys of the shapes that jobs wait for."""
    keys = {shape.warm_key for job in waiting for shape in job.shapes}
    return frozenset(key for key in keys if key is not None)
