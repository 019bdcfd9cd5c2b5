"""The body of a control call: a JSON object whose fields are checked as they are taken."""

import json
import math
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

T = TypeVar("T")


class BadFieldError(Exception):
    """A field of the body is missing or wrong."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name
        self.problem = problem


class Body:
    """A JSON object whose fields are taken out one by one; what is left over at the end is an error."""

    def __init__(self, raw: bytes) -> None:
        try:
            document = json.loads(raw)
        except ValueError as error:
            raise BadFieldError("body", "is not JSON") from error
        if not isinstance(document, dict):
            raise BadFieldError("body", "is not a JSON object")
        self._fields: dict[str, Any] = document

    def number(self, name: str, *, default: float | None = None, most: float = math.inf) -> float:
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise BadFieldError(name, f"must be a number from 0 to {most:g}")
        return value

    def share_or_count(self, name: str) -> float:
        value = self.number(name, default=0)
        if value > 1 and not float(value).is_integer():
            raise BadFieldError(name, "must be a share from 0 to 1, or a whole number of deliveries")
        return value

    def whole(self, name: str, *, default: int | None = None, least: int = 0) -> int:
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise BadFieldError(name, f"must be a whole number, at least {least}")
        return value

    def text(self, name: str) -> str:
        value = self._take(name, None)
        if not isinstance(value, str) or not value:
            raise BadFieldError(name, "must be a text")
        return value

    def yes(self, name: str) -> bool:
        value = self._take(name, None)
        if value is not True:
            raise BadFieldError(name, "must be true, or left out")
        return value

    def optional(self, name: str, read: Callable[[str], T]) -> T | None:
        """Return what ``read`` makes of a field; None if the field is missing or null."""
        if self._fields.get(name) is None:
            self._fields.pop(name, None)
            return None
        return read(name)

    def mapping(self, name: str) -> dict[str, Any]:
        value = self._take(name, None)
        if not isinstance(value, dict):
            raise BadFieldError(name, "must be a JSON object")
        return value

    def parts(self, name: str) -> list["Body"]:
        """Return a list of JSON objects, each as a body of its own; an empty list is an error."""
        value = self._take(name, None)
        if not isinstance(value, list) or not value or not all(isinstance(part, dict) for part in value):
            raise BadFieldError(name, "must be a list of JSON objects, with at least one")
        return [Body(json.dumps(part).encode()) for part in value]

    def instant(self, name: str) -> datetime:
        text = self.text(name)
        with suppress(ValueError):
            if (instant := datetime.fromisoformat(text)).tzinfo is not None:
                return instant.astimezone(UTC)
        raise BadFieldError(name, "must be an instant with a zone, e.g. 2026-12-01T08:00:00Z")

    def end(self) -> None:
        for name in self._fields:
            raise BadFieldError(name, "is not known here")

    def _take(self, name: str, default: object) -> object:
        value = self._fields.pop(name, None)
        if value is None and default is None:
            raise BadFieldError(name, "is missing")
        return default if value is None else value
