"""GET /timeline: what used a pool's instances: attempts, warm pools, and the capacity in force."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TypeAlias

from trainmaster.api.capacity_views import by_capacity_type, by_type
from trainmaster.api.history_query import list_period, listing
from trainmaster.api.known_names import pools_asked, refused
from trainmaster.api.request_context import Answer, RequestContext
from trainmaster.api.views import View, instant_text
from trainmaster.core.errors import InvalidRequestError
from trainmaster.core.history.journal import started_warm
from trainmaster.core.history.past_records import CapacityChange, Ending, Position, Window
from trainmaster.core.jobs.instances import Capacity, CapacityType, Vector
from trainmaster.core.jobs.model import Job
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.policy import PoolPolicy

PAGE = 1000
"""Attempts read for one page; each has about 350 bytes."""
MOST_WARM_POOLS = 5000
"""Warm pools of one answer: about 1 MB."""
MOST_CHANGES = 500
"""Changes of a pool's capacity in one answer."""
AHEAD_SHOWN = timedelta(days=7)
"""Time ahead of which changes by calendars, reservations and plans are shown, where the period ends now."""
_UNTIL_NOW = timedelta(minutes=5)
"""Time before now at which a period still ends now: clocks differ, and callers round."""
_LIVE, _PAST = "live", "past"


def show_timeline(context: RequestContext) -> Answer:
    """Show each pool's live attempts, then those that ended, long ones first."""
    given = context.call.parameters("pool", "from", "to", "next_token")
    pools = pools_asked(context, given.get("pool"))
    window = list_period(given, now=context.outside.clock())
    of_list = listing(context, "timeline", given, window)
    page = _Page(context=context, window=of_list.window)
    end = page.fill(pools, of_list.order)
    first: View = {"capacity": [], "warm": []} if of_list.order else _once(context, pools, of_list.window)
    body = {
        "attempts": [*page.shown.values()],
        **first,
        "since": instant_text(history_since(context, pools)),
        "next_token": of_list.token(end),
    }
    return Answer(status=HTTPStatus.OK, body=body)


def history_since(context: RequestContext, pools: Sequence[PoolPolicy]) -> datetime | None:
    """Return since when the history of all pools is complete; None if nothing was written yet."""
    starts = (context.outside.reader.history_since(pool.name) for pool in pools)
    return max((at for at in starts if at is not None), default=None)


_AttemptKey: TypeAlias = tuple[str, int, datetime]
"""Job, number of the attempt, instant of the claim."""


