"""Looks at jobs that are waited for: alone for one wait, one list for all waits of a process on one queue.

A wait that is due takes what another one has read since its own last look, or reads the list for them all.
Each counts its interval from when that was read, so no news reaches it later than if it were alone.
"""

import os
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Protocol
from weakref import WeakValueDictionary

from trainmaster_client.api import Document, etag_of
from trainmaster_client.errors import PASSING_ERRORS, TrainmasterClientError
from trainmaster_client.http.calls import Parameter
from trainmaster_client.jobs.job_views import LIVE_STATES

MOST_PAGES = 3
LARGEST_PAGE = 1000
ROWS_PER_WAIT = 25
"""Length of a page: two waits need not list a thousand jobs of others."""

WHOLE_SECONDS = 300.0
"""A live job is read with its attempts after that time at the latest: a list has no news of those."""

_COMPUTED = ("position", "ahead_at_least", "waiting", "effective_priority", "fair_share", "cost_usd")
"""Keys that change without a line in a job's history; a list has them too."""
_STORED = (
    "state",
    "attempt",
    "priority",
    "reason",
    "started_at",
    "ended_at",
    "training_since",
    "preemptions",
    "retries",
)
"""A change of any of these is news: the job is read with its history."""


class LooksApi(Protocol):
    """The calls of the API client that a look makes."""

    @property
    def api_url(self) -> str: ...

    def caller_key(self) -> str: ...

    def job(self, name: str, *, estimate: bool = True) -> Document: ...

    def jobs_unless(self, etag: str, **filters: Parameter) -> Document | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A reading of the list for all waits."""

    at: float
    rows: Mapping[str, Document] = field(default_factory=dict)
    """Jobs of the list by name; a job that is not among them is read alone."""
    error: TrainmasterClientError | None = None
    """Error that may pass by itself and kept the list from being read; None if it was read."""


class SharedLooks:
    """The waits of one process that ask one API as one caller. Threads may share it."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._joining = threading.Lock()
        self._reading = threading.Lock()
        self._waits: set[JobLooks] = set()
        self._last = Reading(at=float("-inf"))
        self._pages: dict[str | None, Document] = {}
        self._asked: dict[str, Parameter] = {}
        self._is_refused = False

    def join(self, looks: "JobLooks") -> None:
        with self._joining:
            self._waits.add(looks)

    def leave(self, looks: "JobLooks") -> None:
        with self._joining:
            self._waits.discard(looks)

    @property
    def is_worth_it(self) -> bool:
        """Tell whether looks are shared: not for a lone wait, nor if the API cannot list as it is asked."""
        return len(self._waits) > 1 and not self._is_refused

    def newer_than(self, at: float, api: LooksApi) -> Reading:
        """Return the list as it was read after ``at``, by whichever wait needed it first.

        Other waits are kept waiting while it is read, so that it is read once.
        """
        with self._reading:
            if self._last.at <= at:
                self._last = self._read(api)
            return self._last

    def _read(self, api: LooksApi) -> Reading:
        at = self._monotonic()
        try:
            return Reading(at=at, rows=self._listed(api))
        except TrainmasterClientError as error:
            if isinstance(error, PASSING_ERRORS) or error.may_be_renewed:
                return Reading(at=at, error=error)
            self._is_refused = True  # an older API, or a caller without a list: each looks alone
            return Reading(at=at)

    def _listed(self, api: LooksApi) -> dict[str, Document]:
        with self._joining:
            wanted = [wait.document for wait in self._waits if wait.document]
        filters = list_filters(wanted)
        known = self._pages if filters == self._asked else {}
        rows, pages = dict[str, Document](), dict[str | None, Document]()
        token: str | None = None
        for _ in range(MOST_PAGES):
            before = known.get(token)
            page = api.jobs_unless(etag_of(before), **filters, next_token=token)
            page = page if page is not None else before or {}
            pages[token] = page
            rows |= {str(row["name"]): row for row in page.get("jobs") or () if row.get("name")}
            token = page.get("next_token")
            if not token or token in pages or all(job.get("name") in rows for job in wanted):
                break
        self._asked, self._pages = filters, pages
        return rows


