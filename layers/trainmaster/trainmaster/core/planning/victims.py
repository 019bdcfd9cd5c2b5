"""Whom a plan may stop, sorted once: each preemptor costs by what it takes, not by how many run."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, partial
from heapq import merge
from itertools import groupby
from typing import TypeAlias

from trainmaster.core.jobs.instances import Capacity, Vector, fits
from trainmaster.core.planning.capacity import lacking, minus, take
from trainmaster.core.planning.preemption import Chosen, Preemptor, cost_of_stop, ending_soon, stoppable
from trainmaster.core.planning.preemption_cost import PreemptionPrices
from trainmaster.core.planning.quotas import COVERED, Quotas
from trainmaster.core.planning.snapshot import RunningJob, total
from trainmaster.core.policy import Preemption

_Entry: TypeAlias = tuple[float, int, str, RunningJob]
"""What its stop costs, its score negated, its name."""
_Turn: TypeAlias = tuple[float, bool, int, str, RunningJob]
"""Who of equal tier and priority goes first: cost for each useful instance, another warm key, as above."""


@dataclass(slots=True, kw_only=True)
class _Alike:
    """Jobs of one tier and priority that hold the same instances."""

    vector: Vector
    tier: int
    priority: int
    cost: Callable[[RunningJob], float]
    """Of the stop of one."""
    jobs: list[RunningJob] = field(default_factory=list)
    """Until somebody has to choose among them."""
    sorted: list[_Entry] | None = None
    by_warm_key: dict[str, list[_Entry]] = field(default_factory=dict)
    teams: Counter[str] | None = None
    """How many of each team; once somebody asked."""
    first: tuple[int, str] | None = None
    """A rank that none of them is before; once somebody asked."""

    def count(self, *, but: str | None) -> int:
        """How many there are, but those of one team."""
        if self.teams is None:
            self.teams = Counter(job.team for job in self._all())
        return self.teams.total() - (self.teams[but] if but is not None else 0)

    def is_behind(self, rank: tuple[int, str]) -> bool:
        """Whether all of them rank behind."""
        if self.first is None:
            self.first = min((job.rank for job in self._all()), default=rank)
        return self.first > rank

    def _all(self) -> Iterable[RunningJob]:
        return self.jobs if self.sorted is None else (entry[-1] for entry in self.sorted)

    def entries(self) -> list[_Entry]:
        """The cheapest to stop first."""
        if self.sorted is None:
            self.sorted = sorted((self.cost(one), -one.rank[0], one.name, one) for one in self.jobs)
            for entry in self.sorted:
                if entry[-1].warm_key is not None:
                    self.by_warm_key.setdefault(entry[-1].warm_key, []).append(entry)
            self.jobs = []
        return self.sorted

    def remove(self, job: RunningJob) -> None:
        entry = (self.cost(job), -job.rank[0], job.name, job)
        _drop(self.entries(), entry)
        if job.warm_key is not None:
            _drop(self.by_warm_key[job.warm_key], entry)
        if self.teams is not None:
            self.teams[job.team] -= 1


_Held: TypeAlias = tuple[tuple[Capacity, int], ...]
_Group: TypeAlias = dict[_Held, _Alike]
"""By what they hold."""


def _drop(entries: list[_Entry], entry: _Entry) -> None:
    del entries[bisect_left(entries, entry[:3], key=lambda one: one[:3])]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """Those of some that are alike whom one preemptor may stop."""

    alike: _Alike
    spared_team: str | None
    """It may take back its quota from others, and not from its own team."""
    behind: tuple[int, str] | None
    """None: all are."""
    cost_of_wait: float
    """Of each instance that is taken: the wait for another."""

    def count(self) -> int:
        if self.behind is None:
            return self.alike.count(but=self.spared_team)
        jobs = self.alike.jobs or [entry[-1] for entry in self.alike.entries()]
        return sum(map(self._may_stop, jobs))

    def turns(self, short: Vector, warm_key: str | None) -> Iterator[_Turn]:
        """In the order in which they would be stopped."""
        useful = sum(min(count, self.alike.vector.get(capacity, 0)) for capacity, count in short.items())
        entries = self.alike.entries()
        same = self.alike.by_warm_key.get(warm_key) if warm_key is not None else None
        if not same:
            return self._turns(entries, useful, is_other=True)
        others = (one for one in entries if one[-1].warm_key != warm_key)
        return merge(self._turns(same, useful, is_other=False), self._turns(others, useful, is_other=True))

    def _turns(self, entries: Iterable[_Entry], useful: int, *, is_other: bool) -> Iterator[_Turn]:
        for cost, score, name, job in entries:
            if self._may_stop(job):
                yield (cost / useful + self.cost_of_wait, is_other, score, name, job)

    def _may_stop(self, job: RunningJob) -> bool:
        return job.team != self.spared_team and (self.behind is None or job.rank > self.behind)


@dataclass(kw_only=True)
class Victims:
    """The running jobs of a pool that its rules let somebody stop."""

    running: tuple[RunningJob, ...]
    quotas: Quotas
    rules: Preemption
    now: datetime
    groups: dict[tuple[int, int], _Group]
    """By tier (borrowers first) and priority (lowest first), those that hold the same instances together."""
    ending: dict[Capacity, int]
    """Certain to be free within ``preempt_delay``."""
    prices: PreemptionPrices | None = None
    """None: the lowest priority goes first, whatever it costs."""
    by_team: dict[str, "Victims"] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

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
        found: defaultdict[tuple[int, int, _Held], list[RunningJob]] = defaultdict(list)
        tiers = quotas.tiers
        for job in stoppable(running, rules, now=now) if rules.enabled else ():
            tier = tiers.get(job.name, COVERED) if tiers else COVERED
            found[tier, job.priority, tuple(job.vector.items())].append(job)
        groups: defaultdict[tuple[int, int], _Group] = defaultdict(dict)
        for (tier, priority, held), jobs in found.items():
            alike = _Alike(vector=jobs[0].vector, tier=tier, priority=priority, cost=cost, jobs=jobs)
            groups[-tier, priority][held] = alike
        ending = total(one.vector for one in ending_soon(running, rules, now=now))
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
        """Its own jobs alone."""
        if team not in self.by_team:
            own = tuple(one for one in self._teams.get(team, ()) if one.name not in self.taken)
            self.by_team[team] = Victims.of(
                own, self.quotas, rules=self.rules, now=self.now, prices=self.prices
            )
        return self.by_team[team]

    @cached_property
    def _teams(self) -> dict[str, list[RunningJob]]:
        teams: defaultdict[str, list[RunningJob]] = defaultdict(list)
        for one in self.running:
            teams[one.team].append(one)
        return teams

    def take(self, victims: Iterable[RunningJob]) -> None:
        """They are being stopped: nobody counts on them any more."""
        for job in victims:
            self.taken.add(job.name)
            self._remove(job)
            if any(ending_soon([job], self.rules, now=self.now)):
                take(self.ending, job.vector)
            if job.team in self.by_team:
                self.by_team[job.team].take([job])

    def _remove(self, job: RunningJob) -> None:
        group = self.groups[-self.quotas.tier(job.name), job.priority]
        held = tuple(job.vector.items())
        group[held].remove(job)
        if not group[held].sorted:
            del group[held]  # nobody is left to look at

    def chosen_for(self, preemptor: Preemptor, *, free: Vector) -> Chosen:
        """The jobs to stop so that it fits; nobody where it would do so by itself within ``preempt_delay``.

        Args:
            preemptor: Does not fit into ``free``.
            free: What it may use, with everything that is already being stopped counted as free.
        """
        vector = preemptor.shape.vector
        if self.rules.preempt_delay and fits(vector, total((free, self.ending))):
            return Chosen()
        return self.least(lacking(vector, free), preemptor)

    def least(self, short: Vector, preemptor: Preemptor) -> Chosen:
        """Those that free so much together, all or none.

        Borrowers before those within their quota, then lowest priority first, then least work lost, then an
        equal warm key, then fewest; whoever turns out not to be needed is spared. With prices what all of it
        costs takes the place of priority and work lost.
        """
        if not short or not self._are_enough(short, preemptor):
            return Chosen()
        chosen = _spared(self._enough(short, preemptor), short)
        single = self._single(short, preemptor, least=chosen)
        sets = [chosen, (single,)] if single else [chosen]
        best = min(sets, key=lambda one: self._worth(one, short, preemptor.shape.warm_key))
        return Chosen(victims=best, short=short)

    def _choices(self, short: Vector, preemptor: Preemptor) -> Iterator[list[_Choice]]:
        """Whom it may stop that has something of what it lacks: first who goes first, by ``_rank``."""
        for _, choices in groupby(self._by_priority(short, preemptor), lambda one: self._rank(one.alike)):
            yield list(choices)

    def _by_priority(self, short: Vector, preemptor: Preemptor) -> Iterator[_Choice]:
        wait = timedelta() if self.prices is None else self.prices.ends.wait(short)
        job, mine = preemptor.job, preemptor.tier
        for (_, priority), group in self.groups.items():
            outranked = priority + self.rules.min_priority_gap <= job.priority
            cost_of_wait = 0.0 if self.prices is None else self.prices.of_wait(priority, wait)
            for one in group.values():
                if one.tier < mine or (one.tier == mine and not outranked):
                    break  # of one group all or none
                if short.keys().isdisjoint(one.vector):
                    continue
                is_behind = one.tier > mine or one.is_behind(job.rank)
                yield _Choice(
                    alike=one,
                    spared_team=None if outranked else job.team,
                    behind=None if is_behind else job.rank,
                    cost_of_wait=cost_of_wait,
                )

    def _rank(self, alike: _Alike) -> tuple[int, int]:
        """Who goes first whatever it costs."""
        return (-alike.tier, alike.priority if self.prices is None else 0)

    def _are_enough(self, short: Vector, preemptor: Preemptor) -> bool:
        """Counted by groups, before anybody is put in order."""
        missing = dict(short)
        for choices in self._choices(short, preemptor):
            for choice in choices:
                count = choice.count()
                missing = lacking(missing, {one: n * count for one, n in choice.alike.vector.items()})
            if not missing:
                return True
        return not missing

    def _enough(self, short: Vector, preemptor: Preemptor) -> tuple[RunningJob, ...]:
        chosen: list[RunningJob] = []
        missing = dict(short)
        for choices in self._choices(short, preemptor):
            useful = [one for one in choices if not missing.keys().isdisjoint(one.alike.vector)]
            turns = merge(*(one.turns(short, preemptor.shape.warm_key) for one in useful))
            for *_, victim in turns:
                if not missing.keys().isdisjoint(victim.vector):
                    chosen.append(victim)
                    missing = lacking(missing, victim.vector)
                if not missing:
                    return tuple(chosen)
        return ()

    def _single(
        self, short: Vector, preemptor: Preemptor, *, least: tuple[RunningJob, ...]
    ) -> RunningJob | None:
        """The best job that is enough by itself, unless it is of a worse tier or priority than ``least``."""
        key = preemptor.shape.warm_key
        worst = self._worth(least, short, key)[:2]
        for choices in self._choices(short, preemptor):
            if self._rank(choices[0].alike) > worst:
                return None
            large = [choice for choice in choices if fits(short, choice.alike.vector)]
            turn = next(merge(*(choice.turns(short, key) for choice in large)), None)
            if turn is not None:
                return turn[-1]
        return None

    def _worth(
        self, victims: tuple[RunningJob, ...], short: Vector, warm_key: str | None
    ) -> tuple[int, int, float, int, int]:
        """Lower is better."""
        return (
            -min(self.quotas.tier(one.name) for one in victims),
            max(one.priority for one in victims) if self.prices is None else 0,
            self._cost(victims, short),
            sum(warm_key is None or one.warm_key != warm_key for one in victims),
            len(victims),
        )

    def _cost(self, victims: tuple[RunningJob, ...], short: Vector) -> float:
        if self.prices is None:
            return sum(cost_of_stop(one, now=self.now) for one in victims)
        chosen = Chosen(victims=victims, short=short)
        return self.prices.of_all(chosen, wait=self.prices.ends.wait(short))


def _spared(chosen: tuple[RunningJob, ...], short: Vector) -> tuple[RunningJob, ...]:
    """Drop, from the most valuable down, each victim the others suffice without."""
    spare = minus(total(one.vector for one in chosen), short)
    dropped: set[str] = set()
    for victim in reversed(chosen):
        if all(spare[capacity] >= victim.vector.get(capacity, 0) for capacity in short):
            take(spare, victim.vector)
            dropped.add(victim.name)
    return tuple(one for one in chosen if one.name not in dropped)
