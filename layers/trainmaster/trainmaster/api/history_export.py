"""GET /history/export: the jobs of a period with their attempts, one JSON line each, for a replay."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus

from trainmaster.api.history_query import list_period, listing
from trainmaster.api.known_names import refused
from trainmaster.api.paging import Room
from trainmaster.api.request_context import Answer, RequestContext
from trainmaster.api.views import View, instant_text
from trainmaster.core.durations.work_speeds import MeasuredWidths
from trainmaster.core.history.journal import final_job, started_warm
from trainmaster.core.history.past_records import Ending, FinalJob, PastAttempt, Position, Window
from trainmaster.core.jobs.attempts import Attempt, StatusStart
from trainmaster.core.jobs.instances import Vector
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob

PAGE = 500
"""Jobs of one answer; each job with earlier attempts costs one more read."""
BATCH = 50
"""Rows read before the remaining time is checked again."""
MOST_ATTEMPTS = 500
"""Most attempts of one line; the newest are kept."""
NEXT_PAGE_HEADER = "trainmaster-next-token"
JSON_LINES = "application/x-ndjson"
_PARKED, _WAITING, _RUNNING, _PAST = _SECTIONS = ("parked", "waiting", "running", "past")


def export_history(context: RequestContext) -> Answer:
    """Export each pool's unfinished jobs, then its ended ones in order of their ends."""
    given = context.call.parameters("from", "to", "next_token")
    window = list_period(given, now=context.outside.clock())
    of_list = listing(context, "export", given, window)
    page = _Page(context=context, window=of_list.window)
    token = of_list.token(page.fill(of_list.order))
    return Answer(
        status=HTTPStatus.OK,
        body="".join(json.dumps(line) + "\n" for line in page.lines),
        content_type=JSON_LINES,
        headers={} if token is None else {NEXT_PAGE_HEADER: token},
    )


