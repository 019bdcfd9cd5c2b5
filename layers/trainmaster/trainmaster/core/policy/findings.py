"""The mistakes in a document, collected while it is read: each has its path, none ends the reading."""

import json
import re
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from trainmaster.core.errors import FieldError, quoted

_SHOWN_NUMBER = 10**18
_PAIR = re.compile(r"([A-Za-z0-9_.-]{1,64})\s*[:=]\s*([A-Za-z0-9_.-]{1,64})")
_LONGEST_HINT = 120
"""Most characters of a proposed correction; a longer one is no help on a line."""
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.*-]{1,64}")


@dataclass(slots=True)
class Findings:
    is_lenient: bool = False
    """Whether unknown keys only warn, because another version may have written the document."""
    defaults: int | None = None
    """Number of the earlier defaults that stand for what is not written; None for today's."""
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[FieldError] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Location:
    """The place of a value in the document, where its mistakes are noted."""

    path: str = ""
    findings: Findings = field(default_factory=Findings)
    around: ChainMap[str, Any] = field(default_factory=ChainMap)
    """Values read so far, of this section and of those around it."""
    unsound: ChainMap[str, bool] = field(default_factory=ChainMap)
    """Whether the written value was refused, by key of this section and of those around it."""

    def below(self, key: str) -> "Location":
        if _PLAIN_KEY.fullmatch(key):
            return replace(self, path=f"{self.path}.{key}" if self.path else key)
        return replace(self, path=f"{self.path}[{quoted(key)}]")

    def item(self, index: int) -> "Location":
        return replace(self, path=f"{self.path}[{index}]")

    def opened(self) -> "Location":
        """Open a section here: its keys hide keys of the same name around it."""
        return replace(self, around=self.around.new_child(), unsound=self.unsound.new_child())

    def quiet(self) -> "Location":
        """Return the same place without notes, where only consequences of a known mistake would be noted."""
        return replace(self, findings=Findings(self.findings.is_lenient, self.findings.defaults))

    def is_sound(self, *keys: str) -> bool:
        """Tell whether all of these keys could be read as they are written.

        A check of several keys asks this first, so that one mistake is not reported twice.
        """
        return not any(self.unsound.get(key, False) for key in keys)

    def refuse(self, message: str, hint: str) -> None:
        self.findings.errors.append(FieldError(field=self.path, message=message, hint=hint))

    def warn(self, message: str, hint: str) -> None:
        self.findings.warnings.append(FieldError(field=self.path, message=message, hint=hint))

    def mapping(self, value: object) -> Mapping[str, object]:
        """Return the mapping, or an empty one where nothing (or null) is written, or it is refused."""
        if isinstance(value, dict):
            return value
        if value is not None:
            self.refuse(f"must be a mapping, not {shown(value)}", _mapping_hint(value))
        return {}

    def items(self, value: object, hint: str) -> Iterator[tuple["Location", object]]:
        """Yield each element of a list with its place; anything but a list is refused with this hint."""
        if isinstance(value, list):
            for index, element in enumerate(value):
                yield self.item(index), element
        elif value is not None:
            self.refuse(f"must be a list, not {shown(value)}", hint)

    def refuse_unknown(
        self, written: Iterable[str], known: Collection[str], *, elsewhere: Mapping[str, str] | None = None
    ) -> None:
        """Refuse each key that is not known; a stored document only warns of it.

        Args:
            written: The keys of the section as written.
            known: The keys that the section has.
            elsewhere: Keys of sections within, with the places where they belong.
        """
        for key in written:
            if key in known:
                continue
            if self.findings.is_lenient:
                self.below(key).warn(
                    "is unknown to this version", "it has no effect until a version knows it"
                )
            else:
                self.below(key).refuse("unknown key", self._meant(key, known, elsewhere or {}))

    def _meant(self, key: str, known: Collection[str], elsewhere: Mapping[str, str]) -> str:
        """Return what the author of an unknown key can do: perhaps it is only indented wrongly."""
        if key in elsewhere:
            return f"it belongs in {elsewhere[key]}: indent it like the keys there"
        if any(key in keys for keys in self.unsound.maps[1:]):
            return "it belongs further out: indent it less"
        return nearest(key, known) or f"known keys: {', '.join(known)}"


def nearest(written: str, known: Iterable[str]) -> str | None:
    """Return a hint that names the most similar known word; None if none is similar."""
    near = get_close_matches(written, list(known), n=1)
    return f"did you mean {near[0]}?" if near else None


def meant_keys(written: Iterable[str], known: Collection[str]) -> set[str]:
    """Return known keys that are not written, and that the author of an unknown key probably meant."""
    names = set(written)
    near = (get_close_matches(key, list(known), n=1) for key in names if key not in known)
    return {key for matches in near for key in matches if key not in names}


def _mapping_hint(written: object) -> str:
    """Write a list of small mappings, or of texts such as ``a: 1``, as the mapping that was meant."""
    items = written if isinstance(written, list) else [written]
    pairs: list[str] = []
    for element in items:
        if isinstance(element, dict) and all(
            isinstance(value, str | int | float) for value in element.values()
        ):
            pairs += [f"{key}: {_plain(value)}" for key, value in element.items()]
        elif isinstance(element, str) and (pair := _PAIR.fullmatch(element)):
            pairs.append(f"{pair[1]}: {pair[2]}")
        else:
            return "write keys and values"
    text = f"write {{{', '.join(pairs)}}}"
    return text if pairs and len(text) <= _LONGEST_HINT else "write keys and values"


def _plain(value: object) -> str:
    """Write a value as YAML has it: a text that needs no quotes has none."""
    return value if isinstance(value, str) and _PLAIN_KEY.fullmatch(value) else json.dumps(value)


def shown(value: object) -> str:
    """Write a value for a message: as JSON, and never longer than a line."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and abs(value) > _SHOWN_NUMBER:
        return "a number that large"  # Python refuses to print very long ones
    return quoted(value) if isinstance(value, str) else json.dumps(value)
