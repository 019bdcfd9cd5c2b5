"""Where in S3 a job reads and writes."""

from collections.abc import Iterator

from trainmaster.core.policy.rules import Allowed, Rules
from trainmaster.core.request.s3_uri import S3Location, parse_s3
from trainmaster.core.request.validation.fields import Found, values_of
from trainmaster.core.request.validation.sections import Section
from trainmaster.core.rules.violation import Violation
from trainmaster.core.rules.wording import listed

_BY_PREFIX = "S3Prefix"
"""S3DataType of an input that reads every key that begins like its URI. Source: SageMaker API reference."""


def check_places(body: Section, rules: Rules) -> Iterator[Violation]:
    """Every S3 URI that the service model has a field for; what a manifest names is not seen."""
    rule = rules.s3_prefixes
    if rule is None:
        return
    for found in values_of("S3Uri", dict(body)):
        problem = _problem(found, rule)
        if problem is not None:
            message, hint = problem
            yield Violation(rule="s3_prefixes", field=found.field, message=message, hint=hint, mode=rule.mode)


def _problem(found: Found, rule: Allowed[S3Location]) -> tuple[str, str] | None:
    place = parse_s3(found.value)
    if place is None:
        return "is no place in S3", "write it as s3://bucket/prefix"
    holders = [allowed for allowed in rule.allow if allowed.holds(place)]
    if not holders:
        return "lies outside of what is allowed", f"use a place in {listed(rule.allow)}"
    reads_beyond = found.beside.get("S3DataType") == _BY_PREFIX and place.is_open
    if reads_beyond and all(len(allowed.parts) == len(place.parts) for allowed in holders):
        return "reads every key that begins like it, also of others", "end it with a slash"
    return None