@dataclass(slots=True, kw_only=True)
class _Page:
    context: RequestContext
    window: Window
    lines: list[View] = field(default_factory=list)
    room: Room = field(default_factory=Room)
    looked: int = 0

    def fill(self, order: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Fill the page, and return the position behind which the next begins; None on the last."""
        pools = [pool.name for pool in self.context.policy.pools]
        if order and order[0] not in pools:
            raise refused("next_token", "is of a list that has changed", "start again without it")
        parts = [(pool, section) for pool in pools for section in _SECTIONS]
        first = parts.index((order[0], order[1])) if order else 0
        after = order[2:] if order else ()
        for pool, section in parts[first:]:
            if self.looked and self._is_full:
                return (pool, section)
            rest = self._past(pool, after) if section == _PAST else self._unfinished(pool, section, after)
            if rest is not None:
                return (pool, section, *rest)
            after = ()
        return None

    @property
    def _is_full(self) -> bool:
        return self.looked >= PAGE or self.room.is_full or not self.context.has_time

    def _unfinished(self, pool: str, section: str, after: tuple[str, ...]) -> tuple[str, ...] | None:
        while True:
            entries = self._entries(pool, section, after)
            jobs = self.context.outside.reader.jobs(entry.name for entry in entries)
            for job in jobs.values():
                if not job.is_final and job.spec.submitted_at < self.window.until:
                    attempts = self._attempts(job.name, job.spec.entry_id, job.attempt + job.is_live)
                    self._add(_line(job.name, job.spec.team, pool, final_job(job)), attempts)
            self.looked += len(entries)
            if len(entries) < BATCH:
                return None
            after = _order(entries[-1])
            if self._is_full:
                return after

    def _entries(
        self, pool: str, section: str, after: tuple[str, ...]
    ) -> Sequence[RunningJob] | Sequence[WaitingJob]:
        reader = self.context.outside.reader
        if section == _RUNNING:
            running = sorted(reader.running(pool), key=lambda job: job.name)
            return [job for job in running if not after or job.name > after[0]][:BATCH]
        behind = (int(after[0]), after[1]) if after else None
        read = reader.parked if section == _PARKED else reader.waiting
        return read(pool, after=behind, limit=BATCH)

    def _past(self, pool: str, after: tuple[str, ...]) -> Position | None:
        reader = self.context.outside.reader
        upto_now = Window(since=self.window.since, until=self.context.outside.clock())
        position: Position | None = (after[0], after[1]) if after else None
        while True:
            endings, position = reader.endings(pool, upto_now, after=position, limit=BATCH)
            for ending in endings:
                self._add_ending(ending, pool)
            self.looked += len(endings)
            if position is None or self._is_full:
                return position

    def _add_ending(self, ending: Ending, pool: str) -> None:
        final = ending.final
        if final is None or final.submitted_at >= self.window.until:
            return
        own = [_attempt_view(ending.attempt, ending)] if ending.attempt else []
        attempts = self._attempts(ending.job, final.entry_id, final.earlier) if final.earlier else []
        line = _line(ending.job, ending.team, pool, final)
        over = {"end": final.end, "ended_at": instant_text(ending.ended_at)}
        self._add(line | over, [*attempts, *own])

    def _attempts(self, name: str, entry_id: str, most: int) -> list[View]:
        """List the job's first attempts, at most so many."""
        if not most:
            return []
        attempts = self.context.outside.reader.attempts(name, entry_id)
        return [_stored_view(attempt) for attempt in attempts if attempt.number < most]

    def _add(self, line: View, attempts: list[View]) -> None:
        whole = line | {"attempts": attempts[-MOST_ATTEMPTS:]}
        self.room.takes(whole)
        self.lines.append(whole)


def _order(entry: RunningJob | WaitingJob) -> tuple[str, ...]:
    if isinstance(entry, RunningJob):
        return (entry.name,)
    return (str(entry.parked_until_ms if entry.is_parked else entry.score), entry.name)


def _line(name: str, team: str, pool: str, job: FinalJob) -> View:
    """Write a job's line; ``end`` and ``ended_at`` are null for an unfinished one."""
    return {
        "name": name,
        "team": team,
        "submitted_by": job.submitted_by,
        "pool": pool,
        "instances": {capacity.instance_type: count for capacity, count in sorted(job.vector.items())},
        "capacity_type": next(iter(job.vector)).capacity_type.value,
        "priority": job.priority,
        "submitted_at": instant_text(job.submitted_at),
        "max_runtime_seconds": int(job.max_runtime.total_seconds()),
        "saves_checkpoints": job.saves_checkpoints,
        "preemptible": job.preemptible,
        "entry_id": job.entry_id,
        "max_wait_seconds": _seconds(job.max_wait),
        "warm_key": job.warm_key,
        "learned_in": None if job.learned_in is None else list(job.learned_in),
        "after": [
            {"when": condition.kind, "job": condition.job, "entry_id": condition.entry_id}
            for condition in job.after
        ],
        "array": job.array,
        "array_at_most": job.array_at_most,
        "array_stop_after": job.array_stop_after,
        "elastic": _elastic(job),
        "avoids_plans": job.avoids_plans,
        "end": None,
        "ended_at": None,
    }


def _elastic(job: FinalJob) -> View | None:
    """Write the widths of an elastic job, its measured steps in 1,000 seconds by width, and earlier runs."""
    if job.widths is None:
        return None
    measured = job.widths.measured
    return {
        "widths": list(job.widths.counts),
        "speeds": dict(job.speeds),
        "measured": None if measured is None else _earlier_runs(measured),
    }


def _earlier_runs(measured: MeasuredWidths) -> View:
    return {
        "widths": list(measured.counts),
        "per_1000_seconds": list(measured.per_1000_s),
        "runs": measured.runs,
        "other_settings": measured.other_settings,
    }


def _attempt_view(attempt: PastAttempt, ending: Ending) -> View:
    return {
        "started_at": instant_text(attempt.claimed_at),
        "training_since": instant_text(attempt.training_since),
        "ended_at": instant_text(ending.ended_at),
        "end": attempt.end,
        "lost_seconds": int(attempt.lost.total_seconds()),
        "trained_seconds": _seconds(attempt.trained),
        "interruptions": attempt.interruptions,
        "warm_start": attempt.warm_start,
        "instances": sum(attempt.vector.values()),
        "plan": _plan(attempt.vector),
        "checkpoint_at": instant_text(attempt.checkpoint_at),
        "statuses": _statuses(attempt.statuses),
    }


def _stored_view(attempt: Attempt) -> View:
    ended = attempt.end
    return {
        "started_at": instant_text(attempt.claim.at),
        "training_since": instant_text(attempt.training_since),
        "ended_at": instant_text(ended.at if ended else None),
        "end": ended.reason.code if ended and ended.reason else None,
        "lost_seconds": int(ended.lost.total_seconds()) if ended else None,
        "trained_seconds": _seconds(attempt.trained),
        "interruptions": attempt.spot.interruptions,
        "warm_start": started_warm(attempt),
        "instances": sum(attempt.vector.values()),
        "plan": _plan(attempt.vector),
        "checkpoint_at": instant_text(attempt.checkpoint.last),
        "statuses": _statuses(attempt.statuses),
    }


def _statuses(statuses: tuple[StatusStart, ...] | None) -> list[View] | None:
    if statuses is None:
        return None
    return [{"status": status.status, "at": instant_text(status.at)} for status in statuses]


def _plan(vector: Vector) -> str | None:
    """Return the name of the training plan that an attempt ran on; None if it ran on none."""
    return next((capacity.plan for capacity in vector if capacity.is_plan), None)


def _seconds(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds())
