"""The tasks of arrays among exported jobs: their order, and the array that each is a task of."""

from datetime import datetime

from trainmaster.core.arrays.tasks import array_entry_id

from trainmaster_client.simulate.engine.past_jobs import PastArray, PastJob
from trainmaster_client.simulate.histories.export_lines import ExportedJob

Order = tuple[datetime, str, str]
"""Submission; name, of a task that of its array; of a task its entry id, which ends with its index."""


def order_of_line(line: ExportedJob) -> Order:
    """Order by submission, and tasks of an array by their indices."""
    return line.submitted_at, line.array or line.name, (line.entry_id or "") if line.array else ""


def order_of_job(job: PastJob) -> Order:
    """Order as ``order_of_line`` does."""
    if job.array is None:
        return job.submitted_at, job.name, ""
    return job.submitted_at, job.name.rpartition("-")[0], job.entry_id or ""


def array_of(line: ExportedJob) -> PastArray | None:
    """Return the array that a job is a task of; None if it is none's."""
    if line.array is None or line.entry_id is None:
        return None
    key = array_entry_id(line.entry_id)
    if line.array_stop_after is None:
        return PastArray(key=key, at_most=line.array_at_most)
    return PastArray(key=key, at_most=line.array_at_most, stop_after_failures=line.array_stop_after)
