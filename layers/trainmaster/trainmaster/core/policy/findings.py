"""What is wrong with a document, collected while it is read: each mistake with its path, none fatal."""

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
"""Characters of a proposal; a longer one is no help on a line."""
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.*-]{1,64}")


@dataclass(slots=True)
class Findings:
    is_lenient: bool = False
    """What another version wrote may have keys that this one does not know: they are warnings."""
    defaults: int | None = None
    """Those that stand for what is not written, where they have changed since; None: today's."""
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[FieldError] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Location:
    """Where a value is in the document, and where to note what is wrong with it."""

    path: str = ""
    findings: Findings = field(default_factory=Findings)
    around: ChainMap[str, Any] = field(default_factory=ChainMap)
    """What was read before it, in its section and in those around it."""
    unsound: ChainMap[str, bool] = field(default_factory=ChainMap)
    """By key of its section and of those around it: whether what is written there was refused."""

    def below(self, key: str) -> "Location":
        if _PLAIN_KEY.fullmatch(key):
            return replace(self, path=f"{self.path}.{key}" if self.path else key)
        return replace(self, path=f"{self.path}[{quoted(key)}]")

    def item(self, index: int) -> "Location":
        return replace(self, path=f"{self.path}[{index}]")

    def opened(self) -> "Location":
        """Open a section here: its keys hide those of the same name around it."""
        return replace(self, around=self.around.new_child(), unsound=self.unsound.new_child())

    def quiet(self) -> "Location":
        """Read on without noting anything, where what follows from a mistake would be noted."""
        return replace(self, findings=Findings(self.findings.is_lenient, self.findings.defaults))

    def is_sound(self, *keys: str) -> bool:
        """Tell whether all of these keys could be read as they are written.

        A check of several keys asks first: what follows from a mistake is not another one.
        """
        return not any(self.unsound.get(key, False) for key in keys)

    def refuse(self, message: str, hint: str) -> None:
        self.findings.errors.append(FieldError(field=self.path, message=message, hint=hint))

    def warn(self, message: str, hint: str) -> None:
        self.findings.warnings.append(FieldError(field=self.path, message=message, hint=hint))

    def mapping(self, found: object) -> Mapping[str, object]:
        """An empty one where there is none: null is the same as nothing written."""
        if isinstance(found, dict):
            return found
        if found is not None:
            self.refuse(f"must be a mapping, not {shown(found)}", _mapping_hint(found))
        return {}

    def items(self, found: object, hint: str) -> Iterator[tuple["Location", object]]:
        """Each element of a list, and where it is."""
        if isinstance(found, list):
            for index, item in enumerate(found):
                yield self.item(index), item
        elif found is not None:
            self.refuse(f"must be a list, not {shown(found)}", hint)

    def refuse_unknown(
        self, written: Iterable[str], known: Collection[str], *, elsewhere: Mapping[str, str] | None = None
    ) -> None:
        """Note each key that is not known; ``elsewhere`` has keys of sections within, with their places."""
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
        """What the author of an unknown key can do: it may only be indented wrongly."""
        if key in elsewhere:
            return f"it belongs in {elsewhere[key]}: indent it like the keys there"
        if any(key in keys for keys in self.unsound.maps[1:]):
            return "it belongs further out: indent it less"
        return nearest(key, known) or f"known keys: {', '.join(known)}"


def nearest(written: str, known: Iterable[str]) -> str | None:
    """A hint: what may have been meant."""
    near = get_close_matches(written, list(known), n=1)
    return f"did you mean {near[0]}?" if near else None


def meant_keys(written: Iterable[str], known: Collection[str]) -> set[str]:
    """Known keys that are not written, and that the author of an unknown one probably meant."""
    names = set(written)
    near = (get_close_matches(key, list(known), n=1) for key in names if key not in known)
    return {found for matches in near for found in matches if found not in names}


def _mapping_hint(found: object) -> str:
    """Write a list of small mappings, or of texts such as ``a: 1``, as the mapping that was meant."""
    items = found if isinstance(found, list) else [found]
    pairs: list[str] = []
    for item in items:
        if isinstance(item, dict) and all(isinstance(value, str | int | float) for value in item.values()):
            pairs += [f"{key}: {_plain(value)}" for key, value in item.items()]
        elif isinstance(item, str) and (pair := _PAIR.fullmatch(item)):
            pairs.append(f"{pair[1]}: {pair[2]}")
        else:
            return "write keys and values"
    text = f"write {{{', '.join(pairs)}}}"
    return text if pairs and len(text) <= _LONGEST_HINT else "write keys and values"


def _plain(value: object) -> str:
    """A value as YAML has it; a text that needs no quotes stays without."""
    return value if isinstance(value, str) and _PLAIN_KEY.fullmatch(value) else json.dumps(value)


def shown(value: object) -> str:
    """A value in a message: as JSON writes it, never longer than a line."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and abs(value) > _SHOWN_NUMBER:
        return "a number that large"  # Python refuses to print very long ones
    return quoted(value) if isinstance(value, str) else json.dumps(value)
