"""Rules about instances: types, number, run time, cost, memory; and what spot needs."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from fnmatch import fnmatchcase

from trainmaster.core.costs.prices import PriceTable, cost_cents, usd_text
from trainmaster.core.errors import quoted
from trainmaster.core.memory.accelerators import BY_TYPE, Accelerators
from trainmaster.core.memory.footprint import Cluster, cluster_of, estimate
from trainmaster.core.memory.memory_remedies import remedy
from trainmaster.core.memory.training_runs import Run, run_of
from trainmaster.core.policy.job_rules import Mode, Rules
from trainmaster.core.policy.kinds import duration_text
from trainmaster.core.request.completion import DEFAULT_RUNTIME
from trainmaster.core.request.validation.sections import Section, section, text, whole_number
from trainmaster.core.rules.forms import Form, forms_of
from trainmaster.core.rules.violation import Violation, listed


def check_instances(body: Section, rules: Rules) -> Iterator[Violation]:
    yield from _types(body, rules)
    yield from _number(body, rules)
    yield from _spot(body, rules)


def _types(body: Section, rules: Rules) -> Iterator[Violation]:
    rule = rules.instance_types
    if rule is None:
        return
    for part in (part for form in forms_of(body) for part in form.asked):
        if not any(fnmatchcase(part.instance_type, allowed) for allowed in rule.allow):
            yield Violation(
                rule="instance_types",
                field=part.type_field,
                message=f"{quoted(part.instance_type)} is not allowed",
                hint=f"use {listed(rule.allow)}",
                mode=rule.mode,
            )


def _number(body: Section, rules: Rules) -> Iterator[Violation]:
    rule = rules.max_instances
    if rule is None:
        return
    for form in forms_of(body):
        if form.instances > rule.value:
            yield Violation(
                rule="max_instances",
                field=form.count_field,
                message=f"asks for {form.instances} instances",
                hint=f"ask for at most {rule.value}",
                mode=rule.mode,
            )


def _spot(body: Section, rules: Rules) -> Iterator[Violation]:
    mode = rules.spot_needs_checkpoint
    has_checkpoint = text(section(body, "CheckpointConfig") or {}, "S3Uri") is not None
    if mode is not None and not has_checkpoint and any(form.is_spot for form in forms_of(body)):
        yield Violation(
            rule="spot_needs_checkpoint",
            field="CheckpointConfig.S3Uri",
            message="is required for a job that may run on spot: an interruption would lose all of its work",
            hint="say where checkpoints are to be kept",
            mode=mode,
        )


_GIB = 2**30


def check_memory(body: Section, rules: Rules) -> Iterator[Violation]:
    """Check memory, if hyperparameters name a known model and the memory of the GPUs is known."""
    mode = rules.must_fit
    run = run_of(section(body, "HyperParameters") or {}) if mode is not None else None
    if mode is None or run is None:
        return
    for form in forms_of(body):
        cluster = _cluster(form)
        if cluster is None or (memory := estimate(run, cluster)).fits:
            continue
        yield Violation(
            rule="must_fit",
            field=form.asked[0].type_field,
            message=(
                f"needs {memory.bytes_per_rank.total / _GIB:.1f} GiB on each of {memory.world_size} GPUs,"
                f" {-memory.headroom_bytes / _GIB:.1f} GiB more than {form.asked[0].instance_type} has"
            ),
            hint=_hint(run, cluster),
            mode=mode,
        )


def _cluster(form: Form) -> Cluster | None:
    known: list[tuple[Accelerators, int]] = []
    for part in form.asked:
        accelerators = BY_TYPE.get(part.instance_type)
        if accelerators is None or not accelerators.are_gpus or part.count < 1:
            return None
        known.append((accelerators, part.count))
    return cluster_of(known)


def _hint(run: Run, cluster: Cluster) -> str:
    change = remedy(run, cluster)
    return f"{change} would do" if change else "use instances with larger GPUs, or a smaller model"


_FIELD = "StoppingCondition.MaxRuntimeInSeconds"
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
    return DEFAULT_RUNTIME if seconds is None else timedelta(seconds=seconds)


def check_cost(body: Section, rules: Rules, prices: PriceTable) -> Iterator[Violation]:
    """Check the cost of the most expensive form for all of its time, as a budget would have to reserve it."""
    rule = rules.max_estimated_cost_usd
    if rule is None:
        return
    forms = forms_of(body)
    for form in forms:
        yield from _without_prices(form, prices, mode=rule.mode)
    costs = [(_cents(form, body, prices), form) for form in forms]
    cents, costliest = max(costs, key=lambda cost: cost[0], default=(0, None))
    if costliest is not None and cents > rule.value * _CENTS:
        yield Violation(
            rule="max_estimated_cost_usd",
            field=_FIELD,
            message=f"costs up to {usd_text(cents)} on {_text(costliest)}",
            hint=f"ask for less time or fewer instances: at most {usd_text(int(rule.value * _CENTS))}",
            mode=rule.mode,
        )


def _without_prices(form: Form, prices: PriceTable, *, mode: Mode) -> Iterator[Violation]:
    for part in form.asked:
        if prices.vector_usd_per_hour({form.capacity_of(part): 1}) is None:
            what = f"the price of {part.instance_type} into the policy's prices"
            if form.plan is not None:
                what = "fee_usd of its training plan into the policy"
            yield Violation(
                rule="max_estimated_cost_usd",
                field=part.type_field,
                message="has no price, so what the job may cost is unknown",
                hint=f"ask an admin to write {what}",
                mode=mode,
            )


def _cents(form: Form, body: Section, prices: PriceTable) -> int:
    """Return the cost in cents; 0 where a price is unknown, which is reported by itself."""
    return cost_cents(prices.vector_usd_per_hour(form.vector), max(_runtime(body), timedelta())) or 0


def _text(form: Form) -> str:
    return " and ".join(f"{part.count} {part.instance_type}" for part in form.asked)
