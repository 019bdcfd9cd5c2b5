"""Walk the queue once, in order: each job starts, preempts, or waits with a reason."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Choice, Shape, fits, total
from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.account_limits import is_limited, limited
from trainmaster.core.planning.actions import Action, Preempt
from trainmaster.core.planning.backfill import BackfillReservation, TeamEnds, frees_by, reserve
from trainmaster.core.planning.budgets import Budgets
from trainmaster.core.planning.capacity import least_shapes, reservable, with_plans, with_room
from trainmaster.core.planning.capacity_ahead import CapacityAhead
from trainmaster.core.planning.coming_reasons import why_soon
from trainmaster.core.planning.free_capacity import FreeCapacity
from trainmaster.core.planning.limited_warm_pools import LimitedWarmPools
from trainmaster.core.planning.plan_reasons import Later
from trainmaster.core.planning.preemption import Preemptor
from trainmaster.core.planning.preemption_worth import NotWorth
from trainmaster.core.planning.queue_front import QueueFront
from trainmaster.core.planning.quotas import Quotas
from trainmaster.core.planning.reservations import Preemptions
from trainmaster.core.planning.same_answers import SameAnswers
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, Snapshot, WaitingJob
from trainmaster.core.planning.start_pauses import StartPauses
from trainmaster.core.planning.throttles import Throttles
from trainmaster.core.policy import PoolPolicy


@dataclass(kw_only=True)
class QueueWalk:
    snapshot: Snapshot
    pool: PoolPolicy
    now: datetime
    capacity: FreeCapacity
    quotas: Quotas
    budgets: Budgets
    limited: LimitedWarmPools
    pauses: StartPauses
    ahead: CapacityAhead
    throttles: Throttles
    front: QueueFront
    hopeless: dict[tuple[object, ...], int] = field(default_factory=dict)
    """Highest priority, by shape, for which no job can be stopped, or not at this price."""
    not_worth: dict[str, NotWorth] = field(default_factory=dict)  # preemptions that are not, by preemptor
    actions: list[Action] = field(default_factory=list)
    reasons: dict[str, Reason | Later] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)

    @classmethod
    def of(
        cls, snapshot: Snapshot, pool: PoolPolicy, *, holds: Iterable[PreemptionReservation], now: datetime
    ) -> "QueueWalk":
        capacity = FreeCapacity.of(snapshot, pool, holds=holds, now=now)
        quotas = Quotas.of(pool, snapshot.running, snapshot.waiting, reserved=capacity.holds)
        return cls(
            snapshot=snapshot,
            pool=pool,
            now=now,
            capacity=capacity,
            quotas=quotas,
            budgets=Budgets(snapshot=snapshot, now=now),
            limited=LimitedWarmPools(capacity=capacity, quotas=quotas),
            pauses=StartPauses(snapshot=snapshot, pool=pool.name, now=now),
            ahead=CapacityAhead.of(pool, snapshot.running, now=now),
            throttles=Throttles.of(snapshot),
            front=QueueFront(kept=capacity.free.reserved, backfills=pool.order.backfill),
        )

    def consider(self, job: WaitingJob) -> None:
        """Start the job, preempt for it, or record why it waits."""
        if refused := self.throttles.refusal(job) or self.pauses.holds_back(job):
            self.reasons[job.name] = refused
            return
        first = None if self.pauses.key_of(job) else self.answered.of(job)
        if first is not None and job.name not in self.capacity.holds:
            self.reasons[job.name] = self.front.behind(job, first)
            self.preemptions.goes_ahead(job.vector)
        elif not self._waits(job):
            self.answered.forget()

    def _waits(self, job: WaitingJob) -> bool:
        """Tell whether the job waits for others and the plan is as before, so that equal jobs wait, too."""
        shapes = self._possible(job)
        why = None if shapes else self.reasons[job.name]
        assert not isinstance(why, Later)  # a refusal is worded at once
        # Releasing takes minutes; the job waits for it without stopping anybody.
        if released := self.limited.given_up_for(job, why):
            self.reasons[job.name] = wait_reasons.releasing(job.vector, released)
            return False
        if not shapes:
            self._preempt_own(job)
            return False
        for shape in self.capacity.warm_first(shapes, is_elastic=job.widths is not None):
            if self._start_if_it_fits(job, shape):
                return False
        if job.name in self.capacity.holds:
            self._wait_for_victims(job)
            return False
        shapes = least_shapes(job, shapes)
        taken = self._never_refused(job, shapes)
        if not taken:
            self.limited.give_up_for_a_try(job, shapes[0].vector)
            self.reasons[job.name] = self.pauses.why_not_yet(job) or wait_reasons.refused(
                job, shapes[0].vector, self.capacity.free.of(job.team)
            )
        elif not any(self._makes_room(job, shape) for shape in taken):
            self._wait(job, taken)
            return True
        return False

    # ---- may it start at all

    def _possible(self, job: WaitingJob) -> tuple[Shape, ...]:
        """Return the shapes in which only capacity may be missing.

        If there are none, the reason is recorded.
        """
        refusals: list[Reason] = []
        possible: list[Shape] = []
        for shape in self._choices(job):
            refusal = self._refusal(job, shape)
            if refusal is None:
                possible.append(shape)
            else:
                refusals.append(refusal)
        if not possible:
            self.reasons[job.name] = refusals[0 if job.widths is None else -1]  # an elastic job's least width
        return tuple(possible)

    def _choices(self, job: WaitingJob) -> tuple[Shape, ...]:
        shapes = self.budgets.shapes(job, self.capacity.capacity) if self.snapshot.budgets else job.shapes
        shapes = with_plans(job, shapes, self.pool)
        if job.choice is Choice.FIRST_FIT or len(shapes) == 1:
            return shapes
        possible = (shape for shape in shapes if self._refusal(job, shape) is None)
        together = with_room(possible, self.capacity.free.of(job.team))
        return shapes if together is None else (together,)

    def _refusal(self, job: WaitingJob, shape: Shape) -> Reason | None:
        """Return a reason that waiting for capacity would not change."""
        if not fits(shape.vector, whole := self.capacity.whole_for(job.team)):
            return self.ahead.too_big(job, shape.vector, whole)
        budget = self.budgets.refusal(job, shape) if self.snapshot.budgets else None
        quota = self.quotas.refusal(job, shape.vector) if self.quotas.quotas else None
        refusal = budget or limited(job, shape, self.capacity) or quota
        return refusal or self.ahead.refusal(job, shape, frees_by=self._frees_by)

    def _never_refused(self, job: WaitingJob, shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
        """Return the shapes that capacity may be made and kept for; what AWS refuses would stand idle."""
        if job.is_refused or self.pauses.key_of(job) is not None:
            return ()
        return tuple(shape for shape in shapes if not self.capacity.above_limit(shape.vector, None))

    def _start_if_it_fits(self, job: WaitingJob, shape: Shape) -> bool:
        warm = self.capacity.warm_pool_for(shape)
        if not self.capacity.fits(job, shape, warm):
            return False
        ahead = () if self.capacity.is_held(job, shape) else self.front.ahead(job, shape.vector)
        until = self._frees_by(job, shape)
        if not self.front.admits(job, shape.vector, ahead, ends_by=until):
            return False
        self.front.passes(job, shape.vector, ahead, ends_by=until)
        charge = self.budgets.charge(job, shape)
        start = self.capacity.start(job, shape, warm, charge=charge, backfills=bool(ahead))
        probes_role, throttle = self.pauses.tries(job), self.throttles.throttle(job)
        self.actions.append(replace(start, probes_role=probes_role, throttle=throttle))
        self.quotas.start(job, shape.vector)
        self.ahead.start(job, shape.vector, until=until)
        self.budgets.commit(job.team, charge)
        self.started.add(job.name)
        return True

    def _frees_by(self, job: WaitingJob, shape: Shape) -> datetime:
        return frees_by(job, shape, self.pool, self.snapshot, now=self.now)

    def _wait_for_victims(self, job: WaitingJob) -> None:
        hold = self.capacity.holds[job.name]
        self.front.makes_room(job, hold.vector)
        if hold.goes_on and not job.is_refused and (preemption := self.preemptions.rest(job, hold)):
            self._preempt(preemption, beside=self.preemptions.stopping_for(hold))
            return
        if victims := self.preemptions.stopping_for(hold):
            self.reasons[job.name] = wait_reasons.making_room(hold.vector, victims, to=job.team)
            return
        free = total((self.capacity.free.of(job.team), hold.vector))
        released = self.capacity.release_for(hold.vector, free)
        self.reasons[job.name] = (
            wait_reasons.releasing(hold.vector, released)
            if released
            else wait_reasons.short(hold.vector, free)
        )

    def _makes_room(self, job: WaitingJob, shape: Shape) -> bool:
        """Give up warm pools first, then stop running jobs; neither if that is not enough."""
        ahead = self.front.ahead(job, shape.vector)
        if not self.front.admits(job, shape.vector, ahead, ends_by=self._frees_by(job, shape)):
            return self._preempts(job, shape, ahead)
        coming = fits(shape.vector, self.capacity.soon.of(job.team))
        released = self.capacity.release_for(shape.vector, self.capacity.free.of(job.team))
        if not released and not coming:
            released = self.capacity.release_for(shape.vector, self.capacity.soon.of(job.team))
        if released:
            self.reasons[job.name] = wait_reasons.releasing(shape.vector, released)
        elif coming:
            self.reasons[job.name] = why_soon(self.capacity, shape.vector, team=job.team)
            self.capacity.soon.give(job.team, shape.vector)
        else:
            return self._preempts(job, shape, ahead)
        self._reserve(job, (shape,))
        return True

    def _preempt_own(self, job: WaitingJob) -> None:
        """Preempt for a job that a limit keeps from starting: of its team's loans, or of the account."""
        if job.is_refused or self.pauses.key_of(job) is not None:
            return
        refused = [(shape, self._refusal(job, shape)) for shape in self._choices(job)]
        own = least_shapes(job, [shape for shape, why in refused if is_limited(shape, why, self.capacity)])
        shapes = [shape for shape in own if not self.quotas.loan_refusal(job, shape.vector)]
        if shapes and job.name in self.capacity.holds:
            self._wait_for_victims(job)
        elif shapes and (futile := self.preemptions.wait_of(job)) is not None:
            first = next(why for _, why in refused if why is not None)
            self.reasons[job.name] = wait_reasons.with_wait(first, futile)
        else:
            any(self._preempts(job, shape, self.front.ahead(job, shape.vector)) for shape in shapes)

    def _preempts(self, job: WaitingJob, shape: Shape, ahead: Sequence[BackfillReservation]) -> bool:
        key = (self.preemptions.asks_no_price(job), *self.quotas.party(job), *shape.vector.items())
        if self.hopeless.get(key, -1) >= job.priority or self.preemptions.wait_of(job) is not None:
            return False
        preemptor = Preemptor(job=job, shape=shape, tier=self.quotas.tier(job.name))
        preemption = self.preemptions.first(preemptor, ahead, until=self._frees_by(job, shape))
        if not isinstance(preemption, Preempt):
            self.hopeless[key] = job.priority
            if preemption is not None:
                self.not_worth.setdefault(job.name, preemption)
            return False
        self.front.makes_room(job, shape.vector)
        self._preempt(preemption)
        return True

    def _preempt(self, preemption: Preempt, *, beside: Sequence[RunningJob] = ()) -> None:
        job, victims = preemption.job, (*beside, *preemption.victims)
        self.actions.append(preemption)
        self.reasons[job.name] = wait_reasons.making_room(preemption.shape.vector, victims, to=job.team)

    def _wait(self, job: WaitingJob, shapes: tuple[Shape, ...]) -> None:
        vector, futile = shapes[0].vector, self.preemptions.wait_of(job)
        ahead, free = self.front.ahead(job, vector), self.capacity.free.of(job.team)
        if ahead and self.pool.order.backfill and self.capacity.fits(job, shapes[0], None):
            ends_by = self._frees_by(job, shapes[0])
            self.reasons[job.name] = wait_reasons.reserved(job, vector, ahead[0], until=ends_by)
        elif kept := self.ahead.kept(job, vector, self.capacity.free):
            self.reasons[job.name] = kept
        elif futile is not None:
            self.reasons[job.name] = wait_reasons.with_wait(wait_reasons.short(vector, free), futile)
        elif job.name in self.not_worth:
            rest = {capacity: free.get(capacity, 0) for capacity in vector}
            quote = self.not_worth[job.name]
            self.reasons[job.name] = Later(partial(wait_reasons.not_worth, vector, rest, quote, to=job.team))
        elif first := next(iter(ahead), None) or self.front.holder(vector):
            self.reasons[job.name] = self.front.behind(job, first)
            if self.front.is_reserved(job, vector):
                self.answered.note(job, first)
        else:
            self.reasons[job.name] = wait_reasons.short(vector, free)
        self.preemptions.goes_ahead(vector)
        if futile is None:  # AWS does not serve it: nobody waits for what it could not use anyway
            self._reserve(job, shapes)

    def _reserve(self, job: WaitingJob, shapes: tuple[Shape, ...]) -> None:
        """Keep the job's place: the first to wait for a type has it reserved."""
        kept = reservable(shapes)
        if not all(self.front.is_reserved(job, shape.vector) for shape in kept):
            free = self.capacity.free_with_warm(job.team)
            self.front.reserve(reserve(job, kept, free=free, ends=self._ends.of(job.team), now=self.now))

    @cached_property
    def answered(self) -> SameAnswers:
        asks_no_price = self.preemptions.asks_no_price
        answers = SameAnswers(snapshot=self.snapshot, quotas=self.quotas, asks_no_price=asks_no_price)
        return replace(answers, are_kept=not self.pool.plans)

    @cached_property
    def preemptions(self) -> Preemptions:
        rules = self.pool.preemption
        return Preemptions(
            snapshot=self.snapshot, rules=rules, now=self.now, capacity=self.capacity, quotas=self.quotas
        )

    @cached_property
    def _ends(self) -> TeamEnds:
        running = self.snapshot.running
        return TeamEnds(running=running, on_reserved=self.capacity.on_reserved, now=self.now)
