"""Handles on jobs of the queue: ``submit``, ``job`` and ``jobs``, with a wait for each.

In Jupyter a handle is its picture, which a wait draws again in place. Elsewhere it is a line, and a wait
prints what ``fit()`` prints. IPython and pandas are used where they are, and never needed.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Generator, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from typing import Any

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.dashboard.job_readers import CurveReader
from trainmaster_client.errors import LogsUnreadableError, TrainmasterClientError
from trainmaster_client.handles.job_actions import JobActions
from trainmaster_client.handles.job_picture import JobPicture, Points, html, text
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.look_intervals import FIRST_POLL_SECONDS
from trainmaster_client.jobs.progress import Progress, Watch, advance
from trainmaster_client.jobs.shared_looks import JobLooks, looks_at
from trainmaster_client.logs.joined_attempts import JobLogs, Selection
from trainmaster_client.views.queue_model import job_rows
from trainmaster_client.views.queue_rows import Row

FRESH_SECONDS = 2.0
"""A handle that is shown again this soon does not ask the API again."""
ESTIMATE_SECONDS = 60.0
"""Seconds between two estimates of one job: each may cost the API two seconds."""
FIRST_HOST = "algo-1"
"""Host whose first rank prints the metric lines."""


class Job(JobActions):
    """A job of the queue, as this caller may see it. ``view`` is its state when it was last read."""

    def __init__(
        self,
        api: ApiClient,
        document: Document,
        *,
        make_logs: Callable[[], Any],
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._api = api
        self._document = document
        self._make_logs = make_logs
        self._monotonic = monotonic
        self._sleep = sleep
        self._looked_at = self._estimated_at = float("-inf")
        self._curves: CurveReader | None = None
        self._likely_start: datetime | None = None
        self._note = ""
        self.view: JobView = job_view(document)

    @property
    def name(self) -> str:
        return str(self._document.get("name") or "")

    @property
    def state(self) -> str:
        """State when the job was last read; ``refresh()`` reads it again."""
        return self.view.state

    def refresh(self) -> "Job":
        """Look at the job again. Raises what the API client raises; the last view is kept then."""
        self._look(estimate=False)
        return self

    def _take(self, document: Document) -> None:
        """Keep the answer to a change, which has no attempts and no history, beside those that were seen."""
        whole = {**self._document, **document}
        self.view = job_view(whole)
        self._document = whole

    def _of(self, document: Document) -> "Job":
        return Job(
            self._api, document, make_logs=self._make_logs, monotonic=self._monotonic, sleep=self._sleep
        )

    def wait(self, timeout: float | None = None) -> JobView:
        """Wait until the job has ended, through all its attempts, or for ``timeout`` seconds.

        Return the last view.

        The job does not depend on the wait: an interrupt ends the wait alone. A job that failed is no error
        here: look at ``state`` and ``why`` of the answer.
        """
        steps = self._steps(timeout)
        while not isinstance(step := advance(steps), JobView):
            self._sleep(step)
        return step

    def __await__(self) -> Generator[Any, None, JobView]:
        """Wait like ``wait()``, without blocking the event loop."""
        return self._awaited().__await__()

    async def _awaited(self) -> JobView:
        steps = self._steps(None)
        while True:
            step = await asyncio.to_thread(advance, steps)
            if isinstance(step, JobView):
                return step
            await asyncio.sleep(step)

    def _steps(self, timeout: float | None) -> Generator[float, None, JobView]:
        screen = notebook_display(self)
        with looks_at(self._api, self.name, monotonic=self._monotonic) as looks:
            watch = Watch(
                look=partial(self._watched, screen, looks),
                say=print if screen is None else _silent,
                progress=Progress(),
                first_poll=FIRST_POLL_SECONDS,
                age=looks.age,
                starts_in=self._starts_in,
                timeout=timeout,
                monotonic=self._monotonic,
            )
            return (yield from watch.steps())

    def _starts_in(self) -> float | None:
        likely = self._likely_start
        return None if likely is None else (likely - datetime.now(UTC)).total_seconds()

    def _watched(self, screen: Any, looks: JobLooks) -> JobView:  # noqa: ANN401  IPython's
        now = self._monotonic()
        if screen is not None and self._wants_estimate(now):
            self._keep(looks.alone(estimate=True), now=now, estimated=True)
        else:
            self._keep(looks.look(), now=now, estimated=False)
        if screen is not None:
            screen.update(self)
        return self.view

    def _look(self, *, estimate: bool) -> None:
        """Read the job, with an estimate of the start only while it waits, and at most once a minute."""
        now = self._monotonic()
        asks = estimate and self._wants_estimate(now)
        self._keep(self._api.job(self.name, estimate=asks), now=now, estimated=asks)

    def _wants_estimate(self, now: float) -> bool:
        return self.view.is_waiting and now - self._estimated_at >= ESTIMATE_SECONDS

    def _keep(self, document: Document, *, now: float, estimated: bool) -> None:
        self.view = job_view(document)  # before the rest: an answer that is none changes nothing
        self._document, self._looked_at = document, now
        if estimated:
            self._estimated_at, self._likely_start = now, _p50(document)

    def _picture(self) -> JobPicture:
        """Make the picture as of now, as far as the job can be read.

        What cannot be is said in the picture.
        """
        self._note = ""
        if self._monotonic() - self._looked_at >= FRESH_SECONDS and not self.view.is_final:
            try:
                self._look(estimate=True)
            except TrainmasterClientError as error:
                self._note = f"as last seen: {error}"
        row, losses = _row(self.view), self._losses()
        return JobPicture(row=row, likely_start=self._likely_start, curves=losses, note=self._note)

    def _losses(self) -> Mapping[int, Points]:
        if not self.view.attempts:
            return {}
        if self._curves is None:
            self._curves = CurveReader(JobLogs(self._make_logs(), Selection(host=FIRST_HOST)))
        try:
            self._curves.look(self._document, now=self._monotonic())
        except LogsUnreadableError as error:
            self._note = self._note or f"the log cannot be read: {error}"
        return {
            number: [(point["step"], point["loss"]) for point in curve.points if "loss" in point]
            for number, curve in self._curves.curves.items()
        }

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ANN401, ARG002
        """Return the forms that IPython may show; the frontend takes the richest that it knows."""
        picture = self._picture()
        return {"text/plain": text(picture), "text/html": html(picture)}

    def __repr__(self) -> str:
        """Show the last view: a debugger that prints must not call the API."""
        return text(JobPicture(row=_row(self.view)))


def _row(view: JobView) -> Row:
    return job_rows([view], now=datetime.now(UTC))[0]


def _p50(document: Document) -> datetime | None:
    """Return the median start; None for an estimate that cannot be read."""
    try:
        return datetime.fromisoformat(printable((document.get("estimated_start") or {}).get("p50")))
    except (ValueError, AttributeError):
        return None


def notebook_display(shown: object) -> Any:  # noqa: ANN401  IPython's
    """Return a display that can be updated, in a notebook; None elsewhere. Imports only what is there."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return import_module("IPython.display").display(shown, display_id=True)


def _silent(_: str) -> None:
    """Print nothing: the picture shows it."""
