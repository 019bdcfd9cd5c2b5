"""The table at the end of the demo: each case with each library."""

from collections.abc import Iterator, Sequence

from rich.table import Table

from demos.stage.evidence import Document

_COLUMNS = ("STOPPED", "LIBRARY", "LOST", "LOSSES THAT DIFFER", "SAMPLES ONCE")


def cases_table(scripts: Sequence[Document]) -> Table:
    """Make a table with a row for each script; those of one case follow each other."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in _COLUMNS:
        table.add_column(heading)
    shown = ""
    for script in scripts:
        case = script["case_title"]
        table.add_row("" if case == shown else case, script["title"], *_figures(script))
        shown = case
    return table


def refusals(scripts: Sequence[Document]) -> Iterator[str]:
    """Yield the sentence with which each library refused a case."""
    for script in scripts:
        if script["refused"]:
            yield f"{script['title']}, {script['case_title']}, refuses: {script['refused']}"


def _figures(script: Document) -> list[str]:
    if script["refused"]:
        return ["-", "refused, see below", "-"]
    wrong = script["not_seen_once"]
    once = "-" if wrong is None else f"{wrong} not" if wrong else "all"
    return [str(script["steps_lost"]), _differing(script), once]


def _differing(script: Document) -> str:
    different = f"{script['different']} of {len(script['undisturbed'])}"
    return f"{different}, by {script['largest_difference']:.0e}" if script["different"] else different
