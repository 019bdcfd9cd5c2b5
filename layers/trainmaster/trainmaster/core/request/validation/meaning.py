"""Rules that the model cannot express: fields that need, exclude or bound each other; resources; tags."""

from collections.abc import Iterator
from difflib import get_close_matches

from trainmaster.core.errors import BadOptionError, quoted
from trainmaster.core.field_paths import Path
from trainmaster.core.request.completion import DEFAULT_RUNTIME
from trainmaster.core.request.options import (
    ALTERNATIVES,
    CHEAPEST,
    PLAN,
    READERS,
    TAG_PREFIX,
    PlanUse,
    nearest_option,
)
from trainmaster.core.request.strict_json import Mistake
from trainmaster.core.request.validation.sections import Section, elements, section, text, whole_number


def meaning_mistakes(body: Section) -> Iterator[Mistake]:
    yield from _algorithm(body)
    yield from _time(body)
    yield from _rule_instances(body)
    if "ServerlessJobConfig" in body:
        hint = "remove it and say which instances to use in ResourceConfig"
        yield Mistake(("ServerlessJobConfig",), "cannot be queued: a serverless job has no instances", hint)


def _algorithm(body: Section) -> Iterator[Mistake]:
    algorithm = section(body, "AlgorithmSpecification")
    if algorithm is None:
        return
    given = [name for name in ("TrainingImage", "AlgorithmName") if name in algorithm]
    if not given:
        path = ("AlgorithmSpecification", "TrainingImage") if algorithm else ("AlgorithmSpecification",)
        yield Mistake(
            path, "is required", "name the image to train with in TrainingImage (or an AlgorithmName)"
        )
    elif len(given) > 1:
        path = ("AlgorithmSpecification", "AlgorithmName")
        yield Mistake(path, "cannot be used together with TrainingImage", "keep one of the two")


def _time(body: Section) -> Iterator[Mistake]:
    stopping = section(body, "StoppingCondition")
    if stopping is None:
        return
    spot = body.get("EnableManagedSpotTraining") is True
    path = ("StoppingCondition", "MaxWaitTimeInSeconds")
    if not spot and "MaxWaitTimeInSeconds" in stopping:
        hint = "remove it, or set EnableManagedSpotTraining to true"
        yield Mistake(path, "is only for managed spot training", hint)
    elif spot and "MaxWaitTimeInSeconds" not in stopping:
        yield Mistake(path, "is required for managed spot training", _WAIT_HINT)
    elif spot:
        yield from _too_short_a_wait(stopping)


def _too_short_a_wait(stopping: Section) -> Iterator[Mistake]:
    wait, run = (whole_number(stopping, f"Max{name}InSeconds") for name in ("WaitTime", "Runtime"))
    path = ("StoppingCondition", "MaxWaitTimeInSeconds")
    if wait is None:
        return
    default = int(DEFAULT_RUNTIME.total_seconds())
    if "MaxRuntimeInSeconds" not in stopping and wait < default:
        message = f"is {wait}, less than MaxRuntimeInSeconds, which is {default} where it is not given"
        yield Mistake(path, message, "give MaxRuntimeInSeconds too, at most as much")
    elif run is not None and wait < run:
        yield Mistake(path, f"is {wait}, less than MaxRuntimeInSeconds, {run}", _WAIT_HINT)


_WAIT_HINT = (
    "give at least MaxRuntimeInSeconds: it is the time to run plus the time to wait for spot instances"
)


def _rule_instances(body: Section) -> Iterator[Mistake]:
    """Refuse rules with instances of their own: no pool counts them."""
    for name in ("DebugRuleConfigurations", "ProfilerRuleConfigurations"):
        for index, rule in elements(body, name):
            if "InstanceType" in rule:
                message = "starts an instance of its own, which no pool counts"
                yield Mistake((name, index, "InstanceType"), message, "leave InstanceType out of the rule")


_AWS_PREFIX = "aws:"


def tag_mistakes(body: Section) -> Iterator[Mistake]:
    seen: dict[str, int] = {}
    for index, tag in elements(body, "Tags"):
        key, value = text(tag, "Key"), text(tag, "Value")
        if key is None:
            continue
        if key in seen:
            yield Mistake(
                ("Tags", index, "Key"), f"is the key of Tags[{seen[key]}] too", "give each key once"
            )
        seen.setdefault(key, index)
        yield from _reserved(key, index)
        if value is not None and key in READERS:
            yield from _option(key, value, index)


