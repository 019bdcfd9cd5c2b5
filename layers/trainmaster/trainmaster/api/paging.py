"""Seal tokens for the next page, so that they reveal nothing and work only for the same call."""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from trainmaster.core.errors import FieldError, InvalidRequestError, invalid

_TAG_BYTES = 16
_MAX_TOKEN_CHARACTERS = 1024  # ours are a third of it


MOST_BYTES = 4_000_000
"""Bytes of an answer's list. Lambda answers at most 6 MB, and an answer is more than its list."""


class Room:
    """Counts how many bytes one answer can still take."""

    def __init__(self, most: int | None = None) -> None:
        self._left = MOST_BYTES if most is None else most

    def takes(self, view: Mapping[str, Any]) -> bool:
        """Tell whether the view still fits; after one that does not, none does."""
        self._left -= len(json.dumps(view)) + len(", ")
        return self._left >= 0

    @property
    def is_full(self) -> bool:
        return self._left < 0


def fitting(views: Iterable[dict[str, Any]], *, most: int | None = None) -> list[dict[str, Any]]:
    """Return the first views, as many as one answer can take."""
    return list(takewhile(Room(most).takes, views))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Marks the entry behind which the next page begins."""

    section: str
    order: tuple[int | str, ...]
    """The entry's position in the order of its section; its name is the last part."""
    counted: int
    """Jobs of the section up to this entry; positions continue from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """Binds tokens to this table's secret, and to the caller's teams and filters."""

    key: bytes
    bound: str

    def token(self, mark: Mark) -> str:
        fields = {
            "stretch": mark.section,
            "order": mark.order,
            "counted": mark.counted,
        }  # as tokens out there
        text = json.dumps(fields, separators=(",", ":")).encode()
        tag = self._tag(text)
        return base64.urlsafe_b64encode(tag + _crossed(text, self._stream(tag, len(text)))).decode()

    def mark(self, token: str) -> Mark:
        """Open a token. Raises InvalidRequestError if it is not one of ours for this very call."""
        try:
            sealed = base64.b64decode(token[:_MAX_TOKEN_CHARACTERS], altchars=b"-_", validate=True)
        except (binascii.Error, ValueError) as error:
            raise _bad_token() from error
        tag, crossed = sealed[:_TAG_BYTES], sealed[_TAG_BYTES:]
        text = _crossed(crossed, self._stream(tag, len(crossed)))
        if not hmac.compare_digest(tag, self._tag(text)):
            raise _bad_token()
        fields = json.loads(text)
        return Mark(section=fields["stretch"], order=tuple(fields["order"]), counted=fields["counted"])

    def _tag(self, text: bytes) -> bytes:
        digest = hashlib.blake2b(key=self.key, digest_size=_TAG_BYTES, person=b"page-tag")
        # The length comes first, so that no other division into bound and text has the same tag.
        digest.update(len(self.bound).to_bytes(4, "big") + self.bound.encode() + text)
        return digest.digest()

    def _stream(self, tag: bytes, length: int) -> bytes:
        """Derive a key stream with the tag as nonce; only equal texts have equal tags and so streams."""
        return hashlib.shake_256(self.key + tag).digest(length)


def _crossed(left: bytes, right: bytes) -> bytes:
    return bytes(byte ^ pad for byte, pad in zip(left, right, strict=True))


def _bad_token() -> InvalidRequestError:
    error = FieldError(
        field="query.next_token",
        message="is not a token of this list",
        hint="start again without it; filters must stay the same from page to page",
    )
    return invalid([error])
