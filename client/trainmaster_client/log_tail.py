"""The log lines that ``fit()`` shows while it waits."""

from collections.abc import Callable
from typing import Any

from trainmaster_client.api import Document
from trainmaster_client.errors import LogsUnreadableError
from trainmaster_client.log_text import cleaned, host_count
from trainmaster_client.logs import JobLogs


class LogTail:
    """A job's new lines, look after look.

    Args:
        make_client: Gives a client for CloudWatch Logs without our hooks; asked when there is an attempt.
    """

    def __init__(self, make_client: Callable[[], Any]) -> None:
        self._make_client = make_client
        self._logs: JobLogs | None = None
        self._is_readable = True

    def lines(self, document: Document) -> list[str]:
        """With the host before each where the job has several.

        The wait does not depend on the right to read logs: without it one line says so.
        """
        if not self._is_readable or not document.get("attempts"):
            return []
        if self._logs is None:
            self._logs = JobLogs(self._make_client())
        try:
            found = self._logs.new_lines(document)
        except LogsUnreadableError as error:
            self._is_readable = False
            return [f"No log lines: {error}"]
        names_hosts = host_count(document) > 1
        return [f"{one.host} | {cleaned(one.text)}" if names_hosts else cleaned(one.text) for one in found]
