"""A comparison in a few lines, for a screen that has other things to say too."""

from collections.abc import Iterator

from trainmaster_client.simulate.comparison.changes import Changes, TeamChange
from trainmaster_client.simulate.comparison.comparisons import Column, Comparison
from trainmaster_client.simulate.comparison.figure_rows import figure_rows
from trainmaster_client.simulate.comparison.wording import jobs_text, later_text, period_text, time_text

_ROWS = ("wait_p50_s", "wait_p90_s", "weighted_delay_h", "goodput", "waste_h", "cost_usd", "preemptions")
_LABEL = 29


def summary(comparison: Comparison) -> list[str]:
    """Summarize in at most 15 lines: the last policy beside the base, who gains and who loses."""
    base, last = comparison.base, comparison.last
    jobs, period = len(comparison.history.jobs), period_text(comparison.history.begins, comparison.horizon_s)
    lines = [f"{jobs_text(jobs)}, {period}: {base.label} -> {last.label}", *_figures(comparison)]
    changes = comparison.changes.get(last.label)
    if changes is not None:
        lines += change_lines(changes)
    lines += unfinished_lines(base, last)
    return lines


def change_lines(changes: Changes) -> Iterator[str]:
    """Say how many jobs wait shorter or longer, and which teams gain and lose most."""
    yield (
        f"{jobs_text(changes.shorter)} wait shorter, {changes.longer:,} longer, "
        f"{changes.same:,} as long (within a minute)"
    )
    if not changes.teams:
        return
    best, worst = changes.teams[0], changes.teams[-1]
    if best.change_s < 0:
        yield f"team that gains most: {_team(best)}"
    if worst.change_s > 0:
        yield f"team that loses most: {_team(worst)}"
    else:
        yield "no team waits longer on average"


def unfinished_lines(*columns: Column) -> Iterator[str]:
    """Name the jobs that are in no wait and no cost."""
    for column in columns:
        refused = sum(column.refusals.values())
        if column.waits.never_started:
            yield f"{column.label}: {jobs_text(column.waits.never_started)} still waited at the end"
        if refused:
            reason = next(iter(column.refusals))
            yield f"{column.label}: {jobs_text(refused)} refused, most of them: {reason}"


def _figures(comparison: Comparison) -> Iterator[str]:
    base, last = comparison.columns.index(comparison.base), len(comparison.columns) - 1
    for row in figure_rows(comparison):
        if row.id in _ROWS:
            change = f"  ({row.changes[last]})" if row.changes[last] else ""
            yield f"{row.label:<{_LABEL}} {row.cells[base]} -> {row.cells[last]}{change}"


def _team(change: TeamChange) -> str:
    return (
        f"{change.team}, {time_text(change.before_s)} -> {time_text(change.after_s)} on average "
        f"({later_text(change.change_s)}, {jobs_text(change.jobs)})"
    )
