"""A comparison on a screen of 80 columns."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from trainmaster.core.policy import Policy

from trainmaster_client.http.answers import printable
from trainmaster_client.simulate.comparison.changes import Changes, JobChange
from trainmaster_client.simulate.comparison.comparisons import Column, Comparison
from trainmaster_client.simulate.comparison.figure_rows import FigureRow, figure_rows
from trainmaster_client.simulate.comparison.figures import MEDIAN, Waits, quantile
from trainmaster_client.simulate.comparison.seeds import Spread
from trainmaster_client.simulate.comparison.start_hours import StartHours
from trainmaster_client.simulate.comparison.summaries import change_lines, unfinished_lines
from trainmaster_client.simulate.comparison.wording import count_text, later_text, share_text, time_text
from trainmaster_client.views.short_names import middle_cut

WIDTH = 80
_LABEL, _CELL, _CHANGE = 31, 14, 18
_GROUP, _COUNT, _WAIT = 20, 8, 8
MOST_GROUPS, MOST_PAIRS, MOST_JOBS, MOST_GUESTS = 12, 5, 3, 5
_WAITS_SIDE_BY_SIDE = 3
"""Columns of two waits each that fit beside a group's name."""


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    for column in comparison.others:
        yield from figure_lines(comparison, column)
        yield ""
    yield from wait_lines(comparison.columns, "team", [column.waits_by_team for column in comparison.columns])
    yield ""
    yield from wait_lines(
        comparison.columns, "class", [column.waits_by_class for column in comparison.columns]
    )
    for column in comparison.others:
        yield ""
        yield from gain_lines(comparison, column)
    yield ""
    for column in comparison.columns:
        yield from taker_lines(column)
    yield from wrapped(unfinished_lines(*comparison.columns))


def figure_lines(comparison: Comparison, column: Column) -> Iterator[str]:
    """Yield the figures of one column beside the base."""
    base, other = comparison.columns.index(comparison.base), comparison.columns.index(column)
    names = (cut(comparison.base.label, _CELL), cut(column.label, _CELL))
    yield f"{'':<{_LABEL}}{names[0]:>{_CELL}} {names[1]:>{_CELL}}".rstrip()
    for row in figure_rows(comparison):
        yield _figure_line(row, base, other)


def spread_lines(spread: Iterable[Spread], columns: Sequence[Column]) -> Iterator[str]:
    """Yield mean and standard deviation over the seeds."""
    rows = list(spread)
    for first in range(0, len(columns), 2):
        names = "".join(f"{cut(column.label, 22):>24}" for column in columns[first : first + 2])
        yield f"{'':<{_LABEL}}{names}"
        for row in rows:
            cells = "".join(f"{cell:>24}" for cell in row.cells[first : first + 2])
            yield f"{cut(row.label, _LABEL - 1):<{_LABEL}}{cells}"


def wait_lines(columns: Sequence[Column], kind: str, waits: Sequence[Mapping[str, Waits]]) -> Iterator[str]:
    """Yield median and 90th percentile of each group, a few columns at a time."""
    groups = sorted(waits[0], key=lambda group: -waits[0][group].jobs) if kind == "team" else list(waits[0])
    for first in range(0, len(columns), _WAITS_SIDE_BY_SIDE):
        shown = slice(first, first + _WAITS_SIDE_BY_SIDE)
        names = "".join(f"  {cut(column.label, 2 * _WAIT - 2):>{2 * _WAIT - 2}}" for column in columns[shown])
        yield f"{f'waits by {kind}':<{_GROUP}}{'jobs':>{_COUNT}}{names}"
        heads = "".join(f"{'median':>{_WAIT}}{'90 %':>{_WAIT}}" for _ in columns[shown])
        yield f"{'':<{_GROUP + _COUNT}}{heads}"
        for group in groups[:MOST_GROUPS]:
            cells = "".join(_two_waits(column.get(group)) for column in waits[shown])
            jobs = count_text(waits[0][group].jobs)
            yield f"{cut(group, _GROUP - 1):<{_GROUP}}{jobs:>{_COUNT}}{cells}"
        if len(groups) > MOST_GROUPS:
            yield f"... {len(groups) - MOST_GROUPS} more with fewer jobs; --json has them all"


def gain_lines(comparison: Comparison, column: Column) -> Iterator[str]:
    changes = comparison.changes[column.label]
    yield from wrapped([f"{printable(column.label)} instead of {printable(comparison.base.label)}:"])
    yield from wrapped((f"  {line}" for line in change_lines(changes)), indent="    ")
    yield from _named("gain most", changes.winners)
    yield from _named("lose most", changes.losers)
    yield from _edges(changes)


