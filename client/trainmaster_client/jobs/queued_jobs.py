"""Which training jobs belong to jobs of the queue: asked of the API, kept a moment, patient with silence."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.errors import (
    PASSING_ERRORS,
    ForbiddenError,
    InvalidArgumentError,
    NotFoundError,
    TrainmasterClientError,
)
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.jobs.array_views import is_about_array
from trainmaster_client.jobs.job_views import FINAL_STATES, Attempt, job_view
from trainmaster_client.jobs.look_intervals import look_interval

MOST_KEPT = 500
"""A description with its job and request takes some 40 kB in memory."""

Kept = TypeVar("Kept")

FRESH_SECONDS = 1.0
"""A job is asked for once in that time, however often a loop over statuses and log streams looks."""

FIRST_ABSENCE_SECONDS = 2.0

LONGEST_ABSENCE_SECONDS = 60.0
"""A name that the queue does not know is asked for again after 2 s, 4 s ... 60 s: another may submit it."""

SILENCE_SECONDS = 15 * 60
"""Seconds the last answer stands in for an API that gives none."""


class RecentlyUsed(Generic[Kept]):
    """Values by name; beyond ``most`` the least recently used is dropped. Threads may share it.

    All that is kept here can be read again.
    """

    def __init__(self, *, most: int = MOST_KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._changing = threading.Lock()

    def get(self, name: str) -> Kept | None:
        with self._changing:
            if name in self._kept:
                self._kept.move_to_end(name)
            return self._kept.get(name)

    def keep(self, name: str, value: Kept) -> None:
        with self._changing:
            self._kept[name] = value
            self._kept.move_to_end(name)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def take(self, name: str) -> Kept | None:
        """Return the value and keep it no longer."""
        with self._changing:
            return self._kept.pop(name, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    document: Document | None
    at: float
    """Clock reading at which it was answered."""
    fresh_until: float
    absence: float = 0.0
    """Seconds that this answer of "not in the queue" is kept."""


class QueuedJobs:
    """One caller's view of the queue. Threads may share it.

    Args:
        api: The API of the queue.
        read: Reads what has a name; None: its job. Arrays are kept in the same way.
        monotonic: Seconds of a clock that never goes back.
    """

    def __init__(
        self,
        api: ApiClient,
        *,
        read: Callable[[str], Document] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._read = read or partial(api.job, estimate=False)
        self._monotonic = monotonic
        self._known = RecentlyUsed[_Known]()
        self._requests = RecentlyUsed[Document]()
        self._of_arrays = RecentlyUsed[bool]()

    def find(self, name: str) -> Document | None:
        """Return the job, with attempts and history, that a training job's name belongs to.

        None if it is not in the queue, forgotten by it, or not visible to this caller; then SageMaker is to
        be asked. Raises what the API client raises; for a job that was seen before, a missing answer is an
        error only after 15 minutes.
        """
        known = self._known.get(name)
        if known is not None and self._monotonic() < known.fresh_until:
            return known.document
        try:
            return self._found(name, self._read(name))
        except (NotFoundError, InvalidArgumentError, ForbiddenError) as error:
            if error.trouble is Trouble.EXPIRED_CREDENTIALS:  # that says nothing of the job
                raise
            if isinstance(error, NotFoundError) and is_about_array(error):
                self._of_arrays.keep(name, True)
            if known is not None and known.document is not None and not self._is_forgotten(known, error):
                raise
            return self._absent(name, known)
        except PASSING_ERRORS:
            if known is None or known.document is None or self._is_stale(known):
                raise
            return known.document

    def is_array(self, name: str) -> bool:
        """Tell whether an array has the name, as far as ``find`` was told so: it never becomes a job's."""
        return self._of_arrays.get(name) is not None

    def attempts(self, name: str) -> tuple[Attempt, ...]:
        """Return the attempts with a training job, of the job that was submitted under this very name.

        If the API cannot be called it returns none: logs and metrics can be read without it.
        """
        try:
            document = self.find(name)
            job = None if document is None else job_view(document)
        except TrainmasterClientError:
            return ()
        if job is None or job.name != name:
            return ()
        return tuple(attempt for attempt in job.attempts if attempt.training_job_name)

    def request(self, name: str) -> Document:
        """Return the CreateTrainingJob request as submitted, of a job that ``find`` found.

        It never changes.
        """
        known = self._requests.get(name)
        if known is not None:
            return known
        request: Document = self._api.job(name, estimate=False, request=True).get("request") or {}
        self._requests.keep(name, request)
        return request

    def submitted(self, document: Document) -> None:
        """Note a job that this process submitted or changed; it is read again at the next look."""
        name, now = str(document.get("name")), self._monotonic()
        before = self._known.get(name)
        whole = {**((before and before.document) or {}), **document}
        self._known.keep(name, _Known(document=whole, at=now, fresh_until=now))

    def _found(self, name: str, document: Document) -> Document:
        """Keep the answer for a moment; far from its turn for longer, as a wait of our own would."""
        now = self._monotonic()
        fresh = look_interval(job_view(document), quiet=0, first=FRESH_SECONDS)
        self._known.keep(name, _Known(document=document, at=now, fresh_until=now + fresh))
        return document

    def _absent(self, name: str, before: _Known | None) -> Document | None:
        """Note that a name is not in the queue, unless another thread submitted the job meanwhile."""
        latest = self._known.get(name)
        if latest is not before and latest is not None and latest.document is not None:
            return latest.document
        now = self._monotonic()
        absence = min(LONGEST_ABSENCE_SECONDS, _doubled(before))
        self._known.keep(name, _Known(document=None, at=now, fresh_until=now + absence, absence=absence))
        return None

    def _is_forgotten(self, known: _Known, error: Exception) -> bool:
        """Tell whether the queue forgot a job, as it does some time after its end.

        Until then a seen job stays.
        """
        is_final = (known.document or {}).get("state") in FINAL_STATES
        return isinstance(error, NotFoundError) and (is_final or self._is_stale(known))

    def _is_stale(self, known: _Known) -> bool:
        return self._monotonic() - known.at >= SILENCE_SECONDS


def _doubled(before: _Known | None) -> float:
    return before.absence * 2 if before and before.absence else FIRST_ABSENCE_SECONDS
