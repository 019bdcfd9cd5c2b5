"""GET /pools/history: how much of each instance type was used, warm, available and requested, over time."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from itertools import chain, pairwise

from trainmaster.api.history_query import period
from trainmaster.api.known_names import pools_asked, refused
from trainmaster.api.paging import MOST_BYTES
from trainmaster.api.request_context import Answer, RequestContext
from trainmaster.api.timeline import capacity_lines, history_since, is_within, warm_periods
from trainmaster.api.views import View, instant_text
from trainmaster.core.history.past_records import Ending, Position, TimeMeans, Window, waiting_at
from trainmaster.core.jobs.instances import Capacity, CapacityType
from trainmaster.core.policy import PoolPolicy

MOST_POINTS = 2000
MOST_ENDINGS = 50_000
"""Ended attempts read for one answer: about 25 MB of the table."""
MOST_WAITING = 10_000
"""Waiting jobs of one pool that are counted; if more wait now, past numbers are unknown."""
BATCH = 1000
SHORTEST, LONGEST = timedelta(seconds=60), timedelta(days=1)
USUAL_STEPS = tuple(timedelta(seconds=seconds) for seconds in (60, 300, 900, 3600, 10_800, 21_600, 86_400))
USUAL_POINTS = 500
POINT_BYTES = 100
"""Upper bound of the bytes that one type takes in one point."""
_USED, _WARM, _CAPACITY, _WAITING = "used", "warm", "capacity", "waiting"


def show_pool_history(context: RequestContext) -> Answer:
    """Show one pool, or all together: no instance type belongs to two pools."""
    given = context.call.parameters("pool", "from", "to", "step")
    pools = pools_asked(context, given.get("pool"))
    window = period(given, now=context.outside.clock())
    step = _step(given.get("step"), window)
    sums = _Sums(context=context, means=TimeMeans(window=window, step=step))
    for pool in pools:
        sums.add(pool)
    body = {
        "step": int(step.total_seconds()),
        "points": sums.points(),
        "since": instant_text(history_since(context, pools)),
    }
    return Answer(status=HTTPStatus.OK, body=body)


def _step(given: str | None, window: Window) -> timedelta:
    """Read the step. Raises InvalidRequestError."""
    whole = window.until - window.since
    if given is None:
        return next((usual for usual in USUAL_STEPS if whole <= USUAL_POINTS * usual), LONGEST)
    if not given.isascii() or not given.isdigit() or not 60 <= int(given[:9]) <= 86_400:  # noqa: PLR2004  as SHORTEST, LONGEST
        raise refused("step", "is not a number of seconds from 60 to 86400", "write it like 300")
    step = timedelta(seconds=int(given))
    if whole > MOST_POINTS * step:
        least = -(-whole // MOST_POINTS) // timedelta(seconds=1) + 1
        message = f"makes more than {MOST_POINTS} points"
        raise refused("step", message, f"use {max(least, 60)} or more, or a shorter period")
    return step


@dataclass(slots=True, kw_only=True)
class _Sums:
    context: RequestContext
    means: TimeMeans
    capacities: set[Capacity] = field(default_factory=set)
    uncounted: set[Capacity] = field(default_factory=set)
    """Capacities for which more jobs wait than are counted."""
    looked: int = 0
    has_plans: bool = False

    def add(self, pool: PoolPolicy) -> None:
        self.has_plans = self.has_plans or bool(pool.plans)
        self._add_capacity(pool)
        self._add_used(pool.name)
        for warm in warm_periods(self.context, pool.name, self.means.window):
            self._count(_WARM, warm.capacity, warm.instances, began=warm.since, ended=warm.until)
        self._add_waiting(pool)

    def points(self) -> list[View]:
        """List the points. Raises InvalidRequestError if they are more than one answer can take."""
        window, step, steps = self.means.window, self.means.step, self.means.steps
        shown = sorted(self.capacities)
        if steps * len(shown) * POINT_BYTES > MOST_BYTES:
            raise refused("step", "makes a larger answer than there can be", "use a larger one, or one pool")
        rows = {capacity: self._row(capacity) for capacity in shown}
        return [
            {
                "at": instant_text(window.since + number * step),
                "on-demand": {
                    capacity: rows[capacity][number] for capacity in shown if capacity.is_on_demand
                },
                "spot": {
                    capacity.instance_type: rows[capacity][number] for capacity in shown if capacity.is_spot
                },
                **self._of_plans(rows, number),
            }
            for number in range(steps)
        ]

    def _of_plans(self, rows: Mapping[Capacity, Sequence[View]], number: int) -> View:
        """Add up the plans of each type; empty if no pool has plans, as older clients know no such key."""
        plans = [capacity for capacity in rows if capacity.is_plan]
        if not plans and not self.has_plans:
            return {}
        by_type: dict[str, View] = {}
        for plan in plans:
            row, known = rows[plan][number], by_type.get(plan.instance_type)
            by_type[plan.instance_type] = row if known is None else _added(known, row)
        return {CapacityType.PLAN.value: by_type}

    def _row(self, capacity: Capacity) -> list[View]:
        """List what each point says of one capacity."""
        kinds = (_USED, _WARM, _CAPACITY, _WAITING)
        columns = [[_rounded(mean) for mean in self.means.means((kind, capacity))] for kind in kinds]
        rows = [dict(zip(kinds, values, strict=True)) for values in zip(*columns, strict=True)]
        return [row | {_WAITING: None} for row in rows] if capacity in self.uncounted else rows

    def _add_capacity(self, pool: PoolPolicy) -> None:
        lines = capacity_lines(self.context, pool, self.means.window)
        for line, later in pairwise([*lines, None]):
            assert line is not None
            for capacity, count in line.capacity.items():
                ended = later.at if later else None
                self._count(_CAPACITY, capacity, count, began=line.at, ended=ended)

    def _add_used(self, pool: str) -> None:
        reader, window = self.context.outside.reader, self.means.window
        for job in reader.running(pool):
            for capacity, count in job.vector.items():
                self._count(_USED, capacity, count, began=job.claimed_at, ended=None)
        position: Position | None = None
        while True:
            endings, position = reader.endings(pool, window, after=position, limit=BATCH)
            for ending in endings:
                self._add_ending(ending)
            if position is None:
                return
            self.looked += BATCH
            if self.looked >= MOST_ENDINGS or not self.context.has_time:
                message = "has more attempts than one answer can add up"
                raise refused("from", f"the period {message}", "ask for a shorter one, or for one pool")

    def _add_ending(self, ending: Ending) -> None:
        if ending.attempt is None or not is_within(ending, self.means.window):
            return
        for capacity, count in ending.attempt.vector.items():
            self._count(_USED, capacity, count, began=ending.attempt.claimed_at, ended=ending.ended_at)

    def _add_waiting(self, pool: PoolPolicy) -> None:
        """Count backwards from the jobs that wait now, as every change of their number is on record."""
        reader, window = self.context.outside.reader, self.means.window
        waiting = reader.waiting(pool.name, after=None, limit=MOST_WAITING + 1)
        parked = reader.parked(pool.name, after=None, limit=MOST_WAITING + 1)
        counts = list(reader.wait_counts(pool.name, window.since, self.context.outside.clock()))
        now = Counter(capacity for entry in chain(waiting, parked) for capacity in entry.vector)
        if len(waiting) + len(parked) > MOST_WAITING:
            self.uncounted |= now.keys()
        for capacity, count in waiting_at(window.since, now, counts).items():
            self._count(_WAITING, capacity, count, began=window.since, ended=None)
        for change in counts:
            if change.minute > window.since:
                self._count(_WAITING, change.capacity, change.count, began=change.minute, ended=None)

    def _count(
        self, kind: str, capacity: Capacity, count: int, *, began: datetime, ended: datetime | None
    ) -> None:
        self.capacities.add(capacity)
        self.means.add((kind, capacity), count, began=began, ended=ended)


def _added(first: View, second: View) -> View:
    """Add two points of one type; a count that one of them does not know stays unknown."""
    both = ((key, (first[key], second[key])) for key in first)
    return {key: None if None in counts else _rounded(sum(counts)) for key, counts in both}


def _rounded(mean: float) -> float:
    """Round, and replace a negative mean: a queue that changes while it is read may be off by one."""
    value = max(round(mean, 3), 0.0)
    return int(value) if value.is_integer() else value
