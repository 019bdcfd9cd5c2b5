"""What is wrong with a document, collected while it is read: each mistake with its path, none fatal."""

import json
import re
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from trainmaster.core.errors import FieldError, quoted

_SHOWN_NUMBER = 10**18
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

    def below(self, key: str) -> "Location":
        if _PLAIN_KEY.fullmatch(key):
            return Location(f"{self.path}.{key}" if self.path else key, self.findings, self.around)
        return Location(f"{self.path}[{quoted(key)}]", self.findings, self.around)

    def item(self, index: int) -> "Location":
        return Location(f"{self.path}[{index}]", self.findings, self.around)

    def refuse(self, message: str, hint: str) -> None:
        self.findings.errors.append(FieldError(field=self.path, message=message, hint=hint))

    def warn(self, message: str, hint: str) -> None:
        self.findings.warnings.append(FieldError(field=self.path, message=message, hint=hint))

    def mapping(self, found: object) -> Mapping[str, object]:
        """An empty one where there is none: null is the same as nothing written."""
        if isinstance(found, dict):
            return found
        if found is not None:
            self.refuse(f"must be a mapping, not {shown(found)}", "write keys and values")
        return {}

    def items(self, found: object, hint: str) -> Iterator[tuple["Location", object]]:
        """Each element of a list, and where it is."""
        if isinstance(found, list):
            for index, item in enumerate(found):
                yield self.item(index), item
        elif found is not None:
            self.refuse(f"must be a list, not {shown(found)}", hint)

    def refuse_unknown(self, written: Iterable[str], known: Collection[str]) -> None:
        for key in written:
            if key in known:
                continue
            if self.findings.is_lenient:
                self.below(key).warn(
                    "is unknown to this version", "it has no effect until a version knows it"
                )
            else:
                hint = nearest(key, known) or f"known keys: {', '.join(known)}"
                self.below(key).refuse("unknown key", hint)


def nearest(written: str, known: Iterable[str]) -> str | None:
    """A hint: what may have been meant."""
    near = get_close_matches(written, list(known), n=1)
    return f"did you mean {near[0]}?" if near else None


def shown(value: object) -> str:
    """A value in a message: as JSON writes it, never longer than a line."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and abs(value) > _SHOWN_NUMBER:
        return "a number that large"  # Python refuses to print very long ones
    return quoted(value) if isinstance(value, str) else json.dumps(value)
