"""Events as they come: each once, none missed, with a bounded memory of those that were seen."""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster_client.api import Document
from trainmaster_client.errors import InvalidRequestError, MalformedViewError
from trainmaster_client.http.answers import printable

OVERLAP = timedelta(minutes=3)
"""Length of time that is read again at each look. An event is as old as its decision, and readable once that
is stored: within the two minutes that an invocation has."""
MOST_REMEMBERED = 100_000
"""Events that are known when they come again; about 20 MB."""
_KEY_BYTES = 8

Ask = Callable[[str, str | None], Document]
"""Reads one page of ``GET /events`` from an instant on, by its token; None for the first page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEvent:
    at: datetime
    kind: str
    team: str
    job: str
    """Name of the job; "" if it is another team's, or the event is about no job."""
    detail: Mapping[str, Any]

    @property
    def text(self) -> str:
        """Say what happened and why, in the event's own words; its values if it has no words."""
        words = [printable(self.detail[key]) for key in ("what", "why") if self.detail.get(key)]
        if words:
            return " ".join(words)
        return ", ".join(f"{printable(key)} {_value(value)}" for key, value in self.detail.items())


def queue_event(document: Document) -> QueueEvent:
    """Raises MalformedViewError."""
    try:
        return QueueEvent(
            at=datetime.fromisoformat(document["at"]),
            kind=printable(document["kind"]),
            team=printable(document.get("team")),
            job=printable(document.get("job")),
            detail=dict(document.get("detail") or {}),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error


class EventFeed:
    """Reads on from the last event. A page that was refused is asked for again by the next call.

    Args:
        ask: Asks the API.
        since: No event before it is given.
    """

    def __init__(self, ask: Ask, *, since: datetime) -> None:
        self._ask = ask
        self._floor = since
        self._newest = since
        self._walk_from = since
        self._token: str | None = None
        self._seen: OrderedDict[int, datetime] = OrderedDict()
        """Events by their digest, in the order in which they came. In a plain dict, finding the first key
        walks over all keys that were deleted before it."""

    @property
    def remembered(self) -> int:
        return len(self._seen)

    def new_events(self) -> Iterator[tuple[QueueEvent, Document]]:
        """Yield the events that this feed did not give yet, the oldest first, a page at a time."""
        if self._token is None:
            self._walk_from = max(self._floor, self._newest - OVERLAP)
        while True:
            page = self._page()
            for document in page.get("events") or ():
                event = queue_event(document)
                if self._is_new(event, document):
                    yield event, document
            token = page.get("next_token")
            if not token or token == self._token:
                self._token = None
                return
            self._token = str(token)

    def _page(self) -> Document:
        try:
            return self._ask(_text(self._walk_from), self._token)
        except InvalidRequestError:
            if self._token is None:
                raise
            self._token = None  # it was for a while only: from before the newest one on again
            self._walk_from = max(self._floor, self._newest - OVERLAP)
            return self._ask(_text(self._walk_from), None)

    def _is_new(self, event: QueueEvent, document: Document) -> bool:
        key = _key(document)
        if key in self._seen:
            return False
        self._seen[key] = event.at
        self._newest = max(self._newest, event.at)
        self._forget()
        return True

    def _forget(self) -> None:
        """Forget events that will not be read again; beyond the bound the oldest, for good."""
        while self._seen:
            key, at = next(iter(self._seen.items()))
            if len(self._seen) > MOST_REMEMBERED:
                self._floor = max(self._floor, at + timedelta(microseconds=1))
            elif at >= self._newest - OVERLAP:
                return
            del self._seen[key]


def _key(document: Document) -> int:
    text = json.dumps(document, sort_keys=True).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=_KEY_BYTES).digest())


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _value(value: Any) -> str:  # noqa: ANN401  JSON
    return printable(value if isinstance(value, str | int | float) else json.dumps(value))