def taker_lines(column: Column) -> Iterator[str]:
    """Say which teams preempted each other most, in pairs."""
    preemptions = column.preemptions
    label = printable(column.label)
    if not preemptions.count:
        yield from wrapped([f"{label}: nothing was preempted"])
        return
    pairs = sorted(preemptions.by_teams.items(), key=lambda pair: (-pair[1], pair[0]))
    texts = [
        f"{printable(taker)} from {printable(victim)} {count:,} times" for (taker, victim), count in pairs
    ]
    rest = len(texts) - MOST_PAIRS
    others = f", {rest} more pairs" if rest > 0 else ""
    yield from wrapped([f"{label}: who preempted whom: {', '.join(texts[:MOST_PAIRS])}{others}"], indent="  ")


def hour_lines(column: Column) -> Iterator[str]:
    """Use of the capacity in parts of the week, four hours each."""
    parts = [column.use_by_hour[first : first + 4] for first in range(0, 168, 4)]
    yield from _week([share_text(_mean(part)) for part in parts], column.label)


def _week(cells: Sequence[str], label: str) -> Iterator[str]:
    yield f"{cut(label, 14):<14}" + "".join(f"{f'{hour:02}-{hour + 4:02}':>10}" for hour in range(0, 24, 4))
    for day, name in enumerate(("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")):
        yield f"{name:<14}" + "".join(f"{cell:>10}" for cell in cells[6 * day : 6 * day + 6])


def start_lines(start: StartHours) -> Iterator[str]:
    """Yield the median waits of the job that was asked about, in parts of the week."""
    if start.refused is not None:
        yield from wrapped([f"{printable(start.label)} would refuse the job: {printable(start.refused)}"])
        return
    never = f", {start.never:,} never" if start.never else ""
    waits = f"{time_text(start.p50_s)} (median), {time_text(start.p90_s)} (9 of 10)"
    answer = f"submitted at each of {start.asked:,} hours it starts within {waits}{never}"
    yield from wrapped([f"{printable(start.label)}: {answer}; by hour (UTC):"])
    parts = [start.by_hour[first : first + 4] for first in range(0, 168, 4)]
    yield from _week([time_text(_middle(part)) for part in parts], "")


def wrapped(lines: Iterable[str], *, indent: str = "  ") -> Iterator[str]:
    """Wrap sentences; their further lines are indented."""
    for line in lines:
        yield from textwrap.wrap(
            line, WIDTH, subsequent_indent=indent, drop_whitespace=True, break_on_hyphens=False
        ) or [""]


def cut(name: str, width: int) -> str:
    return middle_cut(printable(name), width)


def capacity_text(policy: Policy) -> str:
    parts = [
        f"{pool.name} {count:,} {name}{kind}"
        for pool in policy.pools
        for kind, types in (("", pool.capacity), (" (spot)", pool.spot_capacity))
        for name, count in types.items()
    ]
    return f"capacity {', '.join(parts)}"


def guests_line(label: str, strangers: Sequence[str]) -> str:
    named = ", ".join(strangers[:MOST_GUESTS]) + (", ..." if len(strangers) > MOST_GUESTS else "")
    return (
        f"{label} does not name {len(strangers)} teams of the history ({named}): they have no quota, no "
        "budget and no highest priority. --team-map NAME=TEAM gives them the policy's names."
    )


def _figure_line(row: FigureRow, base: int, other: int) -> str:
    cells = f"{row.cells[base]:>{_CELL}} {row.cells[other]:>{_CELL}}"
    return f"{cut(row.label, _LABEL - 1):<{_LABEL}}{cells}  {row.changes[other]:<{_CHANGE}}".rstrip()


def _two_waits(waits: Waits | None) -> str:
    quantiles = (None, None) if waits is None else (waits.p50_s, waits.p90_s)
    return "".join(f"{time_text(seconds):>{_WAIT}}" for seconds in quantiles)


def _named(what: str, changes: Sequence[JobChange]) -> Iterator[str]:
    if changes:
        texts = (
            f"{printable(change.job)} ({printable(change.team)}, {later_text(change.change_s)})"
            for change in changes[:MOST_JOBS]
        )
        yield from wrapped([f"  jobs that {what}: {', '.join(texts)}"], indent="    ")


def _edges(changes: Changes) -> Iterator[str]:
    edges = (
        (changes.started_before_alone, "never start any more"),
        (changes.started_after_alone, "start that never did"),
        (changes.refused_after_alone, "are refused that were not"),
        (changes.refused_before_alone, "are admitted that were refused"),
    )
    yield from (f"  {count:,} jobs {what}" for count, what in edges if count)


def _middle(values: Sequence[float | None]) -> float | None:
    return quantile(sorted(value for value in values if value is not None), MEDIAN)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
