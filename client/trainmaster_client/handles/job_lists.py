"""Handles on many jobs: a table in a notebook, a DataFrame, one wait for all."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, overload

from trainmaster_client.handles.job_handles import Job
from trainmaster_client.handles.job_picture import table
from trainmaster_client.jobs.data_frames import data_frame
from trainmaster_client.jobs.job_views import JobView
from trainmaster_client.views.queue_model import job_rows


class Jobs(Sequence[Job]):
    """Handles on many jobs, in the queue's order."""

    def __init__(self, handles: Sequence[Job], *, truncated: bool) -> None:
        self._handles = tuple(handles)
        self.truncated = truncated
        """True if there are more jobs than these."""

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
        """Wait for one job after the other; ``timeout`` is in seconds for each."""
        return [handle.wait(timeout) for handle in self._handles]

    def to_frame(self) -> Any:  # noqa: ANN401  pandas is imported when asked for
        """Return a pandas DataFrame with a row per job.

        Raises InvalidArgumentError if pandas is not installed.
        """
        return data_frame((_record(handle.view) for handle in self._handles), columns=_RECORD)

    def _repr_html_(self) -> str:
        return table(job_rows([handle.view for handle in self._handles], now=datetime.now(UTC)))

    def __repr__(self) -> str:
        ending = "\n..." if self.truncated else ""
        return ("\n".join(map(repr, self._handles)) or "no jobs") + ending


_RECORD = (
    *("name", "team", "state", "pool", "instances", "priority", "position", "why"),
    *("spot", "submitted_at", "started_at", "attempt"),
)
"""Columns of the DataFrame, which programs name."""


def _record(view: JobView) -> dict[str, Any]:
    beside: dict[str, Any] = {"spot": view.is_spot}
    return {key: beside[key] if key in beside else getattr(view, key) for key in _RECORD}
