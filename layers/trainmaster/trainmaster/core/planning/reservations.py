"""Preemption reservations of a pool: placed with a preemption, continued, limited, ended."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter

from trainmaster.core.jobs.futile_preemptions import FutilePreemptions
from trainmaster.core.jobs.instances import Capacity, Shape, Vector
from trainmaster.core.planning.actions import Action, Preempt
from trainmaster.core.planning.backfill import BackfillReservation
from trainmaster.core.planning.capacity import ASKED_TO_STOP, lacking, on_its_way
from trainmaster.core.planning.expected_ends import ExpectedEnds
from trainmaster.core.planning.free_capacity import FreeCapacity
from trainmaster.core.planning.preemption import (
    Chosen,
    Preemptor,
    cost_of_stop,
    is_spared,
    reclaims,
    stoppable,
)
from trainmaster.core.planning.preemption_cost import PreemptionPrices
from trainmaster.core.planning.preemption_waits import PreemptionWaits
from trainmaster.core.planning.preemption_worth import NotWorth, price_refusal
from trainmaster.core.planning.quotas import COVERED, Quotas
from trainmaster.core.planning.snapshot import PreemptionReservation, RunningJob, Snapshot, WaitingJob
from trainmaster.core.planning.superfluous_victims import least_stops
from trainmaster.core.planning.team_victims import TeamVictims
from trainmaster.core.planning.victims import Victims
from trainmaster.core.policy import Preemption

MAX_RESERVATIONS = 256
"""Most reservations at a time: they are kept in the pool's counters, a row that each claim writes."""


