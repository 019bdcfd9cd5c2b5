"""Shows what the columns cost, and on what."""

from collections.abc import Sequence

from trainmaster_client.simulate.comparison.bills import Bill
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
_UNUSED = ("plan", "unused on training plans")
_FEES = " On a training plan an attempt costs its share of the fee; what no job used of it is shown apart."


def cost_section(comparison: Comparison) -> Node:
    top = max((column.bill.total_usd for column in comparison.columns), default=0) or 1.0
    bars = [_cost_bar(column, top) for column in comparison.columns]
    kinds = _kinds(comparison)
    head = ["policy", "total", *(label for _, label in kinds)]
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
            legend((f"cost-{kind}", label) for kind, label in kinds),
            node("div", *bars, class_="bars"),
            *_warning(comparison),
            table(
                head,
                [_cost_row(column, kinds) for column in comparison.columns],
                caption="What was paid for",
            ),
            folded(
                "Cost by team as a table",
                table(
                    ["team", *(column.label for column in comparison.columns)],
                    by_team,
                    caption="Cost by team",
                ),
            ),
            note="USD at on-demand prices, from the start of an attempt until its instances are free; spot "
            "counts as on-demand. Lower is better." + (_FEES if _UNUSED in kinds else ""),
        ),
    )


def _warning(comparison: Comparison) -> list[Node]:
    unpriced = sorted({name for column in comparison.columns for name in column.bill.unpriced})
    if not unpriced:
        return []
    return [node("p", f"Without a price, and in no sum: {', '.join(unpriced)}.", class_="warn")]


def _kinds(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    has_plans = any(column.bill.plans for column in comparison.columns)
    return (*_COSTS, _UNUSED) if has_plans else _COSTS


def _parts(bill: Bill) -> tuple[float, ...]:
    return (bill.useful_usd, bill.startup_usd, bill.lost_usd, bill.idle_warm_usd, bill.unused_plan_usd)


def _cost_bar(column: Column, top: float) -> Node:
    bill = column.bill
    drawn = [
        node(
            "i",
            class_=f"cost-{kind}",
            style=style(share=percent(usd / top)),
            title=f"{label}: {money_text(usd)}",
        )
        for (kind, label), usd in zip((*_COSTS, _UNUSED), _parts(bill), strict=True)
        if usd > 0
    ]
    return node(
        "div",
        node("span", column.label, class_="bar-name"),
        node("div", *drawn, class_="bar"),
        node("span", money_text(bill.total_usd), class_="bar-value"),
        class_="bar-row",
    )


def _cost_row(column: Column, kinds: Sequence[tuple[str, str]]) -> list[str]:
    bill = column.bill
    return [column.label, money_text(bill.total_usd), *map(money_text, _parts(bill)[: len(kinds)])]
