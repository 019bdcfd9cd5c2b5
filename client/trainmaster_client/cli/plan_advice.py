"""``trainmaster advise --plans``: training plans that AWS sells, against the forecast of the queue."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

import typer
from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.jobs.row_words import length

from trainmaster_client.advice.live_jobs import LiveQueue, live_queues
from trainmaster_client.advice.plan_offers import AssessedOffer, Wanted, assess, search, wanted, whole
from trainmaster_client.advice.queue_forecast import Forecast
from trainmaster_client.cli.connection import CommandApi, aws_client, connect
from trainmaster_client.cli.screen import busy, print_json, print_lines
from trainmaster_client.errors import ForbiddenError, GatewayRefusedError, InvalidArgumentError
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.instants import api_time, clock, zone_line
from trainmaster_client.simulate.histories.export_lines import ExportedJob, read_lines
from trainmaster_client.simulate.io.sold_plans import LONGEST, MOST_INSTANCES, types_with_plans
from trainmaster_client.simulate.sources.account_export import Period, export_pages

_RECENT = timedelta(days=14)
"""Time from which jobs that ended tell how long those that wait will train."""
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """Options of ``--plans``; without it none of the others may be given."""

    plans: Annotated[
        bool, typer.Option("--plans", help="Hold the training plans that AWS sells against the queue.")
    ] = False
    instance_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="With --plans: only plans of this type.")
    ] = None
    instances: Annotated[
        int | None,
        typer.Option(metavar="N", help="With --plans: as many instances as this, not as the widest job has."),
    ] = None
    hours: Annotated[
        int | None, typer.Option(metavar="H", help="With --plans: this long, not as the queue's work is.")
    ] = None
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="With --plans: not before this instant."),
    ] = None

    def check(self) -> None:
        """Raises InvalidArgumentError for an option that needs another, or is out of range."""
        given = {
            "--type": self.instance_type,
            "--instances": self.instances,
            "--hours": self.hours,
            "--from": self.start,
        }
        if not self.plans and (alone := [name for name, value in given.items() if value is not None]):
            raise InvalidArgumentError(f"{alone[0]} is for training plans.", hint="Add --plans.")
        whole(self.instances, option="--instances", most=MOST_INSTANCES)
        whole(self.hours, option="--hours", most=LONGEST // timedelta(hours=1))
        if self.instance_type is not None and self.instance_type not in types_with_plans():
            known = ", ".join(sorted(types_with_plans()))
            raise InvalidArgumentError(
                f"No training plans are sold for {self.instance_type}.", hint=f"They are for {known}."
            )

    def after(self, now: datetime) -> datetime:
        """Return the instant before which no plan is to start. Raises InvalidArgumentError."""
        if self.start is None:
            return now
        try:
            at = datetime.fromisoformat(self.start)
        except ValueError as error:
            raise InvalidArgumentError(
                f"--from {self.start!r} is not a valid time.", hint="Give e.g. 2026-12-01T08:00Z."
            ) from error
        return max(at if at.tzinfo else at.astimezone(), now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The queue for one instance type, and the plans that AWS sells for it."""

    queue: LiveQueue
    capacity: int
    question: Wanted
    alone: Forecast
    offers: Sequence[AssessedOffer]
    usd_per_hour: Decimal | None
    """On-demand price of an instance; None if it is unknown."""


def advise_plans(options: PlanOptions, *, as_json: bool) -> None:
    """Print what plans would do for the queue; nothing is bought, and nothing is stored."""
    now = datetime.now(UTC)
    after = options.after(now)
    api = connect(quiet=True)
    with busy("Reading the queue"):
        queues = _worth_a_plan(live_queues(_lines(api, now), read_at=now), options)
        capacity = _capacity(api.pools().get("pools") or ()) if queues else {}
    client = aws_client("sagemaker") if queues else None
    advices = []
    for queue in queues:
        question = wanted(queue, instances=options.instances, hours=options.hours, after=after)
        count = capacity.get(queue.instance_type, 0)
        alone, offers = assess(search(client, question), queue, capacity=count, now=now)
        advices.append(
            Advice(
                queue=queue,
                capacity=count,
                question=question,
                alone=alone,
                offers=offers,
                usd_per_hour=PriceTable().usd_per_hour(queue.instance_type),
            )
        )
    if as_json:
        print_json({"queues": [_as_json(advice) for advice in advices]})
    else:
        print_lines(plan_lines(advices, now=now))


def plan_lines(advices: Sequence[Advice], *, now: datetime) -> Iterator[str]:
    if not advices:
        yield "No job waits for instances that training plans are sold for: a plan would stand idle."
        return
    for advice in advices:
        yield from _queue_lines(advice, now)
        for number, assessed in enumerate(advice.offers, start=1):
            yield from _offer_lines(assessed, advice, number, now)
        if not advice.offers:
            question = advice.question
            yield (
                f"AWS offers no plan of {question.instances} {question.instance_type} for"
                f" {question.hours} h from {clock(question.after, now)} on: try fewer --instances or --hours,"
                " or a later --from."
            )
    yield zone_line(now)
    yield "Starts and run times are estimates, for the jobs of now alone. Fees are paid up front, for good."
    yield "Nothing was bought. To use a plan, name its ARN in the policy (docs/guides/reserved-capacity.md)."


