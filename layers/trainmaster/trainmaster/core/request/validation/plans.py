"""Rules for what a request says about training plans: which fields and options exclude each other.

Source: SageMaker API reference, ResourceConfig, TrainingPlanArn.
"""

from collections.abc import Iterator

from trainmaster.core.errors import Path
from trainmaster.core.request.options import ALTERNATIVES, PLAN, PlanUse
from trainmaster.core.request.strict_json import Mistake
from trainmaster.core.request.validation.sections import Section, elements, section, text

_ROOT = "ResourceConfig"
_FIELD: Path = (_ROOT, "TrainingPlanArn")
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
    at: Path = _FIELD if named else place
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
    elif alternatives is not None and ":spot" in alternatives:
        message = f"of {ALTERNATIVES} has a spot shape, but the job is to run on plans only"
        yield Mistake(("Tags", index, "Value"), message, f"remove :spot, or write {PLAN}=first")
