"""Loans can be called back, so a job that cannot be stopped starts only within its team's quota (ADR 79).

Quotas and loans are about on-demand instances; spot runs outside of them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import TypeAlias

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, Vector, vector_text
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob
from trainmaster.core.policy import PoolPolicy, Preemption, Quota

_Used: TypeAlias = dict[Capacity, int]


def why_fixed(*, preemptible: bool, has_checkpoint: bool, rules: Preemption) -> str | None:
    """Say what keeps a job from being stopped for others for as long as it runs; None: it can be stopped.

    Args:
        preemptible: Whether the job's owner allows it to be preempted.
        has_checkpoint: Whether it saves checkpoints.
        rules: The pool's rules of preemption.
    """
    if not preemptible:
        return "trainmaster:preemptible=false"
    if rules.needs_checkpoint and not has_checkpoint:
        return "it saves no checkpoints, and the pool's preemption.needs_checkpoint spares such jobs"
    return None


def promised_quota(pool: PoolPolicy, team: str, instance_types: Iterable[str]) -> Mapping[str, int] | None:
    """Return the nominal quota that a job submitted now may count on, by type.

    None means that the pool has no quotas.
    """
    if not pool.quotas:
        return None
    nominal = pool.quotas[team].nominal if team in pool.quotas else {}
    return {name: nominal.get(name, 0) for name in sorted(instance_types)}


def beyond_quota(nominal: Mapping[str, int], vector: Vector) -> Capacity | None:
    """Return the first on-demand type of which ``vector`` alone exceeds the whole quota; None: none does."""
    over = (
        capacity
        for capacity, count in on_demand_part(vector).items()
        if count > nominal.get(capacity.instance_type, 0)
    )
    return next(over, None)


def on_demand_part(vector: Vector) -> dict[Capacity, int]:
    """Return the part of it that quotas count."""
    return {capacity: count for capacity, count in vector.items() if capacity.is_on_demand}


@dataclass(kw_only=True)
class Loans:
    """Instances that each team uses in jobs that cannot be stopped, in the course of one plan."""

    quotas: Mapping[str, Quota]
    rules: Preemption
    running: Mapping[str, Sequence[RunningJob]] = field(default_factory=dict)
    """Running jobs by team."""
    fixed: dict[str, _Used] = field(default_factory=dict)
    """On-demand instances by team, once asked for; they cannot be called back until their jobs end."""

    @classmethod
    def of(cls, pool: PoolPolicy, running: Mapping[str, Sequence[RunningJob]] | None = None) -> "Loans":
        """Build the loans of a pool with these running jobs, by team; without any, of an empty pool."""
        return cls(quotas=pool.quotas, rules=pool.preemption, running=running or {})

    def count(self, job: WaitingJob | RunningJob, vector: Vector) -> None:
        """Add what a job that starts takes, if it cannot be stopped."""
        if self._is_fixed[job.preemptible, job.has_checkpoint]:
            _add(self.fixed_of(job.team), vector.items(), jobs=1)

    def fixed_of(self, team: str) -> _Used:
        """Return the on-demand instances that a team uses in jobs that cannot be stopped."""
        # Counted at the first question: only a waiting job that cannot be stopped asks.
        if team not in self.fixed:
            self.fixed[team] = {}
            running, is_fixed = self.running.get(team, ()), self._is_fixed
            fixed = Counter(job.held for job in running if is_fixed[job.preemptible, job.has_checkpoint])
            for held, jobs in fixed.items():
                _add(self.fixed[team], held, jobs=jobs)
        return self.fixed[team]

    @cached_property
    def _is_fixed(self) -> Mapping[tuple[bool | None, bool], bool]:
        """Tell by its two facts whether a job cannot be stopped: all jobs of a team may be asked."""
        return {
            (preemptible, saves): self._why(preemptible=preemptible, has_checkpoint=saves) is not None
            for preemptible, saves in product((True, False, None), (True, False))
        }

    def bind(self, job: WaitingJob | RunningJob) -> bool:
        """Tell whether the job may not borrow.

        It may if it was submitted before this rule, or to a larger quota than its team has now: a job
        keeps the rule that it was accepted under.
        """
        if job.own_quota is None or self._why_fixed(job) is None:
            return False
        nominal = self._nominal(job.team)
        return all(nominal.get(name, 0) >= count for name, count in job.own_quota.items())

    def refusal(self, job: WaitingJob, vector: Vector, used: Vector, *, is_covered: bool) -> Reason | None:
        """Return why the job would be on borrowed instances, which it could not give back.

        None means that it would not be.

        Args:
            job: A job that waits.
            vector: Instances that it would take.
            used: On-demand instances that its team has in use.
            is_covered: Whether its team's quota is filled with jobs up to this one, so that those that run
                beyond the quota are others, which can be stopped.
        """
        if not self.bind(job):
            return None
        fixed = self.fixed_of(job.team)
        for capacity, count in on_demand_part(vector).items():
            nominal = self._nominal(job.team).get(capacity.instance_type, 0)
            # The quota is filled up to this job, so those beyond it can be stopped: only fixed jobs count
            # then.
            is_within = used.get(capacity, 0) + count <= nominal
            if is_within or (is_covered and fixed.get(capacity, 0) + count <= nominal):
                continue
            return self._reason(job, {capacity: count}, used=used.get(capacity, 0), nominal=nominal)
        return None

    def _reason(self, job: WaitingJob, vector: Vector, *, used: int, nominal: int) -> Reason:
        is_enough = all(count <= nominal for count in vector.values())
        ends = "starts when jobs of the team end" if is_enough else "waits until an admin raises the quota"
        message = (
            f"needs {vector_text(vector)} of the team's own quota, as it cannot be stopped"
            f" ({self._why_fixed(job)}): team {job.team} uses {used} of its quota of {nominal}; it {ends}"
        )
        return Reason(code=ReasonCode.QUOTA, message=message)

    def _why_fixed(self, job: WaitingJob | RunningJob) -> str | None:
        return self._why(preemptible=job.preemptible, has_checkpoint=job.has_checkpoint)

    def _why(self, *, preemptible: bool | None, has_checkpoint: bool) -> str | None:
        is_preemptible = preemptible is not False
        return why_fixed(preemptible=is_preemptible, has_checkpoint=has_checkpoint, rules=self.rules)

    def _nominal(self, team: str) -> Mapping[str, int]:
        return self.quotas[team].nominal if team in self.quotas else {}


def _add(used: _Used, held: Iterable[tuple[Capacity, int]], *, jobs: int) -> None:
    for capacity, count in held:
        if capacity.is_on_demand:
            used[capacity] = used.get(capacity, 0) + count * jobs
