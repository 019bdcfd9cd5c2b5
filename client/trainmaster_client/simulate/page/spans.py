"""Waits on a logarithmic axis: a line for each group and column, from the median to the 90th percentile."""

import math
from collections.abc import Iterator, Mapping, Sequence

from trainmaster_client.simulate.comparison.figures import Waits
from trainmaster_client.simulate.comparison.wording import count_text, time_text
from trainmaster_client.simulate.page.axes import LogAxis
from trainmaster_client.simulate.page.markup import Node, folded, node, percent, style, table

MOST_GROUPS = 16
"""The rest is in the table."""

Groups = Sequence[tuple[str, Mapping[str, Waits]]]
"""Waits of each group, by column (class and label)."""


def spans(
    columns: Sequence[tuple[str, str]], waits: Sequence[Mapping[str, Waits]], *, kind: str
) -> list[Node]:
    """Return the plot and its table.

    Args:
        columns: Class and label of each.
        waits: Of each column, by group; the first column's order is the plot's.
        kind: What a group is: ``team``, ``class``. Teams are shown by how long they waited.
    """
    groups = (
        sorted(waits[0], key=lambda group: -_finite(waits[0][group])) if kind == "team" else list(waits[0])
    )
    longest = max(
        (_finite(waits_of_group) for column in waits for waits_of_group in column.values()), default=0.0
    )
    axis = LogAxis(longest)
    ticks = [node("span", tick.label, style=style(at=percent(tick.share))) for tick in axis.ticks()]
    drawn = [_group(group, columns, waits, axis) for group in _most_waited(groups, waits)]
    head = node("div", node("span"), node("div", *ticks, class_="x"), class_="span-axis", aria_hidden="true")
    left = len(groups) - len(drawn)
    rest = [node("p", f"{left} more in the table", class_="dim")] if left else []
    return [
        node("div", head, *drawn, class_="spans"),
        *rest,
        folded(f"Waits by {kind} as a table", _table(columns, waits, groups, kind)),
    ]


def _most_waited(groups: Sequence[str], waits: Sequence[Mapping[str, Waits]]) -> list[str]:
    if len(groups) <= MOST_GROUPS:
        return list(groups)
    most = sorted(groups, key=lambda group: -waits[0][group].jobs)[:MOST_GROUPS]
    return [group for group in groups if group in most]


def _group(
    group: str, columns: Sequence[tuple[str, str]], waits: Sequence[Mapping[str, Waits]], axis: LogAxis
) -> Node:
    name = node("div", node("b", group), f" {count_text(waits[0][group].jobs)} jobs", class_="span-name")
    tracks = [
        _track(class_, label, column[group], axis)
        for (class_, label), column in zip(columns, waits, strict=True)
        if group in column
    ]
    return node("div", name, node("div", *tracks, class_="span-tracks"), class_="span-group")


def _track(class_: str, label: str, waits: Waits, axis: LogAxis) -> Node:
    if waits.p50_s is None or waits.p90_s is None:
        return node("div", class_="span-track")
    since, until = axis.share(waits.p50_s), axis.share(waits.p90_s)
    text = f"{label}: median {time_text(waits.p50_s)}, 9 of 10 within {time_text(waits.p90_s)}"
    return node(
        "div",
        node("i", class_=f"span-bar {class_}"),
        node("i", class_=f"span-dot {class_}"),
        node("i", class_=f"span-end {class_}{' never' if math.isinf(waits.p90_s) else ''}"),
        class_="span-track",
        style=style(since=percent(since), until=percent(until)),
        title=text,
    )


def _table(
    columns: Sequence[tuple[str, str]],
    waits: Sequence[Mapping[str, Waits]],
    groups: Sequence[str],
    kind: str,
) -> Node:
    head = [kind, "policy", "jobs", "median", "90 %", "99 %", "mean delay", "never started"]
    return table(head, _rows(columns, waits, groups), caption=f"Waits by {kind}: lower is better")


def _rows(
    columns: Sequence[tuple[str, str]], waits: Sequence[Mapping[str, Waits]], groups: Sequence[str]
) -> Iterator[list[str]]:
    for group in groups:
        for (_, label), column in zip(columns, waits, strict=True):
            group_waits = column.get(group)
            if group_waits is None:
                continue
            times = (group_waits.p50_s, group_waits.p90_s, group_waits.p99_s, group_waits.mean_delay_s)
            yield [
                group,
                label,
                count_text(group_waits.jobs),
                *map(time_text, times),
                count_text(group_waits.never_started),
            ]


def _finite(waits: Waits) -> float:
    return max(
        (
            quantile
            for quantile in (waits.p50_s, waits.p90_s)
            if quantile is not None and not math.isinf(quantile)
        ),
        default=0.0,
    )
