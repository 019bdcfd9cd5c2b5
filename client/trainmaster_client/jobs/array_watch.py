"""Waiting for an array: one line a change of its counts, no logs."""

from collections.abc import Callable
from dataclasses import replace

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.jobs.array_views import ArrayView, array_view
from trainmaster_client.jobs.job_views import JobView, Reason, job_view
from trainmaster_client.jobs.look_intervals import FIRST_POLL_SECONDS
from trainmaster_client.jobs.progress import Progress, Watch


class ArrayLooks:
    """Looks at one array, and keeps the last answer."""

    def __init__(self, api: ApiClient, name: str) -> None:
        self._api = api
        self._name = name
        self.document: Document = {}

    @property
    def view(self) -> ArrayView:
        return array_view(self.document)

    def final_view(self) -> JobView:
        """Return the last view as a job's, with the tasks that failed as the reason of a failure."""
        array, job = self.view, job_view(self.document)
        if array.state != "failed" or not array.failure:
            return job
        return replace(job, reason=Reason(code="failed", message=array.failure))

    def look(self) -> JobView:
        """Read the array; its state, position and reason pace a watch as a job's do."""
        document = self._api.array(self._name)
        view = job_view(document)
        self.document = document
        return view


class ArrayProgress(Progress):
    """Shows a line when an array's counts, state or reason changed since the line before."""

    def __init__(self, looks: ArrayLooks) -> None:
        super().__init__()
        self._looks = looks
        self._last = ""

    def lines(self, job: JobView) -> list[str]:  # noqa: ARG002  the array's own view says more
        line = self._looks.view.line
        is_new, self._last = line != self._last, line
        return [line] if is_new else []


def watched_array(
    looks: ArrayLooks,
    *,
    say: Callable[[str], None],
    first_poll: float = FIRST_POLL_SECONDS,
    timeout: float | None = None,
) -> Watch:
    """Make a watch of an array; its views are those of a job with the array's state.

    Args:
        looks: What is looked through; it has the last answer when the watch has ended.
        say: Shows a line.
        first_poll: Least seconds between two looks.
        timeout: Seconds; None watches until all tasks have ended.
    """
    return Watch(
        look=looks.look, say=say, progress=ArrayProgress(looks), first_poll=first_poll, timeout=timeout
    )
