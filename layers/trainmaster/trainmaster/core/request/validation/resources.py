"""ResourceConfig: which instances, said in exactly one of three ways."""

from collections.abc import Iterator

from trainmaster.core.request.options import ALTERNATIVES
from trainmaster.core.request.validation.sections import Section, elements, section, text, whole_number
from trainmaster.core.request_errors import Mistake, Path

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
    yield from _not_ours(resources)
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
        yield Mistake((*path, name), f"is {value}, at least 1 is needed", f"set {name} to 1 or more")


def _not_ours(resources: Section) -> Iterator[Mistake]:
    if "TrainingPlanArn" in resources:
        hint = "remove it: pools count on-demand and spot instances"
        yield Mistake((_ROOT, "TrainingPlanArn"), "cannot be queued: training plans are not supported", hint)
    for name in ("SelectedInstanceType", "SelectedInstanceCount"):
        if name in resources:
            yield Mistake((_ROOT, name), "is what SageMaker answers, not what it takes", "remove it")


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
    """Source: SageMaker API reference, ResourceConfig and InstancePreference."""
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
        found = text(preference, "InstanceType")
        if found is not None and found in types:
            yield Mistake((*root, index, "InstanceType"), "is named twice", "name each instance type once")
        types |= {found} if found is not None else set()


def _preference(resources: Section, preference: Section, path: Path) -> Iterator[Mistake]:
    yield from _positive(preference, "InstanceCount", path)
    if ("InstanceCount" in preference) == ("InstanceCount" in resources):
        message = "must be given either in every preference or once in ResourceConfig"
        yield Mistake((*path, "InstanceCount"), message, _COUNT_HINT)
    if "TrainingPlanArns" in preference:
        hint = "remove it: pools count on-demand and spot instances"
        yield Mistake((*path, "TrainingPlanArns"), "cannot be queued: training plans are not supported", hint)


def _keep_alive(body: Section, resources: Section) -> Iterator[Mistake]:
    """Source: SageMaker developer guide, managed warm pools, considerations."""
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
