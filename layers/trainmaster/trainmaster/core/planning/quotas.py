"""Quotas of teams: which jobs are covered by their own, and which borrow what others leave idle.

Quotas count on-demand instances; spot runs outside of them.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TypeAlias, TypeVar

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, Vector, fits, vector_text
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.planning.loans import Loans, on_demand_part
from trainmaster.core.planning.snapshot import Held, RunningJob, WaitingJob
from trainmaster.core.policy import PoolPolicy, Preemption, Quota

COVERED = 0
BORROWER = 1

_Jobs: TypeAlias = dict[Held, list[RunningJob | WaitingJob]]
"""Jobs by what they hold or ask for: there are fewer vectors than jobs."""

_name, _held, _widths = attrgetter("name"), attrgetter("held"), attrgetter("widths")
_Job = TypeVar("_Job", RunningJob, WaitingJob)


@dataclass(slots=True, kw_only=True)
class Quotas:
    """One pool's quotas, with what each team uses of them in the course of a plan."""

    quotas: Mapping[str, Quota]
    tiers: dict[str, int] = field(default_factory=dict)
    """Tiers of jobs, live and waiting, by name; a job without one is covered, and without quotas all are."""
    covered_widths: dict[str, int] = field(default_factory=dict)
    """Widths that the quota covers of running elastic jobs that borrow the rest, by name."""
    used: dict[str, dict[Capacity, int]] = field(default_factory=dict)
    """On-demand instances by team."""
    loans: Loans = field(default_factory=lambda: Loans(quotas={}, rules=Preemption()))
    reserved: Collection[str] = ()
    """Waiting jobs that others were stopped for already."""
    reserving: Collection[str] = ()
    """Teams for which instances are kept (``reserved_capacity``)."""

    @classmethod
    def of(
        cls,
        pool: PoolPolicy,
        running: Collection[RunningJob],
        waiting: Iterable[WaitingJob],
        *,
        reserved: Collection[str] = (),
    ) -> "Quotas":
        """Fill each team's nominal quota with its jobs, live and waiting together, in score order.

        Live jobs that keep to their team's own quota come first: they are never what a team borrows.

        Args:
            pool: The policy of the pool.
            running: Jobs that hold instances.
            waiting: Candidates that wait.
            reserved: Names of jobs that others were stopped for already.
        """
        if not pool.quotas:
            return cls(quotas={}, reserving=pool.reserved)
        live, queued = _by_team(running), _by_team(waiting)
        loans = Loans.of(pool, live)
        quotas = cls(quotas=pool.quotas, loans=loans, reserved=reserved, reserving=pool.reserved)
        for team in {**live, **queued}:
            jobs = (*live.get(team, ()), *queued.get(team, ()))
            if team in pool.quotas:
                quotas._fill(team, jobs)
            else:
                quotas.tiers |= _on_loan(jobs)
        quotas.used = {team: _on_demand(Counter(map(_held, jobs))) for team, jobs in live.items()}
        return quotas

    def _fill(self, team: str, jobs: Iterable[RunningJob | WaitingJob]) -> None:
        """Fill a team's nominal quota, and note the jobs that it does not cover."""
        by_held: _Jobs = defaultdict(list)
        for job in jobs:
            by_held[job.held].append(job)
        own = {job.name for job in jobs if isinstance(job, RunningJob) and self.loans.bind(job)}
        nominal, counted = self.nominal(team), _with_least_widths(by_held)
        self.tiers |= _beyond(nominal, counted, first=own)
        if counted is not by_held:
            wide = _wide_borrowers(nominal, counted, self.tiers)
            self.tiers |= dict.fromkeys(wide, BORROWER)
            self.covered_widths |= wide

    def tier(self, name: str) -> int:
        return self.tiers.get(name, COVERED)

    def in_turn(self, jobs: Iterable[WaitingJob]) -> list[WaitingJob]:
        """Return jobs in the one total order."""
        by_rank, tier = sorted(jobs, key=attrgetter("rank")), self.tier
        return sorted(by_rank, key=lambda job: tier(job.name)) if self.tiers else by_rank

    def party(self, job: WaitingJob) -> tuple[int, str]:
        """Return its tier, and its team where that decides what it may take or stop.

        A borrower may stop the same jobs as any borrower of its rank, unless its team's borrowing is limited
        or instances are kept for the team.
        """
        tier, quota = self.tier(job.name), self.quotas.get(job.team)
        is_own = tier == COVERED or (quota is not None and quota.borrowing_limit is not None)
        return tier, job.team if (self.quotas and is_own) or job.team in self.reserving else ""

    def nominal(self, team: str) -> dict[Capacity, int]:
        quota = self.quotas.get(team)
        return {Capacity(name): count for name, count in quota.nominal.items()} if quota else {}

    def count(self, team: str, vector: Vector) -> None:
        """Add to the instances that the team uses."""
        if not self.quotas:
            return
        used = self.used.setdefault(team, {})
        for capacity, count in on_demand_part(vector).items():
            used[capacity] = used.get(capacity, 0) + count

    def start(self, job: WaitingJob, vector: Vector) -> None:
        """Count the instances of a job that starts."""
        self.count(job.team, vector)
        if self.quotas:
            self.loans.count(job, vector)

    def borrowed(self, team: str) -> dict[Capacity, int]:
        """Return the instances that the team uses beyond its nominal quota."""
        nominal = self.nominal(team)
        over = {
            capacity: count - nominal.get(capacity, 0) for capacity, count in self.used.get(team, {}).items()
        }
        return {capacity: count for capacity, count in over.items() if count > 0}

    def excess(self, team: str, vector: Vector) -> dict[Capacity, int]:
        """Return by how much the team would exceed its quota and what it may borrow, with ``vector`` more."""
        quota = self.quotas.get(team)
        if quota is None or quota.borrowing_limit is None:
            return {}
        used, over = self.used.get(team, {}), {}
        for capacity, count in on_demand_part(vector).items():
            limit = quota.borrowing_limit.get(capacity.instance_type)
            nominal = quota.nominal.get(capacity.instance_type, 0)
            if limit is not None and used.get(capacity, 0) + count > nominal + limit:
                over[capacity] = used.get(capacity, 0) + count - nominal - limit
        return over

    def room(self, job: RunningJob, capacity: Capacity, *, most: int) -> int:
        """Return by how many instances, at most ``most``, a running job of a team may grow."""
        quota = self.quotas.get(job.team)
        if not self.quotas or not capacity.is_on_demand:
            return most
        used = self.used.get(job.team, {}).get(capacity, 0)
        nominal = self.nominal(job.team).get(capacity, 0)
        if job.own_quota is not None:  # it keeps to its team's own
            return min(most, max(nominal - used, 0))
        limit = None if quota is None else (quota.borrowing_limit or {}).get(capacity.instance_type)
        return most if limit is None else min(most, max(nominal + limit - used, 0))

    def refusal(self, job: WaitingJob, vector: Vector) -> Reason | None:
        """Return why the team may not borrow for this job, or not so much; None: it may, or need not."""
        return self.loan_refusal(job, vector) or self._limit_refusal(job, vector)

    def loan_refusal(self, job: WaitingJob, vector: Vector) -> Reason | None:
        """Return why it would be on borrowed instances as long as it runs; no stop of others changes that.

        A job that others were stopped for counts as covered: else they would have been stopped for nothing
        when a more urgent job of the team comes meanwhile.
        """
        if not self.quotas:
            return None
        is_covered = self.tier(job.name) == COVERED or job.name in self.reserved
        return self.loans.refusal(job, vector, self.used.get(job.team, {}), is_covered=is_covered)

    def _limit_refusal(self, job: WaitingJob, vector: Vector) -> Reason | None:
        capacity = next(iter(self.excess(job.team, vector)), None)
        if capacity is None:
            return None
        quota = self.quotas[job.team]
        limit = (quota.borrowing_limit or {})[capacity.instance_type]
        used = self.used.get(job.team, {}).get(capacity, 0)
        nominal = quota.nominal.get(capacity.instance_type, 0)
        ends = "; it starts when jobs of the team end" if vector[capacity] <= nominal + limit else ""
        return Reason(
            code=ReasonCode.QUOTA,
            message=f"needs {vector_text({capacity: vector[capacity]})}; team {job.team} uses {used}"
            f" of its quota of {nominal} and may borrow {limit}{ends}",
        )


