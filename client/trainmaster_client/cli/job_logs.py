"""``trainmaster logs``: what a job printed, over all its attempts, and with ``-f`` what it prints."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Annotated, Any

import typer

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.cli.command_options import with_options
from trainmaster_client.cli.connection import aws_client, connect
from trainmaster_client.cli.exit_codes import ExitCode
from trainmaster_client.cli.jobs import JobName
from trainmaster_client.cli.screen import busy, print_json_line, say
from trainmaster_client.errors import LogsExpiredError, LogsUnansweredError, TrainmasterClientError
from trainmaster_client.jobs.instants import instant
from trainmaster_client.jobs.job_views import Attempt, job_view
from trainmaster_client.jobs.look_intervals import FIRST_POLL_SECONDS, poll_seconds
from trainmaster_client.jobs.progress import SILENCE_SECONDS, ExpiryNotice, Progress
from trainmaster_client.jobs.queued_jobs import QueuedJobs
from trainmaster_client.logs.joined_attempts import (
    MOST_TAIL_LINES,
    JobLogs,
    LogLine,
    Selection,
    cleaned,
    host_count,
)
from trainmaster_client.logs.log_streams import HOST_PREFIX

LAST_LINES_SECONDS = 5.0
"""CloudWatch shows a line some seconds after it was printed: so long a job's end is looked at again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFilters:
    """Lines; without anything all of them."""

    attempt: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Only this attempt; 0 is the first.")
    ] = None
    host: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only host algo-N.")] = None
    since: Annotated[
        str | None, typer.Option(metavar="AGO", help="E.g. 90s, 10m, 2h, 1d, or an instant.")
    ] = None
    tail: Annotated[
        int | None, typer.Option(min=1, max=MOST_TAIL_LINES, metavar="N", help="Begin with the last N lines.")
    ] = None


