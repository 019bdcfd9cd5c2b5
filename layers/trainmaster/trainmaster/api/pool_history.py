"""GET /pools/history: how much of each instance type was used, warm, there and wanted, in steps of time."""

from collections import Counter
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
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.policy import PoolPolicy

MOST_POINTS = 2000
MOST_ENDINGS = 50_000
"""Of one answer: about 25 MB of the table."""
MOST_WAITING = 10_000
"""Of one pool; where more wait now, nobody counts how many did before."""
BATCH = 1000
SHORTEST, LONGEST = timedelta(seconds=60), timedelta(days=1)
USUAL_STEPS = tuple(timedelta(seconds=one) for one in (60, 300, 900, 3600, 10_800, 21_600, 86_400))
USUAL_POINTS = 500
POINT_BYTES = 100
"""Of one type in one point, at most."""
_USED, _WARM, _CAPACITY, _WAITING = "used", "warm", "capacity", "waiting"


def show_pool_history(context: RequestContext) -> Answer:
    """Of one pool, or of all together: no type belongs to two."""
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
    """Raises InvalidRequestError."""
    whole = window.until - window.since
    if given is None:
        return next((one for one in USUAL_STEPS if whole <= USUAL_POINTS * one), LONGEST)
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
    """More wait for them than are counted."""
    looked: int = 0

    def add(self, pool: PoolPolicy) -> None:
        self._add_capacity(pool)
        self._add_used(pool.name)
        for one in warm_periods(self.context, pool.name, self.means.window):
            self._count(_WARM, one.capacity, one.instances, began=one.since, ended=one.until)
        self._add_waiting(pool)

    def points(self) -> list[View]:
        """Raises InvalidRequestError where they are more than an answer takes."""
        window, step, steps = self.means.window, self.means.step, self.means.steps
        shown = sorted(self.capacities)
        if steps * len(shown) * POINT_BYTES > MOST_BYTES:
            raise refused("step", "makes a larger answer than there can be", "use a larger one, or one pool")
        rows = {one: self._row(one) for one in shown}
        return [
            {
                "at": instant_text(window.since + number * step),
                "on-demand": {one: rows[one][number] for one in shown if not one.is_spot},
                "spot": {one.instance_type: rows[one][number] for one in shown if one.is_spot},
            }
            for number in range(steps)
        ]

    def _row(self, capacity: Capacity) -> list[View]:
        """What each point says of it."""
        kinds = (_USED, _WARM, _CAPACITY, _WAITING)
        columns = [[_rounded(one) for one in self.means.means((kind, capacity))] for kind in kinds]
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
            found, position = reader.endings(pool, window, after=position, limit=BATCH)
            for one in found:
                self._add_ending(one)
            if position is None:
                return
            self.looked += BATCH
            if self.looked >= MOST_ENDINGS or not self.context.has_time:
                message = "has more attempts than one answer can add up"
                raise refused("from", f"the period {message}", "ask for a shorter one, or for one pool")

    def _add_ending(self, one: Ending) -> None:
        if one.attempt is None or not is_within(one, self.means.window):
            return
        for capacity, count in one.attempt.vector.items():
            self._count(_USED, capacity, count, began=one.attempt.claimed_at, ended=one.ended_at)

    def _add_waiting(self, pool: PoolPolicy) -> None:
        """From the jobs that wait now backwards: every change of their number is on record."""
        reader, window = self.context.outside.reader, self.means.window
        waiting = reader.waiting(pool.name, after=None, limit=MOST_WAITING + 1)
        parked = reader.parked(pool.name, after=None, limit=MOST_WAITING + 1)
        counts = list(reader.wait_counts(pool.name, window.since, self.context.outside.clock()))
        now = Counter(capacity for entry in chain(waiting, parked) for capacity in entry.vector)
        if len(waiting) + len(parked) > MOST_WAITING:
            self.uncounted |= now.keys()
        for capacity, count in waiting_at(window.since, now, counts).items():
            self._count(_WAITING, capacity, count, began=window.since, ended=None)
        for one in counts:
            if one.minute > window.since:
                self._count(_WAITING, one.capacity, one.count, began=one.minute, ended=None)

    def _count(
        self, kind: str, capacity: Capacity, count: int, *, began: datetime, ended: datetime | None
    ) -> None:
        self.capacities.add(capacity)
        self.means.add((kind, capacity), count, began=began, ended=ended)


def _rounded(mean: float) -> float:
    """Nobody waits less than not at all: a queue that changes while it is read may be off by one."""
    value = max(round(mean, 3), 0.0)
    return int(value) if value.is_integer() else value