def _beyond(nominal: dict[Capacity, int], jobs: _Jobs, *, first: Collection[str]) -> dict[str, int]:
    """Return the jobs of a team that its nominal quota does not cover; a job of spot alone needs none.

    Their order counts only where something is left for some of them and not for all. ``first`` are names of
    jobs that come before all others.
    """
    demand = _on_demand({held: len(alike) for held, alike in jobs.items()})
    if fits(demand, nominal):
        return {}
    # The team has no quota of any type that it asks for: no order is needed, as nothing is left for any of
    # them.
    if demand.keys().isdisjoint(nominal):
        uncovered = [alike for held, alike in jobs.items() if any(capacity in demand for capacity, _ in held)]
        return {job.name: BORROWER for alike in uncovered for job in alike}
    # Some are covered and some are not: give the quota away in the order of their turns.
    turns: list[tuple[bool, int, str, Held]] = []
    for held, alike in jobs.items():
        counted = tuple((capacity, count) for capacity, count in held if capacity in demand)
        turns += [(job.name not in first, *job.rank, counted) for job in alike]
    left = dict.fromkeys(demand, 0) | nominal
    return {name: BORROWER for *_, name, counted in sorted(turns) if not _taken_from(left, counted)}


def _with_least_widths(jobs: _Jobs) -> _Jobs:
    """Return jobs by what a nominal quota has to cover: of an elastic one only its least width."""
    if not any(any(map(_widths, alike)) for alike in jobs.values()):
        return jobs
    counted: _Jobs = defaultdict(list)
    for held, alike in jobs.items():
        for job in alike:
            least = held if job.widths is None else ((held[0][0], job.widths.least),)
            counted[least].append(job)
    return counted


