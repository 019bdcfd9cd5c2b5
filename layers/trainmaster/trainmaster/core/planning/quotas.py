"""Quotas of teams: whose jobs are covered by their own, and who borrows what others leave idle.

Quotas count on-demand instances; spot runs outside of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, Vector, vector_text
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob
from trainmaster.core.policy import PoolPolicy, Quota

COVERED = 0
BORROWER = 1


@dataclass(slots=True, kw_only=True)
class Quotas:
    """One pool's quotas, with what each team uses of them in the course of a plan."""

    quotas: Mapping[str, Quota]
    tiers: dict[str, int] = field(default_factory=dict)
    """Of each job, live and waiting, by name; empty without quotas: then all are in tier 0."""
    used: dict[str, dict[Capacity, int]] = field(default_factory=dict)
    """On-demand instances by team."""

    @classmethod
    def of(cls, pool: PoolPolicy, running: Iterable[RunningJob], waiting: Iterable[WaitingJob]) -> "Quotas":
        """Fill each team's nominal quota with its jobs, live and waiting together, in score order."""
        if not pool.quotas:
            return cls(quotas={})
        quotas, live = cls(quotas=pool.quotas), tuple(running)
        for one in live:
            quotas.count(one.team, one.vector)
        left: dict[str, dict[Capacity, int]] = {}
        jobs: list[RunningJob | WaitingJob] = [*live, *waiting]
        jobs.sort(key=lambda job: (job.score, job.name))
        for job in jobs:
            if job.team not in left:
                left[job.team] = quotas.nominal(job.team)
            quotas.tiers[job.name] = COVERED if _taken_from(left[job.team], job.vector) else BORROWER
        return quotas

    def tier(self, name: str) -> int:
        return self.tiers.get(name, COVERED)

    def nominal(self, team: str) -> dict[Capacity, int]:
        quota = self.quotas.get(team)
        return {Capacity(name): count for name, count in quota.nominal.items()} if quota else {}

    def count(self, team: str, vector: Vector) -> None:
        """The team uses so much more."""
        if not self.quotas:
            return
        used = self.used.setdefault(team, {})
        for capacity, count in _counted(vector):
            used[capacity] = used.get(capacity, 0) + count

    def borrowed(self, team: str) -> dict[Capacity, int]:
        """What the team uses beyond its nominal quota."""
        nominal = self.nominal(team)
        over = {one: count - nominal.get(one, 0) for one, count in self.used.get(team, {}).items()}
        return {capacity: count for capacity, count in over.items() if count > 0}

    def excess(self, team: str, vector: Vector) -> dict[Capacity, int]:
        """By how much the team would use more than its quota and what it may borrow, with so much more."""
        quota = self.quotas.get(team)
        if quota is None or quota.borrowing_limit is None:
            return {}
        used, over = self.used.get(team, {}), {}
        for capacity, count in _counted(vector):
            limit = quota.borrowing_limit.get(capacity.instance_type)
            nominal = quota.nominal.get(capacity.instance_type, 0)
            if limit is not None and used.get(capacity, 0) + count > nominal + limit:
                over[capacity] = used.get(capacity, 0) + count - nominal - limit
        return over

    def refusal(self, job: WaitingJob, vector: Vector) -> Reason | None:
        """Why the team may not borrow enough for it; None: it may, or need not."""
        capacity = next(iter(self.excess(job.team, vector)), None)
        if capacity is None:
            return None
        quota = self.quotas[job.team]
        limit = (quota.borrowing_limit or {})[capacity.instance_type]
        used = self.used.get(job.team, {}).get(capacity, 0)
        return Reason(
            code=ReasonCode.QUOTA,
            message=f"needs {vector_text({capacity: vector[capacity]})}; team {job.team} uses {used}"
            f" of its quota of {quota.nominal.get(capacity.instance_type, 0)} and may borrow {limit}",
        )


def _taken_from(rest: dict[Capacity, int], vector: Vector) -> bool:
    """Whether all of it is left; then it is taken."""
    asked = _counted(vector)
    for capacity, count in asked:
        if rest.get(capacity, 0) < count:
            return False
    for capacity, count in asked:
        rest[capacity] = rest.get(capacity, 0) - count
    return True


def _counted(vector: Vector) -> list[tuple[Capacity, int]]:
    return [(capacity, count) for capacity, count in vector.items() if not capacity.is_spot]
