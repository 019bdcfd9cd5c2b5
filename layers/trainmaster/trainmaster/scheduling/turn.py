"""The queue walked once, in order; counts what the walk has given away so far."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from trainmaster.jobs import Capacity, Choice, Reason, Shape, Vector, fits
from trainmaster.policy import PoolPolicy
from trainmaster.scheduling import reasons
from trainmaster.scheduling.actions import Action, Preempt, Start
from trainmaster.scheduling.backfill import End, Reservation, certain_ends, frees_by, reserve
from trainmaster.scheduling.budgets import Budgets
from trainmaster.scheduling.capacity import allowed, free_now, minus, on_its_way, pool_vector, take
from trainmaster.scheduling.preemption import Field, Preemptor, reclaims, victims_for
from trainmaster.scheduling.quotas import Quotas
from trainmaster.scheduling.snapshot import Hold, RunningJob, Snapshot, WaitingJob, WarmPool
from trainmaster.scheduling.warm_pools import keys_wanted, matching, reusable, to_release


@dataclass(kw_only=True)
class Turn:
    snapshot: Snapshot
    pool: PoolPolicy
    now: datetime
    capacity: dict[Capacity, int]
    quotas: Quotas
    budgets: Budgets
    holds: dict[str, Hold]
    """By preemptor."""
    free: dict[Capacity, int]
    """Neither used nor warm nor held, less what the walk has started."""
    allowed: dict[Capacity, int]
    """What learned account limits leave; types without one are not in it."""
    soon: dict[Capacity, int]
    """``free``, with what is already being stopped and not yet counted on by a job of the walk."""
    reserved: dict[Capacity, Reservation] = field(default_factory=dict)
    """The first job that waits for a type."""
    held: dict[Capacity, Reservation] = field(default_factory=dict)
    """The first job that room is being made for, by type; only to say so to those behind it."""
    preempting: set[str] = field(default_factory=set)
    probes: dict[Capacity, WaitingJob] = field(default_factory=dict)
    """Starts above a learned limit; one a type."""
    hopeless: dict[tuple[object, ...], int] = field(default_factory=dict)
    """Shapes for which nobody can be stopped, up to this priority."""
    actions: list[Action] = field(default_factory=list)
    reasons: dict[str, Reason] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    reused: set[str] = field(default_factory=set)
    """Warm pools that starts land in, by training-job name."""
    released: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, snapshot: Snapshot, pool: PoolPolicy, *, holds: Iterable[Hold], now: datetime) -> "Turn":
        live = tuple(holds)
        capacity = pool_vector(pool)
        free = free_now(snapshot, capacity, live)
        soon = minus(free)
        take(soon, on_its_way(snapshot.running), times=-1)
        return cls(
            snapshot=snapshot,
            pool=pool,
            now=now,
            capacity=capacity,
            quotas=Quotas.of(pool, snapshot.running, snapshot.waiting),
            budgets=Budgets(snapshot=snapshot, now=now),
            holds={hold.preemptor: hold for hold in live},
            free=free,
            allowed=allowed(snapshot, now=now),
            soon=soon,
        )

    def order(self) -> list[WaitingJob]:
        """The candidates in the one total order."""
        tier = self.quotas.tier
        return sorted(self.snapshot.waiting, key=lambda one: (tier(one.name), one.score, one.name))

    def consider(self, job: WaitingJob) -> None:
        """Start it, make room for it, or say why it waits."""
        shapes = self._possible(job)
        if not shapes:
            return
        for shape in self._in_order_of_warmth(shapes):
            if self._start_if_it_fits(job, shape):
                return
        self._make_room_or_wait(job, shapes)

    # ---- may it start at all

    def _possible(self, job: WaitingJob) -> tuple[Shape, ...]:
        """The shapes in which only room may be missing; with none, the reason is said."""
        refusals: list[Reason] = []
        possible: list[Shape] = []
        for shape in self._choices(job):
            refusal = self._refusal(job, shape)
            if refusal is None:
                possible.append(shape)
            else:
                refusals.append(refusal)
        if not possible:
            self.reasons[job.name] = refusals[0]
        return tuple(possible)

    def _choices(self, job: WaitingJob) -> tuple[Shape, ...]:
        shapes = self.budgets.shapes(job) if self.snapshot.budgets else job.shapes
        if job.choice is Choice.FIRST_FIT or len(shapes) == 1:
            return shapes
        return (self._all_with_room(shapes),)

    def _all_with_room(self, shapes: Sequence[Shape]) -> Shape:
        """SageMaker picks: those with room are held all together; without any, the first waits for room."""
        roomy = [
            shape for shape in shapes if fits(shape.vector, self.free) and fits(shape.vector, self.capacity)
        ]
        held = roomy or [next((one for one in shapes if fits(one.vector, self.capacity)), shapes[0])]
        return Shape(vector={one: count for shape in held for one, count in shape.vector.items()})

    def _refusal(self, job: WaitingJob, shape: Shape) -> Reason | None:
        """What waiting for room would not change."""
        if not fits(shape.vector, self.capacity):
            return reasons.too_big(shape.vector, self.capacity)
        quota = self.quotas.refusal(job, shape.vector) if self.quotas.quotas else None
        budget = self.budgets.refusal(job, shape) if self.snapshot.budgets else None
        return quota or budget or (self._limited(job, shape) if self.snapshot.account_limits else None)

    def _limited(self, job: WaitingJob, shape: Shape) -> Reason | None:
        for capacity, count in shape.vector.items():
            if count > self.allowed.get(capacity, count):
                limit = self.snapshot.account_limits[capacity]
                return reasons.limited(shape.vector, capacity, limit)
            if capacity in self.probes:
                return reasons.probing(shape.vector, capacity, self.probes[capacity], to=job.team)
        return None

    # ---- start

    def _in_order_of_warmth(self, shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
        """Of several shapes one with a warm pool goes first: it starts in seconds."""
        if len(shapes) == 1 or not self.snapshot.warm_pools:
            return shapes
        return tuple(sorted(shapes, key=lambda shape: self._warm_pool(shape) is None))

    def _start_if_it_fits(self, job: WaitingJob, shape: Shape) -> bool:
        warm = self._warm_pool(shape) if self.snapshot.warm_pools else None
        if not self._fits(job, shape, warm):
            return False
        ahead = self._ahead(shape.vector) if job.name not in self.holds else ()
        until = frees_by(job, shape, self.pool, self.snapshot, now=self.now) if ahead else self.now
        if not self._admitted(shape.vector, ahead, until):
            return False
        for reservation in ahead:
            reservation.passed_by(shape.vector, ends_by=until)
        self._start(job, shape, warm, backfills=bool(ahead))
        return True

    def _fits(self, job: WaitingJob, shape: Shape, warm: WarmPool | None) -> bool:
        hold = self.holds.get(job.name)
        for capacity, count in shape.vector.items():
            room = self.free.get(capacity, 0)
            if hold is not None:
                room += hold.vector.get(capacity, 0)
            if warm is not None:
                room += warm.vector.get(capacity, 0)
            if room < count:
                return False
        return True

    def _ahead(self, vector: Vector) -> tuple[Reservation, ...]:
        """Reservations on the same types, each once."""
        if not self.reserved:
            return ()
        found = {id(one): one for capacity in vector if (one := self.reserved.get(capacity)) is not None}
        return tuple(found.values())

    def _admitted(self, vector: Vector, ahead: Iterable[Reservation], until: datetime) -> bool:
        backfill = self.pool.order.backfill
        return all(backfill and one.admits(vector, ends_by=until) for one in ahead)

    def _warm_pool(self, shape: Shape) -> WarmPool | None:
        if not self.pool.warm_pool.keep_alive:
            return None
        taken = self.reused | self.released
        idle = (pool for pool in self.snapshot.warm_pools if pool.training_job_name not in taken)
        return matching(shape, idle, now=self.now)

    def _start(self, job: WaitingJob, shape: Shape, warm: WarmPool | None, *, backfills: bool) -> None:
        hold = self.holds.pop(job.name, None)
        charge = self.budgets.charge(job, shape)
        others = [one.vector for one in self.holds.values()]
        now_warm = self._warm_now()
        still_warm = minus(now_warm, warm.vector) if warm else now_warm
        room = minus(self.capacity, shape.vector, still_warm, *others)
        self.actions.append(
            Start(
                job=job,
                shape=shape,
                room={capacity: room.get(capacity, 0) for capacity in shape.vector},
                warm={capacity: now_warm.get(capacity, 0) for capacity in shape.vector},
                reuses=warm,
                ends_hold=hold is not None,
                charge=charge,
                probes=self._probed(shape.vector),
                backfills=backfills,
            ),
        )
        self._count(job, shape, warm, hold)
        self.budgets.commit(job.team, charge)

    def _count(self, job: WaitingJob, shape: Shape, warm: WarmPool | None, hold: Hold | None) -> None:
        for rest in (self.free, self.soon):
            take(rest, shape.vector)
            if hold is not None:
                take(rest, hold.vector, times=-1)
            if warm is not None:
                take(rest, warm.vector, times=-1)
        if warm is not None:
            self.reused.add(warm.training_job_name)
        for capacity, count in shape.vector.items():
            if capacity in self.allowed:
                self.allowed[capacity] -= count - (warm.vector.get(capacity, 0) if warm else 0)
        self.probes |= dict.fromkeys(self._probed(shape.vector), job)
        self.quotas.count(job.team, shape.vector)
        self.started.add(job.name)

    def _warm_now(self) -> dict[Capacity, int]:
        """What is warm once the starts so far are claimed."""
        taken = (one.vector for one in self.snapshot.warm_pools if one.training_job_name in self.reused)
        return minus(self.snapshot.warm, *taken)

    def _probed(self, vector: Vector) -> tuple[Capacity, ...]:
        """Types with a learned limit that is due for a probe."""
        if not self.snapshot.account_limits:
            return ()
        return tuple(one for one in vector if one in self.snapshot.account_limits and one not in self.allowed)

    # ---- make room, or wait

    def _make_room_or_wait(self, job: WaitingJob, shapes: tuple[Shape, ...]) -> None:
        if job.name in self.holds:
            self._wait_for_victims(job)
            return
        for shape in shapes:
            if self._makes_room(job, shape):
                return
        self._wait(job, shapes[0])

    def _wait_for_victims(self, job: WaitingJob) -> None:
        hold = self.holds[job.name]
        self._tell_of_hold(job, hold.vector)
        victims = [one for one in self.snapshot.running if one.name in hold.victims]
        if victims:
            self.reasons[job.name] = reasons.making_room(hold.vector, victims, to=job.team)
        elif not self._released_for(job, hold.vector, minus(self.free, minus({}, hold.vector))):
            self.reasons[job.name] = reasons.short(hold.vector, self.free)

    def _makes_room(self, job: WaitingJob, shape: Shape) -> bool:
        """Warm pools are given up first, then running jobs are stopped; nobody if neither is enough."""
        ahead = self._ahead(shape.vector)
        if not ahead and self._released_for(job, shape.vector, self.free):
            self._reserve(job, (shape,))
            return True
        if fits(shape.vector, self.soon) and not ahead:
            take(self.soon, shape.vector)
            note = "; jobs that make room are stopping"
            self.reasons[job.name] = reasons.short(shape.vector, self.free, note=note)
            self._reserve(job, (shape,))
            return True
        return self._preempts(job, shape, ahead)

    def _released_for(self, job: WaitingJob, vector: Vector, free: Vector) -> bool:
        idle = [one for one in self.snapshot.warm_pools if reusable(one, now=self.now)]
        left = [one for one in idle if one.training_job_name not in self.reused | self.released]
        chosen = to_release(vector, free, left, wanted=self._wanted) if left else ()
        if not chosen:
            return False
        self.released |= {one.training_job_name for one in chosen}
        self.reasons[job.name] = reasons.releasing(vector, chosen)
        return True

    @cached_property
    def _wanted(self) -> frozenset[str]:
        return keys_wanted(self.snapshot.waiting)

    def _preempts(self, job: WaitingJob, shape: Shape, ahead: Sequence[Reservation]) -> bool:
        tier = self.quotas.tier(job.name)
        key = (tier, job.team if self.quotas.quotas else "", *shape.vector.items())
        if self.hopeless.get(key, -1) >= job.priority:
            return False
        victims = self._victims(Preemptor(job=job, shape=shape, tier=tier), ahead)
        if not victims:
            self.hopeless[key] = job.priority
            return False
        for reservation in ahead:
            until = frees_by(job, shape, self.pool, self.snapshot, now=self.now)
            reservation.passed_by(shape.vector, ends_by=until, instead_of=victims)
        self._preempt(job, shape, victims)
        return True

    def _victims(self, preemptor: Preemptor, ahead: Sequence[Reservation]) -> tuple[RunningJob, ...]:
        """Whom to stop; nobody if the room made would delay those ahead."""
        running = self.snapshot.running
        if self.preempting:
            running = tuple(one for one in running if one.name not in self.preempting)
        field_of = Field(running=running, quotas=self.quotas, rules=self.pool.preemption, now=self.now)
        victims = victims_for(preemptor, field_of, free=self.soon)
        if not victims or not ahead:
            return victims
        job, shape = preemptor.job, preemptor.shape
        until = frees_by(job, shape, self.pool, self.snapshot, now=self.now)
        passes = all(one.admits(shape.vector, ends_by=until, instead_of=victims) for one in ahead)
        return victims if passes else ()

    def _preempt(self, job: WaitingJob, shape: Shape, victims: tuple[RunningJob, ...]) -> None:
        preemptor = Preemptor(job=job, shape=shape, tier=self.quotas.tier(job.name))
        used = {capacity: self.snapshot.used.get(capacity, 0) for capacity in shape.vector}
        reclaimed = any(reclaims(one, preemptor, self.quotas) for one in victims)
        self.actions.append(Preempt(job=job, shape=shape, victims=victims, used=used, reclaims=reclaimed))
        self.preempting |= {one.name for one in victims}
        names = tuple(victim.name for victim in victims)
        self.holds[job.name] = Hold(preemptor=job.name, vector=shape.vector, victims=names)
        self._tell_of_hold(job, shape.vector)
        for rest in (self.free, self.soon):
            take(rest, shape.vector)
        for victim in victims:
            take(self.soon, victim.vector, times=-1)
        self.reasons[job.name] = reasons.making_room(shape.vector, victims, to=job.team)

    def _tell_of_hold(self, job: WaitingJob, vector: Vector) -> None:
        reservation = Reservation(job=job, vector=vector, at=None, extra={})
        for capacity in vector:
            self.held.setdefault(capacity, reservation)

    def _wait(self, job: WaitingJob, shape: Shape) -> None:
        ahead = self._ahead(shape.vector)
        if not ahead:
            holder = next((self.held[one] for one in shape.vector if one in self.held), None)
            short = reasons.short(shape.vector, self.free)
            self.reasons[job.name] = reasons.ahead(job, holder) if holder else short
        elif self._fits(job, shape, None) and self.pool.order.backfill:
            until = frees_by(job, shape, self.pool, self.snapshot, now=self.now)
            self.reasons[job.name] = reasons.reserved(job, shape.vector, ahead[0], until=until)
        else:
            self.reasons[job.name] = reasons.ahead(job, ahead[0])
        self._reserve(job, (shape,))

    def _reserve(self, job: WaitingJob, shapes: tuple[Shape, ...]) -> None:
        """Keep its place: the first to wait for a type has it reserved."""
        mine = [c for shape in shapes for c in shape.vector if c not in self.reserved]
        if not mine:
            return
        reservation = reserve(job, free=self._free_with_warm(), ends=self._ends, now=self.now)
        for capacity in mine:
            self.reserved[capacity] = reservation

    def _free_with_warm(self) -> dict[Capacity, int]:
        """Warm pools can be given up at any time."""
        return minus(self.free, minus({}, self._warm_now())) if self.snapshot.warm_pools else self.free

    @cached_property
    def _ends(self) -> list[End]:
        return certain_ends(self.snapshot.running, now=self.now)