def _wide_borrowers(nominal: dict[Capacity, int], jobs: _Jobs, tiers: Mapping[str, int]) -> dict[str, int]:
    """Return the covered widths of running elastic jobs that are covered only at less than their present one.

    They borrow the rest: what takes it back makes them narrower.
    """
    left = dict(nominal)
    covered = [(job, held) for held, alike in jobs.items() for job in alike if job.name not in tiers]
    for _, held in covered:
        for capacity, count in held:
            left[capacity] = left.get(capacity, 0) - count
    borrowers: dict[str, int] = {}
    elastic = (pair for pair in covered if pair[0].widths is not None and isinstance(pair[0], RunningJob))
    for job, ((capacity, least),) in sorted(elastic, key=lambda pair: pair[0].rank):
        rest = ((capacity, job.vector[capacity] - least),)
        if capacity.is_on_demand and rest[0][1] and not _taken_from(left, rest):
            borrowers[job.name] = least
    return borrowers


def _taken_from(left: dict[Capacity, int], wanted: Held) -> bool:
    """Take instances if all of them are left; tell whether they were."""
    for capacity, count in wanted:
        if left[capacity] < count:
            return False
    for capacity, count in wanted:
        left[capacity] -= count
    return True


def _on_demand(jobs: Mapping[Held, int]) -> dict[Capacity, int]:
    """Return the on-demand instances of so many jobs that hold or ask for each of these."""
    counts: dict[Capacity, int] = {}
    for held, number in jobs.items():
        for capacity, count in held:
            if capacity.is_on_demand:
                counts[capacity] = counts.get(capacity, 0) + count * number
    return counts


def _by_team(jobs: Iterable[_Job]) -> dict[str, list[_Job]]:
    teams: defaultdict[str, list[_Job]] = defaultdict(list)
    for job in jobs:
        teams[job.team].append(job)
    return teams


def _on_loan(jobs: Collection[RunningJob | WaitingJob]) -> dict[str, int]:
    """Return the jobs of a team without a quota that borrow: all but those of spot and plans alone."""
    borrows = {held: any(capacity.is_on_demand for capacity, _ in held) for held in set(map(_held, jobs))}
    if all(borrows.values()):  # nearly always
        return dict.fromkeys(map(_name, jobs), BORROWER)
    return {job.name: BORROWER for job in jobs if borrows[job.held]}
