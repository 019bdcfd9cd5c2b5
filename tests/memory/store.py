"""JobStore over ``Tables``: check every condition, then write everything."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.core.durations.learned_rows import LearnedRow
from trainmaster.core.durations.traits import learned_key, notes_places
from trainmaster.core.durations.work_speeds import run_text
from trainmaster.core.errors import LostRaceError, TeamLimit, TeamLimitError, WriteRefusedError
from trainmaster.core.forecast.run_times import Run, RunTimes
from trainmaster.core.history.journal import warm_pool_over
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.futile_preemptions import served_by
from trainmaster.core.jobs.instances import Capacity, Vector
from trainmaster.core.jobs.measured_runs import measured_run
from trainmaster.core.jobs.model import Job, JobSpec, JobState
from trainmaster.core.jobs.run_time import counted_time
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.unserved_attempts import start_lesson
from trainmaster.core.lifecycle.warm_lessons import warm_lesson
from trainmaster.core.monitoring.metric_samples import samples, samples_of_record
from trainmaster.core.monitoring.metrics import Sample
from trainmaster.core.outbox import messages_of
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.planning.candidates import lane
from trainmaster.core.planning.past_use import added
from trainmaster.core.planning.plan_reasons import ToldReasons
from trainmaster.core.planning.refusal_records import AccountLimit, RoleChange
from trainmaster.core.planning.snapshot import LaneRow, PreemptionReservation, WaitingJob, WarmPool
from trainmaster.core.planning.warm_history import WarmHistory, WarmLesson
from trainmaster.core.policy import UNMANAGED
from trainmaster.core.records import Admission, Adoption, Alias, HistoryLine, WriteCondition
from trainmaster.core.rules.violation import ViolationRecord

from tests.memory.arrays import MemoryArrayWrites, note_end, require_no_task, require_throttles
from tests.memory.bills import bill_warm, charge, count_spot
from tests.memory.dependencies import MemoryDependentWrites, put_dependents, require_parents
from tests.memory.history import (
    history_begins,
    remember,
    remember_events,
    remember_submission,
    remember_warm_pool,
)
from tests.memory.tables import PoolRows, Tables

Measure = Callable[[Iterable[Sample]], None]


class MemoryJobStore(MemoryDependentWrites, MemoryArrayWrites):
    def __init__(self, tables: Tables, *, measure: Measure = lambda _: None) -> None:
        self._tables = tables
        self._commit = self.commit
        self._measure = measure

    def submit(self, job: Job, body: bytes, admission: Admission | None = None) -> None:
        tables = self._tables
        _require(job.name not in tables.jobs and job.name not in tables.aliases, "the name is in use")
        require_no_task(tables, job.name)
        conditions = () if job.after is None else job.after.conditions
        require_parents(tables, conditions)
        if admission is not None:
            self._admit(job, admission)
        put_dependents(tables, job, conditions)
        tables.jobs[job.name] = job
        tables.changed_at[job.name] = job.spec.submitted_at
        tables.requests[job.name] = body
        tables.aliases[job.name] = Alias(job=job.name, entry_id=job.spec.entry_id, attempt=0)
        line = HistoryLine(
            at=job.spec.submitted_at, attempt=0, from_state=None, to_state=job.state, reason=None
        )
        tables.lines[job.spec.entry_id].append(line)
        remember_submission(tables, job)

    def count_change(self, pool: str, team: str, *, most: int, at: datetime) -> bool:
        submissions = self._tables.pools[pool].submissions
        minute = (team, at.replace(second=0, microsecond=0))
        is_within = submissions[minute] < most
        submissions[minute] += is_within
        return is_within

    def adopt(self, adoption: Adoption, *, at: datetime) -> None:
        tables, job, live = self._tables, adoption.job, adoption.job.live
        assert live is not None
        _require(job.name not in tables.jobs and job.name not in tables.aliases, "the name is in use")
        kept = self.record_violation(adoption.record, replaces=adoption.replaces, messages=adoption.messages)
        _require(kept, "another record is kept")
        tables.jobs[job.name] = job
        tables.changed_at[job.name] = at
        tables.requests[job.name] = adoption.body
        alias = Alias(job=job.name, entry_id=job.spec.entry_id, attempt=live.number)
        tables.aliases[live.training_job_name] = alias
        tables.attempts[job.spec.entry_id, live.number] = live
        line = HistoryLine(
            at=at, attempt=live.number, from_state=None, to_state=job.state, reason=adoption.note
        )
        tables.lines[job.spec.entry_id].append(line)
        pool = tables.pools[job.spec.pool]
        _add(pool.used, job.vector, +1)
        pool.policy_version = pool.policy_version or adoption.policy_version
        if live.claim.month is not None and live.claim.reserved_cents:
            tables.months[job.spec.team, live.claim.month].committed += live.claim.reserved_cents

    def record_violation(
        self,
        record: ViolationRecord,
        *,
        replaces: ViolationRecord | None = None,
        messages: Sequence[OutboxMessage] = (),
    ) -> bool:
        key = (record.at, record.training_job_name)
        known = self._tables.violations.get(key)
        if _judgement(known) != _judgement(replaces):
            return False
        self._tables.violations[key] = record
        self._tables.messages |= {(UNMANAGED, message.id): message for message in messages}
        remember_events(self._tables, messages)
        self._measure(samples_of_record(record, replaces))
        return True

    def leave(self, pool: str, messages: Sequence[OutboxMessage]) -> None:
        new = [message for message in messages if (pool, message.id) not in self._tables.messages]
        self._tables.messages |= {(pool, message.id): message for message in new}
        remember_events(self._tables, new)

    def count_missed_warm_pool(self, pool: str, *, missed: bool) -> int:
        rows = self._tables.pools[pool]
        rows.missed_warm_pools = rows.missed_warm_pools + 1 if missed else 0
        return rows.missed_warm_pools

    def leave_once(self, pool: str, message: OutboxMessage, *, subject: str) -> bool:
        told = self._tables.pools[pool].told
        if subject in told:
            return False
        told.add(subject)
        self._tables.messages[pool, message.id] = message
        remember_events(self._tables, [message])
        return True

    def messages(self, pool: str, *, limit: int) -> tuple[OutboxMessage, ...]:
        found = sorted(key for key in self._tables.messages if key[0] == pool)
        return tuple(self._tables.messages[key] for key in found[:limit])

    def take(self, pool: str, message: OutboxMessage, *, until: datetime, now: datetime) -> bool:
        found = self._tables.messages.get((pool, message.id))
        if found is None or (found.lease_until is not None and found.lease_until > now):
            return False
        self._tables.messages[pool, message.id] = replace(found, lease_until=until)
        return True

    def done(self, pool: str, message: OutboxMessage) -> None:
        self._tables.messages.pop((pool, message.id), None)

    def commit(
        self, changes: Sequence[Change], *, at: datetime, condition: WriteCondition | None = None
    ) -> tuple[Job, ...]:
        pool = self._tables.pools[changes[0].after.spec.pool]
        for change in changes:
            self._check(change)
            _check_role(change.role, pool)
        if condition is not None:
            self._check_guard(condition, pool, changes[0].after)
            require_throttles(self._tables, condition.throttles, changes)
            _check_role(condition.probes, pool)
        for change in changes:
            self._write(change, at=at)
            _put_role(change.role, pool)
            messages = messages_of(change, at=at)
            self._tables.messages |= {(change.after.spec.pool, one.id): one for one in messages}
            remember_events(self._tables, messages)
            self._measure(samples(change))
        remember(self._tables, changes, at=at)
        if condition is not None or any(one.before.is_live is not one.after.is_live for one in changes):
            history_begins(self._tables, changes[0].after.spec.pool, at=at)
        if condition is not None:
            _apply_guard(condition, pool)
            if condition.reuses is not None:
                bill_warm(self._tables, condition.reuses, at=at)
                over = warm_pool_over(condition.reuses, at=at, reused_by=changes[0].after)
                remember_warm_pool(self._tables, changes[0].after.spec.pool, over)
        return tuple(self._tables.jobs[change.after.name] for change in changes)

    def commit_each(
        self, changes: Sequence[Change], *, at: datetime
    ) -> dict[str, LostRaceError | WriteRefusedError]:
        refused: dict[str, LostRaceError | WriteRefusedError] = {}
        for change in changes:
            try:
                self.commit([change], at=at)
            except (LostRaceError, WriteRefusedError) as error:
                refused[change.after.name] = error
        return refused

    def told_reasons(self, pool: str) -> ToldReasons:
        return self._tables.pools[pool].told_reasons

    def note_told(self, pool: str, told: ToldReasons) -> None:
        rows = self._tables.pools[pool]
        is_as_read = rows.told_reasons.version in {0, told.version}
        rows.told_reasons = replace(told, version=told.version + 1) if is_as_read else ToldReasons()

    def remove_entry(self, pool: str, entry: WaitingJob, job: Job | None) -> None:  # noqa: ARG002
        """There is none to remove: entries are made of the jobs."""
        raise LostRaceError(f"{entry.name} is no entry without a job")

    def drop_lanes(self, pool: str, lanes: Iterable[LaneRow]) -> None:
        """There are none without a job."""

    def take_over(self, pool: str, lanes: Sequence[LaneRow], *, in_time: Callable[[], bool]) -> None:
        """No release before left any."""

    def tell_policy(self, pool: str, version: int) -> None:
        rows = self._tables.pools[pool]
        rows.policy_version = max(version, rows.policy_version or 0)

    def change_chain(self, pool: str, before: datetime | None, after: datetime | None) -> bool:
        rows = self._tables.pools[pool]
        is_unchanged = rows.goes_on_until == before
        if is_unchanged:
            rows.goes_on_until = after
        return is_unchanged

    def limit_hold(self, pool: str, hold: PreemptionReservation, until: datetime) -> None:
        """Only the very hold that was seen."""
        holds = self._tables.pools[pool].holds
        if holds.get(hold.preemptor) == hold:
            holds[hold.preemptor] = replace(hold, until=until)

    def drop_hold(self, pool: str, hold: PreemptionReservation) -> None:
        holds = self._tables.pools[pool].holds
        if holds.get(hold.preemptor) == hold:
            del holds[hold.preemptor]

    def change_warm(
        self,
        pool: str,
        before: WarmPool | None,
        after: WarmPool | None,
        *,
        at: datetime,
        retained: timedelta | None = None,
    ) -> None:
        rows = self._tables.pools[pool]
        known = before or after
        assert known is not None
        name = known.training_job_name
        _require(rows.warm_pools.get(name) == before, f"warm pool {name} is not as it was")
        if before is not None:
            _add(rows.warm, before.vector, -1)
            del rows.warm_pools[name]
        if after is not None:
            _add(rows.warm, after.vector, +1)
            rows.warm_pools[name] = after
        elif before is not None:
            bill_warm(self._tables, before, at=at, retained=retained)
            remember_warm_pool(self._tables, pool, warm_pool_over(before, at=at, retained=retained))

    def learn_limit(self, pool: str, capacity: Capacity, limit: AccountLimit | None) -> None:
        limits = self._tables.pools[pool].limits
        limits.pop(capacity, None)
        if limit is not None:
            limits[capacity] = limit

    def note_role(self, pool: str, change: RoleChange) -> bool:
        rows = self._tables.pools[pool]
        try:
            _check_role(change, rows)
        except LostRaceError:
            return False
        _put_role(change, rows)
        return True

    def ranked(self, pool: str, order_key: str) -> None:
        self._tables.pools[pool].order_key = order_key

    def warned(self, team: str, month: str) -> None:
        self._tables.months[team, month].warned = True

    # ---- conditions

    def _admit(self, job: Job, admission: Admission) -> None:
        spec, limits = job.spec, admission.limits
        rows = self._tables.pools[spec.pool]
        if rows.freeze is not None and spec.team in rows.freeze.teams:
            lapsed = rows.freeze.until <= spec.submitted_at
            _require(lapsed or admission.policy_version > rows.freeze.version, "the policy is changing")
        waiting = (
            one
            for one in self._tables.jobs.values()
            if (one.spec.pool, one.spec.team) == (spec.pool, spec.team) and not one.is_live
        )
        if sum(not one.is_final for one in waiting) >= limits.max_waiting:
            raise TeamLimitError(TeamLimit.MAX_WAITING)
        most = limits.max_submissions_per_minute
        if not self.count_change(spec.pool, spec.team, most=most, at=spec.submitted_at):
            raise TeamLimitError(TeamLimit.MAX_SUBMISSIONS_PER_MINUTE)

    def _check(self, change: Change) -> None:
        tables, after = self._tables, change.after
        stored = tables.jobs.get(after.name)
        _require(stored is not None and stored.ver == change.before.ver, f"{after.name} changed")
        has_children = stored is not None and bool(stored.has_dependents)
        _require(bool(change.before.has_dependents) or not has_children, f"{after.name} has children")
        if change.leaves_warm is not None:
            kept = tables.pools[after.spec.pool].warm_pools
            _require(change.leaves_warm.training_job_name not in kept, "the warm pool is counted already")
        new = after.live if change.before.live is None else None
        if new is not None and new.number > 0:
            alias = tables.aliases.get(new.training_job_name)
            _require(alias is None or alias.entry_id == after.spec.entry_id, "the attempt's name is in use")

    def _check_guard(self, condition: WriteCondition, pool: PoolRows, first: Job) -> None:
        _require(pool.policy_version == condition.policy_version, "the policy changed")
        for capacity, room in (condition.most_used or {}).items():
            _require(pool.used[capacity] <= room, f"{pool.used[capacity]} {capacity} in use, room is {room}")
        for capacity, count in (condition.used or {}).items():
            _require(pool.used[capacity] == count, f"not {count} {capacity} in use")
        for capacity, count in (condition.warm or {}).items():
            _require(pool.warm[capacity] == count, f"not {count} {capacity} warm")
        _check_holds(condition, pool)
        if condition.still_waiting is not None:
            waiting = self._tables.jobs.get(condition.still_waiting.name)
            _require(
                waiting is not None and waiting.ver == condition.still_waiting.ver, "the preemptor changed"
            )
        if condition.reuses is not None:
            kept = pool.warm_pools.get(condition.reuses.training_job_name)
            _require(kept is not None and not kept.releasing, "the warm pool is gone")
        if (
            condition.most_committed is not None
            and first.live is not None
            and first.live.claim.month is not None
        ):
            committed = self._tables.months[first.spec.team, first.live.claim.month].committed
            _require(committed <= condition.most_committed, f"{committed} cents are committed")

    # ---- writes

    def _write(self, change: Change, *, at: datetime) -> None:
        tables, before = self._tables, change.before
        after = replace(change.after, ver=before.ver + 1)
        tables.jobs[after.name] = after
        tables.changed_at[after.name] = at
        self._keep_attempt(change)
        note_end(tables, change)
        self._count(change, at=at)
        charge(self._tables, change, at=at)
        if before.state is not after.state or change.note is not None:
            reason = change.ended.reason if change.ended else change.note or after.reason or after.waiting
            tables.lines[after.spec.entry_id].append(
                HistoryLine(
                    at=at,
                    attempt=before.attempt,
                    from_state=before.state,
                    to_state=after.state,
                    reason=reason,
                ),
            )

    def _keep_attempt(self, change: Change) -> None:
        attempt, spec = change.ended or change.after.live, change.after.spec
        if attempt is None:
            return
        self._tables.attempts[spec.entry_id, attempt.number] = attempt
        self._tables.aliases[attempt.training_job_name] = Alias(
            job=spec.name, entry_id=spec.entry_id, attempt=attempt.number
        )

    def _count(self, change: Change, *, at: datetime) -> None:
        """What the change says it was before and is after, as the table's counters are told."""
        spec, ended = change.after.spec, change.ended
        pool = self._tables.pools[spec.pool]
        for job, sign in ((change.before, -1), (change.after, +1)):
            if job.is_live:
                _add(pool.used, job.vector, sign)
        _teach_warm(pool, warm_lesson(change, at=at))
        pool.start_records = pool.start_records.after(start_lesson(change, at=at))
        if change.leaves_warm is not None:
            _add(pool.warm, change.leaves_warm.vector, +1)
            pool.warm_pools[change.leaves_warm.training_job_name] = change.leaves_warm
        if ended is None:
            return
        pool.last_end |= dict.fromkeys(ended.vector, at)
        pool.served |= served_by(ended, at=at)
        pool.past_use[spec.team] = added(pool.past_use.get(spec.team, {}), ended, at=at)
        count_spot(self._tables, ended, at=at)
        _note_speed(pool, spec, ended)
        if change.after.state is JobState.COMPLETED and ended.training_since is not None:
            last = counted_time(spec, ended, (ended.ended_at or at) - ended.training_since)
            trained = change.before.checkpointed + last
            whole = timedelta(seconds=int(trained.total_seconds()))
            run = Run(trained=whole, limit=spec.max_runtime, priority=change.after.priority, ended_at=at)
            key = (spec.team, lane(spec.shapes, spec.choice))
            times = pool.run_times.get(key)
            pool.run_times[key] = times.after(run) if times else RunTimes.of(run)
            for kind in (learned_key(spec.team, one) for one in spec.learned_in or ()):
                row = pool.learned.get(kind, LearnedRow(newest=at))
                if notes_places(kind[1]):
                    place = None if spec.likely is None else spec.likely.place_of(whole)
                    pool.learned[kind] = row.after_placed(whole, place, ended_at=at)
                else:
                    pool.learned[kind] = row.after(whole, ended_at=at)


