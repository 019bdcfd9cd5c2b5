"""Log lines as they are shown: a line between attempts, and the host before each where there are several."""

import sys
from collections.abc import Iterable

from trainmaster_client.api import Document
from trainmaster_client.cli.screen import print_json_line
from trainmaster_client.jobs.job_views import Attempt, JobView, job_view
from trainmaster_client.logs.joined_attempts import LogLine
from trainmaster_client.logs.log_text import cleaned, host_count


class LogPrinter:
    """Prints as lines come, and keeps nothing but where it is."""

    def __init__(self, *, as_json: bool, is_one_host: bool) -> None:
        self._as_json = as_json
        self._is_one_host = is_one_host
        self._attempt: int | None = None

    def show(self, lines: Iterable[LogLine], document: Document) -> bool:
        """True when there were any."""
        job = job_view(document)
        names_hosts = not self._is_one_host and host_count(document) > 1
        shown = False
        for line in lines:
            shown = True
            if self._as_json:
                print_json_line(_document(line))
                continue
            if line.attempt != self._attempt:
                self._begin(line.attempt, job)
            print(f"{line.host} | {cleaned(line.text)}" if names_hosts else cleaned(line.text))
        if shown:
            sys.stdout.flush()
        return shown

    def _begin(self, attempt: int, job: JobView) -> None:
        """The first attempt of all needs no title."""
        if self._attempt is not None or attempt > 0:
            print(title(attempt, job.attempts))
        self._attempt = attempt


def title(number: int, attempts: Iterable[Attempt]) -> str:
    """The line between two attempts."""
    by_number = {attempt.number: attempt for attempt in attempts}
    before = by_number.get(number - 1)
    after = f" after {before.why or before.status.lower()}" if before else ""
    name = f", training job {by_number[number].training_job_name}" if number in by_number else ""
    return f"--- attempt {number}{after}{name} ---"


def _document(line: LogLine) -> dict[str, object]:
    at = line.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"attempt": line.attempt, "host": line.host, "at": at, "text": line.text}
