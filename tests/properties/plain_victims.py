"""The oracle of victims: every running job is looked at for every preemptor. Slow, and plain to read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from trainmaster.core.jobs.instances import Vector, fits, total
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.capacity import lacking
from trainmaster.core.planning.preemption import Preemptor, cost_of_stop, reclaims
from trainmaster.core.planning.quotas import Quotas
from trainmaster.core.planning.snapshot import RunningJob
from trainmaster.core.policy import Preemption


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Whom it may stop, and by which rules."""

    running: Sequence[RunningJob]
    quotas: Quotas
    rules: Preemption
    now: datetime


def victims_for(preemptor: Preemptor, field: Field, *, free: Vector) -> tuple[RunningJob, ...]:
    """The jobs to stop, all or none.

    Borrowers before those within their quota, then lowest priority first, then least work lost, then an equal
    warm key, then fewest; whoever turns out not to be needed is spared.

    Args:
        preemptor: Does not fit into ``free``.
        field: The pool's live jobs and rules.
        free: What it may use, with everything that is already being stopped counted as free.
    """
    if not field.rules.enabled:
        return ()
    short = lacking(preemptor.shape.vector, free)
    eligible = [
        one
        for one in field.running
        if not short.keys().isdisjoint(one.vector) and _may_stop(one, preemptor, field)
    ]
    if not fits(short, total(one.vector for one in eligible)):
        return ()
    if field.rules.preempt_delay and _frees_itself(preemptor.shape.vector, field, free=free):
        return ()
    return _cheapest(eligible, short, preemptor, field)


def _may_stop(victim: RunningJob, preemptor: Preemptor, field: Field) -> bool:
    rules, job, quotas = field.rules, preemptor.job, field.quotas
    if victim.state is not JobState.RUNNING or not victim.preemptible:
        return False
    outranked = victim.priority + rules.min_priority_gap <= job.priority
    if not outranked and not quotas.quotas:  # asked of every running job: without quotas nobody borrows
        return False
    tier = quotas.tier(victim.name)
    may_outrank = victim.preemptions < rules.max_per_job
    return (
        (
            (outranked and may_outrank and (victim.team == job.team or tier == preemptor.tier))
            or reclaims(victim, preemptor, quotas)
        )
        and (tier, victim.score, victim.name) > (preemptor.tier, job.score, job.name)
        and (victim.training_since is None or field.now - victim.training_since >= rules.min_runtime)
        and (victim.has_checkpoint or not rules.needs_checkpoint)
    )


def _cheapest(
    eligible: list[RunningJob], short: Vector, preemptor: Preemptor, field: Field
) -> tuple[RunningJob, ...]:
    """Of some sufficient sets the best: the greedy one, and each single job that is enough."""
    tiers, now, key = field.quotas, field.now, preemptor.shape.warm_key

    def order(one: RunningJob) -> tuple[int, int, float, bool, int, str]:
        cost = cost_of_stop(one, now=now)
        useful = sum(min(count, one.vector.get(capacity, 0)) for capacity, count in short.items())
        other_key = key is None or one.warm_key != key
        return (-tiers.tier(one.name), one.priority, cost / useful, other_key, -one.score, one.name)

    def worth(victims: Sequence[RunningJob]) -> tuple[int, int, float, int, int]:
        return (
            -min(tiers.tier(one.name) for one in victims),
            max(one.priority for one in victims),
            sum(cost_of_stop(one, now=now) for one in victims),
            sum(key is None or one.warm_key != key for one in victims),
            len(victims),
        )

    eligible.sort(key=order)
    chosen = _spared(_enough(eligible, short), short)
    singles = [(one,) for one in eligible if fits(short, one.vector)]
    sets = [one for one in (chosen, *singles) if one]
    return min(sets, key=worth) if sets else ()


def _enough(eligible: Sequence[RunningJob], short: Vector) -> tuple[RunningJob, ...]:
    chosen: list[RunningJob] = []
    missing = dict(short)
    for victim in eligible:
        if not missing:
            break
        if not missing.keys().isdisjoint(victim.vector):
            chosen.append(victim)
            missing = lacking(missing, victim.vector)
    return () if missing else tuple(chosen)


def _spared(chosen: tuple[RunningJob, ...], short: Vector) -> tuple[RunningJob, ...]:
    """Drop, from the most valuable down, each victim the others suffice without."""
    kept = chosen
    for victim in reversed(chosen):
        others = tuple(one for one in kept if one is not victim)
        if fits(short, total(one.vector for one in others)):
            kept = others
    return kept


def _frees_itself(vector: Vector, field: Field, *, free: Vector) -> bool:
    """Enough is certain to be free within ``preempt_delay`` without stopping anybody."""
    by = field.now + field.rules.preempt_delay
    soon = total(
        one.vector
        for one in field.running
        if one.state is JobState.RUNNING and one.expected.ends_by is not None and one.expected.ends_by <= by
    )
    return fits(vector, total((free, soon)))
