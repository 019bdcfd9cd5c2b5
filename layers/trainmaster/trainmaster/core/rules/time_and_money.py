"""How long a job may run, and what it may cost at most."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

from trainmaster.core.costs.pricing import PriceTable, cost_cents, usd_text
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.policy.rules import Rules
from trainmaster.core.policy.section import duration_text
from trainmaster.core.request.validation.sections import Section, section, whole_number
from trainmaster.core.rules.forms import Form, forms_of
from trainmaster.core.rules.violation import Violation

_FIELD = "StoppingCondition.MaxRuntimeInSeconds"
_DEFAULT_SECONDS = 86_400
"""Of a job that does not say. Source: SageMaker API reference, StoppingCondition."""
_CENTS = Decimal(100)


def check_time(body: Section, rules: Rules) -> Iterator[Violation]:
    rule = rules.max_runtime
    if rule is not None and _runtime(body) > rule.value:
        seconds = int(rule.value.total_seconds())
        yield Violation(
            rule="max_runtime",
            field=_FIELD,
            message=f"is {int(_runtime(body).total_seconds())}",
            hint=f"give at most {seconds} ({duration_text(rule.value)})",
            mode=rule.mode,
        )


def _runtime(body: Section) -> timedelta:
    seconds = whole_number(section(body, "StoppingCondition") or {}, "MaxRuntimeInSeconds")
    return timedelta(seconds=_DEFAULT_SECONDS if seconds is None else seconds)


def check_cost(body: Section, rules: Rules, prices: PriceTable) -> Iterator[Violation]:
    """The dearest form, for all of its time: what a budget would have to set aside."""
    rule = rules.max_estimated_cost_usd
    if rule is None:
        return
    forms = forms_of(body)
    for one in (one for form in forms for one in form.asked):
        if prices.usd_per_hour(one.instance_type) is None:
            yield Violation(
                rule="max_estimated_cost_usd",
                field=one.type_field,
                message="has no price, so nobody knows what the job may cost",
                hint=f"ask an admin to write the price of {one.instance_type} into the policy's prices",
                mode=rule.mode,
            )
    costs = [(_cents(form, body, prices), form) for form in forms]
    cents, dearest = max(costs, key=lambda cost: cost[0], default=(0, None))
    if dearest is not None and cents > rule.value * _CENTS:
        yield Violation(
            rule="max_estimated_cost_usd",
            field=_FIELD,
            message=f"costs up to {usd_text(cents)} on {_text(dearest)}",
            hint=f"ask for less time or fewer instances: at most {usd_text(int(rule.value * _CENTS))}",
            mode=rule.mode,
        )


def _cents(form: Form, body: Section, prices: PriceTable) -> int:
    """0 where a price is unknown, which is told by itself."""
    vector: dict[Capacity, int] = {}
    for one in form.asked:
        capacity = Capacity(one.instance_type)
        vector[capacity] = vector.get(capacity, 0) + one.count
    return cost_cents(prices.vector_usd_per_hour(vector), max(_runtime(body), timedelta())) or 0


def _text(form: Form) -> str:
    return " and ".join(f"{one.count} {one.instance_type}" for one in form.asked)
