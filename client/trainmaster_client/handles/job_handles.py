"""Handles on jobs of the queue: ``submit``, ``job`` and ``jobs``, with a wait for each.

In Jupyter a handle is its picture, which a wait draws again in place. Elsewhere it is a line, and a wait
prints what ``fit()`` prints. IPython and pandas are used where they are, and never needed.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any, overload

import boto3

from trainmaster_client.api import ApiClient, Document, field_problem, find_api_url
from trainmaster_client.dashboard.job_readers import CurveReader
from trainmaster_client.errors import InvalidArgumentError, LogsUnreadableError, TrainmasterClientError
from trainmaster_client.files.request_documents import request_of
from trainmaster_client.handles.job_picture import COLUMNS, JobPicture, Points, html, table, text
from trainmaster_client.hooks.botocore_events import like_the_default, plain_client
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.progress import FIRST_POLL_SECONDS, Progress, Watch, advance
from trainmaster_client.logs.joined_attempts import JobLogs, Selection

FRESH_SECONDS = 2.0
"""A handle that is shown again so soon is not asked for again."""
ESTIMATE_SECONDS = 60.0
"""Between two estimates of one job: each may cost the API two seconds."""
FIRST_HOST = "algo-1"
"""Its first rank prints the metric lines."""
MOST_JOBS = 1000
_PAGE = "100"


class Job:
    """A job of the queue, as this caller may see it. ``view`` is what was last seen of it."""

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
        """As last seen; ``refresh()`` looks again."""
        return self.view.state

    def refresh(self) -> "Job":
        """Look at the job again. Raises what the API client raises; the last view is kept then."""
        self._look(estimate=False)
        return self

    def wait(self, timeout: float | None = None) -> JobView:
        """Until the job is over, through all its attempts, or for ``timeout`` seconds; what was seen last.

        The job does not depend on it: an interrupt ends the wait alone. A job that failed is no error
        here: look at ``state`` and ``why`` of the answer.
        """
        steps = self._steps(timeout)
        while not isinstance(step := advance(steps), JobView):
            self._sleep(step)
        return step

    def __await__(self) -> Generator[Any, None, JobView]:
        """As ``wait()``, in a loop that others use too."""
        return self._awaited().__await__()

    async def _awaited(self) -> JobView:
        steps = self._steps(None)
        while True:
            step = await asyncio.to_thread(advance, steps)
            if isinstance(step, JobView):
                return step
            await asyncio.sleep(step)

    def _steps(self, timeout: float | None) -> Generator[float, None, JobView]:
        screen = _screen(self)
        watch = Watch(
            look=partial(self._watched, screen),
            say=print if screen is None else _silent,
            progress=Progress(),
            first_poll=FIRST_POLL_SECONDS,
            timeout=timeout,
            monotonic=self._monotonic,
        )
        return watch.steps()

    def _watched(self, screen: Any) -> JobView:  # noqa: ANN401  IPython's
        self._look(estimate=screen is not None)
        if screen is not None:
            screen.update(self)
        return self.view

    def _look(self, *, estimate: bool) -> None:
        """With an estimate of the start only while it waits, and occasionally."""
        now = self._monotonic()
        asks = estimate and self.view.is_waiting and now - self._estimated_at >= ESTIMATE_SECONDS
        document = self._api.job(self.name, estimate=asks)
        self.view = job_view(document)  # before the rest: an answer that is none changes nothing
        self._document, self._looked_at = document, now
        if asks:
            self._estimated_at, self._likely_start = now, _p50(document)

    def _picture(self) -> JobPicture:
        """As of now, as far as it can be asked for; what cannot is said in the picture."""
        self._note = ""
        if self._monotonic() - self._looked_at >= FRESH_SECONDS and not self.view.is_final:
            try:
                self._look(estimate=True)
            except TrainmasterClientError as error:
                self._note = f"as last seen: {error}"
        return JobPicture(
            job=self.view, likely_start=self._likely_start, curves=self._losses(), note=self._note
        )

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
            number: [(one["step"], one["loss"]) for one in curve.points if "loss" in one]
            for number, curve in self._curves.curves.items()
        }

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ANN401, ARG002
        """What IPython asks; the frontend takes the richest that it knows."""
        found = self._picture()
        return {"text/plain": text(found), "text/html": html(found)}

    def __repr__(self) -> str:
        """As last seen: a debugger that prints asks nothing of anybody."""
        return text(JobPicture(job=self.view))


class Jobs(Sequence[Job]):
    """Handles on many jobs, in the queue's order."""

    def __init__(self, handles: Sequence[Job], *, truncated: bool) -> None:
        self._handles = tuple(handles)
        self.truncated = truncated
        """There are more than these."""

    @overload
    def __getitem__(self, number: int) -> Job: ...

    @overload
    def __getitem__(self, number: slice) -> "Jobs": ...

    def __getitem__(self, number: int | slice) -> "Job | Jobs":
        if isinstance(number, slice):
            return Jobs(self._handles[number], truncated=self.truncated)
        return self._handles[number]

    def __len__(self) -> int:
        return len(self._handles)

    def wait(self, timeout: float | None = None) -> list[JobView]:
        """One after the other; ``timeout`` is for each."""
        return [one.wait(timeout) for one in self._handles]

    def to_frame(self) -> Any:  # noqa: ANN401  pandas is imported when asked for
        """A row a job, as a pandas DataFrame. Raises InvalidArgumentError where pandas is not installed."""
        try:
            import pandas as pd  # noqa: PLC0415  large, and only where it is asked for
        except ImportError as error:
            raise InvalidArgumentError(
                "to_frame() needs pandas, which is not installed.", hint="Run: pip install pandas"
            ) from error
        return pd.DataFrame([_record(one.view) for one in self._handles], columns=[*_RECORD])

    def _repr_html_(self) -> str:
        return table([one.view for one in self._handles])

    def __repr__(self) -> str:
        more = "\n..." if self.truncated else ""
        return ("\n".join(map(repr, self._handles)) or "no jobs") + more