def _reserved(key: str, index: int) -> Iterator[Mistake]:
    lower = key.lower()
    path = ("Tags", index, "Key")
    if lower.startswith(_AWS_PREFIX):
        yield Mistake(path, "begins with aws:, which AWS reserves", "choose another key")
    elif lower.startswith(TAG_PREFIX) and key not in READERS:
        ours = [option for option in READERS if option.startswith(TAG_PREFIX)]
        meant = nearest_option(key) or next(iter(get_close_matches(lower, ours, n=1)), None)
        hint = f"did you mean {meant}?" if meant else f"options are {', '.join(ours)}"
        yield Mistake(path, f"{quoted(key)} is not an option; trainmaster: is reserved", hint)


def _option(key: str, value: str, index: int) -> Iterator[Mistake]:
    _, read = READERS[key]
    try:
        read(value)
    except BadOptionError as error:
        yield Mistake(("Tags", index, "Value"), f"of {key} {error.message}", error.hint)


_ROOT = "ResourceConfig"
_WAYS = ("InstanceType", "InstanceGroups", "InstancePreferences")
_WAYS_HINT = "give InstanceType and InstanceCount, or InstanceGroups, or InstancePreferences"
_COUNT_HINT = "give the number of instances, 1 or more"


def resource_mistakes(body: Section) -> Iterator[Mistake]:
    resources = section(body, _ROOT)
    if resources is None:
        return
    ways = [way for way in _WAYS if way in resources]
    if not ways:
        yield Mistake((_ROOT,), "does not say which instances to use", _WAYS_HINT)
    for extra in ways[1:]:
        yield Mistake((_ROOT, extra), f"cannot be used together with {ways[0]}", _WAYS_HINT)
    yield from _positive(resources, "InstanceCount", (_ROOT,))
    yield from _positive(resources, "VolumeSizeInGB", (_ROOT,))
    yield from _selected(resources)
    if ways[:1] == ["InstanceType"]:
        yield from _single(resources)
    elif ways[:1] == ["InstanceGroups"]:
        yield from _groups(resources)
    elif ways[:1] == ["InstancePreferences"]:
        yield from _preferences(resources, spot=body.get("EnableManagedSpotTraining") is True)
    yield from _keep_alive(body, resources)
    yield from _alternatives(body, ways)


def _positive(parent: Section, name: str, path: Path) -> Iterator[Mistake]:
    value = whole_number(parent, name)
    if value is not None and value < 1:
        yield Mistake((*path, name), f"is {value}, at least 1 is required", f"set {name} to 1 or more")


def _selected(resources: Section) -> Iterator[Mistake]:
    for name in ("SelectedInstanceType", "SelectedInstanceCount"):
        if name in resources:
            yield Mistake(
                (_ROOT, name), "is a value that SageMaker returns, not one that it takes", "remove it"
            )


def _single(resources: Section) -> Iterator[Mistake]:
    if "InstanceCount" not in resources:
        yield Mistake((_ROOT, "InstanceCount"), "is required with InstanceType", _COUNT_HINT)


def _groups(resources: Section) -> Iterator[Mistake]:
    if "InstanceCount" in resources:
        hint = "remove it: each group has its own InstanceCount"
        yield Mistake((_ROOT, "InstanceCount"), "cannot be used together with InstanceGroups", hint)
    if resources["InstanceGroups"] == []:
        yield Mistake((_ROOT, "InstanceGroups"), "names no group", "name 1 to 5 groups")
    names: set[str] = set()
    for index, group in elements(resources, "InstanceGroups"):
        path = (_ROOT, "InstanceGroups", index)
        yield from _positive(group, "InstanceCount", path)
        name = text(group, "InstanceGroupName")
        if name is not None and name in names:
            yield Mistake((*path, "InstanceGroupName"), "is the name of another group too", "name each once")
        names |= {name} if name is not None else set()


def _preferences(resources: Section, *, spot: bool) -> Iterator[Mistake]:
    """Check InstancePreferences. Source: SageMaker API reference, ResourceConfig and InstancePreference."""
    root: Path = (_ROOT, "InstancePreferences")
    if spot:
        hint = "remove EnableManagedSpotTraining, or give one InstanceType"
        yield Mistake(root, "cannot be used together with managed spot training", hint)
    if "InstancePlacementConfig" in resources:
        path = (_ROOT, "InstancePlacementConfig")
        yield Mistake(path, "cannot be used together with InstancePreferences", "keep one of the two")
    types: set[str] = set()
    for index, preference in elements(resources, "InstancePreferences"):
        yield from _preference(resources, preference, (*root, index))
        instance_type = text(preference, "InstanceType")
        if instance_type is not None and instance_type in types:
            yield Mistake((*root, index, "InstanceType"), "is named twice", "name each instance type once")
        types |= {instance_type} if instance_type is not None else set()


