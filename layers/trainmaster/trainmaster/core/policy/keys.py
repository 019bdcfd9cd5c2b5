"""Sections of the policy document: each key is declared once, as a field that says how to read it.

The parser here follows from the declarations; so do, by generate_policy_reference.py, the JSON Schema, the
tables of docs/policy.md and the comments of policy.example.yaml.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar

from trainmaster.core.policy.findings import Findings, Location, meant_keys
from trainmaster.core.policy.kinds import Kind, ListOf, T

_DECLARED = "declared"  # in the metadata of a field
OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The declaration of one key."""

    kind: Kind[Any]
    says: str
    """Description in one line of Markdown; documents add the bounds of the kind to it."""
    default: object = None
    """Default as an author would write it; None if there is none."""
    earlier: Mapping[int, object] = field(default_factory=dict)
    """Earlier defaults, by the last number of the defaults (``document.DEFAULTS``) that had them."""
    example: str | None = None
    """Example in YAML, where the default does not show what a value looks like."""
    is_needed: bool = False
    off: tuple[object, ...] = ()
    """Values that switch the section off. A null that is not among them is the same as not written."""
    stand_in: object = None
    """Value taken for a needed key that is missing or refused, so that the rest of the document is checked
    too."""
    missing: str = ""
    """Hint where a needed key is missing."""

    def default_of(self, defaults: int) -> object:
        """Return the default as an author would have written it when the defaults had this number."""
        until = [number for number in self.earlier if number >= defaults]
        return self.earlier[min(until)] if until else self.default


class Section:
    """Keys that belong together: a frozen dataclass whose fields are made by the functions below."""

    __slots__ = ()

    def check(self, at: Location) -> None:
        """Note mistakes that only several keys together show."""


S = TypeVar("S", bound=Section)


def key(
    kind: Kind[T],
    default: object,
    says: str,
    *,
    example: str | None = None,
    earlier: Mapping[int, object] | None = None,
) -> T:
    """Declare a key that may be left out; its default is read like a written value."""
    declared = Key(kind=kind, default=default, says=says, example=example, earlier=earlier or {})
    return _field(_default(kind, default), declared)


def key_or_empty(kind: Kind[T], says: str, *, empty: T) -> T:
    """Declare a key that may be left out; then it has a value that an author cannot write."""
    return _field(empty, Key(kind=kind, says=says))


def key_or_off(
    kind: Kind[T],
    default: object,
    says: str,
    *,
    earlier: Mapping[int, object] | None = None,
    off: tuple[object, ...] = (OFF, False, None),
) -> T | None:
    """Declare a key like ``key``, where an author may also write that there is none.

    Args:
        kind: Reader of a written value.
        default: The value, as an author would write it, where nothing is written.
        says: One line of Markdown for the reference.
        earlier: Earlier defaults, as in ``Key.earlier``; one of ``off`` where there was none.
        off: Words that an author writes for none. YAML 1.1 reads a bare ``off`` as false.
    """
    declared = Key(kind=kind, default=default, says=says, off=off, earlier=earlier or {})
    return _field(None if _is_off(default, declared) else _default(kind, default), declared)


def optional(kind: Kind[T], says: str, *, example: str | None = None) -> T | None:
    """Declare a key without a default: it is None where it is not written."""
    return _field(None, Key(kind=kind, says=says, example=example))


def needed(kind: Kind[T], says: str, *, stand_in: T, hint: str) -> T:
    """Declare a key that has to be written; ``hint`` tells its author how."""
    declared = Key(kind=kind, says=says, is_needed=True, stand_in=stand_in, missing=hint)
    missing: T = field(metadata={_DECLARED: declared})
    return missing


def inline(section: type[S]) -> S:
    """Declare a section whose keys are written among the keys of this one."""
    return field(default_factory=section, metadata={_DECLARED: section})


def _default(kind: Kind[T], written: object) -> T:
    at = Location()
    value = kind.read(written, at)
    assert value is not None
    assert not at.findings.errors
    return value


