"""Training plans that AWS sells, each held against the forecast of the queue. Nothing is bought here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.advice.live_jobs import LiveQueue
from trainmaster_client.advice.queue_forecast import Forecast, PlanWindow, forecast
from trainmaster_client.errors import InvalidArgumentError, TrainmasterClientError
from trainmaster_client.simulate.io.sold_plans import LONGEST, MOST_INSTANCES, SEARCH

_DAY = timedelta(days=1)
_DENIED = ("AccessDeniedException", "AccessDenied", "UnauthorizedOperation")


class PlansUnreadableError(TrainmasterClientError):
    """AWS did not say which training plans it sells."""

    def __init__(self, code: str, message: str) -> None:
        remedy = (
            f"You need sagemaker:{SEARCH} on all resources (docs/guides/iam/admin.json)."
            if code in _DENIED
            else "Nothing was bought; the queue does not depend on it."
        )
        super().__init__(f"AWS does not say which training plans it sells: {code}: {message} {remedy}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A question for AWS: how many instances of a type, how long, and from when on."""

    instance_type: str
    instances: int
    hours: int
    after: datetime

    def parameters(self) -> dict[str, Any]:
        return {
            "InstanceType": self.instance_type,
            "InstanceCount": self.instances,
            "DurationHours": self.hours,
            "StartTimeAfter": self.after,
            "TargetResources": ["training-job"],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    id: str
    instances: int
    windows: tuple[PlanWindow, ...]
    fee: Decimal | None
    """None where AWS names no price."""
    currency: str

    @property
    def hours(self) -> float:
        """Return the hours of all windows together, the last half hours of each included."""
        return sum((window.end - window.begin) / timedelta(hours=1) for window in self.windows)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssessedOffer:
    offer: Offer
    forecast: Forecast
    sooner: timedelta
    """Time by which the queue is empty earlier than without it."""

    @property
    def use(self) -> float:
        """Share of the plan's instance-hours that the queue would use, 0 to 1."""
        paid = self.offer.hours * self.offer.instances
        return self.forecast.plan_hours / paid if paid else 0.0


def wanted(queue: LiveQueue, *, instances: int | None, hours: int | None, after: datetime) -> Wanted:
    """Return what to look for: what was asked for, else as many instances as the widest job that waits.

    Without a length it is the work of the queue on them, in whole days.
    """
    count = instances or max((job.instances for job in queue.waiting), default=1)
    days = min(max(-(-queue.hours // (24 * count)), 1), LONGEST / _DAY)
    return Wanted(
        instance_type=queue.instance_type,
        instances=min(count, MOST_INSTANCES),
        hours=hours or int(days) * 24,
        after=after,
    )


def search(client: Any, question: Wanted) -> list[Offer]:  # noqa: ANN401  boto3 makes its clients at run time
    """Ask AWS which plans it sells, best first.

    Raises:
        PlansUnreadableError: The caller may not ask, or AWS does not answer.
    """
    try:
        answer = client.search_training_plan_offerings(**question.parameters())
    except ClientError as error:
        detail = error.response.get("Error", {})
        raise PlansUnreadableError(detail.get("Code", "?"), detail.get("Message", "")) from error
    except (BotoCoreError, AttributeError) as error:  # AttributeError: a boto3 from before training plans
        raise PlansUnreadableError(type(error).__name__, f"{error}") from error
    return [_offer(offering) for offering in answer.get("TrainingPlanOfferings") or ()]


def assess(
    offers: Sequence[Offer], queue: LiveQueue, *, capacity: int, now: datetime
) -> tuple[Forecast, list[AssessedOffer]]:
    """Forecast the queue as it is, and with each offer."""
    alone = forecast(queue.jobs, capacity=capacity, now=now)
    assessed = []
    for offer in offers:
        helped = forecast(
            queue.jobs, capacity=capacity, now=now, windows=offer.windows, plan_instances=offer.instances
        )
        sooner = alone.empty_at - helped.empty_at
        assessed.append(AssessedOffer(offer=offer, forecast=helped, sooner=sooner))
    return alone, assessed


def whole(number: int | None, *, option: str, most: int) -> int | None:
    """Return a number that was given on the command line. Raises InvalidArgumentError."""
    if number is not None and not 1 <= number <= most:
        raise InvalidArgumentError(f"{option} {number} is not 1 to {most:,}.", hint=f"Give e.g. {option} 2.")
    return number


def _offer(offering: Mapping[str, Any]) -> Offer:
    reserved = offering.get("ReservedCapacityOfferings") or ()
    windows = sorted(
        (
            PlanWindow(begin=part["StartTime"], end=part["EndTime"])
            for part in reserved
            if part.get("StartTime") and part.get("EndTime")
        ),
        key=lambda window: window.begin,
    )
    return Offer(
        id=str(offering["TrainingPlanOfferingId"]),
        instances=max((int(part["InstanceCount"]) for part in reserved), default=0),
        windows=tuple(windows),
        fee=_money(offering.get("UpfrontFee")),
        currency=str(offering.get("CurrencyCode") or "USD"),
    )


def _money(text: object) -> Decimal | None:
    try:
        return None if text is None else Decimal(str(text).replace(",", ""))
    except InvalidOperation:
        return None
