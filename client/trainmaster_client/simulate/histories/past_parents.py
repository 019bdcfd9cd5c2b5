"""The conditions of exported jobs on each other, by the names that the jobs have in the history."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from trainmaster.core.jobs.reason_codes import ReasonCode

from trainmaster_client.simulate.engine.past_jobs import AfterEnd, PastJob
from trainmaster_client.simulate.histories.export_lines import ExportedJob
from trainmaster_client.simulate.histories.line_problems import count_of


def with_parents(
    jobs: Sequence[PastJob], lines: Iterable[ExportedJob]
) -> tuple[tuple[PastJob, ...], tuple[str, ...]]:
    """Return the jobs with their conditions, and a sentence on those that are taken as met.

    A parent that ended before the period is not in the history; none comes behind its child in it.
    """
    children: Mapping[str | None, ExportedJob] = {line.entry_id: line for line in lines if line.after}
    if not children:
        return tuple(jobs), ()
    name_of: dict[str | None, str] = {}
    known: list[PastJob] = []
    for job in jobs:
        line = children.get(job.entry_id)
        known.append(job if line is None else _with_conditions(job, line, name_of))
        name_of[job.entry_id] = job.name
        if job.array is not None:  # the entry id of the array is its key
            name_of[job.array.key] = job.array.key
    missing = sum(
        len(job.after) < len(children[job.entry_id].after) for job in known if job.entry_id in children
    )
    met = f"{count_of(missing, 'job')} waited for jobs that are not in this history: taken as ended in time."
    return tuple(known), (met,) if missing else ()


def _with_conditions(job: PastJob, line: ExportedJob, name_of: Mapping[str | None, str]) -> PastJob:
    after = tuple(
        AfterEnd(kind=condition.kind, job=name_of[condition.entry_id])
        for condition in line.after
        if condition.entry_id in name_of
    )
    # A child that ended for its parents was not withdrawn at an instant: their ends decide again.
    ended_for_them = bool(after) and line.end == ReasonCode.DEPENDENCY
    return replace(job, after=after, withdrawn_after=None if ended_for_them else job.withdrawn_after)
