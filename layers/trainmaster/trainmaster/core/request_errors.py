"""How a mistake in a request is told: where it is, what is wrong, what to do."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from trainmaster.core.errors import FieldError, InvalidRequestError

MAX_ERRORS = 50
"""Listed in one answer. Looking for more stops there, so a hostile body cannot buy CPU with mistakes."""

_MAX_KEY_CHARACTERS = 64

Path = tuple[str | int, ...]
"""Keys and indexes from the top of the body; empty: the body itself."""


@dataclass(frozen=True, slots=True)
class Mistake:
    path: Path
    message: str
    hint: str

    def as_field_error(self) -> FieldError:
        return FieldError(field=path_text(self.path), message=self.message, hint=self.hint)


def path_text(path: Path) -> str:
    """``ResourceConfig.InstanceGroups[0].InstanceType``; a key that is no plain word is quoted."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _is_word(step):
            text += f".{step}" if text else step
        else:
            text += f"[{quoted(step)}]"
    return text or "body"


def quoted(text: str) -> str:
    """The text in quotes, on one line, in ASCII, cut: fit for an answer and for a log."""
    cut = text if len(text) <= _MAX_KEY_CHARACTERS else f"{text[:_MAX_KEY_CHARACTERS]}..."
    return json.dumps(cut)


def invalid(errors: Iterable[FieldError]) -> InvalidRequestError:
    """The error that lists them all; its detail says the first, for clients that show only that."""
    listed = tuple(errors)
    more = f" (and {len(listed) - 1} more)" if len(listed) > 1 else ""
    return InvalidRequestError(f"{listed[0].field}: {listed[0].message}{more}", errors=listed)


def _is_word(key: str) -> bool:
    plain = key.replace("_", "").replace("-", "")
    return len(key) <= _MAX_KEY_CHARACTERS and plain.isascii() and plain.isalnum()