_RECORD = (*COLUMNS, "spot", "submitted_at", "started_at", "attempt")


def _record(view: JobView) -> dict[str, Any]:
    beside: dict[str, Any] = {"spot": view.is_spot}
    return {key: beside[key] if key in beside else getattr(view, key) for key in _RECORD}


def submit(
    request: Mapping[str, Any], *, api_url: str | None = None, boto_session: boto3.Session | None = None
) -> Job:
    """Queue a CreateTrainingJob request, or what DescribeTrainingJob answered of one.

    Raises:
        InvalidArgumentError: The request stands within the mapping, or holds what JSON cannot say.
        RefusedError: As ``ApiClient.add_job`` raises it.
    """
    found = request_of(request, source="the request")
    for note in found.notes:
        print(f"Note: {note}", flush=True)
    connected = _Connection(api_url, boto_session)
    answer = connected.api.add_job(found.request)
    for warning in answer.get("warnings") or ():
        print(f"Warning: {field_problem(warning)}", flush=True)
    return connected.handle(answer.get("job") or {})


def job(name: str, *, api_url: str | None = None, boto_session: boto3.Session | None = None) -> Job:
    """By the name that was submitted, or that of any of its attempts. Raises NotFoundError."""
    connected = _Connection(api_url, boto_session)
    return connected.handle(connected.api.job(name, estimate=False))


def jobs(
    *,
    api_url: str | None = None,
    boto_session: boto3.Session | None = None,
    limit: int = 100,
    **filters: str,
) -> Jobs:
    """Those that the caller may see by name, in the queue's order; jobs of other teams are left out.

    Args:
        api_url: Else ``TRAINMASTER_API_URL``, else SSM parameter ``/trainmaster/api-url``.
        boto_session: Whose credentials ask; None: boto3's default.
        limit: At most so many, up to 1,000.
        filters: Query parameters of ``GET /jobs``, such as ``state="failed"`` or ``mine="true"``.
    """
    if not 1 <= limit <= MOST_JOBS:
        raise InvalidArgumentError(f"limit: {limit} is not valid.", hint=f"Use 1 to {MOST_JOBS}.")
    connected = _Connection(api_url, boto_session)
    found = list(islice(connected.documents(filters), limit + 1))
    handles = [connected.handle(one) for one in found[:limit]]
    return Jobs(handles, truncated=len(found) > limit)


class _Connection:
    """One caller's: all handles made with it share the API client."""

    def __init__(self, api_url: str | None, boto_session: boto3.Session | None) -> None:
        self._session = boto_session or like_the_default()
        self.api = ApiClient(find_api_url(api_url, self._session), self._session)

    def handle(self, document: Document) -> Job:
        return Job(self.api, document, make_logs=partial(plain_client, self._session, "logs"))

    def documents(self, filters: Mapping[str, str]) -> Iterator[Document]:
        token: str | None = None
        while True:
            page = self.api.jobs(**filters, limit=_PAGE, next_token=token)
            yield from (one for one in page.get("jobs") or () if one.get("name"))
            before, token = token, page.get("next_token")
            if not token or token == before:
                return


def _p50(document: Document) -> datetime | None:
    """An estimate that cannot be read is none."""
    try:
        return datetime.fromisoformat(printable((document.get("estimated_start") or {}).get("p50")))
    except (ValueError, AttributeError):
        return None


def _screen(shown: object) -> Any:  # noqa: ANN401  IPython's
    """A picture that can be drawn again, in a notebook; None elsewhere. Imports nothing that is not there."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return import_module("IPython.display").display(shown, display_id=True)


def _silent(_: str) -> None:
    """The picture says it."""
