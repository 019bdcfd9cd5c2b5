"""Store with waiting jobs why they wait: many at once, and each only if its reason has changed."""

from collections.abc import Iterable, Mapping, Sequence

from trainmaster.core.errors import LostRaceError, RowSetAsideError
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.snapshot import WaitingJob
from trainmaster.services.scheduler.broken_rows import read_job
from trainmaster.services.scheduler.context import PassContext

AT_ONCE = 100
"""Jobs that are read in one call and written in one transaction."""

Told = dict[str, tuple[WaitingJob, Reason]]


def explain(
    reasons: Mapping[str, Reason],
    candidates: Iterable[WaitingJob],
    context: PassContext,
    failures: list[Exception],
) -> frozenset[str]:
    """Write the reasons whose code has changed; a job that moved on meanwhile keeps its own.

    A row that takes no more is a failure of the pass.

    Crash safety: first the jobs are written, then the note of what they know; without the note jobs are read
    once more, and not written. Returns the jobs with unreadable rows.
    """
    waiting = [(job, reasons[job.name]) for job in candidates if job.name in reasons]
    if not waiting:
        return frozenset()
    before = context.store.told_reasons(context.pool)
    informed: Told = {job.name: (job, reason) for job, reason in waiting if before.knows(job, reason)}
    news = [(job, reason) for job, reason in waiting if job.name not in informed]
    out_of_reach: set[str] = set()
    for start in range(0, len(news), AT_ONCE):
        if context.deadline.is_over:
            break
        informed |= _tell(news[start : start + AT_ONCE], out_of_reach, failures, context)
    after = before.after(informed)
    if after != before:
        context.store.note_told(context.pool, after)
    return frozenset(out_of_reach)


def _tell(
    news: Sequence[tuple[WaitingJob, Reason]],
    out_of_reach: set[str],
    failures: list[Exception],
    context: PassContext,
) -> Told:
    """Return the jobs that know their reason by now; the next look writes to the others."""
    jobs = context.pools.jobs(job.name for job, _ in news)
    informed: Told = {}
    changes: list[Change] = []
    for candidate, reason in news:
        try:
            job = read_job(candidate, context, known=jobs.get(candidate.name))
        except LostRaceError:
            continue
        except RowSetAsideError:
            out_of_reach.add(candidate.name)
            continue
        informed[candidate.name] = (candidate, reason)
        if job.waiting is None or job.waiting.code != reason.code:
            changes.append(Change(before=job, after=steps.explained(job, reason)))
    refused = context.store.commit_each(changes, at=context.clock())
    failures += [error for error in refused.values() if not isinstance(error, LostRaceError)]
    return {name: entry for name, entry in informed.items() if name not in refused}
