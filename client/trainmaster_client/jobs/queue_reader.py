"""Reads the queue from the API again and again, at the least cost: what did not change is not sent again."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trainmaster_client.api import ApiClient, Document, etag_of
from trainmaster_client.errors import InvalidRequestError, TrainmasterClientError
from trainmaster_client.http.calls import Parameter
from trainmaster_client.jobs.job_views import JobView
from trainmaster_client.jobs.start_estimates import StartEstimates, pools_to_ask, start_estimates

ESTIMATES_SECONDS = 60.0
"""Likely starts cost the API a second of CPU, so whoever watches asks for them no more often."""
NEVER = float("-inf")
_LARGEST_PAGE, _OLDER_LARGEST_PAGE = "1000", "100"
"""Jobs that the API gives at once, and that an older stack does."""
_MOST_PAGES = 20
"""Pages that are remembered, those that were read last."""

_FOLLOWED_PAGES = 1000
"""Pages of one list: a server that always has one more is not followed for ever."""
Filters = Mapping[str, Parameter]


def listed_jobs(api: ApiClient, filters: Filters, *, most_pages: int = _FOLLOWED_PAGES) -> Iterator[Document]:
    """Yield the jobs of a list, read a hundred at a time, as every stack gives them, when they are needed."""
    token: str | None = None
    for _ in range(most_pages):
        page = api.jobs(**filters, limit=_OLDER_LARGEST_PAGE, next_token=token)
        yield from page.get("jobs") or ()
        before, token = token, page.get("next_token")
        if not token or token == before:
            return


class QueueReader:
    """Threads may share it.

    Args:
        api: Gives the API client, which a new login may replace.
        monotonic: Seconds of a clock that never goes back.
    """

    def __init__(
        self, api: Callable[[], ApiClient], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._api = api
        self._monotonic = monotonic
        self._size = _LARGEST_PAGE
        self._pages: OrderedDict[tuple[tuple[str, Parameter], ...], Document] = OrderedDict()
        """Pages of earlier looks by their parameters: one that did not change since costs a 304."""
        self._starts: StartEstimates | None = None
        self._asked_at: dict[str, float] = {}
        """Instants of the last estimates by pool."""
        self._using = threading.Lock()

    def first_page(self, filters: Filters) -> Document:
        """Read as many jobs as the API gives by default, or as a filter ``limit`` says."""
        key = tuple(sorted((name, value) for name, value in filters.items() if value is not None))
        with self._using:
            known = self._pages.get(key)
        etag = None if known is None else etag_of(known)
        page = self._api().jobs_unless(etag, **filters) if etag else self._api().jobs(**filters)
        if page is None:
            assert known is not None, "a page is left out only if its etag was sent"
            page = known
        with self._using:
            self._pages[key] = page
            self._pages.move_to_end(key)
            while len(self._pages) > _MOST_PAGES:
                self._pages.popitem(last=False)
        return page

    def whole(self, filters: Filters) -> Document:
        """Read all pages as one answer of the same shape."""
        try:
            return self._whole(filters, self._size)
        except InvalidRequestError:  # an older stack gives a hundred at once
            if self._size == _OLDER_LARGEST_PAGE:
                raise
            answer = self._whole(filters, _OLDER_LARGEST_PAGE)
            self._size = _OLDER_LARGEST_PAGE
            return answer

    def pools(self) -> Sequence[Document]:
        """Read all pools; none if they are not to be had, as a queue is shown without them, too."""
        try:
            pools = self._api().pools().get("pools")
        except TrainmasterClientError:
            return ()
        return [pool for pool in pools if isinstance(pool, dict)] if isinstance(pools, list) else ()

    def starts(self, jobs: Sequence[JobView]) -> StartEstimates | None:
        """Return likely starts, each pool's at most a minute old; None if the stack has none."""
        now, wanted = self._monotonic(), pools_to_ask(jobs)
        with self._using:
            due = [
                pool for pool in wanted if now - self._asked_at.get(pool, float("-inf")) >= ESTIMATES_SECONDS
            ]
            self._asked_at |= dict.fromkeys(due, now)
        if not wanted:
            return self._starts or {}
        if due:
            answer = start_estimates(self._api(), due)
            kept = {key: start for key, start in (self._starts or {}).items() if key[0] not in due}
            self._starts = None if answer is None else {**kept, **answer}
        return self._starts

    def _whole(self, filters: Filters, size: str) -> Document:
        lists: dict[str, list[Any]] = {"jobs": []}
        token: str | None = None
        while True:
            page = self.first_page({**filters, "limit": size, "next_token": token})
            for key in ("jobs", "arrays"):
                if key in page:
                    lists.setdefault(key, []).extend(page[key] or ())
            before, token = token, page.get("next_token")
            if not token or token == before:
                return {**lists, "next_token": None}
