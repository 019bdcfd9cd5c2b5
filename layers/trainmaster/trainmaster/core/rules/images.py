"""Which code runs under the role: images of the job, and of the rules of debugger and profiler."""

from collections.abc import Iterator

from trainmaster.core.policy.images import Image, parse_image
from trainmaster.core.policy.rules import Allowed, Rules
from trainmaster.core.request.validation.fields import values_of
from trainmaster.core.request.validation.sections import Section, section
from trainmaster.core.rules.violation import Violation
from trainmaster.core.rules.wording import listed

_ALGORITHM = "AlgorithmSpecification"


def check_images(body: Section, rules: Rules) -> Iterator[Violation]:
    rule = rules.images
    if rule is None:
        return
    for found in values_of("AlgorithmImage", dict(body)):
        image = parse_image(found.value)
        if image is None:
            yield _against(rule, found.field, "is not the name of an image")
        elif not any(allowed.allows(image) for allowed in rule.allow):
            yield _against(rule, found.field, "is not an image that is allowed")
    algorithm = section(body, _ALGORITHM) or {}
    if "TrainingImage" not in algorithm:
        named = "AlgorithmName" if "AlgorithmName" in algorithm else "TrainingImage"
        yield _against(rule, f"{_ALGORITHM}.{named}", "names no image that could be compared")
    for found in values_of("TrainingRepositoryCredentialsProviderArn", dict(body)):
        yield _against(rule, found.field, "names a Lambda function, which no list of images allows")


def _against(rule: Allowed[Image], field: str, message: str) -> Violation:
    hint = f"use an image of {listed(rule.allow)}"
    return Violation(rule="images", field=field, message=message, hint=hint, mode=rule.mode)
