"""Reasons why jobs wait, worded only when they are read, and the reasons last written to each job."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.planning.snapshot import WaitingJob


@dataclass(slots=True)
class Later:
    """A reason of which all numbers are known already: the same words, whenever they are asked for."""

    _words: Callable[[], Reason]
    _said: Reason | None = None

    def said(self) -> Reason:
        if self._said is None:
            self._said = self._words()
        return self._said


class PlanReasons(Mapping[str, Reason]):
    """Reasons of one plan."""

    __slots__ = ("_by_job",)

    def __init__(self, by_job: Mapping[str, Reason | Later]) -> None:
        self._by_job = by_job

    def __getitem__(self, job: str) -> Reason:
        why = self._by_job[job]
        return why.said() if isinstance(why, Later) else why

    def __contains__(self, job: object) -> bool:
        return job in self._by_job

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_job)

    def __len__(self) -> int:
        return len(self._by_job)

    def __repr__(self) -> str:
        return f"PlanReasons({dict(self)})"


MOST = 2000
"""Most candidates that are remembered: with names of 63 characters less than half of what a row may hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldReasons:
    """Reasons last written to each candidate's job, so that only a new one is written."""

    codes: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Version of the queue entry, and code, by job. A job that left and came back has another version."""
    version: int = 0
    """Version of the row they were read from; 0: there was none."""

    def knows(self, candidate: WaitingJob, reason: Reason) -> bool:
        return self.codes.get(candidate.name) == _told(candidate, reason)

    def after(self, reasons: Mapping[str, tuple[WaitingJob, Reason]]) -> "ToldReasons":
        """Return the reasons after this plan; a job that is no candidate any more is forgotten."""
        codes = {
            name: _told(*candidate_and_reason) for name, candidate_and_reason in list(reasons.items())[:MOST]
        }
        return replace(self, codes=codes)


def _told(candidate: WaitingJob, reason: Reason) -> tuple[int, str]:
    return (candidate.ver, str(reason.code))
