"""Forms that a request may run in, read from any body: a checked one, or one that SageMaker described."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainmaster.core.errors import BadOptionError
from trainmaster.core.field_paths import path_text
from trainmaster.core.jobs.instances import Capacity, CapacityType, Vector, plan_name, total
from trainmaster.core.request.options import ALTERNATIVES, PLAN, READERS, Alternative, PlanUse
from trainmaster.core.request.validation.sections import Section, elements, section, text, whole_number

_ROOT = "ResourceConfig"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Instances of one type, and the fields of the request that name them."""

    instance_type: str
    count: int
    type_field: str
    count_field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Instances that run together."""

    asked: tuple[Asked, ...]
    is_spot: bool
    subnets: frozenset[str]
    plan: str | None = None
    """Name of the training plan that it runs on only; empty: on any; None: not on plans only."""

    @property
    def vector(self) -> Vector:
        """Its instances, as they are priced."""
        return total({self.capacity_of(part): part.count} for part in self.asked)

    def capacity_of(self, part: Asked) -> Capacity:
        if self.plan is None:
            return Capacity(part.instance_type)
        if self.plan:
            return Capacity.of_plan(part.instance_type, self.plan)
        return Capacity(part.instance_type, CapacityType.PLAN)

    @property
    def instances(self) -> int:
        return sum(part.count for part in self.asked)

    @property
    def count_field(self) -> str:
        """Path of the number of instances; of several groups, that of their list."""
        fields = {part.count_field for part in self.asked}
        return fields.pop() if len(fields) == 1 else path_text((_ROOT, "InstanceGroups"))


def forms_of(body: Section) -> tuple[Form, ...]:
    """Return all forms, as any may be the one that is started; none if the body names no instances."""
    resources = section(body, _ROOT) or {}
    plan = _plan(body, resources)
    alternatives = tuple(_alternatives(body))
    if alternatives:
        return tuple(replace(form, plan=plan) for form in alternatives)
    spot, subnets = body.get("EnableManagedSpotTraining") is True, _subnets(body)
    groups = tuple(tuple(group) for group in _groups(resources))
    return tuple(Form(asked=group, is_spot=spot, subnets=subnets, plan=plan) for group in groups if group)


def _plan(body: Section, resources: Section) -> str | None:
    """Return what ``Form.plan`` says of the body's forms."""
    arn = text(resources, "TrainingPlanArn")
    if arn is not None:
        return plan_name(arn)
    tags = {text(tag, "Key"): text(tag, "Value") for _, tag in elements(body, "Tags")}
    return "" if tags.get(PLAN) == PlanUse.ONLY else None


def _groups(resources: Section) -> Iterator[Iterator[Asked]]:
    """Yield the parts of each form: each preference is a form of its own; groups run together."""
    if "InstancePreferences" in resources:
        for index, preference in elements(resources, "InstancePreferences"):
            yield _asked(resources, preference, (_ROOT, "InstancePreferences", index))
    elif "InstanceGroups" in resources:
        groups = elements(resources, "InstanceGroups")
        yield (
            part
            for index, group in groups
            for part in _asked(resources, group, (_ROOT, "InstanceGroups", index))
        )
    else:
        yield _asked(resources, resources, (_ROOT,))


def _asked(resources: Section, part: Section, path: tuple[str | int, ...]) -> Iterator[Asked]:
    instance_type, own = text(part, "InstanceType"), whole_number(part, "InstanceCount")
    count = whole_number(resources, "InstanceCount") if own is None else own
    if instance_type is not None and count is not None:
        yield Asked(
            instance_type=instance_type,
            count=count,
            type_field=path_text((*path, "InstanceType")),
            count_field=path_text((*(path if own is not None else (_ROOT,)), "InstanceCount")),
        )


def _alternatives(body: Section) -> Iterator[Form]:
    for index, tag in elements(body, "Tags"):
        if tag.get("Key") == ALTERNATIVES:
            field = path_text(("Tags", index, "Value"))
            of_request = _subnets(body)
            for alternative in _read(text(tag, "Value") or ""):
                for subnet in alternative.subnets(sorted(of_request)):
                    subnets = of_request if subnet is None else frozenset({subnet})
                    yield _alternative(alternative, field, subnets)


def _read(value: str) -> tuple[Alternative, ...]:
    _, read = READERS[ALTERNATIVES]
    try:
        alternatives: tuple[Alternative, ...] = read(value)
    except BadOptionError:
        return ()  # of a job that bypassed the queue: SageMaker does not read the tag either
    return alternatives


def _alternative(alternative: Alternative, field: str, subnets: frozenset[str]) -> Form:
    part = Asked(
        instance_type=alternative.capacity.instance_type,
        count=alternative.count,
        type_field=field,
        count_field=field,
    )
    return Form(
        asked=(part,),
        is_spot=alternative.capacity.capacity_type is CapacityType.SPOT,
        subnets=subnets,
    )


def _subnets(body: Section) -> frozenset[str]:
    subnets = (section(body, "VpcConfig") or {}).get("Subnets")
    return (
        frozenset(subnet for subnet in subnets if isinstance(subnet, str))
        if isinstance(subnets, list)
        else frozenset()
    )
