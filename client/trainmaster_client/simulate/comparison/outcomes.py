"""How each job went in one replay, from its submission to its end."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from trainmaster.core.jobs.end_conditions import ParentEnd, holds_after

from trainmaster_client.simulate.engine.past_jobs import History, PastJob
from trainmaster_client.simulate.engine.replays import RESIZED, Replay, ReplayedAttempt


class Fate(StrEnum):
    """State of a job at the end of the replay."""

    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    RUNNING = "running"
    WAITING = "waiting"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"
    """The user stopped the job before it had started."""
    NEVER_ELIGIBLE = "never eligible"
    """A job that it waits for did not end in time, or ended otherwise than it asks for."""

    @property
    def is_end(self) -> bool:
        """Tell whether the job has trained as long as it had to."""
        return self in _ENDS


_ENDS = frozenset({Fate.COMPLETED, Fate.FAILED, Fate.STOPPED})
_PARENT_ENDS = {
    Fate.COMPLETED: ParentEnd.COMPLETED,
    Fate.FAILED: ParentEnd.FAILED,
    Fate.STOPPED: ParentEnd.STOPPED,
    Fate.WITHDRAWN: ParentEnd.STOPPED,
    Fate.NEVER_ELIGIBLE: ParentEnd.STOPPED,
}
"""Ends that jobs which wait for this one hear of."""
_COMES_BACK = frozenset({"preempted", "interrupted", RESIZED})
"""Ends of attempts after which the job waits again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """Outcome of one job. Seconds since ``History.begins``."""

    job: PastJob
    submit_s: int
    eligible_s: int | None
    """When its last condition held, or its submission if it has none; None: one never did."""
    attempts: tuple[ReplayedAttempt, ...]
    fate: Fate
    over_s: int | None
    """When its last attempt or, if it was withdrawn, its wait was over; None: it waits or runs at the end."""

    @property
    def start_s(self) -> int | None:
        return self.attempts[0].start_s if self.attempts else None

    @property
    def wait_s(self) -> float | None:
        """Time in the queue before the first start; infinite if it never came, None if none was due."""
        if self.attempts and self.eligible_s is not None:
            return self.attempts[0].start_s - self.eligible_s
        return math.inf if self.fate is Fate.WAITING else None

    @property
    def delay_s(self) -> int | None:
        """Time the job took longer than its training, once eligible; None unless it has ended."""
        if not self.fate.is_end or self.over_s is None or self.eligible_s is None:
            return None
        return self.over_s - self.eligible_s - seconds(self.job.trains_for)

    def waiting_intervals(self, until_s: int) -> Iterator[tuple[int, int]]:
        """Yield when the job was in the queue: before the first attempt, and between two."""
        if self.fate is Fate.REFUSED or self.eligible_s is None:
            return
        since = self.eligible_s
        for attempt in self.attempts:
            if attempt.start_s > since:
                yield since, attempt.start_s
            since = attempt.end_s
        if self.fate is Fate.WAITING:
            yield since, max(since, until_s)
        elif self.fate is Fate.WITHDRAWN and self.over_s is not None:
            yield since, max(since, self.over_s)


def seconds(span: timedelta) -> int:
    return int(span.total_seconds())


def submitted_s(history: History, job: PastJob) -> int:
    return seconds(job.submitted_at - history.begins)


def last_submission_s(history: History) -> int:
    """Return the last submission; later the queue only drains, so shares of capacity count up to here."""
    return max((submitted_s(history, job) for job in history.jobs), default=0)


def outcomes_of(history: History, replay: Replay) -> dict[str, JobOutcome]:
    """Return the outcome of every job of the history by its name, in the history's order."""
    attempts_by_job = by_job(replay.attempts)
    outcomes: dict[str, JobOutcome] = {}
    ends: defaultdict[str, list[_End]] = defaultdict(list)
    for job in history.jobs:  # a parent is submitted before its children
        submit_s = submitted_s(history, job)
        outcome = JobOutcome(
            job=job,
            submit_s=submit_s,
            eligible_s=_eligible_s(job, submit_s, ends),
            attempts=attempts_by_job.get(job.name, ()),
            fate=Fate.WAITING,
            over_s=None,
        )
        fate, over_s = _fate(outcome, is_refused=job.name in replay.refused)
        outcomes[job.name] = replace(outcome, fate=fate, over_s=over_s)
        end = _PARENT_ENDS.get(fate), submit_s if over_s is None else over_s
        ends[job.name].append(end)
        if job.array is not None:
            ends[job.array.key].append(end)
    return outcomes


_End = tuple[ParentEnd | None, int]
"""How a job ended, None if it did not, and the second from which it counts."""


def _eligible_s(job: PastJob, submit_s: int, ends: Mapping[str, Sequence[_End]]) -> int | None:
    """Return the second in which the job's last condition held; None if one did not.

    Args:
        job: A job of the history.
        submit_s: The second of its submission.
        ends: Ends of the jobs before it by name, and those of an array's tasks by its key.
    """
    since = submit_s
    for condition in job.after:
        parents = ends[condition.job]
        if _end_together([end for end, _ in parents]) not in holds_after(condition.kind):
            return None
        since = max(since, *(second for _, second in parents))
    return since


def _end_together(ends: Sequence[ParentEnd | None]) -> ParentEnd | None:
    """Return the end of a job, or of an array by those of its tasks; None if one has not ended."""
    if None in ends:
        return None
    return ParentEnd.COMPLETED if set(ends) == {ParentEnd.COMPLETED} else ParentEnd.FAILED


def by_job(attempts: Iterable[ReplayedAttempt]) -> dict[str, tuple[ReplayedAttempt, ...]]:
    """Group attempts by their job, in their order."""
    attempts_by_job: dict[str, list[ReplayedAttempt]] = defaultdict(list)
    for attempt in attempts:
        attempts_by_job[attempt.job].append(attempt)
    return {name: tuple(sorted(mine, key=_number)) for name, mine in attempts_by_job.items()}


def _number(attempt: ReplayedAttempt) -> int:
    return attempt.attempt


def _fate(outcome: JobOutcome, *, is_refused: bool) -> tuple[Fate, int | None]:
    job, attempts = outcome.job, outcome.attempts
    if attempts and attempts[-1].end not in _COMES_BACK:
        last = attempts[-1]
        return (Fate(last.end), last.end_s) if last.end in _ENDS else (Fate.RUNNING, None)
    if is_refused and not attempts:
        return Fate.REFUSED, None
    if job.withdrawn_after is not None:
        return Fate.WITHDRAWN, outcome.submit_s + seconds(job.withdrawn_after)
    return Fate.WAITING if outcome.eligible_s is not None else Fate.NEVER_ELIGIBLE, None