@dataclass(kw_only=True)
class Preemptions:
    """Preemptions of a plan: which jobs it stops for which waiting job."""

    snapshot: Snapshot
    rules: Preemption
    now: datetime
    capacity: FreeCapacity
    quotas: Quotas

    def first(
        self, preemptor: Preemptor, ahead: Sequence[BackfillReservation], *, until: datetime
    ) -> Preempt | NotWorth | None:
        """Choose victims and place a reservation, if that is worth it.

        None is returned if too few jobs can be stopped, or a job ahead would start later for it.

        Args:
            preemptor: A job that does not fit in this shape.
            ahead: Reservations of the jobs before it on the same types.
            until: When the preemptor would be certain to have given its instances back.
        """
        if len(self.capacity.holds) >= MAX_RESERVATIONS or not self._may_outrank(preemptor):
            return None
        preemption = self._placed(preemptor, ahead, until=until, cheapest=False)
        if not isinstance(preemption, NotWorth) or self._has_no_other_choice(preemptor, preemption):
            return preemption
        return self._placed(preemptor, ahead, until=until, cheapest=True) or preemption

    def _has_no_other_choice(self, preemptor: Preemptor, refusal: NotWorth) -> bool:
        """Tell whether the least cost, whatever the priority, is that of the victims that were refused."""
        if self.asks_no_price(preemptor.job) or self._excess(preemptor.job.team, preemptor.shape.vector):
            return False
        return self._stoppable.of(preemptor.job.team).are_of_one_rank(refusal.quote.chosen.short, preemptor)

    def asks_no_price(self, job: WaitingJob) -> bool:
        """Tell whether the job has waited so long that others are stopped for it whatever it costs."""
        return self.prices is not None and self.prices.asks_no_price(job)

    def _placed(
        self,
        preemptor: Preemptor,
        ahead: Sequence[BackfillReservation],
        *,
        until: datetime,
        cheapest: bool,
    ) -> Preempt | NotWorth | None:
        """Place a reservation for the victims of lowest priority, or with ``cheapest`` for the least cost."""
        chosen = self._chosen(preemptor, cheapest=cheapest)
        vector, victims = preemptor.shape.vector, chosen.victims
        ahead = self._delayed(preemptor, ahead, victims)
        if not victims or not all(
            reservation.admits(vector, ends_by=until, instead_of=victims) for reservation in ahead
        ):
            return None
        reclaimed = self._reclaimed(preemptor, chosen)
        if (refusal := self._refusal(preemptor, chosen, reclaims=bool(reclaimed))) and not (
            cheapest and self.asks_no_price(preemptor.job)
        ):
            return refusal
        for reservation in ahead:
            reservation.passed_by(vector, ends_by=until, instead_of=victims)
        preemption = self.capacity.preempt(preemptor, chosen, reclaimed=reclaimed)
        self._take(victims)
        return preemption

    def _delayed(
        self, preemptor: Preemptor, ahead: Sequence[BackfillReservation], victims: Sequence[RunningJob]
    ) -> Sequence[BackfillReservation]:
        """Return those ahead that it could delay: no others if all it takes is reserved for its team."""
        team = preemptor.job.team
        if self.capacity.soon.reserved.without(victims).beyond(team, preemptor.shape.vector):
            return ahead
        return [reservation for reservation in ahead if reservation.job.team == team]

    def rest(self, job: WaitingJob, hold: PreemptionReservation) -> Preempt | None:
        """Continue a preemption whose victims were not all asked, as a pass ended or lost a race in between.

        Further victims are stopped as far as they are still needed, and none if they are not enough any more.

        Args:
            job: The job that the reservation is for.
            hold: The reservation, with the instances that are still to be freed.
        """
        shape = next(
            (shape for shape in job.shapes if shape.vector == hold.vector), Shape(vector=hold.vector)
        )
        preemptor = Preemptor(job=job, shape=shape, tier=self.quotas.tier(job.name))
        chosen = self._others(preemptor, hold)
        reclaimed = self._reclaimed(preemptor, chosen)
        preemption = self.capacity.go_on(preemptor, chosen, hold, reclaimed=reclaimed)
        self._take(chosen.victims)
        return preemption

    def least_stops(self, actions: Sequence[Action], *, spare: Mapping[Capacity, int]) -> list[Action]:
        """Return the actions of the plan without superfluous victims (``superfluous_victims``).

        A team above its borrowing limit needs victims of its own.
        """
        own = {
            action.job.name
            for action in actions
            if isinstance(action, Preempt) and self._excess(action.job.team, action.shape.vector)
        }
        cost = partial(cost_of_stop, now=self.now) if self.prices is None else self.prices.of_stop
        return least_stops(actions, spare=spare, cost=cost, kept=own)

    def goes_ahead(self, vector: Vector) -> None:
        """Count a job that waits: instances that come free by themselves go to jobs in their order."""
        if self.prices is not None:
            self.prices.ends.goes_ahead(vector)

    def stopping_for(self, hold: PreemptionReservation) -> list[RunningJob]:
        """Return the jobs that were asked to stop for a reservation and still hold instances."""
        # Earlier releases named the victims in the reservation; now each victim names its preemptor.
        named = [self._stopping[name] for name in hold.victims if name in self._stopping]
        own = self._stopping.get(hold.preemptor)  # an elastic job keeps room for itself while it stops
        return [
            *((own,) if own is not None else ()),
            *self._asked_for.get(hold.preemptor, ()),
            *(victim for victim in named if not victim.preempted_for),
        ]

    def wait_of(self, job: WaitingJob) -> FutilePreemptions | None:
        """Return why a job may not preempt again yet, as the last times did not help; None if it may."""
        return self._waits.of(job)

    def _may_outrank(self, preemptor: Preemptor) -> bool:
        """Tell whether there is any job that it may stop, enough or not.

        Finding out whether they are enough would cost far more.
        """
        below = preemptor.job.priority - self.rules.min_priority_gap
        return any(
            tier > preemptor.tier or (tier == preemptor.tier and lowest <= below)
            for tier, lowest in self._lowest.items()
        )

    @cached_property
    def _highest(self) -> int | None:
        """Highest priority of all jobs of the pool."""
        present = chain(self.snapshot.running, self.snapshot.waiting)
        return max(map(attrgetter("priority"), present), default=None)

    @cached_property
    def _lowest(self) -> dict[int, int]:
        """Lowest priority of the jobs that may be stopped, by tier."""
        lowest: dict[int, int] = {}
        tiers = self.quotas.tiers
        for job in stoppable(self.snapshot.running, self.rules, now=self.now):
            tier = tiers.get(job.name, COVERED) if tiers else COVERED
            if is_spared(job, self.rules) and tier == COVERED:
                continue
            if tier not in lowest or job.priority < lowest[tier]:
                lowest[tier] = job.priority
        return lowest

    def _chosen(self, preemptor: Preemptor, *, cheapest: bool) -> Chosen:
        vector, team = preemptor.shape.vector, preemptor.job.team
        free, excess = self.capacity.soon_with_warm(team), self._excess(team, vector)
        stoppable = self._stoppable.of(team)
        if not excess:
            return stoppable.chosen_for(preemptor, free=free, cheapest=cheapest)
        within = {
            capacity: min(free.get(capacity, 0), count - excess.get(capacity, 0))
            for capacity, count in vector.items()
        }
        # Only a stop of the team's own jobs brings it back below its borrowing limit, whatever is free.
        own = stoppable.of_team(team)
        return own.chosen_for(preemptor, free=within, cheapest=cheapest)

    def _others(self, preemptor: Preemptor, hold: PreemptionReservation) -> Chosen:
        team, missing = preemptor.job.team, hold.missing or {}
        # Less is lacking if some came free meanwhile, never more.
        free = {capacity: max(count, 0) for capacity, count in self.capacity.soon.of(team).items()}
        short, stoppable = lacking(missing, free), self._stoppable.of(team)
        own = on_its_way(job for job in self._stopping.values() if job.team == team)
        excess = {
            capacity: n - own.get(capacity, 0) for capacity, n in self._excess(team, hold.vector).items()
        }
        if all(count <= 0 for count in excess.values()):
            return self._least(stoppable, short, preemptor)
        # The team is above its borrowing limit: its own jobs free what is lacking and what exceeds the limit.
        both = {
            capacity: min(n, max(short.get(capacity, 0), excess.get(capacity, 0)))
            for capacity, n in missing.items()
        }
        own_short = {capacity: count for capacity, count in both.items() if count > 0}
        return self._least(stoppable.of_team(team), own_short, preemptor)

    def _least(self, stoppable: Victims, short: Vector, preemptor: Preemptor) -> Chosen:
        """Choose the lowest priority if that is worth it, else the cheapest, as some were asked already."""
        chosen = stoppable.least(short, preemptor)
        if not chosen.victims:
            return chosen
        if self._refusal(preemptor, chosen, reclaims=bool(self._reclaimed(preemptor, chosen))) is None:
            return chosen
        return stoppable.least(short, preemptor, cheapest=True)

    def _excess(self, team: str, vector: Vector) -> Vector:
        """Return by how much the team would exceed its borrowing limit; only its own jobs can end that."""
        return self.quotas.excess(team, vector) if self.quotas.quotas else {}

    def _refusal(self, preemptor: Preemptor, chosen: Chosen, *, reclaims: bool) -> NotWorth | None:
        """Return why the price keeps these from being stopped; None: it does not."""
        if self.prices is None:
            return None
        return price_refusal(self.prices, preemptor, chosen, reclaims=reclaims)

    def _reclaimed(self, preemptor: Preemptor, chosen: Chosen) -> frozenset[str]:
        victims = (victim for victim in chosen.victims if reclaims(victim, preemptor, self.quotas))
        return frozenset(victim.name for victim in victims)

    def _take(self, victims: Iterable[RunningJob]) -> None:
        self._stoppable.take(victims)
        if self.prices is not None:
            for victim in victims:
                self.prices.ends.stopped(victim)

    @cached_property
    def _stoppable(self) -> TeamVictims:
        make = partial(Victims.of, quotas=self.quotas, rules=self.rules, now=self.now, prices=self.prices)
        on_reserved = self.capacity.on_reserved
        return TeamVictims(running=self.snapshot.running, on_reserved=on_reserved, make=make)

    @cached_property
    def prices(self) -> PreemptionPrices | None:
        """Prices of stops; None if the policy has none, so that each preemption is worth it."""
        if not self.rules.cost.enabled:
            return None
        ends = ExpectedEnds(running=self.snapshot.running, now=self.now)
        return PreemptionPrices(
            rules=self.rules.cost,
            ends=ends,
            now=self.now,
            highest=self._highest,
            start_records=self.snapshot.start_records,
            has_recent_stops=any(
                job.stops is not None and job.stops.are_recent(now=self.now) for job in self.snapshot.running
            ),
        )

    @cached_property
    def _waits(self) -> PreemptionWaits:
        return PreemptionWaits(snapshot=self.snapshot, now=self.now)

    @cached_property
    def _stopping(self) -> dict[str, RunningJob]:
        return {job.name: job for job in self.snapshot.running if job.state in ASKED_TO_STOP}

    @cached_property
    def _asked_for(self) -> dict[str, list[RunningJob]]:
        by_preemptor = defaultdict(list)
        for job in self._stopping.values():
            if job.preempted_for is not None:
                by_preemptor[job.preempted_for].append(job)
        return by_preemptor
