"""Preemption reservations of a pool: placed with a preemption, continued, limited, ended."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import chain

from trainmaster.core.jobs.futile_preemptions import FutilePreemptions
from trainmaster.core.jobs.instances import Shape, Vector
from trainmaster.core.planning.actions import EndReservation, LimitReservation, Preempt
from trainmaster.core.planning.backfill import BackfillReservation
from trainmaster.core.planning.capacity import ASKED_TO_STOP, on_its_way
from trainmaster.core.planning.expected_ends import ExpectedEnds
from trainmaster.core.planning.free_capacity import FreeCapacity
from trainmaster.core.planning.preemption import Chosen, Preemptor, is_spared, reclaims, stoppable
from trainmaster.core.planning.preemption_cost import NotWorth, PreemptionPrices
from trainmaster.core.planning.preemption_waits import PreemptionWaits
from trainmaster.core.planning.quotas import COVERED, Quotas
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, Snapshot, WaitingJob
from trainmaster.core.planning.victims import Victims
from trainmaster.core.policy import Preemption

HOLD_LIFE = timedelta(minutes=15)
"""Time after its last victim's end in which a preemptor must start, or it loses its capacity."""
MAX_RESERVATIONS = 256
"""Most at a time: they are kept in the pool's counters, a row that each claim of the pool writes."""


