"""Actions of an owner on a job's handle: each method is a command of the command line."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.jobs.dependency_trees import DependencyTree
from trainmaster_client.jobs.instants import instant
from trainmaster_client.jobs.job_conditions import Conditions, condition_texts
from trainmaster_client.jobs.resubmission import request_again
from trainmaster_client.jobs.why_lines import why_lines
from trainmaster_client.logs.joined_attempts import JobLogs, LogLine, Selection, cleaned
from trainmaster_client.logs.log_streams import HOST_PREFIX


class Lines(tuple[LogLine, ...]):
    """Lines of a log. Printed, or shown by a notebook, they are text; an escape sequence does nothing."""

    __slots__ = ()

    def __str__(self) -> str:
        names_hosts = len({line.host for line in self}) > 1
        return "\n".join(
            f"{line.host} | {cleaned(line.text)}" if names_hosts else cleaned(line.text) for line in self
        )

    __repr__ = __str__


class Explanation(str):
    """A text of several lines that a notebook shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class JobActions(ABC):
    """Changes and questions of one job, as the API client takes them; the view follows each change."""

    _api: ApiClient
    _make_logs: Callable[[], Any]

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that was submitted."""

    @abstractmethod
    def _take(self, document: Document) -> None:
        """Keep what the API answered as what was last seen of the job."""

    @abstractmethod
    def _of(self, document: Document) -> Self:
        """Make a handle on another job, for the same caller."""

    def cancel(self) -> Self:
        """Take the job out of the queue, or stop it if it runs; it is not requeued.

        Raises:
            ConflictError: It has ended.
        """
        self._take(self._api.cancel(self.name))
        return self

    def priority(self, number: int) -> Self:
        """Change the priority to 0 to 1000, up to the ceiling of the team; the job keeps its age."""
        self._take(self._api.change(self.name, priority=number))
        return self

    def hold(self) -> Self:
        """Hold a waiting job until it is released.

        Raises:
            ConflictError: It does not wait.
        """
        self._take(self._api.change(self.name, held=True))
        return self

    def release(self) -> Self:
        """Release a held job: it waits in the queue again."""
        self._take(self._api.change(self.name, held=False))
        return self

    def wait_for(self, after: Conditions | None) -> Self:
        """Change the jobs that it waits for, as long as it waits for them; None: it waits for none.

        Raises:
            ConflictError: It waits for no other job any more.
        """
        text = "" if after is None else " ".join(condition_texts(after))
        self._take(self._api.change(self.name, after=text))
        return self

    def tree(self) -> Explanation:
        """Draw the jobs that it waits for and those that wait for it, with their states."""
        return Explanation("\n".join(DependencyTree(api=self._api, now=datetime.now(UTC)).lines(self.name)))

    def why(self) -> Explanation:
        """Explain the wait: who uses its instances, who is ahead, when it may start, what would help."""
        document = self._api.job(self.name)
        self._take(document)
        return Explanation("\n".join(why_lines(self._api, document, now=datetime.now(UTC))))

    def logs(
        self,
        *,
        attempt: int | None = None,
        host: int | None = None,
        since: datetime | timedelta | str | None = None,
        tail: int | None = None,
    ) -> Lines:
        """Read what the job has printed so far, attempt after attempt.

        Args:
            attempt: Only this attempt; 0 is the first.
            host: Only host algo-N.
            since: An instant, a length of time before now, or either as text, such as ``"10m"``.
            tail: Only the last so many lines.

        Raises:
            LogsUnreadableError: CloudWatch Logs does not let this caller read them, or does not answer.
        """
        document = self._api.job(self.name, estimate=False)
        self._take(document)
        selection = Selection(
            attempt=attempt,
            host=None if host is None else f"{HOST_PREFIX}{host}",
            since=_since(since, now=datetime.now(UTC)),
            tail=tail,
        )
        return Lines(JobLogs(self._make_logs(), selection).lines(document))

    def resubmit(self, name: str | None = None) -> Self:
        """Submit the job's request again under another name, and give the handle on the new job.

        Args:
            name: The new name; None: the old one with the time, as in ``nightly-20261126-031500``.
        """
        request = request_again(self._api, self.name, name=name, now=datetime.now(UTC))
        return self._of(self._api.add_job(request).get("job") or {})


def _since(given: datetime | timedelta | str | None, *, now: datetime) -> datetime | None:
    if isinstance(given, str):
        return instant(given, now=now, option="since")
    if isinstance(given, timedelta):
        return now - given
    return given
