"""Reads the queue from the API again and again, at the least cost: what did not change is not sent again."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainmaster_client.api import ApiClient, Document, etag_of
from trainmaster_client.errors import InvalidRequestError, TrainmasterClientError
from trainmaster_client.http.calls import Parameter
from trainmaster_client.jobs.job_views import JobView
from trainmaster_client.jobs.start_estimates import StartEstimates, start_estimates

ESTIMATES_SECONDS = 60.0
"""Likely starts cost the API a second of CPU, so whoever watches asks for them no more often."""
_LARGEST_PAGE, _OLDER_LARGEST_PAGE = "1000", "100"
"""Jobs that the API gives at once, and that an older stack does."""
_MOST_PAGES = 20
"""Pages that are remembered, those that were read last."""

Filters = Mapping[str, Parameter]


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
        self._starts_at = float("-inf")
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
        """Return likely starts, at most a minute old; None if the stack has none."""
        now = self._monotonic()
        with self._using:
            is_due = now - self._starts_at >= ESTIMATES_SECONDS
            self._starts_at = now if is_due else self._starts_at
        if is_due:
            self._starts = start_estimates(self._api(), jobs)
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
