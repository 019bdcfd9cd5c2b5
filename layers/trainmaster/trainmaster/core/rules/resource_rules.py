"""Which instances, how many, and what spot needs."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from trainmaster.core.policy.rules import Rules
from trainmaster.core.request.validation.sections import Section, section, text
from trainmaster.core.request_errors import quoted
from trainmaster.core.rules.forms import forms_of
from trainmaster.core.rules.violation import Violation
from trainmaster.core.rules.wording import listed


def check_instances(body: Section, rules: Rules) -> Iterator[Violation]:
    yield from _types(body, rules)
    yield from _number(body, rules)
    yield from _spot(body, rules)


def _types(body: Section, rules: Rules) -> Iterator[Violation]:
    rule = rules.instance_types
    if rule is None:
        return
    for one in (one for form in forms_of(body) for one in form.asked):
        if not any(fnmatchcase(one.instance_type, allowed) for allowed in rule.allow):
            yield Violation(
                rule="instance_types",
                field=one.type_field,
                message=f"{quoted(one.instance_type)} is not allowed",
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
