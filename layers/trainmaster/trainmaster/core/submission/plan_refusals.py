"""Refuse a submission that is to run on training plans which its pool, or its team, does not have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainmaster.core.errors import FieldError
from trainmaster.core.jobs.instances import CapacityType
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.policy.plan_windows import PlanSeen, why_never_opens
from trainmaster.core.policy.training_plans import PlanEntry
from trainmaster.core.request.options import PLAN, PlanUse
from trainmaster.core.request.request import Ask
from trainmaster.core.submission.request_places import Places

RULE_PLAN = "plan"
ARN_FIELD = "ResourceConfig.TrainingPlanArn"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRefusals:
    """The plans of one pool, for a submission of one team."""

    ask: Ask
    team: str
    pool: PoolPolicy
    places: Places
    """Paths of the request's fields."""

    def violations(self) -> Iterator[FieldError]:
        """Yield what keeps the job from ever running on the plans that it asks for."""
        if self.ask.plan_arn is not None:
            yield from self._of_named_plan(self.ask.plan_arn)
        elif self.ask.options.plan is not None:
            yield from self._of_tag(self.ask.options.plan)

    def _of_named_plan(self, arn: str) -> Iterator[FieldError]:
        entry = next((plan for plan in self.pool.plans if plan.arn == arn), None)
        if entry is None:
            plans = ", ".join(plan.arn for plan in self.pool.plans)
            known = f"use {plans}" if plans else "leave the plan out, or ask an admin to write it"
            yield self._error(ARN_FIELD, f"{arn} is not a plan of pool {self.pool.name}", known)
        elif not entry.is_open_to(self.team):
            yield self._error(ARN_FIELD, self._closed([entry]), self._open_hint())
        elif (seen := self.pool.seen_plans.get(arn)) is not None and seen.instance_type:
            yield from self._over(ARN_FIELD, [seen]) or self._unlike(ARN_FIELD, [seen])

    def _of_tag(self, use: PlanUse) -> Iterator[FieldError]:
        field = self.places.tag(PLAN)
        if not self.pool.plans:
            message = f"of {PLAN} is {use}, but pool {self.pool.name} has no training plans"
            yield self._error(field, message, "leave the tag out, or ask an admin to write the plan")
        elif use is PlanUse.ONLY:
            usable = [plan for plan in self.pool.plans if plan.is_open_to(self.team)]
            seen = [known for entry, known in self.pool.known_plans if entry in usable]
            if not usable:
                yield self._error(field, self._closed(self.pool.plans), self._open_hint())
            elif len(seen) == len(usable):  # else one that is not described yet may be of the type
                yield from self._over(field, seen) or self._unlike(field, seen)

    def _over(self, field: str, plans: list[PlanSeen]) -> list[FieldError]:
        """Return that no window of any of the plans will open; nothing if one may."""
        reasons = [(plan, why_never_opens(plan)) for plan in plans]
        if any(why is None for _, why in reasons):
            return []
        text = "; ".join(f"no window of plan {plan.name} will open: {why}" for plan, why in reasons)
        return [self._error(field, text, "name another plan, or leave it out")]

    def _unlike(self, field: str, plans: list[PlanSeen]) -> Iterator[FieldError]:
        """Yield that none of the plans has the type, or so many instances; nothing if one will do."""
        wanted = [
            (capacity.instance_type, count)
            for shape in self.ask.shapes
            for capacity, count in shape.vector.items()
            if capacity.capacity_type is CapacityType.PLAN
        ]
        of_type = [plan for plan in plans if plan.instance_type in {kind for kind, _ in wanted}]
        if not of_type:
            types = ", ".join(f"{plan.name} is of {plan.instance_type}" for plan in plans)
            message = f"the job asks for {wanted[0][0]}, but plan {types}"
            yield self._error(field, message, f"ask for {plans[0].instance_type}")
        elif not any(
            plan.instance_type == kind and count <= plan.total for plan in of_type for kind, count in wanted
        ):
            most = max(of_type, key=lambda plan: plan.total)
            yield self._error(
                field,
                f"the job asks for {min(count for _, count in wanted)}, but plan {most.name} has"
                f" {most.total} {most.instance_type} in all",
                f"ask for at most {most.total}" if most.total else "leave the plan out",
            )

    def _closed(self, plans: Sequence[PlanEntry]) -> str:
        names = ", ".join(plan.name for plan in plans)
        return f"team {self.team} may not use training plan {names} of pool {self.pool.name}"

    def _open_hint(self) -> str:
        usable = [plan.name for plan in self.pool.plans if plan.is_open_to(self.team)]
        return f"use {', '.join(usable)}" if usable else "leave the plan out, or ask an admin for it"

    def _error(self, field: str, message: str, hint: str) -> FieldError:
        return FieldError(field=field, message=message, hint=hint, rule=RULE_PLAN)
