"""Shows who took instances from whom."""

from collections.abc import Iterator

from trainmaster_client.simulate.comparison.comparisons import Column, Comparison
from trainmaster_client.simulate.comparison.headlines import preemptions_finding
from trainmaster_client.simulate.comparison.wording import count_text
from trainmaster_client.simulate.page.markup import Child, Node, figure, folded, node, percent, style, table
from trainmaster_client.simulate.page.week_map import DARK

MOST_MATRIX_TEAMS = 12


def preemptions_section(comparison: Comparison) -> Node:
    parts = [part for column in comparison.columns for part in _preemptions(column, comparison.devices.unit)]
    return node(
        "section",
        node("h2", "Who took from whom", id="preemptions"),
        node("p", preemptions_finding(comparison) + "."),
        *parts,
    )


def _preemptions(column: Column, unit: str) -> Iterator[Node]:
    preemptions = column.preemptions
    if not preemptions.count:
        yield node("p", f"{column.label}: nothing was preempted.")
        return
    teams: dict[str, int] = {}
    for (taker, victim), count in preemptions.by_teams.items():
        teams[taker] = teams.get(taker, 0) + count
        teams[victim] = teams.get(victim, 0) + count
    shown = sorted(teams, key=lambda team: (-teams[team], team))[:MOST_MATRIX_TEAMS]
    top = max(preemptions.by_teams.values())
    rows: list[list[Child]] = [
        [taker, *(_times(preemptions.by_teams.get((taker, victim), 0), top) for victim in shown)]
        for taker in shown
    ]
    left = len(teams) - len(shown)
    caption = f"{column.label}: preemptions, rows took from columns" + (
        f"; {left} teams not shown" if left else ""
    )
    pairs = [
        [pair.preemptor, pair.victim, count_text(pair.times), count_text(pair.lost_h)]
        for pair in preemptions.worst
        if pair.lost_h
    ]
    head = ["preemptor", "victim", "times", f"lost {unit} hours"]
    yield figure(
        f"{column.label}: {count_text(preemptions.count)} preemptions",
        table(["took / from", *shown], rows, caption=caption),
        folded("The pairs of jobs that lost most", table(head, pairs, caption="Work lost to a preemptor")),
        class_="matrix",
    )


def _times(count: int, top: int) -> Node:
    if not count:
        return node("td", "")
    share = count / top
    return node(
        "td",
        count_text(count),
        class_=f"heat{' dark' if share > DARK else ''}",
        style=style(heat=percent(share)),
    )
