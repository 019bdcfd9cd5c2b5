"""Whom to stop so that a waiting job can start; nobody, if that would not be enough."""

from datetime import datetime, timedelta

from trainmaster.jobs import JobState, Vector, fits
from trainmaster.policy import Preemption
from trainmaster.scheduling.capacity import lacking
from trainmaster.scheduling.snapshot import RunningJob, WaitingJob, total

MAX_VICTIMS = 24
"""A preemption is one transaction: at most 100 items, four for each victim. Source: DynamoDB limits."""


def victims_for(
    job: WaitingJob,
    *,
    free: Vector,
    running: tuple[RunningJob, ...],
    rules: Preemption,
    now: datetime,
) -> tuple[RunningJob, ...]:
    """The jobs to stop, all or none.

    Lowest priority first, then least work lost, then latest in turn; then whoever turns out not to
    be needed is spared.

    Args:
        job: Waits, and does not fit into ``free``.
        free: What ``job`` may use, with everything that is already being stopped counted as free.
        running: The pool's live jobs.
        rules: The pool's preemption section.
        now: Instant of the pass.
    """
    if not rules.enabled or _frees_itself(job, free=free, running=running, rules=rules, now=now):
        return ()
    short = lacking(job.vector, free)
    eligible = sorted(
        (
            one
            for one in running
            if _may_stop(one, job, rules=rules, now=now) and short.keys() & one.vector.keys()
        ),
        key=lambda one: (one.priority, work_lost(one, now=now), (-one.score, one.name)),
    )
    return _spared(_enough(eligible, short), short)


def work_lost(job: RunningJob, *, now: datetime) -> timedelta:
    """Training time that a stop throws away at worst; nothing before Training."""
    return timedelta() if job.training_since is None else now - job.training_since


def _may_stop(victim: RunningJob, job: WaitingJob, *, rules: Preemption, now: datetime) -> bool:
    return (
        victim.state is JobState.RUNNING
        and victim.preemptible
        and victim.priority + rules.min_priority_gap <= job.priority
        and victim.rank > job.rank
        and victim.preemptions < rules.max_per_job
        and (victim.training_since is None or now - victim.training_since >= rules.min_runtime)
        and (victim.has_checkpoint or not rules.needs_checkpoint)
    )


def _enough(eligible: list[RunningJob], short: Vector) -> tuple[RunningJob, ...]:
    chosen: list[RunningJob] = []
    for victim in eligible[:MAX_VICTIMS]:
        missing = lacking(short, total(one.vector for one in chosen))
        if not missing:
            break
        if missing.keys() & victim.vector.keys():
            chosen.append(victim)
    return tuple(chosen) if fits(short, total(one.vector for one in chosen)) else ()


def _spared(chosen: tuple[RunningJob, ...], short: Vector) -> tuple[RunningJob, ...]:
    """Drop, from the most valuable down, each victim the others suffice without."""
    kept = chosen
    for victim in reversed(chosen):
        others = tuple(one for one in kept if one is not victim)
        if fits(short, total(one.vector for one in others)):
            kept = others
    return kept


def _frees_itself(
    job: WaitingJob,
    *,
    free: Vector,
    running: tuple[RunningJob, ...],
    rules: Preemption,
    now: datetime,
) -> bool:
    """Enough is certain to be free within ``preempt_delay`` without stopping anybody."""
    if not rules.preempt_delay:
        return False
    soon = total(
        one.vector
        for one in running
        if one.state is JobState.RUNNING
        and one.ends_by is not None
        and one.ends_by <= now + rules.preempt_delay
    )
    return fits(job.vector, total((free, soon)))
