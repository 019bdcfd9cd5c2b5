"""Under which role, and with which keys."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from trainmaster.core.policy.rules import Rules
from trainmaster.core.request.validation.fields import values_of
from trainmaster.core.request.validation.sections import Section
from trainmaster.core.rules.violation import Violation
from trainmaster.core.rules.wording import listed

_KEY_PARTS = 6
_KEY = "key/"


def check_role(body: Section, rules: Rules) -> Iterator[Violation]:
    """Compared as they stand: a role of another path, account or partition is another role."""
    rule = rules.roles
    if rule is not None and body.get("RoleArn") not in rule.allow:
        yield Violation(
            rule="roles",
            field="RoleArn",
            message="is not a role that is allowed",
            hint=f"use {listed(rule.allow)}",
            mode=rule.mode,
        )


def check_keys(body: Section, rules: Rules) -> Iterator[Violation]:
    rule = rules.kms_keys
    if rule is None:
        return
    for found in values_of("KmsKeyId", dict(body)):
        if not _is_key_arn(found.value):
            message, hint = (
                "is no key ARN, so its key is not known",
                f"give the key ARN: {listed(rule.allow)}",
            )
        elif any(fnmatchcase(found.value, allowed) for allowed in rule.allow):
            continue
        else:
            message, hint = "is not a key that is allowed", f"use {listed(rule.allow)}"
        yield Violation(rule="kms_keys", field=found.field, message=message, hint=hint, mode=rule.mode)


def _is_key_arn(text: str) -> bool:
    """With the parts of one, so that the ``*`` of a rule stays within a part."""
    parts = text.split(":")
    return len(parts) == _KEY_PARTS and parts[2] == "kms" and parts[5].startswith(_KEY)
