"""A timeline as text: one row per instance, as wide as the screen, with ticks, a legend and preemptions."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from math import floor

from trainmaster.core.jobs.spans import length

from trainmaster_client.jobs.timelines import (
    COMPLETED,
    AttemptSpan,
    InstanceRow,
    InstanceRows,
    SlotSpan,
    SlotUse,
    Timeline,
    instance_rows,
)

LEGEND = (
    "= training  / start-up  ~ warm  > live  : not recorded",
    "x preempted  ! ended, but not completed  blank: free",
    "? trained, and no checkpoint was seen: lost or saved",
)
NOT_RECORDED = "not recorded"
SHOWN_PREEMPTIONS = 10
FEWEST_COLUMNS = 20
"""Fewest columns of time, however narrow the screen is."""
_GUTTER = len("  12 |")
_SHORTEST_LABEL = 4
_TICK_COLUMNS = 9
"""Between two ticks, at least."""
_FILL = {SlotUse.STARTING: "/", SlotUse.TRAINING: "=", SlotUse.UNSEEN: "?", SlotUse.WARM: "~"}
_TRAINED = frozenset({SlotUse.TRAINING, SlotUse.UNSEEN})
_STEPS = tuple(
    timedelta(minutes=minutes)
    for minutes in (1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10080, 20160)
)
_DAY = timedelta(days=1)
_ROUNDING = 1e-6
"""Share of a column: an instant on a column's border belongs to that column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time that is shown, and how wide."""

    since: datetime
    until: datetime
    now: datetime
    width: int
    """Columns of the screen."""
    zone: tzinfo | None = None
    """Time zone of the times; None means this machine's."""

    @property
    def columns(self) -> int:
        return max(FEWEST_COLUMNS, self.width - _GUTTER - 1)

    @property
    def a_column(self) -> timedelta:
        return (self.until - self.since) / self.columns

    def column(self, at: datetime) -> int:
        """Return the column of an instant, which may be outside of the chart."""
        return floor((at - self.since) / (self.until - self.since) * self.columns + _ROUNDING)

    def here(self, at: datetime) -> datetime:
        return at.astimezone(self.zone)

    def zone_of(self, at: datetime) -> str:
        """Name the zone that an instant of this window is written in."""
        return f"{self.here(at):%Z}" or "UTC"

    @property
    def has_two_zones(self) -> bool:
        """Tell whether the clocks changed in the window, so that each time has to name its zone."""
        return self.zone_of(self.since) != self.zone_of(self.until)


def chart_lines(seen: Timeline, window: Window) -> Iterator[str]:
    """Yield the chart's lines; none is wider than the window, if that has 60 columns."""
    yield _title(window)
    groups = instance_rows(seen, now=window.now)
    if not groups:
        yield "Nothing ran in this time."
    for group in groups:
        yield ""
        yield from _heading(group, seen, window)
        yield f"{'':{_GUTTER}}{_ticks(window)}".rstrip()
        for number, row in enumerate(group.rows, start=1):
            yield f"{number:>4} |{_row(row, seen, window)}|"
    yield ""
    yield from LEGEND
    if seen.since is not None and seen.since > window.since:
        yield f"Nothing is recorded before {_time(seen.since, window)}, except what still runs."
    yield from _preemptions(seen, window)


def _title(window: Window) -> str:
    """Say the interval, with the zone of its times."""
    begin, end = (_time(at, window) for at in (window.since, window.until))
    zone = "" if window.has_two_zones else f" {window.zone_of(window.until)}"
    return f"{begin} to {end}{zone}, a column is {length(window.a_column)}"


def _heading(group: InstanceRows, seen: Timeline, window: Window) -> Iterator[str]:
    """Yield the pool and type, and its capacity with the changes of it."""
    yield f"{group.pool}: {group.instance_type} {group.capacity_type}"
    steps = [
        (change.at, change.by_kind.get(group.capacity_type, {}).get(group.instance_type, 0))
        for change in seen.capacity
        if change.pool == group.pool and change.at < window.until
    ]
    changed = [steps[0]] if steps else []
    changed += [later for earlier, later in pairwise(steps) if later[1] != earlier[1]]
    counts = [f"{n} from {_time(at, window)}" if at > window.since else str(n) for at, n in changed]
    if counts:
        yield f"  capacity {', '.join(counts)}; used at once: {len(group.rows)}"


