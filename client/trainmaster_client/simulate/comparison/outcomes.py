"""How each job went in one replay, from its submission to its end."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from trainmaster_client.simulate.engine.past_jobs import History, PastJob
from trainmaster_client.simulate.engine.replays import Replay, ReplayedAttempt


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

    @property
    def is_end(self) -> bool:
        """Tell whether the job has trained as long as it had to."""
        return self in _ENDS


_ENDS = frozenset({Fate.COMPLETED, Fate.FAILED, Fate.STOPPED})
_COMES_BACK = frozenset({"preempted", "interrupted"})
"""Ends of attempts after which the job waits again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """Outcome of one job. Seconds since ``History.begins``."""

    job: PastJob
    submit_s: int
    attempts: tuple[ReplayedAttempt, ...]
    fate: Fate
    over_s: int | None
    """When its last attempt or, if it was withdrawn, its wait was over; None: it waits or runs at the end."""

    @property
    def start_s(self) -> int | None:
        return self.attempts[0].start_s if self.attempts else None

    @property
    def wait_s(self) -> float | None:
        """Time from submission to the first start; infinite if it never came, None if none was due."""
        if self.attempts:
            return self.attempts[0].start_s - self.submit_s
        return math.inf if self.fate is Fate.WAITING else None

    @property
    def delay_s(self) -> int | None:
        """Time the job took longer than its training; None unless it has ended."""
        if not self.fate.is_end or self.over_s is None:
            return None
        return self.over_s - self.submit_s - seconds(self.job.trains_for)

    def waiting_intervals(self, until_s: int) -> Iterator[tuple[int, int]]:
        """Yield when the job was in the queue: before the first attempt, and between two."""
        if self.fate is Fate.REFUSED:
            return
        since = self.submit_s
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
    return {
        job.name: _outcome(job, submitted_s(history, job), attempts_by_job.get(job.name, ()), replay.refused)
        for job in history.jobs
    }


def by_job(attempts: Iterable[ReplayedAttempt]) -> dict[str, tuple[ReplayedAttempt, ...]]:
    """Group attempts by their job, in their order."""
    attempts_by_job: dict[str, list[ReplayedAttempt]] = defaultdict(list)
    for attempt in attempts:
        attempts_by_job[attempt.job].append(attempt)
    return {name: tuple(sorted(mine, key=_number)) for name, mine in attempts_by_job.items()}


def _number(attempt: ReplayedAttempt) -> int:
    return attempt.attempt


def _outcome(
    job: PastJob, submit_s: int, attempts: tuple[ReplayedAttempt, ...], refused: Mapping[str, str]
) -> JobOutcome:
    fate, over_s = _fate(job, submit_s, attempts, is_refused=job.name in refused)
    return JobOutcome(job=job, submit_s=submit_s, attempts=attempts, fate=fate, over_s=over_s)


def _fate(
    job: PastJob, submit_s: int, attempts: tuple[ReplayedAttempt, ...], *, is_refused: bool
) -> tuple[Fate, int | None]:
    if attempts and attempts[-1].end not in _COMES_BACK:
        last = attempts[-1]
        return (Fate(last.end), last.end_s) if last.end in _ENDS else (Fate.RUNNING, None)
    if is_refused and not attempts:
        return Fate.REFUSED, None
    if job.withdrawn_after is not None:
        return Fate.WITHDRAWN, submit_s + seconds(job.withdrawn_after)
    return Fate.WAITING, None
