"""The log lines that ``fit()`` shows while it waits."""

from collections.abc import Callable
from typing import Any

from trainmaster_client.api import Document
from trainmaster_client.errors import LogsUnansweredError, LogsUnreadableError
from trainmaster_client.logs.joined_attempts import JobLogs, LogLine
from trainmaster_client.logs.log_text import cleaned, host_count


class LogTail:
    """A job's new lines, look after look.

    Args:
        make_client: Gives a client for CloudWatch Logs without our hooks; asked when there is an attempt.
    """

    def __init__(self, make_client: Callable[[], Any]) -> None:
        self._make_client = make_client
        self._logs: JobLogs | None = None
        self._is_readable = True
        self._is_answered = True

    def lines(self, document: Document) -> list[str]:
        """With the host before each where the job has several.

        The wait does not depend on the right to read logs: without it one line says so. Lines that
        CloudWatch does not give now come when it answers again.
        """
        if not self._is_readable or not document.get("attempts"):
            return []
        if self._logs is None:
            self._logs = JobLogs(self._make_client())
        found: list[LogLine] = []
        said: list[str] = []
        try:
            found.extend(self._logs.lines(document))  # keeps those before a failure
            self._is_answered = True
        except LogsUnansweredError as error:
            said = [f"No new log lines for now: {error}"] if self._is_answered else []
            self._is_answered = False
        except LogsUnreadableError as error:
            self._is_readable = False
            said = [f"No log lines: {error}"]
        names_hosts = host_count(document) > 1
        shown = [f"{one.host} | {cleaned(one.text)}" if names_hosts else cleaned(one.text) for one in found]
        return [*shown, *said]
