"""Derive from a commit's changes what it adds to counters, teams, run times and months."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from trainmaster.adapters.dynamodb import layout, retention
from trainmaster.adapters.dynamodb.array_counting import note_task_ends, place_task, throttle_claims
from trainmaster.adapters.dynamodb.codec import RUNS_IN, RUNS_OF, SPENT_ON, UNSEEN, encode, iso
from trainmaster.adapters.dynamodb.learned_lengths import teach
from trainmaster.adapters.dynamodb.speed_rows import note_speed
from trainmaster.adapters.dynamodb.start_rows import note_start
from trainmaster.adapters.dynamodb.updates import Update, Updates
from trainmaster.adapters.dynamodb.warm_histories import note_warm_lessons
from trainmaster.core.costs.ledger import Cause, UsageLine, month_of
from trainmaster.core.costs.spot_record import day_of
from trainmaster.core.durations.histogram import bucket
from trainmaster.core.forecast.run_times import Run, start_of_month
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.futile_preemptions import served_by
from trainmaster.core.jobs.instances import CapacityType
from trainmaster.core.jobs.model import Job, JobState, epoch_ms
from trainmaster.core.jobs.run_time import counted_time
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.unserved_attempts import start_lesson
from trainmaster.core.planning.candidates import lane
from trainmaster.core.planning.past_use import noted
from trainmaster.core.planning.refusal_records import RoleChange
from trainmaster.core.planning.snapshot import LaneRow, WaitingJob, WarmPool
from trainmaster.core.records import WriteCondition

MONTHS_CLEARED = 12
"""Months cleared before the two that are counted: a priority that returns finds nothing left of them."""


def counted_in(job: Job) -> Updates:
    """Count a new or adopted job in the state that it begins in."""
    updates: Updates = defaultdict(Update)
    places(updates, job, +1)
    _reserve(updates, job, +1)
    return updates


def counted(changes: Sequence[Change], *, at: datetime, condition: WriteCondition | None) -> Updates:
    """Collect every row of sums that a commit touches, each once."""
    updates: Updates = defaultdict(Update)
    for change in changes:
        places(updates, change.before, -1)
        places(updates, change.after, +1)
        _ends(updates, change, at=at)
        _charge(updates, change)
        note_task_ends(updates, change)
        lesson = start_lesson(change, at=at)
        if lesson is not None:
            note_start(updates[layout.counters_key(change.after.spec.pool)], lesson)
        if change.role is not None:
            note_role(updates[layout.counters_key(change.after.spec.pool)], change.role)
    note_warm_lessons(updates, changes, at=at)
    if condition is not None:
        pool = changes[0].after.spec.pool
        throttle_claims(updates, changes, condition.throttles)
        _guarded(updates[layout.counters_key(pool)], condition)
        _within_budget(updates, changes[0].after.live, changes[0].after.spec.team, condition)
        if condition.reuses is not None:
            warm_changed(updates, pool, condition.reuses, -1)
            bill_warm(updates, condition.reuses, at=at)
    return updates


def warm_changed(updates: Updates, pool: str, warm: WarmPool, sign: int) -> None:
    for capacity, count in warm.vector.items():
        updates[layout.counters_key(pool)].add[layout.warm(capacity)] += sign * count


def bill_warm(updates: Updates, warm: WarmPool, *, at: datetime, retained: timedelta | None = None) -> None:
    """Bill the time that instances waited for their next job to the job that left them warm."""
    line = warm.bill(at, retained=retained)
    if line is not None and warm.month is not None:
        _bill(updates, warm.team, warm.month, line)


def places(updates: Updates, job: Job, sign: int) -> None:
    """Count a job where it stands: in use, waiting for its turn, or parked."""
    spec = job.spec
    place_task(updates, job, sign)
    team = updates[layout.team_key(spec.pool, spec.team)]
    if job.is_live:
        for capacity, count in job.vector.items():
            updates[layout.counters_key(spec.pool)].add[layout.used(capacity)] += sign * count
            team.add[layout.used(capacity)] += sign * count
    elif not job.is_final:
        team.add[layout.WAITING] += sign
        if job.is_parked:
            team.add[layout.PARKED] += sign


def enters_lane(updates: Updates, pool: str, entry: WaitingJob) -> None:
    """Have a lane that a job enters survive if a pass found it empty; a commit may add several jobs."""
    text, head = lane(entry.shapes, entry.choice), layout.rank_text(entry.score, entry.name)
    row = updates[layout.lane_key(pool, entry.team, text)]
    row.add[layout.LANE_PUTS] += 1
    row.put |= {layout.LANE_TEAM: entry.team, layout.LANE_TEXT: text}
    row.shift = [(layout.LANE_HEAD, layout.LANE_HEAD, head)]


def lane_item(row: LaneRow) -> dict[str, Any]:
    return {
        layout.LANE_TEAM: row.team,
        layout.LANE_TEXT: row.text,
        layout.LANE_HEAD: row.head,
        layout.LANE_PUTS: row.puts,
    }


def _ends(updates: Updates, change: Change, *, at: datetime) -> None:
    """Count what an ended attempt teaches about later ones: when its types came free, how long jobs train."""
    attempt, spec = change.ended, change.after.spec
    if change.leaves_warm is not None:
        warm_changed(updates, spec.pool, change.leaves_warm, +1)
    if attempt is None:
        return
    counters = updates[layout.counters_key(spec.pool)]
    for capacity in attempt.vector:
        counters.put[layout.last_end(capacity)] = iso(at)
    for kind, served in served_by(attempt, at=at).items():
        counters.put[layout.served(kind)] = [served.instances, epoch_ms(served.at)]
    _past_use(updates[layout.team_key(spec.pool, spec.team)], attempt, at=at)
    _spot_day(updates, attempt, at=at)
    note_speed(updates, spec, attempt)
    if change.after.state is not JobState.COMPLETED or attempt.training_since is None:
        return
    last = counted_time(spec, attempt, (attempt.ended_at or at) - attempt.training_since)
    trained = change.before.checkpointed + last
    run = Run(trained=trained, limit=spec.max_runtime, priority=change.after.priority, ended_at=at)
    # Submissions look in the lane of their request, whatever shapes earlier attempts have left this job.
    key = layout.run_times_key(spec.pool, spec.team, lane(spec.shapes, spec.choice))
    _run(updates[key], run)
    teach(updates, spec, run)


def _past_use(team: Update, attempt: Attempt, *, at: datetime) -> None:
    """Add what the attempt held to its team's past use; ``past_use.added``, as an increment."""
    period, amount = noted(attempt, at=at)
    team.add[layout.past_use(period)] += amount
    gone = (layout.past_use(earlier) for earlier in period.earlier())
    team.remove += [name for name in gone if name not in team.remove]


