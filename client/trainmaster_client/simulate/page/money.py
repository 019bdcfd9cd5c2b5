"""Shows what the columns cost, and on what."""

from trainmaster_client.simulate.comparison.comparisons import Column, Comparison
from trainmaster_client.simulate.comparison.headlines import cost_finding
from trainmaster_client.simulate.comparison.wording import money_text
from trainmaster_client.simulate.page.curves import legend
from trainmaster_client.simulate.page.markup import Node, figure, folded, node, percent, style, table

_COSTS = (
    ("useful", "training that lasted"),
    ("startup", "start-up"),
    ("lost", "lost work and stopping"),
    ("idle", "idle warm instances"),
)


def cost_section(comparison: Comparison) -> Node:
    top = max((column.bill.total_usd for column in comparison.columns), default=0) or 1.0
    bars = [_cost_bar(column, top) for column in comparison.columns]
    unpriced = sorted(
        {instance_type for column in comparison.columns for instance_type in column.bill.unpriced}
    )
    warning = (
        [node("p", f"Without a price, and in no sum: {', '.join(unpriced)}.", class_="warn")]
        if unpriced
        else []
    )
    rows = [_cost_row(column) for column in comparison.columns]
    head = ["policy", "total", *(label for _, label in _COSTS)]
    teams = sorted({team for column in comparison.columns for team in column.bill.by_team})
    by_team = [
        [team, *(money_text(column.bill.by_team.get(team, 0.0)) for column in comparison.columns)]
        for team in teams
    ]
    return node(
        "section",
        node("h2", "Cost", id="cost"),
        figure(
            cost_finding(comparison),
            legend((f"cost-{kind}", label) for kind, label in _COSTS),
            node("div", *bars, class_="bars"),
            *warning,
            table(head, rows, caption="What was paid for"),
            folded(
                "Cost by team as a table",
                table(
                    ["team", *(column.label for column in comparison.columns)],
                    by_team,
                    caption="Cost by team",
                ),
            ),
            note="USD at on-demand prices, from the start of an attempt until its instances are free; spot "
            "counts as on-demand. Lower is better.",
        ),
    )


def _cost_bar(column: Column, top: float) -> Node:
    bill = column.bill
    parts = (bill.useful_usd, bill.startup_usd, bill.lost_usd, bill.idle_warm_usd)
    drawn = [
        node(
            "i",
            class_=f"cost-{kind}",
            style=style(share=percent(usd / top)),
            title=f"{label}: {money_text(usd)}",
        )
        for (kind, label), usd in zip(_COSTS, parts, strict=True)
        if usd > 0
    ]
    return node(
        "div",
        node("span", column.label, class_="bar-name"),
        node("div", *drawn, class_="bar"),
        node("span", money_text(bill.total_usd), class_="bar-value"),
        class_="bar-row",
    )


def _cost_row(column: Column) -> list[str]:
    bill = column.bill
    parts = (bill.total_usd, bill.useful_usd, bill.startup_usd, bill.lost_usd, bill.idle_warm_usd)
    return [column.label, *map(money_text, parts)]