def _preference(resources: Section, preference: Section, path: Path) -> Iterator[Mistake]:
    yield from _positive(preference, "InstanceCount", path)
    if ("InstanceCount" in preference) == ("InstanceCount" in resources):
        message = "must be given either in every preference or once in ResourceConfig"
        yield Mistake((*path, "InstanceCount"), message, _COUNT_HINT)
    if "TrainingPlanArns" in preference:
        message = "cannot be queued: the queue chooses the plan of a job that has one InstanceType"
        yield Mistake((*path, "TrainingPlanArns"), message, "remove it, or give one InstanceType")


def _keep_alive(body: Section, resources: Section) -> Iterator[Mistake]:
    """Check the keep-alive period. Source: SageMaker developer guide, managed warm pools, considerations."""
    period = whole_number(resources, "KeepAlivePeriodInSeconds")
    if period is None or period < 1:
        return
    path = (_ROOT, "KeepAlivePeriodInSeconds")
    if body.get("EnableManagedSpotTraining") is True:
        yield Mistake(path, "cannot be used with managed spot training", "remove it: spot has no warm pools")
    elif "InstanceGroups" in resources:
        yield Mistake(path, "cannot be used with InstanceGroups", "remove it: groups have no warm pools")


def _alternatives(body: Section, ways: list[str]) -> Iterator[Mistake]:
    for index, tag in elements(body, "Tags"):
        if text(tag, "Key") == ALTERNATIVES and ways[:1] in (["InstanceGroups"], ["InstancePreferences"]):
            hint = "remove the tag, or give one InstanceType"
            yield Mistake(("Tags", index), f"{ALTERNATIVES} cannot be used together with {ways[0]}", hint)


_PLAN_FIELD: Path = (_ROOT, "TrainingPlanArn")
"""Source of what it excludes: SageMaker API reference, ResourceConfig."""
_ONE_TYPE = "give one InstanceType, or leave the plan out"


def plan_mistakes(body: Section) -> Iterator[Mistake]:
    resources = section(body, _ROOT) or {}
    tags = {text(tag, "Key"): (index, text(tag, "Value")) for index, tag in elements(body, "Tags")}
    number, use = tags.get(PLAN, (0, None))
    named, place = "TrainingPlanArn" in resources, ("Tags", number, "Value")
    if named and use in {PlanUse.FIRST, PlanUse.NEVER}:
        message = f"of {PLAN} is {use}, but ResourceConfig.TrainingPlanArn names a plan"
        yield Mistake(place, message, "remove the tag, or the field")
    if not named and use != PlanUse.ONLY:
        return
    at: Path = _PLAN_FIELD if named else place
    for way in ("InstanceGroups", "InstancePreferences"):
        if way in resources:
            yield Mistake(at, f"cannot be used together with {way}: a plan is of one type", _ONE_TYPE)
    if body.get("EnableManagedSpotTraining") is True:
        hint = "remove EnableManagedSpotTraining, or leave the plan out"
        yield Mistake(at, "cannot be used together with managed spot training", hint)
    index, alternatives = tags.get(ALTERNATIVES, (0, None))
    if named and alternatives is not None:
        hint = f"remove the tag, or write {PLAN}=only instead of the ARN"
        yield Mistake(("Tags", index), f"{ALTERNATIVES} cannot be used together with a plan's ARN", hint)
    elif alternatives is not None:
        yield from _off_plans(alternatives, ("Tags", index, "Value"))


def _off_plans(alternatives: str, place: Path) -> Iterator[Mistake]:
    """Check the shapes of a job that is to run on plans only."""
    if ":spot" in alternatives:
        message = f"of {ALTERNATIVES} has a spot shape, but the job is to run on plans only"
        yield Mistake(place, message, f"remove :spot, or write {PLAN}=first")
    if alternatives == CHEAPEST:
        message = f"of {ALTERNATIVES} is {CHEAPEST}, but plans are paid for in advance and have no price"
        yield Mistake(place, message, f"list the shapes, or write {PLAN}=first")