def _queue_lines(advice: Advice, now: datetime) -> Iterator[str]:
    queue = advice.queue
    waiting, running = len(queue.waiting), len(queue.jobs) - len(queue.waiting)
    empty = clock(advice.alone.empty_at, now)
    yield (
        f"{queue.instance_type}: {waiting} waiting and {running} running on {advice.capacity} on demand;"
        f" {queue.hours:,.0f} instance-hours of work, done {empty}."
    )
    if stranded := len(advice.alone.stranded):
        yield f"  {stranded} of them never get enough instances at once."


def _offer_lines(assessed: AssessedOffer, advice: Advice, number: int, now: datetime) -> Iterator[str]:
    offer = assessed.offer
    begin = clock(offer.windows[0].begin, now) if offer.windows else "an unknown time"
    parts = f" in {len(offer.windows)} parts" if len(offer.windows) > 1 else ""
    fee = f"{offer.fee:,.0f} {offer.currency}" if offer.fee is not None else "fee unknown"
    plural = "instance" if offer.instances == 1 else "instances"
    yield (
        f"{number}. {offer.instances} {plural} for {offer.hours:g} h from {begin}{parts}: {fee}; your queue"
        f" would use {assessed.use:.0%} of it and {_sooner(assessed, advice)}."
    )
    if advice.usd_per_hour is not None and assessed.forecast.plan_hours:
        usd = float(advice.usd_per_hour) * assessed.forecast.plan_hours
        yield f"   The hours that it would use cost about {usd:,.0f} USD on demand."
    yield (
        "   aws sagemaker create-training-plan --training-plan-name NAME"
        f" --training-plan-offering-id {printable(offer.id)}"
    )


def _sooner(assessed: AssessedOffer, advice: Advice) -> str:
    helped = len(advice.alone.stranded) - len(assessed.forecast.stranded)
    if helped > 0:
        return f"run {helped} that otherwise never start"
    if assessed.sooner < timedelta(minutes=1):
        return "be empty no sooner"
    if assessed.sooner >= 1.5 * _DAY:
        return f"be empty {round(assessed.sooner / _DAY)} days sooner"
    return f"be empty {length(assessed.sooner)} sooner"


def _worth_a_plan(queues: Sequence[LiveQueue], options: PlanOptions) -> list[LiveQueue]:
    sold = types_with_plans()
    return [
        queue
        for queue in queues
        if queue.waiting
        and queue.instance_type in sold
        and options.instance_type in {None, queue.instance_type}
    ]


def _lines(api: CommandApi, now: datetime) -> list[ExportedJob]:
    """Read the jobs of now and of the last two weeks. Raises InvalidArgumentError for those who may not."""
    try:
        pages = export_pages(api, Period(since=now - _RECENT, until=now), pause=time.sleep)
        return list(read_lines((line for page in pages for line in page.splitlines()), where=api.api_url))
    except GatewayRefusedError:
        raise
    except ForbiddenError as error:
        raise InvalidArgumentError(
            "--plans needs the run times of all teams' jobs, which only admins may read.",
            hint="Ask an admin to run it.",
        ) from error


def _capacity(pools: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Add up the on-demand instances of all pools by type."""
    capacity: dict[str, int] = {}
    for pool in pools:
        for name, count in (pool.get("capacity") or {}).items():
            capacity[name] = capacity.get(name, 0) + int(count)
    return capacity


def _as_json(advice: Advice) -> dict[str, Any]:
    return {
        "instance_type": advice.queue.instance_type,
        "capacity": advice.capacity,
        "waiting": len(advice.queue.waiting),
        "running": len(advice.queue.jobs) - len(advice.queue.waiting),
        "instance_hours": round(advice.queue.hours, 2),
        "empty_at": api_time(advice.alone.empty_at),
        "stranded": list(advice.alone.stranded),
        "offerings": [
            {
                "training_plan_offering_id": assessed.offer.id,
                "instances": assessed.offer.instances,
                "windows": [
                    {"from": api_time(window.begin), "to": api_time(window.end)}
                    for window in assessed.offer.windows
                ],
                "fee": None if assessed.offer.fee is None else float(assessed.offer.fee),
                "currency": assessed.offer.currency,
                "use": round(assessed.use, 4),
                "empty_at": api_time(assessed.forecast.empty_at),
                "sooner_seconds": round(assessed.sooner.total_seconds()),
                "stranded": list(assessed.forecast.stranded),
            }
            for assessed in advice.offers
        ],
    }
