"""Free capacity of a pool while a plan gives it away: what is free, held, warm, coming, and allowed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property

from trainmaster.core.jobs.instances import Capacity, Shape, Vector, fits, total
from trainmaster.core.planning.actions import Charge, Preempt, Start
from trainmaster.core.planning.capacity import (
    allowed,
    counted_on,
    free_now,
    minus,
    on_its_way,
    pool_vector,
    take,
    within_limits,
)
from trainmaster.core.planning.preemption import Chosen, Preemptor
from trainmaster.core.planning.reserved_capacity import ReservedCapacity, Room, on_reserved, use_of_teams
from trainmaster.core.planning.snapshot import (
    PreemptionReservation,
    RunningJob,
    Snapshot,
    WaitingJob,
    WarmPool,
)
from trainmaster.core.planning.warm_pools import is_leaving, keys_wanted, matching, to_release
from trainmaster.core.policy import PoolPolicy


@dataclass(kw_only=True)
class FreeCapacity:
    snapshot: Snapshot
    pool: PoolPolicy
    now: datetime
    capacity: dict[Capacity, int]
    used: dict[Capacity, int]
    """Instances in use once the starts so far are claimed."""
    holds: dict[str, PreemptionReservation]
    """Reservations by preemptor."""
    free: Room
    """Instances neither used nor warm nor held, less those given away."""
    soon: Room
    """``free``, with jobs and warm pools on their way out that no job of the plan counts on yet.

    Instances that reservations lack whose victims are not all asked count as on their way: only they may use
    them."""
    allowed: dict[Capacity, int]
    """Instances that learned account limits leave, of the types that have one."""
    probes: dict[Capacity, WaitingJob] = field(default_factory=dict)
    """Starts above a learned limit, by type; one each."""
    unsettled: dict[Capacity, int] = field(default_factory=dict)
    """Warm pools that claims count on; see ``counted_on``."""
    reused: set[str] = field(default_factory=set)
    """Warm pools that starts land in, by training-job name."""
    released: set[str] = field(default_factory=set)

    @classmethod
    def of(
        cls, snapshot: Snapshot, pool: PoolPolicy, *, holds: Iterable[PreemptionReservation], now: datetime
    ) -> "FreeCapacity":
        live = tuple(holds)
        capacity = pool_vector(pool)
        free = free_now(snapshot, capacity, live)
        soon = dict(free)
        leaving = (warm_pool.vector for warm_pool in snapshot.warm_pools if is_leaving(warm_pool, now=now))
        unsettled = counted_on(snapshot.running)
        to_come = (hold.missing for hold in live if hold.missing is not None and hold.goes_on)
        take(soon, total((on_its_way(snapshot.running), unsettled, *leaving, *to_come)), times=-1)
        now_free = Room(counts=free, reserved=ReservedCapacity.of(pool.reserved))
        soon_free = Room(counts=soon, reserved=ReservedCapacity.of(pool.reserved))
        if pool.reserved:
            use_of_teams(now_free.reserved, snapshot, live, stopping=True)
            use_of_teams(soon_free.reserved, snapshot, live, stopping=False)
        return cls(
            snapshot=snapshot,
            pool=pool,
            now=now,
            capacity=capacity,
            used=dict(snapshot.used),
            holds={hold.preemptor: hold for hold in live},
            free=now_free,
            soon=soon_free,
            allowed=allowed(snapshot),
            unsettled=unsettled,
        )

    # ---- does it fit

    def whole_for(self, team: str) -> dict[Capacity, int]:
        """Return the pool's capacity without what is reserved for other teams."""
        return Room(counts=self.capacity, reserved=ReservedCapacity.of(self.pool.reserved)).of(team)

    def fits(self, job: WaitingJob, shape: Shape, warm: WarmPool | None) -> bool:
        """Tell whether a shape fits, with the capacity held for the job and the warm pool that it reuses."""
        hold, free = self.holds.get(job.name), self.free.of(job.team)
        for capacity, count in shape.vector.items():
            room = free.get(capacity, 0)
            if hold is not None:
                room += hold.vector.get(capacity, 0)
            if warm is not None:
                room += warm.vector.get(capacity, 0)
            if room < count:
                return False
        return True

    def is_held(self, job: WaitingJob, shape: Shape) -> bool:
        """Tell whether capacity is held for the job, of an elastic one for so wide a shape."""
        hold = self.holds.get(job.name)
        return hold is not None and (job.widths is None or fits(shape.vector, hold.vector))

    def above_limit(self, vector: Vector, warm: WarmPool | None) -> tuple[Capacity, ...]:
        """Return the types of which it would exceed what the account was found to allow.

        A warm pool that it lands in counts already.
        """
        if not self.allowed:
            return ()
        beyond_warm = minus(vector, warm.vector) if warm else vector
        return tuple(
            capacity for capacity, count in beyond_warm.items() if count > self.allowed.get(capacity, count)
        )

    # ---- warm pools

    def warm_pool_for(self, shape: Shape) -> WarmPool | None:
        if not self.snapshot.warm_pools or not self.pool.warm_pool.keep_alive:
            return None
        return matching(shape, self.releasable(), now=self.now)

    def warm_first(self, shapes: tuple[Shape, ...], *, is_elastic: bool = False) -> tuple[Shape, ...]:
        """Sort shapes: on plans, then with a warm pool, which starts in seconds; elastic ones by width."""
        if len(shapes) == 1 or not self.snapshot.warm_pools or is_elastic:
            return shapes
        return tuple(
            sorted(shapes, key=lambda shape: (not shape.is_on_plan, self.warm_pool_for(shape) is None))
        )

    def releasable(self) -> list[WarmPool]:
        """Return the warm pools that no start takes and that are not on their way out."""
        taken = self.reused | self.released
        return [
            warm_pool
            for warm_pool in self.snapshot.warm_pools
            if warm_pool.training_job_name not in taken and not is_leaving(warm_pool, now=self.now)
        ]

    def release_for(self, vector: Vector, free: Vector) -> tuple[WarmPool, ...]:
        """Give up warm pools so that ``vector`` fits into ``free``; none if it does, or would not."""
        left = self.releasable() if self.snapshot.warm_pools else []
        chosen = to_release(vector, free, left, wanted=self._wanted) if left else ()
        self.released |= {warm_pool.training_job_name for warm_pool in chosen}
        return chosen

    def warm(self) -> dict[Capacity, int]:
        """Return the warm instances once the starts so far are claimed."""
        taken = (
            warm_pool.vector
            for warm_pool in self.snapshot.warm_pools
            if warm_pool.training_job_name in self.reused
        )
        return minus(self.snapshot.warm, *taken)

    def free_with_warm(self, team: str) -> dict[Capacity, int]:
        """Return the team's ``free`` and warm pools, which can be given up at any time or settle soon."""
        free = self.free.of(team)
        if not self.snapshot.warm_pools and not self.unsettled:
            return free
        return total((free, self.warm(), self.unsettled))

    def soon_with_warm(self, team: str) -> dict[Capacity, int]:
        """Return the instances that the team may count on before any job is stopped."""
        releasable = self.releasable() if self.snapshot.warm_pools else []
        soon = self.soon_within_limits(team)
        return total((soon, *(warm_pool.vector for warm_pool in releasable))) if releasable else soon

    def soon_within_limits(self, team: str | None) -> dict[Capacity, int]:
        """Return the instances on their way to the team that the account allows, too."""
        return within_limits(self.soon.of(team), self.capacity, self.snapshot.account_limits)

    # ---- give it away

    def start(
        self, job: WaitingJob, shape: Shape, warm: WarmPool | None, *, charge: Charge | None, backfills: bool
    ) -> Start:
        hold = self.holds.pop(job.name, None)
        now_warm = self.warm()
        still_warm = minus(now_warm, warm.vector) if warm else now_warm
        others = (other_hold.vector for other_hold in self.holds.values())
        # The claim's guard: when it is written, no more may be in use than leaves these instances free beside
        # all that is warm, unsettled or held for others.
        kept = self.free.reserved.kept_from(job.team)
        room = minus(self.capacity, shape.vector, still_warm, self.unsettled, kept, *others)
        probed = self.above_limit(shape.vector, warm)
        if job.refused is None:
            self.probes |= dict.fromkeys(probed, job)
        self._count(job.team, shape, warm, hold)
        return Start(
            job=job,
            shape=shape,
            most_used={capacity: room.get(capacity, 0) for capacity in shape.vector},
            warm={capacity: now_warm.get(capacity, 0) for capacity in shape.vector},
            reuses=warm,
            cold_startup=self._cold_startup(warm),
            ends_hold=hold is not None,
            charge=charge,
            probes=probed,
            backfills=backfills,
        )

    def _cold_startup(self, warm: WarmPool | None) -> timedelta | None:
        history = None if warm is None else self.snapshot.warm_histories.get(warm.warm_key)
        return None if history is None else history.cold_startup

    def _count(
        self, team: str, shape: Shape, warm: WarmPool | None, hold: PreemptionReservation | None
    ) -> None:
        take(self.used, shape.vector, times=-1)
        for room in (self.free, self.soon):
            room.give(team, shape.vector)
            if hold is not None:
                room.give(team, hold.vector, times=-1)
        if warm is not None:
            take(self.soon.counts, warm.vector, times=-1)
            take(self.unsettled, warm.vector, times=-1)
            self.reused.add(warm.training_job_name)
        for capacity, count in shape.vector.items():
            if capacity in self.allowed:
                self.allowed[capacity] -= count - (warm.vector.get(capacity, 0) if warm else 0)

    def preempt(self, preemptor: Preemptor, chosen: Chosen, *, reclaimed: frozenset[str]) -> Preempt:
        """Hold the victims' capacity, and what is free already, for the preemptor."""
        job, shape = preemptor.job, preemptor.shape
        self.holds[job.name] = PreemptionReservation(preemptor=job.name, vector=shape.vector)
        self._count_on(chosen)
        self.release_for(shape.vector, self.soon_within_limits(job.team))
        for room in (self.free, self.soon):
            room.give(job.team, shape.vector)
        return self._preempts(preemptor, chosen, goes_on=None, reclaimed=reclaimed)

    def _count_on(self, chosen: Chosen) -> None:
        """Count on what victims free; what elastic ones keep is held for them."""
        for victim in chosen.victims:
            self.soon.give(victim.team, victim.vector, times=-1)
            if (kept := chosen.kept.get(victim.name)) is not None:
                self.keep(victim, kept)

    def keep(self, job: RunningJob, room: Vector) -> None:
        """Hold instances for an elastic job that is asked to stop, until it comes back."""
        self.holds[job.name] = PreemptionReservation(preemptor=job.name, vector=room)
        for free in (self.free, self.soon):
            free.give(job.team, room)

    def go_on(
        self,
        preemptor: Preemptor,
        chosen: Chosen,
        hold: PreemptionReservation,
        *,
        reclaimed: frozenset[str],
    ) -> Preempt | None:
        """Stop the rest of its victims; None if they are not needed, or would not be enough."""
        take(self.soon.counts, hold.missing or {})
        if not chosen.victims:
            return None
        self._count_on(chosen)
        self.holds[hold.preemptor] = replace(hold, missing=None)
        return self._preempts(preemptor, chosen, goes_on=hold, reclaimed=reclaimed)

    def _preempts(
        self,
        preemptor: Preemptor,
        chosen: Chosen,
        *,
        goes_on: PreemptionReservation | None,
        reclaimed: frozenset[str],
    ) -> Preempt:
        return Preempt(
            job=preemptor.job,
            shape=preemptor.shape,
            victims=chosen.victims,
            used={capacity: self.used.get(capacity, 0) for capacity in preemptor.shape.vector},
            short=chosen.short,
            goes_on=goes_on,
            reclaimed=reclaimed,
            kept=chosen.kept,
        )

    @cached_property
    def on_reserved(self) -> Mapping[str, str]:
        """Teams of the jobs that run on what is reserved for them, by job."""
        return on_reserved(self.pool, self.snapshot.running)

    @cached_property
    def _wanted(self) -> frozenset[str]:
        return keys_wanted(self.snapshot.waiting)
