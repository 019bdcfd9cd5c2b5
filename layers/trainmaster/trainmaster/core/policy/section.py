"""Reading one mapping of a document: each value checked, each mistake noted, none of them fatal."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeGuard, TypeVar

from trainmaster.core.errors import FieldError, quoted

MAX_COUNT = 1_000_000  # more than any account has of anything; keeps sums and table numbers exact
MAX_DURATION = timedelta(days=3650)  # keeps every instant plus a duration inside the calendar
_SHOWN_NUMBER = 10**18
_DURATION = re.compile(r"([0-9]{1,9})([smhd])")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.*-]{1,64}")
_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
Choice = TypeVar("Choice", bound=StrEnum)
_DURATION_HINT = "write a whole number and a unit: 30s, 15m, 24h or 3d"


@dataclass(slots=True)
class Findings:
    """What is wrong with a document, collected while it is read."""

    errors: list[FieldError] = field(default_factory=list)
    warnings: list[FieldError] = field(default_factory=list)

    def refuse(self, path: str, message: str, hint: str) -> None:
        self.errors.append(FieldError(field=path, message=message, hint=hint))

    def warn(self, path: str, message: str, hint: str) -> None:
        self.warnings.append(FieldError(field=path, message=message, hint=hint))


class Section:
    """A mapping at ``path``. A key that is absent or null has its default."""

    def __init__(self, value: object, path: str, findings: Findings) -> None:
        self.path = path
        self.findings = findings
        self._known: list[str] = []
        self._values: Mapping[str, object] = {}
        if isinstance(value, dict):
            self._values = value
        elif value is not None:
            findings.refuse(path, f"must be a mapping, not {shown(value)}", "write keys and values")

    def at(self, key: str) -> str:
        """The path of a key, for a message."""
        return path_of(self.path, key)

    def value(self, key: str) -> object:
        if key not in self._known:
            self._known.append(key)
        return self._values.get(key)

    def has(self, key: str) -> bool:
        return key in self._values

    def section(self, key: str) -> "Section":
        return Section(self.value(key), self.at(key), self.findings)

    def entries(self) -> Iterator[tuple[str, object]]:
        """Key and value of a mapping whose keys are the author's own."""
        return iter(self._values.items())

    def items(self, key: str, hint: str) -> Iterator[tuple[str, object]]:
        """Path and value of each element of the list under ``key``."""
        found = self.value(key)
        if isinstance(found, list):
            return ((f"{self.at(key)}[{index}]", item) for index, item in enumerate(found))
        if found is not None:
            self.findings.refuse(self.at(key), f"must be a list, not {shown(found)}", hint)
        return iter(())

    def boolean(self, key: str, *, default: bool) -> bool:
        found = self.value(key)
        if found is None or isinstance(found, bool):
            return default if found is None else found
        self.findings.refuse(
            self.at(key), f"must be true or false, not {shown(found)}", "write true or false"
        )
        return default

    def integer(self, key: str, *, default: int, least: int = 0, most: int = MAX_COUNT) -> int:
        found = self.value(key)
        if found is None:
            return default
        return whole_number(found, self.at(key), self.findings, range(least, most + 1))

    def share(self, key: str, *, default: float) -> float:
        """A number from 0 to 1."""
        found = self.value(key)
        if found is None:
            return default
        if is_number(found) and 0 <= found <= 1:
            return float(found)
        self.findings.refuse(
            self.at(key), f"must be a number, 0 to 1, not {shown(found)}", "write one like 0.5"
        )
        return default

    def choice(self, key: str, default: Choice) -> Choice:
        """One of the words that the default's type lists."""
        found = self.value(key)
        if found is None:
            return default
        words = type(default)
        if isinstance(found, str) and found in list(words):
            return words(found)
        allowed = f"write {' or '.join(words)}"
        near = nearest(found, words) if isinstance(found, str) else None
        message = f"must be {' or '.join(words)}, not {shown(found)}"
        self.findings.refuse(self.at(key), message, near or allowed)
        return default

    def amount(self, key: str, *, least: Decimal, most: Decimal) -> Decimal | None:
        """None where there is none, or none that is acceptable."""
        found = self.value(key)
        return None if found is None else usd(found, self.at(key), self.findings, least=least, most=most)

    def duration(
        self,
        key: str,
        *,
        default: timedelta,
        least: timedelta = timedelta(),
        most: timedelta = MAX_DURATION,
    ) -> timedelta:
        found = self.value(key)
        if found is None:
            return default
        wait = self._duration(found, self.at(key))
        if wait is None:
            return default
        if not least <= wait <= most:
            bounds = f"between {duration_text(least)} and {duration_text(most)}"
            self.findings.refuse(self.at(key), f"must be {bounds}, not {shown(found)}", _DURATION_HINT)
        return wait

    def _duration(self, found: object, path: str) -> timedelta | None:
        if is_number(found):
            self.findings.refuse(path, "durations need a unit", _DURATION_HINT)
            return None
        match = _DURATION.fullmatch(found) if isinstance(found, str) else None
        if match is None:
            self.findings.refuse(path, f"is not a duration: {shown(found)}", _DURATION_HINT)
            return None
        return int(match[1]) * _UNITS[match[2]]

    def refuse_unknown(self) -> None:
        """Call last: every key that nobody asked for is a mistake of the author's."""
        for key in self._values:
            if key not in self._known:
                known = f"known keys: {', '.join(self._known)}"
                self.findings.refuse(self.at(key), "unknown key", nearest(key, self._known) or known)


def path_of(parent: str, key: str) -> str:
    """The path of a key below a path."""
    if not _PLAIN_KEY.fullmatch(key):
        return f"{parent}[{quoted(key)}]"
    return f"{parent}.{key}" if parent else key


def nearest(written: str, known: Iterable[str]) -> str | None:
    """A hint: what may have been meant."""
    near = get_close_matches(written, list(known), n=1)
    return f"did you mean {near[0]}?" if near else None


def is_number(value: object) -> TypeGuard[int | float]:
    """Python takes True for 1; an author does not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole_number(found: object, path: str, findings: Findings, allowed: range) -> int:
    """The number, or the least allowed one where it is not acceptable."""
    if isinstance(found, int) and not isinstance(found, bool) and found in allowed:
        return found
    bounds = f"{allowed.start} to {allowed.stop - 1}"
    findings.refuse(path, f"must be a whole number, {bounds}, not {shown(found)}", f"write a number {bounds}")
    return allowed.start


def usd(found: object, path: str, findings: Findings, *, least: Decimal, most: Decimal) -> Decimal | None:
    """The amount, exactly as it is written; None where it is not acceptable."""
    if is_number(found) and float(least) <= found <= float(
        most
    ):  # as floats: a Decimal does not compare with NaN
        return Decimal(str(found))
    bounds = f"{least} to {most}"
    findings.refuse(
        path, f"must be an amount in USD, {bounds}, not {shown(found)}", f"write a number {bounds}"
    )
    return None


def duration_text(wait: timedelta) -> str:
    """The shortest text of whole units, e.g. ``30m``."""
    for unit in "dhm":
        if wait and wait % _UNITS[unit] == timedelta():
            return f"{wait // _UNITS[unit]}{unit}"
    return f"{wait // _UNITS['s']}s"


def shown(value: object) -> str:
    """A value in a message: as JSON writes it, never longer than a line."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and abs(value) > _SHOWN_NUMBER:
        return "a number that large"  # Python refuses to print very long ones
    return quoted(value) if isinstance(value, str) else json.dumps(value)