@dataclass(slots=True, kw_only=True)
class _Page:
    context: RequestContext
    window: Window
    shown: dict[_AttemptKey, View] = field(default_factory=dict)
    """Each attempt once: one that ends between two reads is only among the ended ones."""
    looked: int = 0

    def fill(self, pools: Sequence[PoolPolicy], order: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """Fill the page, and return the position behind which the next begins; None on the last."""
        section, *after = order[1:] if order else (_LIVE,)
        names = [pool.name for pool in pools]
        if order and order[0] not in names:
            raise refused("next_token", "is of a list that has changed", "start again without it")
        for name in names[names.index(order[0]) if order else 0 :]:
            if section == _LIVE:
                upto = self._live(name, after[0] if after else "")
                if upto is not None:
                    return (name, _LIVE, upto)
                after = []
            position = self._past(name, (after[0], after[1]) if after else None)
            if position is not None:
                return (name, _PAST, *position)
            section, after = _LIVE, []
        return None

    @property
    def _is_full(self) -> bool:
        return self.looked >= PAGE or (self.looked > 0 and not self.context.has_time)

    def _live(self, pool: str, after: str) -> str | None:
        """Add live attempts in order of name; return the last name if more are left."""
        reader = self.context.outside.reader
        entries = sorted(reader.running(pool), key=lambda job: job.name)
        names = [job.name for job in entries if job.name > after and job.claimed_at < self.window.until]
        if names and self._is_full:
            return after
        shown, rest = names[: PAGE - self.looked], names[PAGE - self.looked :]
        jobs = reader.jobs(shown)
        self.looked += len(shown)
        for job in (jobs[name] for name in shown if name in jobs):
            if (live := job.live) is not None:
                self.shown[job.name, live.number, live.claim.at] = live_view(job, self.context)
        return shown[-1] if rest else None

    def _past(self, pool: str, after: Position | None) -> Position | None:
        if self._is_full:
            return after or (_BEFORE_ALL, "")
        position = None if after == (_BEFORE_ALL, "") else after
        while True:
            endings, position = self.context.outside.reader.endings(
                pool, self.window, after=position, limit=PAGE - self.looked
            )
            self.looked += len(endings)
            for ending in endings:
                if ending.attempt is not None and is_within(ending, self.window):
                    key = (ending.job, ending.attempt.number, ending.attempt.claimed_at)
                    self.shown.pop(key, None)
                    self.shown[key] = past_view(ending, pool, self.context)
            if position is None or self._is_full:
                return position


_BEFORE_ALL = "-"
"""Stands in a token for: no attempt of the pool's past was shown yet."""


def is_within(ending: Ending, window: Window) -> bool:
    """Tell whether the attempt was live at some time within the window."""
    attempt = ending.attempt
    return attempt is not None and window.overlaps(attempt.claimed_at, ending.ended_at)


def past_view(ending: Ending, pool: str, context: RequestContext) -> View:
    attempt = ending.attempt
    assert attempt is not None
    sees_by = attempt.preempted_by_team is not None and context.sees(attempt.preempted_by_team)
    return {
        "job": ending.job if context.sees(ending.team) else None,
        "attempt": attempt.number,
        "team": ending.team,
        "pool": pool,
        **_held(attempt.vector),
        "claimed_at": instant_text(attempt.claimed_at),
        "training_since": instant_text(attempt.training_since),
        "ended_at": instant_text(ending.ended_at),
        "end": attempt.end,
        "preempted_by": attempt.preempted_by if sees_by else None,
        "preempted_by_team": attempt.preempted_by_team,
        "warm_start": attempt.warm_start,
        "lost_seconds": int(attempt.lost.total_seconds()),
        "unknown_seconds": int(attempt.unknown.total_seconds()),
    }


def live_view(job: Job, context: RequestContext) -> View:
    """Show the live attempt of a job."""
    live, by = job.live_attempt, job.live_attempt.preempted_for
    by_team = (by.team or job.spec.team) if by else None
    return {
        "job": job.name if context.sees(job.spec.team) else None,
        "attempt": live.number,
        "team": job.spec.team,
        "pool": job.spec.pool,
        **_held(live.vector),
        "claimed_at": instant_text(live.claim.at),
        "training_since": instant_text(live.training_since),
        "ended_at": None,
        "end": None,
        "preempted_by": by.name if by and by_team and context.sees(by_team) else None,
        "preempted_by_team": by_team,
        "warm_start": started_warm(live),
        "lost_seconds": None,
        "unknown_seconds": None,
    }


def _held(vector: Vector) -> View:
    return {
        "instances": {capacity.instance_type: count for capacity, count in sorted(vector.items())},
        "capacity_type": next(iter(vector)).capacity_type.value,
    }


def _once(context: RequestContext, pools: Sequence[PoolPolicy], window: Window) -> View:
    """Show what only the first page has, and has completely."""
    capacity = [line for pool in pools for line in capacity_lines(context, pool, window)]
    warm = [view for pool in pools for view in _warm(context, pool.name, window)]
    once: View = {"capacity": [_line_view(line) for line in capacity], "warm": warm}
    ahead = list(_ahead(pools, window, now=context.outside.clock()))
    return once | {"ahead": ahead} if ahead else once  # older clients know no such key


def _ahead(pools: Sequence[PoolPolicy], window: Window, *, now: datetime) -> Iterator[View]:
    """Show what calendars, reservations and plans are going to change, in order; nothing of a past period."""
    if window.until < now - _UNTIL_NOW:
        return
    soon = [entry for pool in pools for entry in pool.states_ahead(until=now + AHEAD_SHOWN)]
    for at, pool in sorted(soon, key=lambda entry: (entry[0], entry[1].name)):
        reserved = {team: dict(instances) for team, instances in pool.reserved.items()}
        view = {
            "at": instant_text(at),
            "pool": pool.name,
            "capacity": dict(pool.capacity),
            "reserved": reserved,
        }
        plans = by_type({plan: count.usable for plan, count in pool.plan_counts.items()})
        yield view | {"plan_capacity": plans} if plans else view


def capacity_lines(context: RequestContext, pool: PoolPolicy, window: Window) -> list[CapacityChange]:
    """Return the capacities in force, each since its time, the first since the beginning of the window."""
    changes = context.outside.reader.capacity_changes(pool.name, window, limit=MOST_CHANGES + 1)
    if len(changes) > MOST_CHANGES:
        raise _too_much("changes of capacity")
    before = [change for change in changes if change.at <= window.since]
    at_first = before[-1].capacity if before else changes[0].before if changes else pool_vector(pool)
    first = CapacityChange(pool=pool.name, at=window.since, capacity=at_first)
    return [first, *(change for change in changes if window.since < change.at < window.until)]


def _line_view(line: CapacityChange) -> View:
    counts = by_capacity_type(line.capacity, CapacityType)
    view = {
        "at": instant_text(line.at),
        "pool": line.pool,
        "capacity": counts[CapacityType.ON_DEMAND],
        "spot_capacity": counts[CapacityType.SPOT],
    }
    plans = counts[CapacityType.PLAN]
    return view | {"plan_capacity": plans} if plans else view


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPeriod:
    """Describes instances of one kind that SageMaker kept warm for a while."""

    capacity: Capacity
    instances: int
    since: datetime
    until: datetime | None = None
    """End of the period; None while they are warm."""
    reused_by: str | None = None
    reused_by_team: str | None = None
    because: str | None = None
    """Why they were given up; None if they were not, or are not yet."""


def warm_periods(context: RequestContext, pool: str, window: Window) -> Iterator[WarmPeriod]:
    reader = context.outside.reader
    past = reader.past_warm_pools(pool, window, limit=MOST_WARM_POOLS + 1)
    if len(past) > MOST_WARM_POOLS:
        raise _too_much("warm pools")
    for ended in past:
        for capacity, count in ended.vector.items():
            yield WarmPeriod(
                capacity=capacity,
                instances=count,
                since=ended.since,
                until=ended.until,
                reused_by=ended.reused_by,
                reused_by_team=ended.reused_by_team,
                because=ended.because,
            )
    for warm in reader.pool_state(pool).warm_pools:
        for capacity, count in warm.vector.items():
            since = warm.billed_from or warm.since
            yield WarmPeriod(capacity=capacity, instances=count, since=since, because=warm.because)


def _warm(context: RequestContext, pool: str, window: Window) -> Iterator[View]:
    for warm in warm_periods(context, pool, window):
        if window.overlaps(warm.since, warm.until):
            sees_by = warm.reused_by_team is not None and context.sees(warm.reused_by_team)
            yield {
                "pool": pool,
                "instance_type": warm.capacity.instance_type,
                "instances": warm.instances,
                "since": instant_text(warm.since),
                "until": instant_text(warm.until),
                "reused_by": warm.reused_by if sees_by else None,
                "reused_by_team": warm.reused_by_team,
                **({"because": warm.because} if warm.because else {}),  # older clients do not know it
            }


def _too_much(what: str) -> InvalidRequestError:
    return refused("from", f"the period has too many {what}", "ask for a shorter one, or for one pool")
