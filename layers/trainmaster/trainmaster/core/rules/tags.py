"""Tags that every job needs, and the beginning of its name."""

from collections.abc import Iterator

from trainmaster.core.errors import path_text
from trainmaster.core.policy.job_rules import RequiredTag, Rules
from trainmaster.core.request.validation.sections import Section, elements, text
from trainmaster.core.rules.violation import Violation, listed


def check_tags(body: Section, rules: Rules) -> Iterator[Violation]:
    rule = rules.required_tags
    if rule is None:
        return
    given = {text(tag, "Key"): (index, text(tag, "Value") or "") for index, tag in elements(body, "Tags")}
    for wanted in rule.tags:
        if wanted.key not in given:
            field, message = path_text(("Tags", wanted.key)), "is required"
        elif _accepts(wanted, given[wanted.key][1]):
            continue
        else:
            field = path_text(("Tags", given[wanted.key][0], "Value"))
            message = f"of {wanted.key} is none of the allowed values"
        yield Violation(
            rule="required_tags", field=field, message=message, hint=_hint(wanted), mode=rule.mode
        )


def _accepts(wanted: RequiredTag, value: str) -> bool:
    is_listed = not wanted.one_of or value in wanted.one_of
    return is_listed and (wanted.pattern is None or wanted.pattern.matches(value))


def _hint(wanted: RequiredTag) -> str:
    values = f" with one of {listed(wanted.one_of)}" if wanted.one_of else " with a value"
    pattern = f" that matches {wanted.pattern.source}" if wanted.pattern else ""
    return f"add the tag {wanted.key}{values}{pattern}"


def check_name(body: Section, rules: Rules) -> Iterator[Violation]:
    rule, name = rules.name_prefix, text(body, "TrainingJobName") or ""
    if rule is not None and not name.startswith(rule.allow):
        yield Violation(
            rule="name_prefix",
            field="TrainingJobName",
            message="does not begin as job names must",
            hint=f"begin it with {listed(rule.allow)}",
            mode=rule.mode,
        )