def _field(value: T, declared: Key) -> T:
    metadata = {_DECLARED: declared}
    if type(value).__hash__ is None:  # dataclasses want a new one for each
        return field(default_factory=lambda: copy(value), metadata=metadata)
    return field(default=value, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Keys(Generic[S]):
    """The kind of value that is a section."""

    section: type[S]

    def read(self, value: object, at: Location) -> S:
        written = at.mapping(value)
        if value is not None and not isinstance(value, dict):
            at = at.quiet()  # it is refused: that it lacks keys is not another mistake
        here = open_section(self.section, written, at)
        made = self.section(**read_keys(self.section, written, here))
        here.refuse_unknown(written, keys_of(self.section), elsewhere=keys_within(self.section))
        made.check(here)
        return made


def _declarations(section: type[Section]) -> tuple[tuple[str, Key | type[Section]], ...]:
    """Return the fields that are keys or inline sections."""
    declarations = ((attribute.name, attribute.metadata.get(_DECLARED)) for attribute in fields(section))  # type: ignore[arg-type]  # each is a dataclass
    return tuple((name, declared) for name, declared in declarations if declared is not None)


def keys_of(section: type[Section]) -> Mapping[str, Key]:
    """Return the keys of a section by their written names; those of inline sections stand in their place."""
    keys: dict[str, Key] = {}
    for name, declared in _declarations(section):
        keys |= {_written(name): declared} if isinstance(declared, Key) else keys_of(declared)
    return keys


def keys_within(section: type[Section]) -> dict[str, str]:
    """Return keys of sections within a section, each with the name of the key that it belongs in."""
    places: dict[str, list[str]] = {}
    for name, declared in keys_of(section).items():
        kind = declared.kind.item if isinstance(declared.kind, ListOf) else declared.kind
        if isinstance(kind, Keys):
            for key_within in keys_of(kind.section):
                places.setdefault(key_within, []).append(name)
    return {name: " or ".join(within) for name, within in places.items()}


def open_section(section: type[Section], written: Mapping[str, object], at: Location) -> Location:
    """Open a section for reading; a key that is only misspelled counts as written and refused."""
    known = keys_of(section)
    here = at.opened()
    misspelled = set() if at.findings.is_lenient else meant_keys(written, known)
    here.unsound.update({name: name in misspelled for name in known})
    return here


def read_keys(section: type[Section], written: Mapping[str, object], here: Location) -> dict[str, Any]:
    """Read the values of the fields; a key that is absent or cannot be read is left to the field's default.

    ``here`` is the section as ``open_section`` opened it.
    """
    values: dict[str, Any] = {}
    for name, declared in _declarations(section):
        if not isinstance(declared, Key):
            values[name] = declared(**read_keys(declared, written, here))
            continue
        if declared.is_needed or _written(name) in written:
            values |= _value(name, declared, written, here)
        if name not in values and here.findings.defaults is not None and declared.default is not None:
            values |= _earlier(name, declared, here)
        here.around.maps[0].update(values)
    return values


def _earlier(field_name: str, declared: Key, at: Location) -> dict[str, Any]:
    """Return the value of a key that is not written, under earlier defaults; empty if it has none."""
    defaults = at.findings.defaults
    assert defaults is not None
    place = Location(at.path, Findings(defaults=defaults), at.around, at.unsound)
    written = declared.default_of(defaults)
    if _is_off(written, declared):
        return {field_name: None}
    value = declared.kind.read(written, place)
    return {} if value is None else {field_name: value}


def _value(field_name: str, declared: Key, written: Mapping[str, object], at: Location) -> dict[str, Any]:
    name = _written(field_name)
    raw, place = written.get(name), at.below(name)
    if _is_off(raw, declared):
        return {field_name: None}
    if OFF in declared.off and raw in (True, "on"):  # YAML 1.1 reads a bare `on` as true
        place.refuse("cannot be switched on: it is on where it is not written", "remove it, or write keys")
        return {}
    if raw is None and declared.is_needed and at.is_sound(name):
        place.refuse("is missing", declared.missing)
    mistakes = len(at.findings.errors)
    value = None if raw is None else declared.kind.read(raw, place)
    if len(at.findings.errors) > mistakes:
        at.unsound[name] = True
    if value is None:
        return {field_name: declared.stand_in} if declared.is_needed else {}
    return {field_name: value}


def _is_off(written: object, declared: Key) -> bool:
    """Tell whether an author switched the section off.

    The number 0 equals False, but does not switch it off.
    """
    return any(written is word or (isinstance(word, str) and written == word) for word in declared.off)


def _written(field_name: str) -> str:
    """Return the key as it is written: ``for`` for the field ``for_``."""
    return field_name.rstrip("_")
