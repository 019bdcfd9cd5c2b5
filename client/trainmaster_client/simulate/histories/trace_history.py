"""Turns the rows of a trace into jobs of the policy's pools; what the trace lacks is drawn and reported."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from trainmaster.core.jobs.instances import CapacityType
from trainmaster.core.memory.accelerators import gpus as gpus_of
from trainmaster.core.policy import Policy
from trainmaster.core.policy.job_rules import Mode

from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.simulate.engine.past_jobs import History, PastJob
from trainmaster_client.simulate.histories.line_problems import count_of, listed, part_of
from trainmaster_client.simulate.histories.placement import place
from trainmaster_client.simulate.histories.trace_draws import (
    CHECKPOINT_EVERY_S,
    CHECKPOINT_SHARE,
    HIGH_SHARE,
    NORMAL_SHARE,
    PRIORITIES,
    RUNTIME_LIMITS,
    Klass,
    drawn_checkpoints_s,
    drawn_class,
    usual_limit,
)
from trainmaster_client.simulate.histories.trace_rows import TraceRow, TraceRows

BEGINS = datetime(2026, 1, 5, tzinfo=UTC)
"""Second 0 where nothing else is said: a Monday."""
LONGEST_RUN = RUNTIME_LIMITS[-1]
MOST_REASONS = 3
"""Reasons shown of jobs that do not fit, the most frequent."""


@dataclass(slots=True, kw_only=True)
class _Counts:
    """Counts of what was assumed."""

    by_default: Counter[str] = field(default_factory=Counter)
    """Jobs of which the trace lacks a fact, by fact."""
    cut: int = 0
    over_limit: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    left_over: int = 0
    """Jobs whose instances have more GPUs than they asked for."""


def trace_history(
    trace: TraceRows, policy: Policy, *, seed: int, source: str, begins: datetime = BEGINS
) -> History:
    """Return the jobs in the order of submission.

    Args:
        trace: Rows as they were read.
        policy: Whose pools the jobs are mapped to.
        seed: Draws classes and checkpoints that the trace lacks.
        source: What the trace is called, for people.
        begins: Second 0.

    Raises:
        InvalidArgumentError: The policy has no GPUs.
    """
    counts = _Counts()
    if place(1, policy) is None:
        raise InvalidArgumentError(
            "The policy has no pool with GPUs, and the trace asks for GPUs.",
            hint="Give a policy whose pools have instances with GPUs, e.g. ml.g5.12xlarge.",
        )
    jobs = sorted(
        (_job(row, policy, seed=seed, begins=begins, counts=counts) for row in trace.rows),
        key=lambda job: (job.submitted_at, job.name),
    )
    sentences = (*_on_columns(trace), *_on_draws(counts, len(jobs), seed), *_on_fit(counts, jobs, policy))
    return History(source=source, begins=begins, jobs=tuple(jobs), not_known=sentences)


def _job(row: TraceRow, policy: Policy, *, seed: int, begins: datetime, counts: _Counts) -> PastJob:
    team = row.vc or row.user or ""
    trains_for, limit, is_over = _run_time(row, policy, counts)
    end: Literal["completed", "failed", "stopped"] = "stopped" if is_over else row.end or "completed"
    pool, instances, capacity_type = _instances(row, policy, counts)
    return PastJob(
        name=row.job_id if row.name is None else f"{row.name}-{row.job_id}",
        team=team,
        submitted_by=row.user or team,
        submitted_at=begins + timedelta(seconds=int(row.submit_s)),
        pool=pool,
        instances=instances,
        capacity_type=capacity_type,
        priority=_priority(row, seed, counts),
        max_runtime=limit,
        trains_for=trains_for,
        end=end,
        saves_every=_saves_every(row, seed, counts),
    )


def _run_time(row: TraceRow, policy: Policy, counts: _Counts) -> tuple[timedelta, timedelta, bool]:
    """Return how long it trains, its MaxRuntime, and whether that is what ends it."""
    ran = timedelta(seconds=row.duration_s)
    if row.end is None:
        counts.by_default["end"] += 1
    if row.requested_s is None:
        counts.by_default["requested_s"] += 1
        counts.cut += ran > LONGEST_RUN
        return min(ran, LONGEST_RUN), usual_limit(ran, _limits(policy)), ran > LONGEST_RUN
    limit = min(timedelta(seconds=row.requested_s), LONGEST_RUN)
    counts.over_limit += ran > limit
    return min(ran, limit), limit, ran > limit


def _limits(policy: Policy) -> list[timedelta]:
    """Return the limits users ask for without much thought, and a rule's: a job above it asks for that."""
    rule = policy.rules.max_runtime
    allowed = {rule.value} if rule is not None and rule.mode is Mode.ENFORCE else set()
    return sorted({*RUNTIME_LIMITS, *(limit for limit in allowed if limit < LONGEST_RUN)})


