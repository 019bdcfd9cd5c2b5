"""The hours of a week as a heat map that is a table: a screen reader has the same figures."""

from collections.abc import Callable, Sequence

from trainmaster_client.simulate.page.markup import Node, node, percent, style

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_HOURS = 24
DARK = 0.5
"""Share of the darkest above which words are light."""


def week_map(
    values: Sequence[float | None], *, top: float, text: Callable[[float], str], caption: str
) -> Node:
    """Draw 168 values from Monday 00:00 UTC on; ``top`` is the darkest, None is left empty."""
    head = node("tr", node("td"), *(node("th", f"{hour:02}", scope="col") for hour in range(_HOURS)))
    rows = []
    for number, day in enumerate(DAYS):
        day_values = values[number * _HOURS : (number + 1) * _HOURS]
        cells = (_cell(value, top, text, f"{day} {hour:02}:00") for hour, value in enumerate(day_values))
        rows.append(node("tr", node("th", day, scope="row"), *cells))
    inner = node("table", node("caption", caption), node("thead", head), node("tbody", *rows), class_="week")
    return node("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _cell(value: float | None, top: float, text: Callable[[float], str], when: str) -> Node:
    if value is None:
        return node("td", "", class_="unknown", title=f"{when}: not in this period")
    share = min(1.0, value / top) if top else 0.0
    dark = " dark" if share > DARK else ""
    return node(
        "td",
        text(value),
        class_=f"heat{dark}",
        style=style(heat=percent(share)),
        title=f"{when} UTC: {text(value)}",
    )
