"""Handles on arrays: one handle for many tasks, with a wait, results, and changes of all or some of them."""

import time
from collections.abc import Callable
from html import escape
from typing import Any

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.handles.job_actions import Explanation
from trainmaster_client.handles.job_handles import Job, notebook_display
from trainmaster_client.hooks.array_results import ArrayResults, read_results
from trainmaster_client.jobs.array_views import ArrayView, array_view
from trainmaster_client.jobs.array_watch import ArrayLooks, watched_array
from trainmaster_client.jobs.look_intervals import FIRST_POLL_SECONDS

MakeClient = Callable[[str], Any]
"""Makes a client of a service without our handlers."""


class JobArray:
    """An array of the queue. ``view`` is its state when it was last read."""

    def __init__(
        self,
        api: ApiClient,
        document: Document,
        *,
        make_client: MakeClient,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._api = api
        self._make_client = make_client
        self._sleep = sleep
        self.view: ArrayView = array_view(document)

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def state(self) -> str:
        """State when the array was last read; ``refresh()`` reads it again."""
        return self.view.state

    def refresh(self) -> "JobArray":
        """Look at the array again. Raises what the API client raises; the last view is kept then."""
        return self._taken(self._api.array(self.name))

    def wait(self, timeout: float | None = None) -> ArrayView:
        """Wait until all tasks have ended, or for ``timeout`` seconds; return the last view.

        It prints a line whenever the counts change; in a notebook a bar is drawn again in place. Tasks that
        failed are no error here: look at ``state`` and ``failure`` of the answer.
        """
        looks, display = ArrayLooks(self._api, self.name), notebook_display(self)

        def show(line: str) -> None:
            self.view = looks.view
            if display is None:
                print(line, flush=True)
            else:
                display.update(self)

        watch = watched_array(looks, say=show, first_poll=FIRST_POLL_SECONDS, timeout=timeout)
        watch.sleep = self._sleep
        watch.until_final()
        self.view = looks.view
        return self.view

    def results(self, by: str | None = None, *, largest: bool = False) -> ArrayResults:
        """Read values, final metrics, state and cost of each task, as they are now.

        Args:
            by: A metric to sort by, the best task first; None: by index.
            largest: Whether the largest value is the best; else the smallest.
        """
        results = read_results(self._api, self.name, make_client=lambda: self._make_client("sagemaker"))
        return results if by is None else results.best_first(by, largest=largest)

    def rerun(self, tasks: str = "failed", *, name: str | None = None, fresh: bool = False) -> "JobArray":
        """Submit tasks that ended again, with their values, and give the handle on the new array.

        Args:
            tasks: ``"failed"``, or indices such as ``"3-7"``.
            name: Its name; None: this one's with ``-again`` and a number.
            fresh: Start from nothing. Else each task resumes from the checkpoints of its index.
        """
        body: dict[str, Any] = {"tasks": tasks}
        body |= {key: value for key, value in (("name", name), ("fresh", fresh or None)) if value is not None}
        answer = self._api.rerun_array(self.name, body)
        return JobArray(
            self._api, answer.get("array") or {}, make_client=self._make_client, sleep=self._sleep
        )

    def cancel(self, tasks: str | None = None) -> "JobArray":
        """Cancel all tasks that have not ended, or those of these indices: ``"3-7"``."""
        return self._taken(self._api.cancel_array(self.name, tasks=tasks))

    def hold(self) -> "JobArray":
        """Keep its waiting tasks from starting until it is released; those that run go on."""
        return self._taken(self._api.change_array(self.name, {"held": True}))

    def release(self) -> "JobArray":
        return self._taken(self._api.change_array(self.name, {"held": False}))

    def priority(self, number: int) -> "JobArray":
        """Change the priority of all its tasks to 0 to 1000, up to the ceiling of the team."""
        return self._taken(self._api.change_array(self.name, {"priority": number}))

    def throttle(self, at_most: int | None) -> "JobArray":
        """Let at most so many tasks run at once; None: as many as fit. Tasks that run go on."""
        return self._taken(self._api.change_array(self.name, {"at_most": at_most}))

    def task(self, index: int) -> Job:
        """Give the handle on one task. Raises NotFoundError if the array has no such index."""
        if isinstance(index, bool) or index < 0:
            raise InvalidArgumentError(f"{index!r} is not an index.", hint="Give a whole number from 0 on.")
        document = self._api.job(f"{self.name}-{index}", estimate=False)
        return Job(self._api, document, make_logs=lambda: self._make_client("logs"))

    def why(self) -> Explanation:
        """Explain in a line where its tasks are, and why no further one starts."""
        return Explanation(self.refresh().view.line)

    def _taken(self, document: Document) -> "JobArray":
        self.view = array_view(document)
        return self

    def _repr_html_(self) -> str:
        return picture(self.view)

    def __repr__(self) -> str:
        return self.view.line


def picture(array: ArrayView) -> str:
    """Draw an array as a bar of its ended tasks with a line of its counts, as HTML."""
    ended = array.tasks.completed + array.tasks.failed + array.tasks.stopped
    bar = f'<progress value="{ended}" max="{max(array.tasks.total, 1)}"></progress>'
    return f"<div>{bar} {escape(array.line)}</div>"