def _instances(
    row: TraceRow, policy: Policy, counts: _Counts
) -> tuple[str | None, dict[str, int], Literal["on-demand", "spot"]]:
    """Return its pool (None if its type tells it), its instances, and whether those are spot."""
    if row.instance_type is not None and (each := gpus_of(row.instance_type)):
        needed = -(-row.gpus // each)
        counts.left_over += needed * each > row.gpus
        if policy.pool_of([row.instance_type]) is None:
            counts.refusals[f"asks for {row.instance_type}, which no pool has"] += 1
        return None, {row.instance_type: needed}, "on-demand"
    counts.by_default["instance_type"] += 1
    placement = place(row.gpus, policy)
    assert placement is not None, "the policy was seen to have GPUs"
    counts.left_over += placement.left_over > 0
    if placement.refusal is not None:
        counts.refusals[placement.refusal] += 1
    is_spot = placement.capacity_type is CapacityType.SPOT
    return placement.pool, {placement.instance_type: placement.instances}, "spot" if is_spot else "on-demand"


def _priority(row: TraceRow, seed: int, counts: _Counts) -> int:
    if row.priority is not None:
        return row.priority
    counts.by_default["priority"] += 1
    return PRIORITIES[drawn_class(seed, row.job_id)]


def _saves_every(row: TraceRow, seed: int, counts: _Counts) -> timedelta | None:
    every = row.checkpoint_every_s
    if every is None:
        counts.by_default["checkpoint_every_s"] += 1
        every = drawn_checkpoints_s(seed, row.job_id)
    return timedelta(seconds=every) if every else None


def _on_columns(trace: TraceRows) -> Iterator[str]:
    if trace.ignored:
        yield f"Columns that a replay does not use were ignored: {listed(trace.ignored)}."
    if trace.is_workload_format:
        yield "The trace is in the Standard Workload Format; its processors are taken as GPUs."
        if trace.never_placed:
            yield f"{count_of(trace.never_placed, 'job')} never ran, or with an unknown size: left out."
    if not trace.is_openb:
        return
    yield (
        "The trace is read as openb: it has no teams and no users, so all jobs are of one team; its quality "
        "of service became the priority (LS and Guaranteed 200, Burstable 100, BE 0); when its own scheduler "
        "started a task is not used."
    )
    for count, what in (
        (trace.never_placed, "never placed: without a run time they are left out"),
        (trace.shared, "that had a share of one GPU: here each has a whole one"),
        (trace.limited, "that could run on some kinds of GPU only: here any will do"),
        (trace.unfinished, "still running when the trace was recorded: taken as completed then"),
    ):
        if count:
            yield f"{count_of(count, 'task')} {what}."


def _on_draws(counts: _Counts, jobs: int, seed: int) -> Iterator[str]:
    by = {fact: part_of(count, jobs, "job") for fact, count in counts.by_default.items()}
    if "priority" in by:
        high, normal = PRIORITIES[Klass.HIGH], PRIORITIES[Klass.NORMAL]
        shares = f"{HIGH_SHARE:.0%} high ({high}), {NORMAL_SHARE:.0%} normal ({normal}), the rest low (0)"
        yield f"The priority of {by['priority']} is drawn with seed {seed}: {shares}."
    if "checkpoint_every_s" in by:
        minutes = ", ".join(str(every // 60) for every in CHECKPOINT_EVERY_S)
        yield (
            f"The checkpoints of {by['checkpoint_every_s']} are drawn with seed {seed}: "
            f"{CHECKPOINT_SHARE:.0%} save, every {minutes} minutes, the others never."
        )
    if "requested_s" in by:
        days = ", ".join(str(limit.days) for limit in RUNTIME_LIMITS)
        yield (
            f"The run time that {by['requested_s']} requested is not known: of {days} days and what the "
            "policy's rule max_runtime allows it is taken as the shortest above the real one."
        )
    if "end" in by:
        yield f"How {by['end']} ended is not known: taken as completed."
    yield from _on_limits(counts)
    yield "Failed attempts, interruptions of spot instances and start-up times are not in the trace."


def _on_limits(counts: _Counts) -> Iterator[str]:
    if counts.cut:
        longer = f"longer than {LONGEST_RUN.days} days, SageMaker's limit"
        yield f"{count_of(counts.cut, 'job')} ran for {longer}: cut to it."
    if counts.over_limit:
        yield f"{count_of(counts.over_limit, 'job')} ran for longer than requested: stopped at that."


def _on_fit(counts: _Counts, jobs: Sequence[PastJob], policy: Policy) -> Iterator[str]:
    if by_gpus := counts.by_default["instance_type"]:
        yield (
            f"The policy's instances for {part_of(by_gpus, len(jobs), 'job')} are chosen by their GPUs, with "
            f"the fewest left over; {count_of(counts.left_over, 'job')} in all have more GPUs than asked for."
        )
    if refused := sum(counts.refusals.values()):
        most = counts.refusals.most_common(MOST_REASONS)
        rest = refused - sum(count for _, count in most)
        reasons = [f"{why} ({count:,})" for why, count in most] + ([f"others ({rest:,})"] if rest else [])
        which = "; ".join(reasons)
        yield f"{count_of(refused, 'job')} cannot start with the policy's capacity: {which}."
    teams = sorted({job.team for job in jobs} - {team.name for team in policy.teams})
    if policy.teams and teams:
        yield (
            f"Teams that are not in the policy: {listed(teams)}. Its quotas, budgets and rules of teams do "
            "not apply to their jobs."
        )
