"""Words, tables, JSON and CSV of ``trainmaster usage --commit``."""

from collections.abc import Iterator
from decimal import Decimal

from rich.table import Table
from trainmaster.core.costs.prices import SHIPPED_REGION

from trainmaster_client.advice.commitments import SHORTEST, Commitment, SteadyBase, steady_base
from trainmaster_client.api import Document
from trainmaster_client.cli.commitment_advice import Advice
from trainmaster_client.cli.csv_output import print_csv
from trainmaster_client.cli.screen import console, print_json, print_lines
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.instants import api_time

FEW_HOURS = 14 * 24
"""Hours below which a warning says that the record is short beside a plan's year."""
_CSV = (
    "discount",
    "commitment_usd_per_hour",
    "covers_usd_per_hour",
    "use",
    "break_even_use",
    "saved_usd",
    "saved_share",
)


def print_advice(advice: Advice, *, as_json: bool, as_csv: bool) -> None:
    if as_json:
        print_json(advice_document(advice))
    elif as_csv:
        print_csv(
            _CSV,
            (list(_commitment_document(commitment, advice).values()) for commitment in advice.commitments),
        )
    else:
        print_lines(_head_lines(advice))
        if advice.commitments:
            console().print(_table(advice))
            print_lines(_verdict_lines(advice))
        print_lines(_caution_lines(advice))


def advice_document(advice: Advice) -> Document:
    past = advice.past
    return {
        "from": api_time(past.since),
        "to": api_time(past.until),
        "hours": past.hours,
        "on_demand_usd": round(advice.usd, 2),
        "commitments": [
            _commitment_document(commitment, advice)
            | {"base": [_base_document(base) for base in _bases(advice, commitment)]}
            for commitment in advice.commitments
        ],
        "unpriced": list(advice.prices.unpriced(past.types)),
        "list_prices": list(advice.prices.shipped(past.types)),
        "left_out_instance_hours": {
            kind.replace(" ", "_"): round(hours, 2) for kind, hours in past.left_out.items()
        },
    }


def _bases(advice: Advice, commitment: Commitment) -> list[SteadyBase]:
    return steady_base(advice.past, commitment.discount, advice.prices)


def _head_lines(advice: Advice) -> Iterator[str]:
    past = advice.past
    yield (
        f"{past.since:%Y-%m-%d %H:%M} to {past.until:%Y-%m-%d %H:%M} UTC, {past.hours:,} hours:"
        f" {advice.usd:,.2f} USD on demand, {advice.usd / past.hours:,.2f} USD an hour on average."
    )
    if not advice.commitments:
        yield f"That is too short a history for advice: it takes {SHORTEST} hours at least, better 30 days."
        return
    discount = advice.shown.discount
    yield (
        f"Steady base at a discount of {_percent(discount)}, for which use in {_percent(1 - discount)} of the"
        " hours is enough:"
    )
    yield from (f"  {_base_text(base)}" for base in _bases(advice, advice.shown))


def _base_text(base: SteadyBase) -> str:
    if not base.instances:
        text = f"none of {base.capacity:g} {printable(base.instance_type)}; {base.mean:.1f} on average"
    else:
        text = (
            f"{base.instances:g} of {base.capacity:g} {printable(base.instance_type)}"
            f" in {_rounded_percent(base.share_of_hours)} of the hours"
        )
    if base.usd_per_hour is None:
        return f"{text}; price unknown"
    usd = base.instances * float(base.usd_per_hour)
    return f"{text}: {usd:,.2f} USD an hour" if base.instances else text


def _table(advice: Advice) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("DISCOUNT", "COMMIT USD/H", "COVERS USD/H", "USED", "BREAK-EVEN", "SAVED USD", "OF ALL"):
        table.add_column(heading, no_wrap=True, justify="right")
    for commitment in advice.commitments:
        table.add_row(
            _percent(commitment.discount),
            f"{commitment.usd_per_hour:,.2f}",
            f"{commitment.covers:,.2f}",
            _rounded_percent(commitment.use) if commitment.covers else "-",
            _percent(1 - commitment.discount),
            f"{commitment.saved:,.2f}",
            f"{100 * _saved_share(commitment, advice):.1f} %",
        )
    return table


def _verdict_lines(advice: Advice) -> Iterator[str]:
    best = advice.shown
    at = f"At {_percent(best.discount)}"
    if not best.covers:
        yield f"{at} no commitment would have saved anything: too many hours used nothing that has a price."
        return
    yield (
        f"{at} the best commitment is {best.usd_per_hour:,.2f} USD an hour. It covers {best.covers:,.2f} USD"
        f" an hour at on-demand prices, of which {_rounded_percent(best.use)} was used, and would have saved"
        f" {best.saved:,.2f} USD."
    )
    yield (
        f"It breaks even at {_percent(1 - best.discount)}: where less of it is used, it costs more than it"
        " saves."
    )


def _caution_lines(advice: Advice) -> Iterator[str]:
    past = advice.past
    if past.since > advice.asked_since:
        yield f"The record begins {past.since:%Y-%m-%d %H:%M} UTC; what ran before is not in it."
    if SHORTEST <= past.hours < FEW_HOURS:
        yield (
            f"{past.hours / 24:.0f} days are a short time: a plan is for one or three years. Ask again with"
            " 30 days."
        )
    if unknown := advice.prices.unpriced(past.types):
        names = ", ".join(map(printable, unknown))
        yield f"In no sum, as the price is unknown: {names}. Write it into the policy's prices."
    if shipped := advice.prices.shipped(past.types):
        reader = "" if advice.has_policys_prices else "; only admins can read the policy's own"
        yield f"At list prices of {SHIPPED_REGION}{reader}: {', '.join(shipped)}."
    hours = [f"{kind} {amount:,.0f}" for kind, amount in past.left_out.items() if round(amount)]
    if hours:
        yield f"Left out, in instance-hours: {', '.join(hours)}. Only jobs' on-demand use is counted."
    if advice.commitments:
        yield (
            "The discount depends on type, region, term and payment: aws.amazon.com/savingsplans/ml-pricing."
            " A plan also covers notebooks, endpoints and processing, which are not counted here."
        )


def _commitment_document(commitment: Commitment, advice: Advice) -> dict[str, float]:
    """Return a commitment's figures, in the order of the columns of the CSV."""
    values = (
        float(commitment.discount),
        round(commitment.usd_per_hour, 4),
        round(commitment.covers, 4),
        round(commitment.use, 4),
        round(commitment.break_even_use, 4),
        round(commitment.saved, 2),
        round(_saved_share(commitment, advice), 4),
    )
    return dict(zip(_CSV, values, strict=True))


def _base_document(base: SteadyBase) -> Document:
    return {
        "instance_type": base.instance_type,
        "instances": base.instances,
        "capacity": base.capacity,
        "share_of_hours": round(base.share_of_hours, 4),
        "mean_instances": round(base.mean, 3),
        "usd_per_instance_hour": None if base.usd_per_hour is None else float(base.usd_per_hour),
    }


def _saved_share(commitment: Commitment, advice: Advice) -> float:
    """Return the share of the on-demand cost that would have been saved, 0 to 1."""
    return commitment.saved / advice.usd if advice.usd else 0.0


def _rounded_percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _percent(share: Decimal) -> str:
    return f"{(share * 100).normalize():f} %"
