"""Who waits shorter and who longer: teams as bars, jobs by name, and those that never started."""

from collections.abc import Iterator, Sequence

from trainmaster_client.simulate.comparison.changes import JobChange, TeamChange
from trainmaster_client.simulate.comparison.comparisons import Column, Comparison
from trainmaster_client.simulate.comparison.headlines import jobs_finding
from trainmaster_client.simulate.comparison.wording import count_text, jobs_text, later_text, time_text
from trainmaster_client.simulate.page.markup import Node, figure, folded, node, percent, style, table


def changes_section(comparison: Comparison) -> Iterator[Node]:
    for column in comparison.others:
        changes = comparison.changes[column.label]
        teams = [one for one in changes.teams if one.change_s]
        bars = node("div", *_team_bars(teams))
        rows = [
            [
                one.team,
                count_text(one.jobs),
                time_text(one.before_s),
                time_text(one.after_s),
                later_text(one.change_s),
            ]
            for one in changes.teams
        ]
        yield node(
            "section",
            node("h2", f"Winners and losers: {column.label} instead of {comparison.base.label}"),
            figure(
                jobs_finding(changes),
                bars,
                folded(
                    "Teams as a table",
                    table(["team", "jobs", "before", "after", "starts"], rows, caption="Mean waits by team"),
                ),
                note="Change of the mean wait by team, of jobs that start in both. To the left is better.",
            ),
            *_edge_notes(comparison, column),
            node(
                "div",
                _jobs_table(changes.winners, "Jobs that gain most"),
                _jobs_table(changes.losers, "Jobs that lose most"),
                class_="pair",
            ),
        )


def _team_bars(changes: Sequence[TeamChange]) -> Iterator[Node]:
    """To the left of zero who gains, to the right who loses."""
    most = max((-one.change_s for one in changes if one.change_s < 0), default=0.0)
    least = max((one.change_s for one in changes if one.change_s > 0), default=0.0)
    for one in changes:
        yield _team_bar(one, zero=most / (most + least), length=abs(one.change_s) / (most + least))


def _team_bar(change: TeamChange, *, zero: float, length: float) -> Node:
    gains = change.change_s < 0
    said = f"{time_text(change.before_s)} to {time_text(change.after_s)}: {later_text(change.change_s)}"
    return node(
        "div",
        node("span", change.team, class_="bar-name"),
        node(
            "div",
            node("i", class_="gain" if gains else "loss", style=style(share=percent(length))),
            class_="both-ways",
            style=style(zero=percent(zero)),
        ),
        node("span", later_text(change.change_s), class_="bar-value"),
        class_="bar-row",
        title=said,
    )


def _jobs_table(changes: Sequence[JobChange], caption: str) -> Node:
    rows = [
        [
            one.job,
            one.team,
            str(one.priority),
            time_text(one.before_s),
            time_text(one.after_s),
            later_text(one.end_change_s),
        ]
        for one in changes
    ]
    if not rows:
        return node("p", f"{caption}: none by a minute or more.")
    return table(["job", "team", "priority", "wait before", "after", "ends"], rows, caption=caption)


def _edge_notes(comparison: Comparison, column: Column) -> Iterator[Node]:
    """What the means above leave out."""
    changes = comparison.changes[column.label]
    told = (
        (
            changes.started_before_alone,
            f"started under {comparison.base.label} and never under {column.label}",
        ),
        (
            changes.started_after_alone,
            f"started under {column.label} and never under {comparison.base.label}",
        ),
        (changes.refused_after_alone, f"refused under {column.label} alone"),
        (changes.refused_before_alone, f"refused under {comparison.base.label} alone"),
    )
    for count, what in told:
        if count:
            yield node("p", f"{jobs_text(count)} {what}.", class_="warn")


def unfinished_section(comparison: Comparison) -> Iterator[Node]:
    rows = [
        [column.label, reason, count_text(count)]
        for column in comparison.columns
        for reason, count in column.refusals.items()
    ]
    waiting = [one for one in comparison.columns if one.waits.never_started]
    if not rows and not waiting:
        return
    yield node(
        "section",
        node("h2", "Jobs that never started", id="unfinished"),
        *(
            node(
                "p",
                f"{one.label}: {jobs_text(one.waits.never_started)} still waited at the end.",
                class_="warn",
            )
            for one in waiting
        ),
        *([table(["policy", "refused because", "jobs"], rows, caption="Refused jobs")] if rows else []),
    )
