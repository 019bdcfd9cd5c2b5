"""Reads the fields of a config.json one by one, and keeps what is wrong with them."""

import json
from collections.abc import Mapping
from typing import Any

from training.options.reader import shown

_MOST = 10**10
"""Of any number; rope_theta goes up to 10**9."""
_SHOWN = 60
"""Characters of a value in a message."""
MOST_LAYERS = 10_000
NOT_COMPUTED = frozenset(
    [
        "_name_or_path",
        "_commit_hash",
        "torch_dtype",
        "dtype",
        "transformers_version",
        "initializer_range",
        "label2id",
        "return_dict",
        "output_attentions",
        "output_hidden_states",
        "chunk_size_feed_forward",
        "_attn_implementation",
        "attn_implementation",
        "is_decoder",
    ]
)
"""Fields of any model's config.json that change nothing of what it computes."""


class Fields:
    """What is wrong reads as a value that does no harm, so that the rest is judged, too.

    Args:
        given: The object.
        within: Where it is in the file, for messages.
        problems: Get what is found; those of the object around it.
    """

    def __init__(
        self, given: Mapping[str, object], *, within: str = "", problems: list[str] | None = None
    ) -> None:
        self._given, self._within = given, within
        self._read: set[str] = set()
        self.problems: list[str] = [] if problems is None else problems

    def get(self, name: str, default: object = None) -> Any:  # noqa: ANN401  JSON
        """Default where the field is missing or null."""
        self._read.add(name)
        found = self._given.get(name)
        return default if found is None else found

    def is_null(self, name: str) -> bool:
        """It is there, and says that there is none."""
        return name in self._given and self._given[name] is None

    def wrong(self, name: str, problem: str) -> None:
        self.problems.append(f"{self._within}{name} {problem}")

    def whole(self, name: str, default: int | None = None, *, at_least: int = 1, at_most: int = _MOST) -> int:
        value = self.get(name, default)
        if value is None:
            self.wrong(name, "is missing")
        elif type(value) is not int or not at_least <= value <= at_most:
            self.wrong(name, f"must be a whole number from {at_least} to {at_most}, not {told(value)}")
        else:
            return value
        return 1

    def number(self, name: str, default: float | None = None, *, above: float = 0.0) -> float:
        value = self.get(name, default)
        if value is None:
            self.wrong(name, "is missing")
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or not above < value <= _MOST:
            self.wrong(name, f"must be a number above {above:g}, not {told(value)}")
        else:
            return float(value)
        return above + 1

    def truth(self, name: str, *, default: bool = False) -> bool:
        value = self.get(name, default)
        if not isinstance(value, bool):
            self.wrong(name, f"must be true or false, not {told(value)}")
        return value is True

    def fixed(self, name: str, *allowed: object) -> None:
        """Where it is said, it is one of these."""
        if (value := self.get(name, allowed[0])) not in allowed:
            self.wrong(name, f"must be {told(allowed[0])}, not {told(value)}")

    def refuse_unknown(self, known: frozenset[str]) -> None:
        """After all others are read; what is switched off does no harm."""
        rest = sorted(self._given.keys() - self._read - known)
        strange = [f"{name} {told(self._given[name])}" for name in rest if _is_on(self._given[name])]
        if strange:
            named = ", ".join(self._within + one for one in strange)
            self.problems.append(f"{named}: not known here; remove what changes nothing of the model")


def told(value: object) -> str:
    """For a message."""
    return shown(value) if isinstance(value, str) else json.dumps(value)[:_SHOWN]


def _is_on(value: object) -> bool:
    return value is not None and value is not False and value not in ({}, [])
