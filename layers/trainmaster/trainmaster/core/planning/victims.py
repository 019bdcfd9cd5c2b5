"""Victims that a plan may choose, sorted once: the time for a preemptor grows with what it takes alone."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, partial
from heapq import merge
from itertools import groupby

from trainmaster.core.jobs.instances import Capacity, Vector, fits, total
from trainmaster.core.planning.capacity import lacking, minus, take
from trainmaster.core.planning.preemption import (
    Chosen,
    Preemptor,
    cost_of_stop,
    ending_soon,
    is_spared,
    stoppable,
)
from trainmaster.core.planning.preemption_cost import PreemptionPrices
from trainmaster.core.planning.quotas import BORROWER, COVERED, Quotas
from trainmaster.core.planning.shrinks import first_borrowed, is_enough, kept_of, takes_covered
from trainmaster.core.planning.snapshot import Held, RunningJob
from trainmaster.core.planning.victim_groups import Alike, Choice, Group, Turn
from trainmaster.core.policy import Preemption


@dataclass(kw_only=True)
class Victims:
    """The running jobs of a pool that its rules allow to be stopped."""

    running: tuple[RunningJob, ...]
    quotas: Quotas
    rules: Preemption
    now: datetime
    groups: dict[tuple[int, int], Group]
    """Groups of jobs that hold the same instances, by tier (borrowers first) and priority (lowest first)."""
    ending: dict[Capacity, int]
    """Instances that are certain to be free within ``preempt_delay``."""
    prices: PreemptionPrices | None = None
    """Prices of stops; None: the least work lost goes first among equals, and every stop is worth it."""
    by_team: dict[str, "Victims"] = field(default_factory=dict)
    """Victims among the jobs of one team alone, kept once they are needed."""
    taken: set[str] = field(default_factory=set)
    """Names of jobs that this plan stops."""

    @classmethod
    def of(
        cls,
        running: tuple[RunningJob, ...],
        quotas: Quotas,
        *,
        rules: Preemption,
        now: datetime,
        prices: PreemptionPrices | None = None,
    ) -> "Victims":
        cost = partial(cost_of_stop, now=now) if prices is None else prices.of_stop
        by_kind: defaultdict[tuple[int, int, Held, bool], list[RunningJob]] = defaultdict(list)
        tiers = quotas.tiers
        for job in stoppable(running, rules, now=now):
            tier = tiers.get(job.name, COVERED) if tiers else COVERED
            if not (spared := is_spared(job, rules)) or tier == BORROWER:
                by_kind[tier, job.priority, job.held, spared].append(job)
        groups: defaultdict[tuple[int, int], Group] = defaultdict(dict)
        for (tier, priority, held, spared), jobs in by_kind.items():
            alike = Alike(
                vector=jobs[0].vector, tier=tier, priority=priority, is_spared=spared, cost=cost, jobs=jobs
            )
            groups[-tier, priority][held, spared] = alike
        ending = total(job.vector for job in ending_soon(running, rules, now=now))
        ordered = dict(sorted(groups.items()))
        return cls(
            running=running,
            quotas=quotas,
            rules=rules,
            now=now,
            groups=ordered,
            ending=ending,
            prices=prices,
        )

    def of_team(self, team: str) -> "Victims":
        """Return the victims among the team's own jobs."""
        if team not in self.by_team:
            own = tuple(job for job in self._teams.get(team, ()) if job.name not in self.taken)
            self.by_team[team] = Victims.of(
                own, self.quotas, rules=self.rules, now=self.now, prices=self.prices
            )
        return self.by_team[team]

    @cached_property
    def _teams(self) -> dict[str, list[RunningJob]]:
        teams: defaultdict[str, list[RunningJob]] = defaultdict(list)
        for job in self.running:
            teams[job.team].append(job)
        return teams

    @cached_property
    def has_elastic(self) -> bool:
        return any(job.widths is not None for job in self.running)

    def take(self, victims: Iterable[RunningJob]) -> None:
        """Remove jobs that are being stopped, so that they are not counted on any more."""
        for job in victims:
            self.taken.add(job.name)
            self._remove(job)
            if any(ending_soon([job], self.rules, now=self.now)):
                take(self.ending, job.vector)
            if job.team in self.by_team:
                self.by_team[job.team].take([job])

    def _remove(self, job: RunningJob) -> None:
        group = self.groups[-self.quotas.tier(job.name), job.priority]
        key = (job.held, is_spared(job, self.rules))
        group[key].remove(job)
        if not group[key].sorted:
            del group[key]  # an empty group would be looked at by every later preemptor

    def chosen_for(self, preemptor: Preemptor, *, free: Vector, cheapest: bool = False) -> Chosen:
        """Return the jobs to stop so that the preemptor fits.

        They are none if it will fit by itself within ``preempt_delay``.

        Args:
            preemptor: A job that does not fit into ``free``.
            free: Instances that it may use; those of jobs that are already stopping count as free.
            cheapest: As in ``least``.
        """
        vector = preemptor.shape.vector
        if self.rules.preempt_delay and fits(vector, total((free, self.ending))):
            return Chosen()
        return self.least(lacking(vector, free), preemptor, cheapest=cheapest)

    def least(self, short: Vector, preemptor: Preemptor, *, cheapest: bool = False) -> Chosen:
        """Return the jobs that free this much together, all or none.

        Borrowers come before jobs within their team's quota, then the lowest priority first, then the least
        work lost, then an equal warm key, then the fewest jobs; a job that turns out not to be needed is
        spared. With prices (ADR 56) the whole cost of the stop takes the place of the work lost. The caller
        decides whether the preemption is worth that.

        Args:
            short: Instances that are lacking.
            preemptor: The job that they are for.
            cheapest: Whether priorities do not count among the jobs that it may stop: callers set it where
                stopping the lowest priority is not worth it.
        """
        if not short or not self._are_enough(short, preemptor):
            return Chosen()
        order = _Order(victims=self, short=short, preemptor=preemptor, cheapest=cheapest)
        victims = order.first()
        return Chosen(victims=victims, short=short, kept=kept_of(victims, short))

    def _are_enough(self, short: Vector, preemptor: Preemptor) -> bool:
        """Tell whether the jobs that it may stop suffice, counted by groups before any is put in order."""
        missing = dict(short)
        for choice in self.choices(short, preemptor, wait=timedelta()):
            count = choice.count()
            missing = lacking(missing, {capacity: n * count for capacity, n in choice.alike.vector.items()})
            if not missing:
                return True
        return not missing

    def choices(self, short: Vector, preemptor: Preemptor, *, wait: timedelta) -> Iterator[Choice]:
        """Yield the jobs that it may stop and that hold what it lacks, by tier and priority.

        Args:
            short: Instances that are lacking.
            preemptor: The job that they are for.
            wait: Expected wait of a victim for other instances.
        """
        job, tier = preemptor.job, preemptor.tier
        for (_, priority), group in self.groups.items():
            outranked = priority + self.rules.min_priority_gap <= job.priority
            cost_of_wait = 0.0 if self.prices is None else self.prices.of_wait(priority, wait)
            for alike in group.values():
                # All of ``group`` have one tier and priority, so what is true of the first is of the others.
                if alike.tier < tier or (alike.tier == tier and not outranked):
                    break
                is_reclaim = tier == COVERED and alike.tier == BORROWER
                if short.keys().isdisjoint(alike.vector) or (alike.is_spared and not is_reclaim):
                    continue
                is_behind = alike.tier > tier or alike.is_behind(job.rank)
                yield Choice(
                    alike=alike,
                    spared_team=None if outranked and not alike.is_spared else job.team,
                    behind=None if is_behind else job.rank,
                    cost_of_wait=cost_of_wait,
                )

    def are_of_one_rank(self, short: Vector, preemptor: Preemptor) -> bool:
        """Tell whether all that it may stop are of one tier and priority, so ``cheapest`` changes nothing."""
        choices = self.choices(short, preemptor, wait=timedelta())
        return len({(choice.alike.tier, choice.alike.priority) for choice in choices}) <= 1

    def cost(self, victims: tuple[RunningJob, ...], short: Vector) -> float:
        if self.prices is None:
            return sum(cost_of_stop(victim, now=self.now) for victim in victims)
        chosen = Chosen(victims=victims, short=short, kept=kept_of(victims, short))
        return self.prices.of_all(chosen, wait=self.prices.ends.wait(short))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """The order of victims for one preemptor, where enough may be stopped."""

    victims: Victims
    short: Vector
    preemptor: Preemptor
    cheapest: bool

    def first(self) -> tuple[RunningJob, ...]:
        """Return the best set of victims: the first in order, or one large job instead of several small.

        A job that is enough by giving up some of its instances is preferred where that costs no more.
        """
        chosen = _spared(self._enough(), self.short)
        single = self._single(least=chosen)
        sets = [chosen, (single,)] if single else [chosen]
        if covered := self.victims.quotas.covered_widths:
            turns = (job for choices in self._choices() for *_, job in self._turns(choices))
            sets += [borrowed] if (borrowed := first_borrowed(turns, self.short, covered)) else []
        return min([*sets, *self._shrinks(least=chosen)], key=self._worth)

    def _shrinks(self, *, least: tuple[RunningJob, ...]) -> Iterator[tuple[RunningJob, ...]]:
        """Yield each elastic job that is enough and keeps the rest, unless it is of a worse rank."""
        if not self.victims.has_elastic:
            return
        worst = self._worth(least)[:2]
        for choices in self._choices():
            if self._rank(choices[0].alike) > worst:
                return
            for *_, job in self._turns(choices):
                if is_enough(job, self.short):
                    yield (job,)

    def _rank(self, alike: Alike) -> tuple[int, int]:
        """Return the part of the order that comes before any cost."""
        return (-alike.tier, 0 if self.cheapest else alike.priority)

    def _choices(self) -> Iterator[list[Choice]]:
        """Yield lists of groups, those of equal rank together."""
        prices = self.victims.prices
        wait = timedelta() if prices is None else prices.ends.wait(self.short)
        choices = self.victims.choices(self.short, self.preemptor, wait=wait)
        for _, alike in groupby(choices, lambda choice: self._rank(choice.alike)):
            yield list(alike)

    def _turns(self, choices: Iterable[Choice]) -> Iterator[Turn]:
        return merge(*(choice.turns(self.short, self.preemptor.shape.warm_key) for choice in choices))

    def _enough(self) -> tuple[RunningJob, ...]:
        chosen: list[RunningJob] = []
        missing = dict(self.short)
        for choices in self._choices():
            useful = [choice for choice in choices if not missing.keys().isdisjoint(choice.alike.vector)]
            for *_, victim in self._turns(useful):
                if not missing.keys().isdisjoint(victim.vector):
                    chosen.append(victim)
                    missing = lacking(missing, victim.vector)
                if not missing:
                    return tuple(chosen)
        return ()

    def _single(self, *, least: tuple[RunningJob, ...]) -> RunningJob | None:
        """Return the best job that is enough by itself, unless it is of a worse rank than ``least``."""
        worst = self._worth(least)[:2]
        for choices in self._choices():
            if self._rank(choices[0].alike) > worst:
                return None
            large = [choice for choice in choices if fits(self.short, choice.alike.vector)]
            turn = next(self._turns(large), None)
            if turn is not None:
                return turn[-1]
        return None

    def _worth(self, chosen: tuple[RunningJob, ...]) -> tuple[int, int, float, int, int]:
        """Return the sort key of a set of victims; lower is better."""
        warm_key, quotas = self.preemptor.shape.warm_key, self.victims.quotas
        reaches = takes_covered(chosen, self.short, quotas.covered_widths)
        return (
            -COVERED if reaches else -min(quotas.tier(victim.name) for victim in chosen),
            0 if self.cheapest else max(victim.priority for victim in chosen),
            self.victims.cost(chosen, self.short),
            sum(warm_key is None or victim.warm_key != warm_key for victim in chosen),
            len(chosen),
        )


def _spared(chosen: tuple[RunningJob, ...], short: Vector) -> tuple[RunningJob, ...]:
    """Drop, from the most valuable down, each victim the others suffice without."""
    spare = minus(total(victim.vector for victim in chosen), short)
    dropped: set[str] = set()
    for victim in reversed(chosen):
        if all(spare[capacity] >= victim.vector.get(capacity, 0) for capacity in short):
            take(spare, victim.vector)
            dropped.add(victim.name)
    return tuple(victim for victim in chosen if victim.name not in dropped)