def list_filters(wanted: list[Document]) -> dict[str, Parameter]:
    """Narrow the list to what all these jobs have in common."""
    pools, teams = ({job.get(key) for job in wanted} for key in ("pool", "team"))
    filters: dict[str, Parameter] = {"limit": min(LARGEST_PAGE, max(2, len(wanted)) * ROWS_PER_WAIT)}
    for key, values in (("pool", pools), ("team", teams)):
        if len(values) == 1 and (value := values.pop()):
            filters[key] = str(value)
    names = sorted(str(job.get("name") or "") for job in wanted) or [""]
    same = takewhile(lambda pair: pair[0] == pair[1], zip(names[0], names[-1], strict=False))
    if prefix := "".join(letter for letter, _ in same):
        filters["name_prefix"] = prefix
    return filters


class JobLooks:
    """The looks of one wait at its job.

    Args:
        api: Who asks.
        name: Of the job, or of one of its attempts.
        monotonic: Seconds of a clock that never goes back.
    """

    def __init__(
        self,
        api: LooksApi,
        name: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._name = name
        self._shared: SharedLooks | None = None
        self._monotonic = monotonic
        self._seen_at = self._whole_at = self._taken_at = float("-inf")
        self.document: Document = {}
        """The job's last answer, with attempts and history; empty before the first look."""

    def look(self) -> Document:
        """Give the job as it is now, or as another wait has read it since the last look.

        Raises what the API client raises.
        """
        row = self._row()
        if row is None or self._is_news(row):
            return self.alone()
        self.document = {**self.document, **{key: row.get(key) for key in _COMPUTED}}
        return self.document

    def alone(self, *, estimate: bool = False) -> Document:
        """Read the job's own answer."""
        at = self._monotonic()
        self.document = self._api.job(self._name, estimate=estimate)
        self._seen_at = self._whole_at = at
        if self._shared is None:  # now there are credentials that were good
            self._shared = _group_of(self._api, self._monotonic)
            self._shared.join(self)
        return self.document

    def leave(self) -> None:
        """End the wait."""
        if self._shared is not None:
            self._shared.leave(self)

    def age(self) -> float:
        """Return the seconds since the document was read."""
        return self._monotonic() - self._seen_at

    def _row(self) -> Document | None:
        if self._shared is None or not self._shared.is_worth_it:
            return None
        reading = self._shared.newer_than(max(self._seen_at, self._taken_at), self._api)
        self._taken_at = reading.at
        if reading.error is not None:
            raise reading.error.with_traceback(None)  # each would add its own to the one that all raise
        row = reading.rows.get(str(self.document.get("name")))
        if row is not None:
            self._seen_at = reading.at
        return row

    def _is_news(self, row: Document) -> bool:
        is_old = self._monotonic() - self._whole_at >= WHOLE_SECONDS
        changed = any(row.get(key) != self.document.get(key) for key in _STORED if key in row)
        return changed or (is_old and row.get("state") in LIVE_STATES)


_GROUPS: "WeakValueDictionary[tuple[int, str, str], SharedLooks]" = WeakValueDictionary()
"""Groups of waits by process, API and caller: a forked process has waits of its own."""
_GROUPING = threading.Lock()


@contextmanager
def looks_at(
    api: LooksApi, name: str, *, monotonic: Callable[[], float] = time.monotonic
) -> Generator[JobLooks]:
    """Look at a job for the time of a wait, together with the other waits of this process."""
    looks = JobLooks(api, name, monotonic=monotonic)
    try:
        yield looks
    finally:
        looks.leave()


def _group_of(api: LooksApi, monotonic: Callable[[], float]) -> SharedLooks:
    with _GROUPING:
        key = (os.getpid(), api.api_url, api.caller_key())
        return _GROUPS.setdefault(key, SharedLooks(monotonic=monotonic))
