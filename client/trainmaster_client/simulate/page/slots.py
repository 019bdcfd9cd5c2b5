"""The busiest hours of one pool, instance by instance, before and after."""

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby

from trainmaster_client.simulate.comparison.comparisons import Column, Comparison
from trainmaster_client.simulate.comparison.wording import time_text
from trainmaster_client.simulate.engine.replays import ReplayedAttempt
from trainmaster_client.simulate.page.markup import Node, node

MOST_ATTEMPTS = 500
"""Most attempts in one picture."""
MOST_SLOTS = 120
WINDOWS_H = (168, 72, 48, 24, 12, 6, 3, 1)
HOUR_S = 3600
_CUT_SHARE = 0.006
"""Width of the mark at the end of a preempted attempt, as a share of the window's length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The window that is drawn; seconds since the history's beginning."""

    pool: str
    since_s: int
    until_s: int
    slots: int
    """Instances of the pool."""

    @property
    def length_s(self) -> int:
        return self.until_s - self.since_s

    def shown(self, attempts: Iterable[ReplayedAttempt]) -> list[ReplayedAttempt]:
        return [
            attempt
            for attempt in attempts
            if attempt.pool == self.pool and attempt.start_s < self.until_s and attempt.end_s > self.since_s
        ]


def busiest(comparison: Comparison) -> Window | None:
    """Find where most instances were waited for, of the pools that can be drawn; None if there is none."""
    columns = [comparison.base, comparison.last]
    pools = {
        pool: _slots(pool, columns) for pool in {attempt.pool for attempt in comparison.base.replay.attempts}
    }
    waited = {pool: _waited(pool, comparison) for pool, slots in pools.items() if 0 < slots <= MOST_SLOTS}
    if not waited:
        return None
    pool = max(waited, key=lambda pool_name: (sum(waited[pool_name]), pool_name))
    hours = waited[pool]
    peak = max(range(len(hours)), key=hours.__getitem__, default=0)
    return _fitting(pool, peak, pools[pool], comparison)


def slot_chart(column: Column, window: Window, palette: Mapping[str, str], *, described: str) -> Node:
    """Draw a row an instance; widths are times."""
    drawn = [
        rectangle
        for attempt, runs in placed(window.shown(column.replay.attempts), window.slots)
        for rectangle in _rectangles(attempt, runs, column, window, palette)
    ]
    return node(
        "svg",
        node("title", described),
        *drawn,
        viewBox=f"0 0 {window.length_s} {window.slots}",
        preserveAspectRatio="none",
        role="img",
        aria_label=described,
        class_="slots",
    )


def placed(
    attempts: Iterable[ReplayedAttempt], slots: int
) -> Iterator[tuple[ReplayedAttempt, list[tuple[int, int]]]]:
    """Yield each attempt with the rows it lies on, as (first, how many): the lowest that are free then."""
    free = list(range(slots))
    busy: list[tuple[int, int]] = []
    for attempt in sorted(attempts, key=lambda other: (other.start_s, -other.instances, other.job)):
        while busy and busy[0][0] <= attempt.start_s:
            insort(free, heappop(busy)[1])
        rows, free = free[: attempt.instances], free[attempt.instances :]
        for row in rows:
            heappush(busy, (attempt.end_s, row))
        yield attempt, _runs(rows)


def _runs(rows: Sequence[int]) -> list[tuple[int, int]]:
    runs = []
    for _, part in groupby(enumerate(rows), key=lambda pair: pair[1] - pair[0]):
        members = [row for _, row in part]
        runs.append((members[0], len(members)))
    return runs


def _rectangles(
    attempt: ReplayedAttempt,
    runs: Iterable[tuple[int, int]],
    column: Column,
    window: Window,
    palette: Mapping[str, str],
) -> Iterator[Node]:
    team = column.outcomes[attempt.job].job.team
    color = palette.get(team, "t-others")
    text = _said(attempt, team)
    cut = window.length_s * _CUT_SHARE if attempt.end == "preempted" else 0.0
    for first, count in runs:
        rows = (first + 0.06, count - 0.12)
        yield from _part((attempt.start_s, attempt.train_s), rows, window, f"starting {color}", text)
        yield from _part((attempt.train_s, attempt.end_s), rows, window, color, text)
        if cut:
            yield from _part((attempt.end_s - cut, attempt.end_s), rows, window, "cut", text)


def _part(
    seconds: tuple[float, float], rows: tuple[float, float], window: Window, class_: str, text: str
) -> Iterator[Node]:
    """Draw a rectangle: ``seconds`` are from and until, ``rows`` the upper edge and the height."""
    left, right = (min(max(0.0, second - window.since_s), float(window.length_s)) for second in seconds)
    if right > left:
        top, height = rows
        yield node(
            "rect", node("title", text), x=left, y=top, width=right - left, height=height, class_=class_
        )


def _said(attempt: ReplayedAttempt, team: str) -> str:
    end = f"{attempt.end} by {attempt.preempted_by}" if attempt.preempted_by else attempt.end
    length = time_text(attempt.end_s - attempt.start_s)
    return f"{attempt.job} ({team}), attempt {attempt.attempt}, {attempt.instances}x, {length}, {end}"


def _slots(pool: str, columns: Iterable[Column]) -> int:
    return max(
        sum(sum(types.values()) for types in column.replay.capacity.get(pool, {}).values())
        for column in columns
    )


def _waited(pool: str, comparison: Comparison) -> list[float]:
    """Return the instances that jobs waited for in each hour, in the base."""
    hours = [0.0] * (comparison.horizon_s // HOUR_S + 1)
    for outcome in comparison.base.outcomes.values():
        if outcome.attempts and outcome.attempts[0].pool == pool:
            for since, until in outcome.waiting_intervals(comparison.length_s):
                for hour in range(since // HOUR_S, min(until // HOUR_S, len(hours) - 1) + 1):
                    hours[hour] += outcome.attempts[0].instances
    return hours


def _fitting(pool: str, peak: int, slots: int, comparison: Comparison) -> Window:
    """Return the longest window around the peak whose attempts can be drawn."""
    for hours in WINDOWS_H:
        since_s = max(0, (peak - hours // 2) * HOUR_S)
        window = Window(pool=pool, since_s=since_s, until_s=since_s + hours * HOUR_S, slots=slots)
        most = max(len(window.shown(column.replay.attempts)) for column in (comparison.base, comparison.last))
        if most <= MOST_ATTEMPTS:
            break
    return window