def _spot_day(updates: Updates, attempt: Attempt, *, at: datetime) -> None:
    """Count what a spot attempt shows about the availability of its instance types."""
    if attempt.capacity_type is not CapacityType.SPOT:
        return
    for capacity, count in attempt.vector.items():
        seconds = attempt.bill.instance_seconds * count // attempt.shape.instances
        if seconds or attempt.spot.interruptions:
            day = updates[layout.spot_day_key(capacity.instance_type, day_of(at))]
            day.add["interruptions"] += attempt.spot.interruptions
            day.add["instance_seconds"] += seconds
            day.put["ttl"] = retention.ttl(at, retention.SPOT_DAYS)


def _run(times: Update, run: Run) -> None:
    """Add a run to the run times; ``RunTimes.after``, as increments."""
    seconds = int(run.trained.total_seconds())
    times.add[f"{RUNS_OF}{bucket(run.limit)}#{bucket(run.trained)}"] += 1
    times.add[f"{RUNS_IN}{month_of(run.ended_at)}#{run.priority}"] += 1
    month = start_of_month(run.ended_at) - timedelta(days=1)
    for _ in range(MONTHS_CLEARED):
        month = start_of_month(month) - timedelta(days=1)
        times.remove.append(f"{RUNS_IN}{month_of(month)}#{run.priority}")
    times.shift += [("t2", "t1", seconds), ("since", "since", iso(run.ended_at))]
    times.put |= {"t1": seconds, "ttl": retention.ttl(run.ended_at, retention.RUN_TIMES)}


def _reserve(updates: Updates, job: Job, sign: int) -> None:
    """Reserve the worst case of a running attempt's cost, in the month of its claim."""
    claim = job.live.claim if job.live else None
    if claim is not None and claim.month is not None and claim.reserved_cents:
        month = layout.month_key(job.spec.team, claim.month)
        updates[month].add["committed"] += sign * claim.reserved_cents


