"""Curves over time: lines of several columns, and areas stacked on each other."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from trainmaster_client.simulate.comparison.wording import count_text
from trainmaster_client.simulate.page.axes import Tick, nice_top, time_ticks, value_ticks
from trainmaster_client.simulate.page.markup import Node, node, percent, style, table

WIDTH, HEIGHT = 1000, 300
"""Size of the drawing, which is stretched to the page; its words are beside it and are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    label: str
    class_: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The frame that curves of one page share."""

    begins: datetime
    length_s: int
    bin_s: int

    def x(self, number: float) -> float:
        return WIDTH * min(1.0, number * self.bin_s / self.length_s)


def lines_plot(lines: Sequence[Line], frame: Frame, *, described: str) -> Node:
    top = nice_top(max((value for line in lines for value in line.values), default=0))
    drawn = [
        node("path", d=_step_path(line.values, frame, top), class_=f"line {line.class_}") for line in lines
    ]
    return plot(drawn, frame, top=top, described=described)


def areas_plot(lines: Sequence[Line], frame: Frame, *, capacity: float, top: float, described: str) -> Node:
    """Stack areas, the first line at the bottom; ``top`` is shared by plots beside each other."""
    below = [0.0] * max((len(line.values) for line in lines), default=0)
    drawn: list[Node] = []
    for line in lines:
        above = [low + value for low, value in zip(below, line.values, strict=True)]
        drawn.append(node("path", d=_area_path(below, above, frame, top), class_=f"area {line.class_}"))
        below = above
    if capacity:
        y = round(_y(capacity, top), 1)
        drawn.append(node("path", d=f"M0 {y}H{WIDTH}", class_="line limit"))
    return plot(drawn, frame, top=top, described=described)


def plot(drawn: Iterable[Node], frame: Frame, *, top: float, described: str) -> Node:
    """Put the drawing between its two axes."""
    drawing = node(
        "svg",
        node("title", described),
        *(
            node("path", d=f"M0 {HEIGHT * (1 - tick.share):g}H{WIDTH}", class_="grid")
            for tick in value_ticks(top)
        ),
        *drawn,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=described,
    )
    across = node("div", *_labels(value_ticks(top), vertical=True), class_="y", aria_hidden="true")
    along = node("div", *_labels(time_ticks(frame.begins, frame.length_s)), class_="x", aria_hidden="true")
    return node("div", across, drawing, along, class_="plot")


def legend(entries: Iterable[tuple[str, str]]) -> Node:
    """Draw the legend of (class, label) pairs."""
    return node(
        "ul",
        *(node("li", node("i", class_=f"key {class_}"), label) for class_, label in entries),
        class_="legend",
    )


def daily_table(lines: Sequence[Line], frame: Frame, *, caption: str) -> Node:
    """Make a table of each day's means, for readers who cannot see the curve."""
    day = max(1, 86400 // frame.bin_s)
    bins = max((len(line.values) for line in lines), default=0)
    rows = []
    for first in range(0, bins, day):
        at = frame.begins.astimezone(UTC) + timedelta(seconds=first * frame.bin_s)
        parts = (line.values[first : first + day] for line in lines)
        rows.append(
            [f"{at:%a %Y-%m-%d}", *(count_text(sum(part) / len(part)) if part else "-" for part in parts)]
        )
    return table(["day (UTC)", *(line.label for line in lines)], rows, caption=caption)


def used_lines(used: Mapping[str, Sequence[float]], palette: Mapping[str, str], bins: int) -> list[Line]:
    """Return lines of the teams that have a colour, then of all others together."""
    shown = [
        Line(label=team, class_=class_, values=used.get(team, [0.0] * bins))
        for team, class_ in palette.items()
    ]
    others = [values for team, values in used.items() if team not in palette]
    if others:
        together = [sum(values) for values in zip(*others, strict=True)]
        shown.append(Line(label="other teams", class_="t-others", values=together))
    return shown


def _labels(ticks: Iterable[Tick], *, vertical: bool = False) -> list[Node]:
    return [
        node("span", tick.label, style=style(at=percent(1 - tick.share if vertical else tick.share)))
        for tick in ticks
    ]


def _y(value: float, top: float) -> float:
    return HEIGHT * (1 - min(1.0, value / top))


def _step_path(values: Sequence[float], frame: Frame, top: float) -> str:
    parts = [f"M0 {_y(values[0], top):.1f}"] if values else []
    for number, value in enumerate(values):
        parts.append(f"V{_y(value, top):.1f}H{frame.x(number + 1):.1f}")
    return "".join(parts)


def _area_path(below: Sequence[float], above: Sequence[float], frame: Frame, top: float) -> str:
    if not above:
        return ""
    forth = _step_path(above, frame, top)
    back = "".join(
        f"V{_y(below[number], top):.1f}H{frame.x(number):.1f}" for number in reversed(range(len(below)))
    )
    return f"{forth}{back}Z"