def _note_speed(pool: PoolRows, spec: JobSpec, ended: Attempt) -> None:
    run = measured_run(spec, ended)
    if run is not None and spec.work_kind is not None:
        pool.speeds[spec.team, run.shape].insert(0, run_text(spec.work_kind, run))


def _judgement(record: ViolationRecord | None) -> tuple[str, int] | None:
    return None if record is None else (record.outcome, record.revision)


def _teach_warm(pool: PoolRows, lesson: WarmLesson | None) -> None:
    if lesson is not None:
        known = pool.warm_histories.get(lesson.key, WarmHistory())
        pool.warm_histories[lesson.key] = known.after(lesson)


def _check_role(change: RoleChange | None, pool: PoolRows) -> None:
    if change is not None:
        stored = pool.role_starts.get(change.key)
        before = change.before.ver if change.before else None
        _require((stored.ver if stored else None) == before, "the role's record changed")


def _put_role(change: RoleChange | None, pool: PoolRows) -> None:
    if change is not None:
        pool.role_starts[change.key] = change.after
        pool.role_starts.pop(change.drops or "", None)


def _check_holds(condition: WriteCondition, pool: PoolRows) -> None:
    for kept in condition.keeps:
        _require(kept.preemptor not in pool.holds, "it has a hold already")
    if condition.places_hold is not None:
        stands_there = pool.holds.get(condition.places_hold.preemptor)
        _require(stands_there == condition.replaces_hold, "its hold is another, or it has one already")
    if condition.drops_hold is not None:
        stands_there = pool.holds.get(condition.drops_hold.preemptor)
        _require(stands_there == condition.drops_hold, "its hold is another, or is gone")


def _apply_guard(condition: WriteCondition, pool: PoolRows) -> None:
    _put_role(condition.probes, pool)
    pool.holds |= {kept.preemptor: kept for kept in condition.keeps}
    if condition.places_hold is not None:
        pool.holds[condition.places_hold.preemptor] = condition.places_hold
    if condition.drops_hold is not None:
        del pool.holds[condition.drops_hold.preemptor]
    if condition.ends_hold_of is not None:
        pool.holds.pop(condition.ends_hold_of, None)
    if condition.reuses is not None:
        del pool.warm_pools[condition.reuses.training_job_name]
        _add(pool.warm, condition.reuses.vector, -1)


def _add(counts: dict[Capacity, int], vector: Vector, sign: int) -> None:
    for capacity, count in vector.items():
        counts[capacity] = counts.get(capacity, 0) + sign * count


def _require(holds: bool, otherwise: str) -> None:  # noqa: FBT001  a condition, not a flag
    if not holds:
        raise LostRaceError(otherwise)
