"""Reads the fields of an exported line; what is wrong with one is noted with its line and its name."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster_client.simulate.histories.line_problems import LineProblems, shown

_INSTANT_HINT = "write it in ISO 8601 with a zone, e.g. 2026-11-21T10:00:00Z"
_MOST_SECONDS = 10 * 365 * 86_400
MOST_INSTANCES = 100_000
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class Fields:
    """Reads the fields of one object; a wrong one is noted, and a valid value stands in for it."""

    def __init__(self, document: Mapping[str, Any], line: int, problems: LineProblems, at: str = "") -> None:
        self._document = document
        self._line = line
        self._problems = problems
        self._at = at

    def refuse(self, name: str, message: str, hint: str) -> None:
        self._problems.add(self._line, f"{self._at}{name}", message, hint)

    def has(self, name: str) -> bool:
        return self._document.get(name) is not None

    def text(self, name: str) -> str:
        value = self._value(name)
        if not isinstance(value, str) or not value or not value.isprintable():
            self._refuse_value(name, "a text", 'write it in quotes, e.g. "vision"')
            return "-"
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._value(name)
        if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
            self._refuse_value(name, "a list of texts", 'write e.g. ["n0a1", "t3fc"]')
            return ()
        return tuple(value)

    def whole(self, name: str, *, least: int, most: int) -> int:
        value = self._value(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            self._refuse_value(name, "a valid number", f"write one from {least} to {most}")
            return least
        if value != int(value):
            self._refuse_value(name, "a whole number", "write it without a fraction")
        return int(value)

    def seconds(self, name: str) -> timedelta:
        return timedelta(seconds=self.whole(name, least=0, most=_MOST_SECONDS))

    def flag(self, name: str) -> bool:
        value = self._value(name)
        if not isinstance(value, bool):
            self._refuse_value(name, "true or false", "write true or false")
        return value is True

    def instant(self, name: str) -> datetime:
        value = self._value(name)
        try:
            instant = datetime.fromisoformat(value) if isinstance(value, str) else None
            if instant is not None and instant.tzinfo:
                return instant.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        self._refuse_value(name, "a valid instant", _INSTANT_HINT)
        return _NEVER

    def instances(self, name: str) -> Mapping[str, int]:
        value = self._value(name)
        if not isinstance(value, dict) or not value:
            self._refuse_value(name, "instances by type", 'write e.g. {"ml.g5.xlarge": 1}')
            return {}
        inner = Fields(value, self._line, self._problems, f"{self._at}{name}.")
        return {kind: inner.whole(kind, least=1, most=MOST_INSTANCES) for kind in value}

    def part(self, name: str) -> "Fields":
        """Read the fields of an object within this one."""
        value = self._value(name)
        if not isinstance(value, dict):
            self._refuse_value(name, "an object", "write null where there is none")
            value = {}
        return Fields(value, self._line, self._problems, f"{self._at}{name}.")

    def wholes(self, name: str, *, least: int, most: int) -> tuple[int, ...] | None:
        """Read a list of whole numbers; None where it is none."""
        value = self._value(name)
        is_list = isinstance(value, list) and all(
            isinstance(number, int) and not isinstance(number, bool) and least <= number <= most
            for number in value
        )
        if not isinstance(value, list) or not is_list:
            self._refuse_value(name, "a list of whole numbers", "write e.g. [1, 2, 4]")
            return None
        return tuple(value)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._document)

    def parts(self, name: str) -> Iterator["Fields"]:
        value = self._value(name)
        if not isinstance(value, list):
            self._refuse_value(name, "a list", "write [] where there is none")
            return
        for number, part in enumerate(value):
            if isinstance(part, dict):
                yield Fields(part, self._line, self._problems, f"{self._at}{name}[{number}].")
            else:
                self.refuse(
                    f"{name}[{number}]", f"{shown(part)} is not an object", "write one for each attempt"
                )

    def _value(self, name: str) -> object:
        return self._document.get(name)

    def _refuse_value(self, name: str, what: str, hint: str) -> None:
        if name not in self._document:
            self.refuse(name, "is missing", hint)
        else:
            self.refuse(name, f"{shown(self._document[name])} is not {what}", hint)
