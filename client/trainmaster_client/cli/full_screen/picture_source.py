"""Reads what the screen shows from the API and CloudWatch Logs, and makes its changes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from trainmaster_client.api import Document, etag_of
from trainmaster_client.cli.job_logs import title
from trainmaster_client.cli.queue_view import QueueView
from trainmaster_client.cli.silences import Connection
from trainmaster_client.errors import InvalidRequestError, TrainmasterClientError
from trainmaster_client.jobs.instants import api_time
from trainmaster_client.jobs.job_views import job_view
from trainmaster_client.jobs.newer_routes import newer_route
from trainmaster_client.jobs.timelines import Timeline, timeline
from trainmaster_client.logs.joined_attempts import JobLogs, Selection, cleaned, host_count

LOG_TAIL = 500
"""Lines that a log begins with."""
_LARGEST_PAGE, _OLDER_LARGEST_PAGE = "1000", "100"
_MOST_PAGES = 50


@dataclass(slots=True, kw_only=True)
class PictureSource:
    """Its methods may be called in any thread. Each raises TrainmasterClientError."""

    connection: Connection
    region: str
    logs_client: Callable[[], Any]
    _page: str = field(default=_LARGEST_PAGE, init=False)
    _known: dict[tuple[str, str | None], Document] = field(default_factory=dict, init=False)
    """Pages of the last look by size and token: one that did not change since costs a 304."""

    def queue(self) -> QueueView:
        view = QueueView(document={"jobs": self._jobs()}, pools=self.pools())
        assert len(view.jobs) == len(view.document["jobs"])  # parsed here, not where it is drawn
        return view

    def pools(self) -> list[Document]:
        return list(self._asked(self._pools).get("pools") or ())

    def timeline(self, since: datetime, until: datetime) -> Timeline:
        return timeline(self._asked(lambda: self._timeline(since, until)))

    def job(self, name: str) -> Document:
        return self._asked(lambda: self.connection.api.job(name))

    def cancel(self, name: str) -> Document:
        return self._asked(lambda: self.connection.api.cancel(name))

    def change(self, name: str, *, priority: int | None = None, held: bool | None = None) -> Document:
        return self._asked(lambda: self.connection.api.change(name, priority=priority, held=held))

    def log(self) -> "LogReader":
        return LogReader(JobLogs(self.logs_client(), Selection(tail=LOG_TAIL)))

    def _pools(self) -> Document:
        return self.connection.api.pools()

    def _timeline(self, since: datetime, until: datetime) -> Document:
        api = self.connection.api
        with newer_route(api, "/timeline"):
            return api.timeline(start=api_time(since), end=api_time(until))

    def _jobs(self) -> list[Any]:
        try:
            return self._whole_queue(self._page)
        except InvalidRequestError:  # an older stack gives a hundred at once
            if self._page == _OLDER_LARGEST_PAGE:
                raise
            self._page = _OLDER_LARGEST_PAGE
            return self._whole_queue(self._page)

    def _whole_queue(self, size: str) -> list[Any]:
        jobs: list[Any] = []
        token: str | None = None
        before, self._known = self._known, {}
        for _ in range(_MOST_PAGES):
            page = self._asked(partial(self._page_of_jobs, size, token, before.get((size, token))))
            self._known[size, token] = page
            jobs += page.get("jobs") or ()
            token = page.get("next_token")
            if not token:
                break
        return jobs

    def _page_of_jobs(self, size: str, token: str | None, known: Document | None) -> Document:
        api = self.connection.api
        if known is None or not (etag := etag_of(known)):
            return api.jobs(limit=size, next_token=token)
        page = api.jobs_unless(etag, limit=size, next_token=token)
        return known if page is None else page

    def _asked(self, call: Callable[[], Document]) -> Document:
        try:
            return call()
        except TrainmasterClientError as error:
            self.connection.lost(error)
            raise


class LogReader:
    """Reads the new lines of one job's log, as they are shown."""

    def __init__(self, logs: JobLogs) -> None:
        self._logs = logs
        self._attempt: int | None = None

    def new_lines(self, document: Document) -> list[str]:
        job, names_hosts = job_view(document), host_count(document) > 1
        shown = []
        for line in self._logs.lines(document):
            if line.attempt != self._attempt:
                if self._attempt is not None or line.attempt > 0:
                    shown.append(title(line.attempt, job.attempts))
                self._attempt = line.attempt
            text = cleaned(line.text)
            shown.append(f"{line.host} | {text}" if names_hosts else text)
        return shown
