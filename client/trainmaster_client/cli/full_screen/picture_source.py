"""Reads what the screen shows from the API and CloudWatch Logs, and makes its changes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trainmaster_client.api import Document
from trainmaster_client.cli.job_logs import title
from trainmaster_client.cli.silences import Connection
from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.jobs.instants import api_time
from trainmaster_client.jobs.job_views import job_view
from trainmaster_client.jobs.newer_routes import newer_route
from trainmaster_client.jobs.queue_reader import QueueReader
from trainmaster_client.jobs.timelines import Timeline, timeline
from trainmaster_client.logs.joined_attempts import JobLogs, Selection, cleaned, host_count
from trainmaster_client.views.queue_model import QueueAnswers

LOG_TAIL = 500
"""Lines that a log begins with."""


@dataclass(slots=True, kw_only=True)
class PictureSource:
    """Its methods may be called in any thread. Each raises TrainmasterClientError."""

    connection: Connection
    region: str
    logs_client: Callable[[], Any]
    _reader: QueueReader = field(init=False)

    def __post_init__(self) -> None:
        self._reader = QueueReader(lambda: self.connection.api)

    def queue(self) -> QueueAnswers:
        answers = QueueAnswers(document=self._asked(lambda: self._reader.whole({})), pools=self.pools())
        assert len(answers.jobs) == len(answers.document["jobs"])  # parsed here, not where it is drawn
        return answers

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
