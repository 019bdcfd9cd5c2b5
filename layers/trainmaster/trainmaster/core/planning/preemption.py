"""Preemption: which jobs may be stopped, what a stop costs, and which team takes back its quota."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.core.jobs.instances import Shape, Vector
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.quotas import BORROWER, COVERED, Quotas
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob
from trainmaster.core.policy import Preemption


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemptor:
    """A job that cannot start, and the shape that it is to start in."""

    job: WaitingJob
    shape: Shape
    tier: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Jobs to stop, all or none, and the instances that they have to free between them."""

    victims: tuple[RunningJob, ...] = ()
    short: Vector = field(default_factory=dict)
    kept: Mapping[str, Vector] = field(default_factory=dict)
    """Instances that elastic victims keep, by name."""


def is_spared(job: RunningJob, rules: Preemption) -> bool:
    """Tell whether a job was preempted as often as the policy allows, so that only a reclaim may stop it."""
    return job.preemptions >= rules.max_per_job


def stoppable(running: Iterable[RunningJob], rules: Preemption, *, now: datetime) -> Iterator[RunningJob]:
    """Yield the jobs that may be stopped, by all rules that do not depend on the preemptor."""
    if not rules.enabled:
        return
    # All running jobs of the pool pass here in every plan: what does not change is looked up once.
    trains_since, runs = now - rules.min_runtime, JobState.RUNNING
    needs_checkpoint = rules.needs_checkpoint
    for job in running:
        if (
            job.state is runs
            and job.preemptible
            and (job.training_since is None or job.training_since <= trains_since)
            and (job.has_checkpoint or not needs_checkpoint)
        ):
            yield job


def ending_soon(running: Iterable[RunningJob], rules: Preemption, *, now: datetime) -> Iterator[RunningJob]:
    """Yield the jobs that are certain to be over within ``preempt_delay``; none without one."""
    if not rules.preempt_delay:
        return
    soon, runs = now + rules.preempt_delay, JobState.RUNNING
    for job in running:
        ends_by = job.expected.ends_by
        if ends_by is not None and ends_by <= soon and job.state is runs:
            yield job


def work_lost(job: RunningJob, *, now: datetime) -> timedelta:
    """Return the training time that a stop loses at worst; zero before the job trains.

    Everything since Training counts as lost if no checkpoint was seen: having none is no advantage.
    """
    if job.training_since is None:
        return timedelta()
    if job.checkpoint.last is None or not job.has_checkpoint:
        return now - job.training_since
    return now - max(job.checkpoint.last, job.training_since)


def cost_of_stop(job: RunningJob, *, now: datetime) -> float:
    """Return the work lost in cents; where the price is unknown an instance-hour counts as a dollar."""
    rate = job.cents_per_hour if job.cents_per_hour is not None else 100 * sum(job.vector.values())
    return work_lost(job, now=now) / timedelta(hours=1) * rate


def reclaims(victim: RunningJob, preemptor: Preemptor, quotas: Quotas) -> bool:
    """Tell whether a team takes back its own quota from another that borrowed it."""
    return (
        preemptor.tier == COVERED
        and quotas.tier(victim.name) == BORROWER
        and victim.team != preemptor.job.team
    )
