"""Which reason each candidate heard last, so that only a new one is written to its job."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.planning.snapshot import WaitingJob

MOST = 2000
"""Candidates that are remembered: with names of 63 characters less than half of what a row may hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldReasons:
    codes: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """By job: version of its queue entry, and the code. One that left and came back has another version."""
    version: int = 0
    """Of the row they were read from; 0: there was none."""

    def knows(self, candidate: WaitingJob, reason: Reason) -> bool:
        return self.codes.get(candidate.name) == _told(candidate, reason)

    def after(self, told: Mapping[str, tuple[WaitingJob, Reason]]) -> "ToldReasons":
        """Who is no candidate any more is forgotten."""
        codes = {name: _told(*one) for name, one in list(told.items())[:MOST]}
        return replace(self, codes=codes)


def _told(candidate: WaitingJob, reason: Reason) -> tuple[int, str]:
    return (candidate.ver, str(reason.code))