@dataclass(kw_only=True)
class Preemptions:
    """Preemptions of a plan: which jobs it stops for which."""

    snapshot: Snapshot
    rules: Preemption
    now: datetime
    capacity: FreeCapacity
    quotas: Quotas

    def first(
        self, preemptor: Preemptor, ahead: Sequence[BackfillReservation], *, until: datetime
    ) -> Preempt | NotWorth | None:
        """Place a reservation, if it is worth it; None if too few can be stopped, or those ahead suffer.

        Args:
            preemptor: A job that fits nowhere.
            ahead: Reservations of those before it on the same types.
            until: When it would be certain to have given its instances back.
        """
        if len(self.capacity.holds) >= MAX_RESERVATIONS or not self._may_outrank(preemptor):
            return None
        found = self._first(preemptor, ahead, until=until, cheapest=False)
        if not isinstance(found, NotWorth):
            return found
        return self._first(preemptor, ahead, until=until, cheapest=True) or found

    def asks_no_price(self, job: WaitingJob) -> bool:
        """Tell whether the job has waited so long that others are stopped for it whatever it costs."""
        return self.prices is not None and self.prices.asks_no_price(job)

    def _first(
        self,
        preemptor: Preemptor,
        ahead: Sequence[BackfillReservation],
        *,
        until: datetime,
        cheapest: bool,
    ) -> Preempt | NotWorth | None:
        """Place a reservation.

        ``cheapest`` takes the victims that cost least, if the lowest priority is not worth it.
        """
        chosen = self._chosen(preemptor, cheapest=cheapest)
        vector, victims = preemptor.shape.vector, chosen.victims
        if not victims or not all(one.admits(vector, ends_by=until, instead_of=victims) for one in ahead):
            return None
        reclaimed = self._reclaimed(preemptor, chosen)
        if (no := self._refusal(preemptor, chosen, reclaims=bool(reclaimed))) and not (
            cheapest and self.asks_no_price(preemptor.job)
        ):
            return no
        for one in ahead:
            one.passed_by(vector, ends_by=until, instead_of=victims)
        found = self.capacity.preempt(preemptor, chosen, reclaimed=reclaimed)
        self._take(victims)
        return found

    def rest(self, job: WaitingJob, hold: PreemptionReservation) -> Preempt | None:
        """Continue one whose victims were not all asked, as a pass ended in between, or lost a race.

        The others are asked as far as they are still needed, and none if they are not enough any more.
        """
        shape = next((one for one in job.shapes if one.vector == hold.vector), Shape(vector=hold.vector))
        preemptor = Preemptor(job=job, shape=shape, tier=self.quotas.tier(job.name))
        chosen = self._others(preemptor, hold)
        reclaimed = self._reclaimed(preemptor, chosen)
        found = self.capacity.go_on(preemptor, chosen, hold, reclaimed=reclaimed)
        self._take(chosen.victims)
        return found

    def goes_ahead(self, vector: Vector) -> None:
        """Count a waiting job, as what comes free by itself goes to those that wait, in their order."""
        if self.prices is not None:
            self.prices.ends.goes_ahead(vector)

    def stopping_for(self, hold: PreemptionReservation) -> list[RunningJob]:
        """Return the jobs that were asked to stop for it and still hold instances."""
        named = [self._stopping[name] for name in hold.victims if name in self._stopping]
        return [*self._asked_for.get(hold.preemptor, ()), *(one for one in named if not one.preempted_for)]

    def wait_of(self, job: WaitingJob) -> FutilePreemptions | None:
        """Return why no job is stopped for it yet, as the last times did not help; None: nothing keeps it."""
        return self._waits.of(job)

    def _may_outrank(self, preemptor: Preemptor) -> bool:
        """Tell whether there is any job that it may stop, enough or not; more would cost far more to find."""
        below = preemptor.job.priority - self.rules.min_priority_gap
        return any(
            tier > preemptor.tier or (tier == preemptor.tier and lowest <= below)
            for tier, lowest in self._lowest.items()
        )

    @cached_property
    def _highest(self) -> int | None:
        """Highest priority of all jobs of the pool."""
        runs = (job.priority for job in self.snapshot.running)
        waits = (job.priority for job in self.snapshot.waiting)
        return max(chain(runs, waits), default=None)

    @cached_property
    def _lowest(self) -> dict[int, int]:
        """Lowest priority of those that may be stopped, by tier."""
        found: dict[int, int] = {}
        tiers = self.quotas.tiers
        for one in stoppable(self.snapshot.running, self.rules, now=self.now):
            tier = tiers.get(one.name, COVERED) if tiers else COVERED
            if is_spared(one, self.rules) and tier == COVERED:
                continue
            if tier not in found or one.priority < found[tier]:
                found[tier] = one.priority
        return found

    def _chosen(self, preemptor: Preemptor, *, cheapest: bool) -> Chosen:
        vector, team = preemptor.shape.vector, preemptor.job.team
        free, excess = self.capacity.soon_with_warm(), self._excess(team, vector)
        if not excess:
            return self._stoppable.chosen_for(preemptor, free=free, cheapest=cheapest)
        within = {one: min(free.get(one, 0), count - excess.get(one, 0)) for one, count in vector.items()}
        own = self._stoppable.of_team(team)
        return own.chosen_for(preemptor, free=within, cheapest=cheapest)

    def _others(self, preemptor: Preemptor, hold: PreemptionReservation) -> Chosen:
        team, missing = preemptor.job.team, hold.missing or {}
        short = self.capacity.lacks(hold)
        own = on_its_way(one for one in self._stopping.values() if one.team == team)
        excess = {one: n - own.get(one, 0) for one, n in self._excess(team, hold.vector).items()}
        if all(count <= 0 for count in excess.values()):
            return self._least(self._stoppable, short, preemptor)
        both = {one: min(n, max(short.get(one, 0), excess.get(one, 0))) for one, n in missing.items()}
        lacking = {one: count for one, count in both.items() if count > 0}
        return self._least(self._stoppable.of_team(team), lacking, preemptor)

    def _least(self, stoppable: Victims, short: Vector, preemptor: Preemptor) -> Chosen:
        """Choose the lowest priority if that is worth it, else the cheapest, as some were asked already."""
        chosen = stoppable.least(short, preemptor)
        if not chosen.victims:
            return chosen
        if self._refusal(preemptor, chosen, reclaims=bool(self._reclaimed(preemptor, chosen))) is None:
            return chosen
        return stoppable.least(short, preemptor, cheapest=True)

    def _excess(self, team: str, vector: Vector) -> Vector:
        """Return what exceeds its borrowing limit; only its own jobs bring a team back below it."""
        return self.quotas.excess(team, vector) if self.quotas.quotas else {}

    def _refusal(self, preemptor: Preemptor, chosen: Chosen, *, reclaims: bool) -> NotWorth | None:
        """Return why the price keeps these from being stopped; None: it does not."""
        return None if self.prices is None else self.prices.refusal(preemptor, chosen, reclaims=reclaims)

    def _reclaimed(self, preemptor: Preemptor, chosen: Chosen) -> frozenset[str]:
        victims = (victim for victim in chosen.victims if reclaims(victim, preemptor, self.quotas))
        return frozenset(victim.name for victim in victims)

    def _take(self, victims: Iterable[RunningJob]) -> None:
        self._stoppable.take(victims)
        if self.prices is not None:
            for one in victims:
                self.prices.ends.stopped(one)

    @cached_property
    def _stoppable(self) -> Victims:
        return Victims.of(
            self.snapshot.running, self.quotas, rules=self.rules, now=self.now, prices=self.prices
        )

    @cached_property
    def prices(self) -> PreemptionPrices | None:
        """Prices of stops; None: each preemption is worth it."""
        if not self.rules.cost.enabled:
            return None
        ends = ExpectedEnds(running=self.snapshot.running, now=self.now)
        return PreemptionPrices(rules=self.rules.cost, ends=ends, now=self.now, highest=self._highest)

    @cached_property
    def _waits(self) -> PreemptionWaits:
        return PreemptionWaits(snapshot=self.snapshot, now=self.now)

    @cached_property
    def _stopping(self) -> dict[str, RunningJob]:
        return {one.name: one for one in self.snapshot.running if one.state in ASKED_TO_STOP}

    @cached_property
    def _asked_for(self) -> dict[str, list[RunningJob]]:
        by_preemptor = defaultdict(list)
        for one in self._stopping.values():
            if one.preempted_for is not None:
                by_preemptor[one.preempted_for].append(one)
        return by_preemptor


def ended(
    snapshot: Snapshot, *, now: datetime, given_up: Collection[PreemptionReservation] = ()
) -> list[EndReservation]:
    """End those whose preemptor is gone or did not start in time, and those that were given up."""
    return [
        EndReservation(hold=hold)
        for hold in snapshot.holds
        if hold.preemptor in snapshot.gone_preemptors
        or (hold.until is not None and hold.until <= now)
        or hold in given_up
    ]


def limited(
    holds: Iterable[PreemptionReservation], preemptions: Preemptions, *, now: datetime
) -> list[LimitReservation]:
    """Limit those for which no job is stopping any more, and no other is asked to."""
    return [
        LimitReservation(hold=hold, until=now + HOLD_LIFE)
        for hold in holds
        if hold.until is None and not preemptions.stopping_for(hold)
    ]