def _charge(updates: Updates, change: Change) -> None:
    """Move cost from reserved to billed, in the month of the claim."""
    team = change.after.spec.team
    _reserve(updates, change.before, -1)
    _reserve(updates, change.after, +1)
    ended = change.ended
    if ended is not None and ended.claim.month is not None:
        line = UsageLine(
            job=change.after.name,
            instance_seconds=ended.bill.instance_seconds,
            cents=ended.bill.cents,
            by={Cause(cause): cents for cause, cents in ended.bill.by.items()},
            saved_cents=ended.bill.saved_cents,
            warm_saved_cents=ended.bill.warm_saved_cents or 0,
        )
        _bill(updates, team, ended.claim.month, line)


def _bill(updates: Updates, team: str, month: str, line: UsageLine) -> None:
    total, job = updates[layout.month_key(team, month)], updates[layout.usage_key(team, month, line.job)]
    total.add["committed"] += line.cents or 0
    total.add["spent"] += line.cents or 0
    job.add["instance_seconds"] += line.instance_seconds
    job.add["unpriced"] += int(line.cents is None)
    job.add["saved"] += line.saved_cents
    job.add["warm_saved"] += line.warm_saved_cents
    by = {cause: cents for cause, cents in line.by.items() if cause is not Cause.UNKNOWN}
    if unseen := line.by.get(Cause.UNKNOWN, 0):
        # Stored as a part of what is productive: releases that a stack may go back to know no such cause.
        by[Cause.PRODUCTIVE] = by.get(Cause.PRODUCTIVE, 0) + unseen
        job.add[UNSEEN] += unseen
    job.add.update({f"{SPENT_ON}{cause.value}": cents for cause, cents in by.items()})


def _within_budget(updates: Updates, live: Attempt | None, team: str, condition: WriteCondition) -> None:
    if condition.most_committed is None or live is None or live.claim.month is None:
        return
    template = "attribute_not_exists(#n) OR #n <= :v" if condition.most_committed >= 0 else "#n <= :v"
    updates[layout.month_key(team, live.claim.month)].conditions.append(
        (template, "committed", condition.most_committed)
    )


def note_role(counters: Update, change: RoleChange) -> None:
    """Write a role's record if the stored one is still as it was read."""
    name = f"{layout.ROLE_STARTS}{change.key}"
    counters.put[name] = encode(change.after)
    if change.before is None:
        counters.conditions.append(("attribute_not_exists(#n)", name, None))
    else:
        counters.conditions.append(("#n.ver = :v", name, change.before.ver))
    if change.drops is not None:
        counters.remove.append(f"{layout.ROLE_STARTS}{change.drops}")


def _guarded(counters: Update, condition: WriteCondition) -> None:
    counters.conditions.append(("#n = :v", "policy_version", condition.policy_version))
    for capacity, room in (condition.most_used or {}).items():
        template = "attribute_not_exists(#n) OR #n <= :v" if room >= 0 else "#n <= :v"
        counters.conditions.append((template, layout.used(capacity), room))
    for counted, name_of in ((condition.used, layout.used), (condition.warm, layout.warm)):
        for capacity, count in (counted or {}).items():
            template = "#n = :v" if count else "attribute_not_exists(#n) OR #n = :v"
            counters.conditions.append((template, name_of(capacity), count))
    if condition.probes is not None:
        note_role(counters, condition.probes)
    _change_holds(counters, condition)


def _change_holds(counters: Update, condition: WriteCondition) -> None:
    for kept in condition.keeps:
        counters.put[layout.hold_of(kept.preemptor)] = encode(kept)
        counters.conditions.append(("attribute_not_exists(#n)", layout.hold_of(kept.preemptor), None))
    if condition.places_hold is not None:
        name = layout.hold_of(condition.places_hold.preemptor)
        counters.put[name] = encode(condition.places_hold)
        seen = condition.replaces_hold
        if seen is None:
            counters.conditions.append(("attribute_not_exists(#n)", name, None))
        else:
            counters.conditions.append(("#n = :v", name, encode(seen)))
    if condition.drops_hold is not None:
        name = layout.hold_of(condition.drops_hold.preemptor)
        counters.conditions.append(("#n = :v", name, encode(condition.drops_hold)))
        counters.remove.append(name)
    if condition.ends_hold_of is not None:
        counters.remove.append(layout.hold_of(condition.ends_hold_of))
