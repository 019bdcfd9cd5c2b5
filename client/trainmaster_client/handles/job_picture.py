"""A job as a small page for notebooks, and as one line elsewhere: state, reason, likely start, loss. Pure.

Colours are those around it, or of middle lightness: it is read on dark and on light paper.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from typing import Any

from trainmaster_client.http.answers import printable
from trainmaster_client.views.queue_rows import COLUMNS, Row

Points = Sequence[tuple[float, float]]
"""Pairs of step and loss, in their order."""

WIDTH, HEIGHT = 480, 150
LEFT, BOTTOM = 56, 18
"""Pixels, for the numbers beside the curve."""
MOST_POINTS = 300
"""Points of one attempt's curve: more than the picture has columns for, and less than 10 kB."""
MOST_ATTEMPTS = 20
"""Curves of one picture, the newest."""
MOST_ROWS = 200
"""Jobs of one table."""
_COLOURS = ("#3f83d8", "#d9822b")
"""Colours of attempts in turn; the colour-blind can tell blue from orange, too."""
_SHOWN = frozenset({"job", "team", "pool", "state", "instances", "priority", "position", "reason"})
"""Columns of a table by their keys: none that is another a minute later, as a notebook is kept."""
_CELL = 'style="text-align:left;padding:2px 8px"'


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPicture:
    """The facts of a job that are shown."""

    row: Row
    """The job in the words of every view."""
    likely_start: datetime | None = None
    curves: Mapping[int, Points] = field(default_factory=dict)
    """Losses by attempt."""
    note: str = ""
    """Says what could not be read, and why."""


def text(picture: JobPicture) -> str:
    """Write the job in one line, for a terminal or a log."""
    return f"{picture.row.cells['job']}: {'; '.join(_facts(picture))}"


def html(picture: JobPicture) -> str:
    state, *facts = _facts(picture)
    lines = "".join(f"<div>{_text(fact)}</div>" for fact in facts)
    head = f"<div><b>{_text(picture.row.cells['job'])}</b> {_text(state)}</div>"
    return f"<div>{head}{lines}{svg(picture.curves)}</div>"


def table(rows: Sequence[Row]) -> str:
    """Write many jobs as an HTML table, one row each."""
    columns = [column for column in COLUMNS if column.key in _SHOWN]
    heads = "".join(f"<th {_CELL}>{column.title}</th>" for column in columns)
    lines = "".join(
        f"<tr>{''.join(f'<td {_CELL}>{_text(row.cells[column.key])}</td>' for column in columns)}</tr>"
        for row in rows[:MOST_ROWS]
    )
    rest = f"<div>{len(rows) - MOST_ROWS} more</div>" if len(rows) > MOST_ROWS else ""
    return f"<table><tr>{heads}</tr>{lines}</table>{rest}"


def _facts(picture: JobPicture) -> Iterator[str]:
    where, state, *details = picture.row.details
    yield from (state, where, *details)
    job = picture.row.job
    if picture.likely_start is not None and job is not None and job.is_waiting:
        yield f"likely start {picture.likely_start:%Y-%m-%d %H:%M} UTC"
    if last := _last(picture.curves):
        yield f"newest loss {last[1]:.4g} at step {last[0]:,.0f}"
    if picture.note:
        yield f"note: {picture.note}"


def _last(curves: Mapping[int, Points]) -> tuple[float, float] | None:
    return next((curves[number][-1] for number in sorted(curves, reverse=True) if curves[number]), None)


# ---- the curve


def svg(curves: Mapping[int, Points]) -> str:
    """Draw the curves; empty before there are two points."""
    shown = {number: thinned(curves[number]) for number in sorted(curves)[-MOST_ATTEMPTS:]}
    points = [point for curve in shown.values() for point in curve]
    if len(points) < 2:  # noqa: PLR2004
        return ""
    scale = _Scale.around(points)
    lines = "".join(_line(curve, scale, _COLOURS[number % 2]) for number, curve in shown.items())
    frame = (
        f'<path d="M{LEFT} 4V{HEIGHT - BOTTOM}H{WIDTH - 4}" fill="none" stroke="currentColor" opacity=".5"/>'
    )
    labels = "".join(_labels(scale))
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="loss by step" style="font:11px sans-serif">{frame}{lines}{labels}</svg>'
    )


def thinned(curve: Points) -> Points:
    """Keep every n-th point, and the last one, which is the newest."""
    every = -(-len(curve) // MOST_POINTS)
    kept = list(curve[:: max(every, 1)])
    return [*kept, curve[-1]] if curve and kept[-1] != curve[-1] else kept


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    steps: tuple[float, float]
    losses: tuple[float, float]

    @classmethod
    def around(cls, points: Points) -> "_Scale":
        steps, losses = ([point[axis] for point in points] for axis in (0, 1))
        return cls(steps=(min(steps), max(steps)), losses=(min(losses), max(losses)))

    def x(self, step: float) -> float:
        return LEFT + _share(step, self.steps) * (WIDTH - 4 - LEFT)

    def y(self, loss: float) -> float:
        return HEIGHT - BOTTOM - _share(loss, self.losses) * (HEIGHT - BOTTOM - 8)


def _share(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    return 0.5 if high <= low else (value - low) / (high - low)


def _line(curve: Points, scale: _Scale, colour: str) -> str:
    if len(curve) == 1:
        step, loss = curve[0]
        return f'<circle cx="{scale.x(step):.1f}" cy="{scale.y(loss):.1f}" r="2" fill="{colour}"/>'
    at = " ".join(f"{scale.x(step):.1f},{scale.y(loss):.1f}" for step, loss in curve)
    return f'<polyline points="{at}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _labels(scale: _Scale) -> Iterator[str]:
    for loss in dict.fromkeys(scale.losses):
        yield _label(LEFT - 4, scale.y(loss) + 4, "end", f"{loss:.4g}")
    for step, anchor in zip(dict.fromkeys(scale.steps), ("start", "end"), strict=False):
        yield _label(scale.x(step), HEIGHT - 4, anchor, f"{step:,.0f}")


def _label(x: float, y: float, anchor: str, words: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor">{words}</text>'


def _text(value: Any) -> str:  # noqa: ANN401  whatever an answer holds
    return escape(printable(value))
