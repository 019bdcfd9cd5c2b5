"""Waits, queue and use: each a sentence, a picture, and the same figures as a table."""

import math
from collections.abc import Iterator
from datetime import timedelta

from trainmaster_client.simulate.comparison.comparisons import Comparison
from trainmaster_client.simulate.comparison.headlines import (
    class_waits_finding,
    queue_finding,
    team_waits_finding,
    use_finding,
)
from trainmaster_client.simulate.comparison.wording import count_text, share_text, time_text
from trainmaster_client.simulate.page.axes import nice_top, time_ticks
from trainmaster_client.simulate.page.colors import Look
from trainmaster_client.simulate.page.curves import (
    Frame,
    Line,
    areas_plot,
    daily_table,
    legend,
    lines_plot,
    used_lines,
)
from trainmaster_client.simulate.page.markup import Node, figure, folded, node, percent, style
from trainmaster_client.simulate.page.slots import busiest, slot_chart
from trainmaster_client.simulate.page.spans import spans
from trainmaster_client.simulate.page.week_map import week_map


def waits_section(comparison: Comparison, look: Look) -> Node:
    note = (
        "From the median (dot) to the wait that 9 of 10 jobs stay below (bar's end). Further left is better."
    )
    by_team = spans(look.columns, [column.waits_by_team for column in comparison.columns], kind="team")
    by_class = spans(look.columns, [column.waits_by_class for column in comparison.columns], kind="class")
    return node(
        "section",
        node("h2", "Waits", id="waits"),
        legend(look.columns),
        figure(team_waits_finding(comparison), *by_team, note=note),
        figure(class_waits_finding(comparison), *by_class, note=note),
    )


def queue_section(comparison: Comparison, look: Look) -> Node:
    frame = _frame(comparison)
    lines = [
        Line(label=label, class_=class_, values=column.curves.queue)
        for (class_, label), column in zip(look.columns, comparison.columns, strict=True)
    ]
    title = queue_finding(comparison)
    return node(
        "section",
        node("h2", "Length of the queue", id="queue"),
        figure(
            title,
            legend(look.columns),
            lines_plot(lines, frame, described=title),
            folded(
                "Length by day as a table", daily_table(lines, frame, caption="Waiting jobs, daily means")
            ),
            note=f"Jobs that wait, means of {_bin_text(frame.bin_s)}. Lower is better. Times are UTC.",
        ),
    )


def use_section(comparison: Comparison, look: Look) -> Node:
    """Show who held what, before and after."""
    frame, unit = _frame(comparison), comparison.devices.unit
    tops = [max([column.curves.capacity, *column.curves.used]) for column in comparison.columns]
    top = nice_top(max(tops))
    figures = []
    for column in (comparison.base, *comparison.others):
        lines = used_lines(column.curves.used_by_team, look.teams, len(column.curves.queue))
        title = f"{column.label}: {share_text(column.figures.utilisation)} of the capacity in use"
        drawn = areas_plot(lines, frame, capacity=column.curves.capacity, top=top, described=title)
        rows = daily_table(lines, frame, caption=f"{unit}s in use under {column.label}, daily means")
        note = f"{unit}s that attempts hold, by team; the line is the capacity. Times are UTC."
        figures.append(figure(title, drawn, folded("Use by day as a table", rows), note=note))
    teams = {team for column in comparison.columns for team in column.curves.used_by_team}
    return node(
        "section",
        node("h2", "Who held the capacity", id="use"),
        look.team_legend(len(teams)),
        node("div", *figures, class_="pair"),
    )


def busiest_section(comparison: Comparison, look: Look) -> Iterator[Node]:
    window = busiest(comparison)
    if window is None:
        return
    begins = comparison.history.begins + timedelta(seconds=window.since_s)
    height = style(slots=f"{min(460, max(120, 16 * window.slots))}px")
    labels = [
        node("span", tick.label, style=style(at=percent(tick.share)))
        for tick in time_ticks(begins, window.length_s)
    ]
    figures = []
    for column in (comparison.base, comparison.last):
        shown = window.shown(column.replay.attempts)
        stopped = sum(attempt.end == "preempted" and attempt.end_s <= window.until_s for attempt in shown)
        title = f"{column.label}: {count_text(len(shown))} attempts, {count_text(stopped)} of them preempted"
        drawn = slot_chart(column, window, look.teams, described=title)
        axis = node("div", *labels, class_="x", aria_hidden="true")
        figures.append(figure(title, node("div", drawn, axis, class_="plot wide", style=height)))
    yield node(
        "section",
        node("h2", "The busiest hours, before and after", id="timeline"),
        node(
            "p",
            f"Pool {window.pool}, {time_text(window.length_s)} from {begins:%a %Y-%m-%d %H:%M} UTC: a row an "
            "instance, a bar an attempt in its team's colour, pale while it starts up, with a red end where "
            "it was preempted. Names appear under the pointer.",
        ),
        node("div", *figures, class_="pair"),
    )


def week_section(comparison: Comparison) -> Node:
    figures = []
    for column in comparison.columns:
        title = use_finding(column)
        if any(share is not None for share in column.use_by_hour):
            drawn = week_map(
                column.use_by_hour,
                top=1.0,
                text=lambda share: f"{100 * share:.0f}",
                caption="Percent of the capacity in use, hours of the week (UTC)",
            )
            figures.append(figure(title, drawn))
    return node(
        "section",
        node("h2", "Use by hour of the week", id="week"),
        node("p", "Percent of the capacity that is in use; darker is busier. Buy where it is dark all week.")
        if figures
        else node("p", "The capacity is not known."),
        node("div", *figures, class_="pair broad"),
    )


def _frame(comparison: Comparison) -> Frame:
    return Frame(
        begins=comparison.history.begins,
        length_s=comparison.length_s,
        bin_s=comparison.base.curves.bin_s,
    )


def _bin_text(bin_s: int) -> str:
    hours = math.ceil(bin_s / 3600)
    return "an hour" if hours == 1 else f"{hours} hours"