def _ticks(window: Window) -> str:
    cells = [" "] * (window.columns + 1)
    step = next(
        (candidate for candidate in _STEPS if candidate >= _TICK_COLUMNS * window.a_column), _STEPS[-1]
    )
    shown = "%d %b" if step >= _DAY else "%H:%M"
    midnight = window.here(window.since).replace(hour=0, minute=0, second=0, microsecond=0)
    at = midnight.astimezone(UTC)  # where the clocks change, the same offset does not hold for all ticks
    while at < window.until:
        label = window.here(at).strftime(shown)
        begin = window.column(at)
        if begin >= 0 and begin + len(label) <= len(cells):
            cells[begin : begin + len(label)] = label
        at += step
    return "".join(cells)


def _row(row: InstanceRow, seen: Timeline, window: Window) -> str:
    cells = [" "] * window.columns
    if seen.since is not None:
        _hide(cells, window.column(seen.since))
    for span in row.spans:
        if span.until >= window.since and span.since < window.until:
            _draw(cells, span, window)
    return "".join(cells)


def _hide(cells: list[str], count: int) -> None:
    count = min(max(count, 0), len(cells))
    text = f" {NOT_RECORDED} " if count > len(NOT_RECORDED) + 2 else ""
    cells[:count] = text.center(count, ":")


def _draw(cells: list[str], span: SlotSpan, window: Window) -> None:
    """Draw a span of at least one cell; the last cell tells how the attempt ended."""
    begin = min(max(window.column(span.since), 0), len(cells) - 1)
    end = min(max(window.column(span.until), begin + 1), len(cells))
    cells[begin:end] = _FILL[span.use] * (end - begin)
    attempt = span.attempt
    if attempt is None:
        return
    if span.use in _TRAINED and (label := shortened(attempt.label, end - begin - 2)):
        cells[begin + 1 : begin + 1 + len(label)] = label
    if _is_last(span, attempt, window) and (mark := _mark(attempt)):
        cells[end - 1] = mark


def _is_last(span: SlotSpan, attempt: AttemptSpan, window: Window) -> bool:
    """Tell whether the span is the last of its attempt and ends inside the window."""
    is_over = span.use in _TRAINED or attempt.training_since is None
    return is_over and span.until < window.until + window.a_column


def _mark(attempt: AttemptSpan) -> str:
    if attempt.ended_at is None:
        return ">"
    if attempt.was_preempted:
        return "x"
    return "" if attempt.end in COMPLETED else "!"


def shortened(text: str, width: int) -> str:
    """Cut the text in its middle, where names of a sweep are alike; empty if nothing would be left of it."""
    if len(text) <= width:
        return text
    if width < _SHORTEST_LABEL:
        return ""
    tail = (width - 2) // 2
    return f"{text[: width - 2 - tail]}..{text[len(text) - tail :]}"


def _preemptions(seen: Timeline, window: Window) -> Iterator[str]:
    """Yield the newest preemptions, with the preemptor and what was lost."""
    taken = sorted(
        (attempt for attempt in seen.attempts if attempt.was_preempted and attempt.ended_at is not None),
        key=lambda attempt: attempt.ended_at or window.now,
    )
    if not taken:
        return
    yield ""
    left = len(taken) - SHOWN_PREEMPTIONS
    yield "Preempted" + (f" (the newest {SHOWN_PREEMPTIONS} of {len(taken)})" if left > 0 else "")
    for attempt in taken[-SHOWN_PREEMPTIONS:]:
        by = f" by {attempt.preempted_by}" if attempt.preempted_by else ""
        yield f"  {_time(attempt.ended_at or window.now, window)} {attempt.label}{by}, {_loss(attempt)}"


def _loss(attempt: AttemptSpan) -> str:
    """Say what a preemption cost: as a range where no checkpoint was seen."""
    if not attempt.unknown:
        return f"lost {length(attempt.lost)}"
    most = length(attempt.lost + attempt.unknown)
    return f"lost {length(attempt.lost)} to {most}: no checkpoint was seen"


def _time(at: datetime, window: Window) -> str:
    """Write an instant, with its zone where the window has two."""
    zone = f" {window.zone_of(at)}" if window.has_two_zones else ""
    return window.here(at).strftime("%Y-%m-%d %H:%M") + zone
