"""The whole page: what was asked, what came out, how it was found, and what it cannot know."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

from trainmaster_client.simulate.comparison.comparisons import Comparison
from trainmaster_client.simulate.comparison.figure_rows import FigureRow, figure_rows
from trainmaster_client.simulate.comparison.headlines import headline
from trainmaster_client.simulate.comparison.seeds import Spread
from trainmaster_client.simulate.comparison.wording import count_text, jobs_text, period_text
from trainmaster_client.simulate.page.colors import Look
from trainmaster_client.simulate.page.gains import changes_section, unfinished_section
from trainmaster_client.simulate.page.markup import Node, html, node, table
from trainmaster_client.simulate.page.money import cost_section
from trainmaster_client.simulate.page.preemption_tables import preemptions_section
from trainmaster_client.simulate.page.sections import (
    busiest_section,
    queue_section,
    use_section,
    waits_section,
    week_section,
)

CARDS = ("wait_p50_s", "wait_p90_s", "weighted_delay_h", "waste_h", "goodput", "cost_usd")
_VERDICTS = {1: "better", -1: "worse", 0: ""}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""No script, no address: whatever a name contains, a browser does nothing with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """Facts that stand beside the comparison."""

    command: str
    """Command that made the page."""
    lead: Sequence[str]
    """Sentences on what was replayed on which capacities."""
    assumed: Sequence[str]
    not_modelled: Sequence[str]
    seeds: Sequence[int] = ()
    spread: Sequence[Spread] = ()
    """Over the seeds, where there are several; pictures and tables are of the first."""
    extra: Sequence[Node] = ()
    """Sections after the table of figures."""


def page(comparison: Comparison, facts: PageFacts) -> str:
    """Make the page, one HTML file."""
    css = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    title = headline(comparison)
    look = Look.of(comparison)
    body = node(
        "body",
        node("a", "Skip to the figures", href="#figures", class_="skip"),
        node(
            "header",
            node("p", "trainmaster simulate", class_="brand"),
            node("h1", title),
            *_lead(comparison, facts),
        ),
        node("main", *_sections(comparison, look, facts)),
        node("footer", node("p", "Made by ", node("code", facts.command))),
    )
    head = node(
        "head",
        node("meta", charset="utf-8"),
        node("meta", name="viewport", content="width=device-width, initial-scale=1"),
        node("meta", **{"http-equiv": "Content-Security-Policy"}, content=_POLICY),
        node("meta", name="color-scheme", content="light dark"),
        node("title", f"{title} - trainmaster simulate"),
        node("style"),
    )
    return html(node("html", head, body, lang="en"), css=css)


def _lead(comparison: Comparison, facts: PageFacts) -> Iterator[Node]:
    jobs = jobs_text(len(comparison.history.jobs))
    period = period_text(comparison.history.begins, comparison.horizon_s)
    yield node("p", f"{jobs}, {period}. {comparison.history.source}.", class_="dim")
    for sentence in facts.lead:
        yield node("p", sentence, class_="dim")


def _sections(comparison: Comparison, look: Look, facts: PageFacts) -> Iterator[Node]:
    rows = list(figure_rows(comparison))
    yield node("div", *(_card(row, comparison) for row in rows if row.id in CARDS), class_="cards")
    yield node("section", node("h2", "Figures", id="figures"), _figures(rows, comparison))
    if facts.spread:
        yield _spread(comparison, facts)
    yield from facts.extra
    yield waits_section(comparison, look)
    yield queue_section(comparison, look)
    yield cost_section(comparison)
    yield from changes_section(comparison)
    yield use_section(comparison, look)
    yield week_section(comparison)
    yield from busiest_section(comparison, look)
    yield preemptions_section(comparison)
    yield from unfinished_section(comparison)
    yield _limits(comparison, facts)


def _card(row: FigureRow, comparison: Comparison) -> Node:
    base, last = comparison.columns.index(comparison.base), len(comparison.columns) - 1
    verdict = row.verdicts[last]
    change = " ".join(part for part in (row.changes[last], _said(verdict, row.changes[last])) if part)
    return node(
        "div",
        node("span", row.label, class_="card-label"),
        node("b", row.cells[last]),
        node("span", f"{comparison.base.label}: {row.cells[base]}", class_="dim"),
        node("span", change or "same", class_=f"verdict {_VERDICTS[verdict] or 'equal'}"),
        class_="card",
    )


def _figures(rows: Sequence[FigureRow], comparison: Comparison) -> Node:
    head = ["", *(column.label for column in comparison.columns), "better is"]
    cells = []
    for row in rows:
        cells_of_row: list[Node | str] = [row.label]
        for text, change, verdict in zip(row.cells, row.changes, row.verdicts, strict=True):
            inner: list[Node | str] = [text]
            if change and change != "same":
                inner.append(node("small", change, class_=f"verdict {_VERDICTS[verdict] or 'equal'}"))
            cells_of_row.append(node("td", *inner))
        cells.append([*cells_of_row, "" if row.better == "neither" else row.better])
    return table(head, cells, caption=f"Compared with {comparison.base.label}")


def _spread(comparison: Comparison, facts: PageFacts) -> Node:
    head = ["", *(column.label for column in comparison.columns)]
    seeds = ", ".join(map(str, facts.seeds))
    rows = [[figure.label, *figure.cells] for figure in facts.spread]
    return node(
        "section",
        node("h2", "How much chance there is in it", id="seeds"),
        node(
            "p",
            f"What the history lacks was drawn with seeds {seeds}; all else on this page is of the first.",
        ),
        table(head, rows, caption="Mean and standard deviation over the seeds"),
    )


def _limits(comparison: Comparison, facts: PageFacts) -> Node:
    notes = [f"{column.label}: {note}" for column in comparison.columns for note in column.replay.notes]
    passes = [
        f"{column.label}: {count_text(column.replay.passes)} passes of the planner, "
        f"{column.replay.cpu_s:.1f} s of CPU."
        for column in comparison.columns
        if column.replay.passes
    ]
    lists = (
        ("What the history does not say", comparison.history.not_known),
        ("What was assumed", facts.assumed),
        ("What is not in the model", facts.not_modelled),
        ("Notes on the replays", [*notes, *passes]),
    )
    return node(
        "section",
        node("h2", "How far to believe it", id="limits"),
        *(
            part
            for title, sentences in lists
            if sentences
            for part in (node("h3", title), node("ul", *(node("li", sentence) for sentence in sentences)))
        ),
    )


def _said(verdict: int, change: str) -> str:
    return f"({_VERDICTS[verdict]})" if verdict and change != "same" else ""
