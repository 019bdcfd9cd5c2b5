"""The operations of the SageMaker API about training plans, and the purchases of a test."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from local.clock import TwinClock
from local.sagemaker.plan_book import PlanBook
from local.sagemaker.plan_offerings import Offering, offering_view, offerings
from local.sagemaker.plan_views import plan_description, plan_summary
from local.sagemaker.training_plans import TrainingPlan, Window
from local.wire import AwsError, Principal

Params = Mapping[str, Any]

_PAYMENT = timedelta(minutes=1)
"""AWS's time from CreateTrainingPlan to Scheduled; not documented, the twin's own."""
_PAGE = 10

_SORT_KEYS: Mapping[str, Callable[[TrainingPlan, datetime], tuple[Any, ...]]] = {
    "TrainingPlanName": lambda plan, _: (plan.name,),
    "StartTime": lambda plan, _: (plan.begin, plan.name),
    "Status": lambda plan, now: (plan.status(now).value, plan.name),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOperations:
    book: PlanBook
    clock: TwinClock
    region: str
    offered: dict[str, Offering] = field(default_factory=dict)
    """Offerings that a search returned, by id; only these can be bought."""

    def by_name(self) -> Mapping[str, Callable[[Params, Principal], dict[str, Any]]]:
        return {
            "CreateTrainingPlan": lambda params, _: self._create(params),
            "DescribeTrainingPlan": lambda params, _: self._describe(params),
            "ListTrainingPlans": lambda params, _: self._list(params),
            "SearchTrainingPlanOfferings": lambda params, _: self._search(params),
        }

    def buy(
        self, name: str, *, instance_type: str, instances: int, windows: Sequence[Window], fee_usd: float
    ) -> str:
        """Add a plan that is paid already; returns its ARN. Raises AwsError if the name is taken."""
        plan = TrainingPlan(
            name=name,
            arn=self.book.arn_of(name),
            instance_type=instance_type,
            instances=instances,
            windows=tuple(windows),
            fee_usd=fee_usd,
            paid_at=self.clock.now(),
        )
        self.book.add(plan)
        return plan.arn

    def change(
        self, name: str, *, unhealthy: int | None, extend_to: datetime | None, failure: str | None
    ) -> None:
        """Change what happens to a plan outside the API; None leaves it. Raises AwsError."""

        def changed(plan: TrainingPlan) -> TrainingPlan:
            if extend_to is not None and extend_to <= plan.end:
                raise AwsError("ValidationException", f"extend_to must be after {plan.end.isoformat()}")
            plan = plan if unhealthy is None else replace(plan, unhealthy=unhealthy)
            plan = plan if extend_to is None else plan.extended_to(extend_to)
            return plan if failure is None else replace(plan, failure=failure)

        self.book.update(name, changed)

    def _create(self, params: Params) -> dict[str, Any]:
        offering = self.offered.get(params["TrainingPlanOfferingId"])
        if offering is None:
            raise AwsError(
                "ResourceNotFound",
                f"Training plan offering {params['TrainingPlanOfferingId']} does not exist.",
            )
        name = params["TrainingPlanName"]
        plan = TrainingPlan(
            name=name,
            arn=self.book.arn_of(name),
            instance_type=offering.instance_type,
            instances=offering.instances,
            windows=offering.windows,
            fee_usd=offering.fee_usd,
            paid_at=self.clock.now() + self.clock.scaled(_PAYMENT),
        )
        self.book.add(plan)
        return {"TrainingPlanArn": plan.arn}

    def _describe(self, params: Params) -> dict[str, Any]:
        plan = self.book.get(params["TrainingPlanName"])
        return plan_description(plan, **self._counts(plan))

    def _list(self, params: Params) -> dict[str, Any]:
        now = self.clock.now()
        statuses = {chosen["Value"] for chosen in params.get("Filters", ())}
        key = _SORT_KEYS[params.get("SortBy", "StartTime")]
        plans = sorted(
            (
                plan
                for plan in self.book.all()
                if (not statuses or plan.status(now).value in statuses)
                and params.get("StartTimeAfter", plan.begin) <= plan.begin
                and plan.begin <= params.get("StartTimeBefore", plan.begin)
            ),
            key=lambda plan: key(plan, now),
            reverse=params.get("SortOrder", "Descending") == "Descending",
        )
        first, size = _place(params.get("NextToken")), params.get("MaxResults", _PAGE)
        shown = plans[first : first + size]
        answer: dict[str, Any] = {
            "TrainingPlanSummaries": [plan_summary(plan, **self._counts(plan)) for plan in shown]
        }
        if first + size < len(plans):
            answer["NextToken"] = base64.urlsafe_b64encode(str(first + size).encode()).decode()
        return answer

    def _search(self, params: Params) -> dict[str, Any]:
        matching = offerings(params, self.clock.now())
        self.offered.update({offering.id: offering for offering in matching})
        shown = [offering_view(offering, params, region=self.region) for offering in matching]
        return {"TrainingPlanOfferings": shown}

    def _counts(self, plan: TrainingPlan) -> dict[str, Any]:
        now = self.clock.now()
        return {
            "in_use": self.book.in_use(plan.arn),
            "available": self.book.available(plan, now),
            "now": now,
        }


def _place(token: str | None) -> int:
    try:
        return 0 if token is None else int(base64.urlsafe_b64decode(token))
    except (binascii.Error, ValueError) as error:
        raise AwsError("ValidationException", "Invalid NextToken") from error