@with_options
def logs(
    job: JobName,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep following until the job has ended.")
    ] = False,
    which: LineFilters,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Show what a job printed, attempt after attempt. With -f the exit code is 1 unless it completed."""
    selection = Selection(
        attempt=which.attempt,
        host=f"{HOST_PREFIX}{which.host}" if which.host else None,
        since=instant(which.since, now=datetime.now(UTC)) if which.since else None,
        tail=which.tail,
    )
    api = connect()
    document = api.job(job, estimate=False)
    reader = JobLogs(aws_client("logs"), selection)
    printer = LogPrinter(as_json=as_json, is_one_host=which.host is not None)

    def nothing_printed() -> None:
        if not printer.has_printed:
            say(_nothing(api.job(job, estimate=False), which))

    def show(seen: Document) -> bool:
        try:
            return printer.show(reader.lines(seen), seen)
        except LogsExpiredError:  # a login in another shell is found by a new session
            reader.read_with(aws_client("logs"))
            return printer.show(reader.lines(seen), seen)

    if follow:
        _follow(job, api, show, at_end=nothing_printed)
    elif not printer.show(_read(reader, document), document):
        say(_nothing(document, which))


def _nothing(document: Document, which: LineFilters) -> str:
    """Say why there are no lines; if an attempt or host does not exist, say which do."""
    job, hosts = job_view(document), host_count(document)
    numbers = [attempt.number for attempt in job.attempts]
    if which.attempt is not None and which.attempt not in numbers:
        known = ", ".join(map(str, numbers)) or "none"
        return f"{job.name} has no attempt {which.attempt} (attempts: {known})."
    if which.host is not None and 0 < hosts < which.host:
        known = f"{HOST_PREFIX}1" if hosts == 1 else f"{HOST_PREFIX}1 to {HOST_PREFIX}{hosts}"
        return f"{job.name} has no host {HOST_PREFIX}{which.host} (hosts: {known})."
    kind = "" if which == LineFilters() else " that matches"
    printed = f"printed nothing{kind}" if job.is_final else f"has printed nothing{kind} yet"
    return f"{job.name} {printed}."


def _read(reader: JobLogs, document: Document) -> Iterator[LogLine]:
    """Read the lines, with a notice while the first one takes long: an attempt may have many hosts."""
    lines = reader.lines(document)
    with busy("Reading the logs"):
        first = next(lines, None)
    return chain([first] if first else [], lines)


def _follow(
    name: str, api: ApiClient, show: Callable[[Document], bool], *, at_end: Callable[[], None]
) -> None:
    queued = QueuedJobs(api)
    try:
        state = follow(lambda: queued.find(name) or api.job(name, estimate=False), show)
    except (KeyboardInterrupt, TrainmasterClientError):
        say(f"No longer following. {name} is not affected; to cancel it: trainmaster cancel {name}")
        raise
    at_end()
    if state != "completed":
        raise typer.Exit(ExitCode.REFUSED)


class _Patience:
    """Continues while CloudWatch Logs gives no answer for a time, or a login has ended.

    What was not shown meanwhile comes when they answer again.
    """

    def __init__(
        self,
        look: Callable[[], Document],
        show: Callable[[Document], bool],
        monotonic: Callable[[], float],
    ) -> None:
        self._look = look
        self._show = show
        self._monotonic = monotonic
        self._expiry = ExpiryNotice()
        self._seen: Document | None = None
        self._expired_since: float | None = None
        self._silent_since: float | None = None

    @property
    def is_silent(self) -> bool:
        return self._silent_since is not None

    def look(self) -> Document:
        """Return the job; while new credentials are awaited, as it was last seen."""
        try:
            document = self._look()
        except TrainmasterClientError as error:
            if self._seen is None or not error.may_be_renewed:
                raise
            self._expired_since = self._since(self._expired_since)
            say("\n".join(self._expiry.lines()))
            return self._seen
        if self._expired_since is not None:
            self._expired_since = None
            self._expiry.is_over()
        self._seen = document
        return document

    def show(self, document: Document) -> bool:
        try:
            shown = self._show(document)
        except LogsUnansweredError as error:
            if self._silent_since is None:
                lines = self._expiry.lines() if error.may_be_renewed else [f"{error} Still trying."]
                say("\n".join(lines))
            self._silent_since = self._since(self._silent_since)
            return False
        self._silent_since = None
        return shown

    def _since(self, before: float | None) -> float:
        """Return when the silence began; raise the error that is being handled if it lasts too long."""
        now = self._monotonic()
        if before is not None and now - before >= SILENCE_SECONDS:
            raise  # noqa: PLE0704  called by handlers alone
        return now if before is None else before


def follow(
    look: Callable[[], Document],
    show: Callable[[Document], bool],
    *,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> str:
    """Show lines until the job is final and its last ones had time to arrive; transitions go to stderr.

    Returns:
        The job's last state.
    """
    progress, news_at, patience = Progress(), monotonic(), _Patience(look, show, monotonic)
    while True:
        document = patience.look()
        job = job_view(document)
        news = "\n".join(progress.lines(job))
        if not job.is_final:
            say(news)
        shown = patience.show(document)
        if job.is_final:  # what it printed comes before its end
            say(news)
        if shown or news:
            news_at = monotonic()
        quiet = monotonic() - news_at
        if job.is_final and quiet >= LAST_LINES_SECONDS and not patience.is_silent:
            return job.state
        sleep(poll_seconds(0 if job.is_final else quiet, first=FIRST_POLL_SECONDS))


class LogPrinter:
    """Prints as lines come, and keeps nothing but where it is."""

    def __init__(self, *, as_json: bool, is_one_host: bool) -> None:
        self._as_json = as_json
        self._texts = LogTexts(is_one_host=is_one_host)
        self._printed = 0

    def show(self, lines: Iterable[LogLine], document: Document) -> bool:
        """Print the lines; return whether there were any."""
        before = self._printed
        if self._as_json:
            for line in lines:
                print_json_line(_document(line))
                self._printed += 1
        else:
            for text in self._texts.of(lines, document):
                print(text)
                self._printed += 1
            sys.stdout.flush()
        return self._printed > before

    @property
    def has_printed(self) -> bool:
        return self._printed > 0


class LogTexts:
    """Writes log lines as people read them: hosts where there are several, a title before an attempt."""

    def __init__(self, *, is_one_host: bool = False) -> None:
        self._is_one_host = is_one_host
        self._attempt: int | None = None

    def of(self, lines: Iterable[LogLine], document: Document) -> Iterator[str]:
        """Yield the lines of the job that the document shows; the very first attempt needs no title."""
        job = job_view(document)
        names_hosts = not self._is_one_host and host_count(document) > 1
        for line in lines:
            if line.attempt != self._attempt:
                if self._attempt is not None or line.attempt > 0:
                    yield title(line.attempt, job.attempts)
                self._attempt = line.attempt
            text = cleaned(line.text)
            yield f"{line.host} | {text}" if names_hosts else text


def log_follower(client: Any, *, tail: int) -> Callable[[Document], list[str]]:  # noqa: ANN401  boto3's
    """Return what gives the new lines of one job's log each time; at first the last ones."""
    logs, texts = JobLogs(client, Selection(tail=tail)), LogTexts()
    return lambda document: list(texts.of(logs.lines(document), document))


def title(number: int, attempts: Iterable[Attempt]) -> str:
    """Write the line between two attempts."""
    by_number = {attempt.number: attempt for attempt in attempts}
    before = by_number.get(number - 1)
    after = f" after {before.why or before.status.lower()}" if before else ""
    name = f", training job {by_number[number].training_job_name}" if number in by_number else ""
    return f"--- attempt {number}{after}{name} ---"


def _document(line: LogLine) -> dict[str, object]:
    at = line.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"attempt": line.attempt, "host": line.host, "at": at, "text": line.text}
