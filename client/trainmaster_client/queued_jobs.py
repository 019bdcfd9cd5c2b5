"""Which training jobs belong to jobs of the queue: asked of the API, kept a moment, patient with silence."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.errors import (
    ApiFailedError,
    ApiUnreachableError,
    ForbiddenError,
    InvalidArgumentError,
    NotFoundError,
    TooManyRequestsError,
)

FRESH_SECONDS = 1.0
"""A job is asked for once in that time, however often a loop over statuses and log streams looks."""
FIRST_ABSENCE_SECONDS = 2.0
LONGEST_ABSENCE_SECONDS = 60.0
"""A name that the queue does not know is asked for again after 2 s, 4 s ... 60 s: another may submit it."""
SILENCE_SECONDS = 15 * 60
"""How long the last answer stands in for an API that gives none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    document: Document | None
    at: float
    """When it was answered."""
    fresh_until: float
    absence: float = 0.0
    """Seconds that this answer of "not in the queue" is kept."""


class QueuedJobs:
    """One caller's view of the queue.

    Args:
        monotonic: Seconds of a clock that never goes back.
    """

    def __init__(self, api: ApiClient, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._monotonic = monotonic
        self._known: dict[str, _Known] = {}
        self._requests: dict[str, Document] = {}

    def find(self, name: str) -> Document | None:
        """The job, with attempts and history, that a training job's name belongs to.

        None: not in the queue, or of nobody this caller may see; then SageMaker is to be asked. Raises what
        the API client raises; of a job that was seen before, no answer is an error only after 15 minutes.
        """
        known = self._known.get(name)
        if known is not None and self._monotonic() < known.fresh_until:
            return known.document
        try:
            return self._keep(name, self._api.job(name, estimate=False))
        except (NotFoundError, InvalidArgumentError, ForbiddenError):
            if known is not None and known.document is not None:
                raise
            return self._keep(name, None)
        except (ApiUnreachableError, ApiFailedError, TooManyRequestsError):
            if known is None or known.document is None or self._is_stale(known):
                raise
            return known.document

    def request(self, name: str) -> Document:
        """The CreateTrainingJob request as submitted, of a job that ``find`` found. It never changes."""
        if name not in self._requests:
            answer = self._api.job(name, estimate=False, request=True)
            self._requests[name] = answer.get("request") or {}
        return self._requests[name]

    def submitted(self, document: Document) -> None:
        """This process submitted or changed the job: it is known, and asked for again at the next look."""
        name, now = str(document.get("name")), self._monotonic()
        before = self._known.get(name)
        whole = {**((before and before.document) or {}), **document}
        self._known[name] = _Known(document=whole, at=now, fresh_until=now)

    def _keep(self, name: str, document: Document | None) -> Document | None:
        now = self._monotonic()
        absence = 0.0 if document else min(LONGEST_ABSENCE_SECONDS, _doubled(self._known.get(name)))
        fresh = FRESH_SECONDS if document else absence
        self._known[name] = _Known(document=document, at=now, fresh_until=now + fresh, absence=absence)
        return document

    def _is_stale(self, known: _Known) -> bool:
        return self._monotonic() - known.at >= SILENCE_SECONDS


def _doubled(before: _Known | None) -> float:
    return before.absence * 2 if before and before.absence else FIRST_ABSENCE_SECONDS
