"""Parts of a body whose shape may be wrong: what is not as it should be reads as nothing.

The checks of meaning read through these, so they see all that can be read and repeat no mistake of shape.
"""

from collections.abc import Iterator, Mapping

from trainmaster.core.request.strict_json import JsonValue

Section = Mapping[str, JsonValue]


def section(parent: Section, name: str) -> Section | None:
    """The object under ``name``; empty where there is none, None where something else stands."""
    value = parent.get(name, {})
    return value if isinstance(value, dict) else None


def whole_number(parent: Section, name: str) -> int | None:
    """The number under ``name``, also where it is written as 2.0; None where something else stands."""
    value = parent.get(name)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(parent: Section, name: str) -> str | None:
    value = parent.get(name)
    return value if isinstance(value, str) else None


def elements(parent: Section, name: str) -> Iterator[tuple[int, Section]]:
    """The objects in the list under ``name``, with their places."""
    value = parent.get(name)
    for index, element in enumerate(value if isinstance(value, list) else ()):
        if isinstance(element, dict):
            yield index, element
