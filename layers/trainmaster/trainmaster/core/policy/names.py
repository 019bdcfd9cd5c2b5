"""The names that a policy's author writes: pools, teams, principals, and SageMaker's instance types."""

import re
from collections.abc import Iterator

from trainmaster.core.policy.principals import PrincipalPattern, parse_principal
from trainmaster.core.policy.section import Findings, Section, shown

# Names become parts of table keys (where `#` separates) and of tags; a pool called `-` is nobody's.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/=+@-]{0,62}")
_NAME_HINT = "1 to 63 letters, digits and _ . : / = + @ -, beginning with a letter or digit"
_INSTANCE_TYPE = re.compile(r"ml\.[a-z0-9-]+\.[a-z0-9-]+")
_INSTANCE_TYPE_HINT = "write it as SageMaker does, e.g. ml.g5.12xlarge"

_PRINCIPAL_HINT = "write arn:aws:iam::111122223333:role/NAME (or :user/NAME); * may stand only inside NAME"


def name_of(section: Section) -> str:
    """The value of the key ``name``; empty where it is not one."""
    name = section.value("name")
    if isinstance(name, str) and is_name(name, section.at("name"), section.findings):
        return name
    if not isinstance(name, str):
        message = "is missing" if name is None else f"is not a name: {shown(name)}"
        section.findings.refuse(section.at("name"), message, _NAME_HINT)
    return ""


def is_name(text: str, path: str, findings: Findings) -> bool:
    """Whether the text is a name; what is not one is noted."""
    if _NAME.fullmatch(text):
        return True
    findings.refuse(path, f"is not a name: {shown(text)}", _NAME_HINT)
    return False


def entries_by_type(section: Section) -> Iterator[tuple[str, object]]:
    """The entries whose key is an instance type; the others are noted."""
    for instance_type, value in section.entries():
        if _INSTANCE_TYPE.fullmatch(instance_type):
            yield instance_type, value
        else:
            message = f"is not an instance type: {shown(instance_type)}"
            section.findings.refuse(section.at(instance_type), message, _INSTANCE_TYPE_HINT)


def principals_of(section: Section, key: str) -> Iterator[tuple[str, PrincipalPattern]]:
    """Path and pattern of each principal of a list; what is not one is noted."""
    for path, value in section.items(key, "write a list of ARNs"):
        pattern = parse_principal(value) if isinstance(value, str) else None
        if pattern is None:
            section.findings.refuse(path, f"is not a role or user: {shown(value)}", _PRINCIPAL_HINT)
        else:
            yield path, pattern
