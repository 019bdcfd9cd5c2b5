"""Shows who waits shorter and who longer: teams as bars, jobs by name, and those that never started."""

from collections.abc import Iterator, Sequence

from trainmaster_client.simulate.comparison.changes import JobChange, TeamChange
from trainmaster_client.simulate.comparison.comparisons import Column, Comparison
from trainmaster_client.simulate.comparison.headlines import jobs_finding
from trainmaster_client.simulate.comparison.wording import count_text, jobs_text, later_text, time_text
from trainmaster_client.simulate.page.markup import Node, figure, folded, node, percent, style, table


def changes_section(comparison: Comparison) -> Iterator[Node]:
    for column in comparison.others:
        changes = comparison.changes[column.label]
        teams = [team for team in changes.teams if team.change_s]
        bars = node("div", *_team_bars(teams))
        rows = [
            [
                team.team,
                count_text(team.jobs),
                time_text(team.before_s),
                time_text(team.after_s),
                later_text(team.change_s),
            ]
            for team in changes.teams
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
    """Draw teams that gain to the left of zero, and those that lose to the right."""
    most = max((-change.change_s for change in changes if change.change_s < 0), default=0.0)
    least = max((change.change_s for change in changes if change.change_s > 0), default=0.0)
    for change in changes:
        yield _team_bar(change, zero=most / (most + least), length=abs(change.change_s) / (most + least))


def _team_bar(change: TeamChange, *, zero: float, length: float) -> Node:
    gains = change.change_s < 0
    text = f"{time_text(change.before_s)} to {time_text(change.after_s)}: {later_text(change.change_s)}"
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
        title=text,
    )


def _jobs_table(changes: Sequence[JobChange], caption: str) -> Node:
    rows = [
        [
            change.job,
            change.team,
            str(change.priority),
            time_text(change.before_s),
            time_text(change.after_s),
            later_text(change.end_change_s),
        ]
        for change in changes
    ]
    if not rows:
        return node("p", f"{caption}: none by a minute or more.")
    return table(["job", "team", "priority", "wait before", "after", "ends"], rows, caption=caption)


def _edge_notes(comparison: Comparison, column: Column) -> Iterator[Node]:
    """Name what the means above leave out."""
    changes = comparison.changes[column.label]
    notes = (
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
    for count, what in notes:
        if count:
            yield node("p", f"{jobs_text(count)} {what}.", class_="warn")


def unfinished_section(comparison: Comparison) -> Iterator[Node]:
    rows = [
        [column.label, reason, count_text(count)]
        for column in comparison.columns
        for reason, count in column.refusals.items()
    ]
    waiting = [column for column in comparison.columns if column.waits.never_started]
    if not rows and not waiting:
        return
    yield node(
        "section",
        node("h2", "Jobs that never started", id="unfinished"),
        *(
            node(
                "p",
                f"{column.label}: {jobs_text(column.waits.never_started)} still waited at the end.",
                class_="warn",
            )
            for column in waiting
        ),
        *([table(["policy", "refused because", "jobs"], rows, caption="Refused jobs")] if rows else []),
    )
