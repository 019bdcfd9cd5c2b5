"""Read parts of a body whose shape may be wrong: a part of the wrong type reads as nothing.

The checks of meaning read through these, so they see all that can be read and repeat no mistake of shape.
"""

from collections.abc import Iterator, Mapping

from trainmaster.core.request.strict_json import JsonValue

Section = Mapping[str, JsonValue]


def section(parent: Section, name: str) -> Section | None:
    """Return the object under ``name``; empty if it is missing, None if it is of another type."""
    value = parent.get(name, {})
    return value if isinstance(value, dict) else None


def whole_number(parent: Section, name: str) -> int | None:
    """Return the whole number under ``name``, also if written as 2.0; None for anything else."""
    value = parent.get(name)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(parent: Section, name: str) -> str | None:
    value = parent.get(name)
    return value if isinstance(value, str) else None


def elements(parent: Section, name: str) -> Iterator[tuple[int, Section]]:
    """Yield the objects in the list under ``name``, each with its index."""
    value = parent.get(name)
    for index, element in enumerate(value if isinstance(value, list) else ()):
        if isinstance(element, dict):
            yield index, element
