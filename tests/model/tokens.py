"""Equal values as equal small numbers, so that states of them are quick to compare."""

from typing import Any


class Tokens:
    def __init__(self) -> None:
        self._by_text: dict[str, int] = {}
        self._by_id: dict[int, int] = {}
        self._values: list[Any] = []
        self._kept: list[Any] = []

    def of(self, value: Any) -> int:
        """The number of a value that never changes. Equal texts are equal values here."""
        known = self._by_id.get(id(value))
        if known is not None:
            return known
        text = f"{type(value).__name__}:{value!r}"
        token = self._by_text.setdefault(text, len(self._values))
        if token == len(self._values):
            self._values.append(value)
        self._kept.append(value)  # an id is a name only as long as its owner lives
        self._by_id[id(value)] = token
        return token

    def value(self, token: int) -> Any:
        return self._values[token]
