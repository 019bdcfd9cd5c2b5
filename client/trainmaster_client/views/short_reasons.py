"""Why a job is where it is, in 40 characters, with the names and numbers that the queue around it shows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.row_words import HAPPENS, LONGEST_SHORT_REASON, WAITS_FOR

from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.job_views import JobView, Parent
from trainmaster_client.jobs.progress import is_next
from trainmaster_client.views.short_names import end_cut, middle_cut

_BLOCKS = frozenset({"", ReasonCode.AHEAD, ReasonCode.CAPACITY, ReasonCode.RESERVATION})
"""Codes of jobs that keep those behind them from starting: the others wait for something of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts:
    """The queue ahead of jobs and the free instances of their pools, on which their reasons depend."""

    first_in_turn: Mapping[str, JobView]
    """The first job of each pool that keeps others waiting."""
    free: Mapping[str, Mapping[str, Mapping[str, int]] | None]
    """Free instances by pool, capacity type and instance type, of the pools that are known."""

    @classmethod
    def of(cls, jobs: Iterable[JobView], pools: Sequence[Mapping[str, Any]]) -> Self:
        turns = [job for job in jobs if job.is_waiting and job.position is not None and _blocks(job)]
        turns.sort(key=lambda job: -(job.position or 0))
        return cls(
            first_in_turn={job.pool: job for job in turns},
            free={printable(pool.get("name")): _free(pool) for pool in pools},
        )


def short_reason(job: JobView, facts: QueueFacts) -> str:
    """Say in at most 40 characters why a job waits, what happens to it or how it ended; may be empty."""
    text = _wait(job, facts) if job.is_waiting else _state(job)
    return end_cut(text, LONGEST_SHORT_REASON)


def _wait(job: JobView, facts: QueueFacts) -> str:
    code = job.waiting.code if job.waiting else ""
    match code:
        case ReasonCode.AHEAD if is_next(job):
            return WAITS_FOR[ReasonCode.CAPACITY]
        case ReasonCode.AHEAD:
            return _behind(job, facts.first_in_turn.get(job.pool))
        case ReasonCode.CAPACITY:
            return _missing(job, facts.free.get(job.pool))
        case ReasonCode.DEPENDENCY:
            return _after([parent for parent in job.parents if not parent.is_final])
        case "" if job.waiting is None and not job.name:
            return ""  # another team's: the API does not say why it waits
        case _:
            return WAITS_FOR.get(code, code)


def _state(job: JobView) -> str:
    if job.is_live:
        return HAPPENS.get(job.state, "")
    code = job.reason.code if job.reason else ""
    return "" if code == job.state else code


def _behind(job: JobView, first: JobView | None) -> str:
    if first is not None and first is not job and (job.position is None or first.position != job.position):
        return _named("behind ", first.name or f"a job of {first.team}")
    if job.position is None:
        return WAITS_FOR[ReasonCode.AHEAD]
    ahead = job.position - 1
    return f"behind {ahead} job{'s' if ahead > 1 else ''}"


def _missing(job: JobView, free: Mapping[str, Mapping[str, int]] | None) -> str:
    """Say how many of its instances are missing, where the pool's free ones are known."""
    if free is None:
        return WAITS_FOR[ReasonCode.CAPACITY]
    kind = "spot" if job.is_spot else "plan" if job.is_on_plan else "on-demand"
    there = free.get(kind) or {}
    missing = sum(max(count - there.get(kind, 0), 0) for kind, count in job.instances_by_type.items())
    return f"waits for {missing} of {job.instance_count}" if missing else WAITS_FOR[ReasonCode.CAPACITY]


def _after(parents: Sequence[Parent]) -> str:
    named = [parent.job for parent in parents if parent.job]
    if not named:
        return WAITS_FOR[ReasonCode.DEPENDENCY]
    others = len(parents) - 1
    return _named("after ", named[0], f" and {others} more" if others else "")


def _named(before: str, name: str, behind: str = "") -> str:
    return f"{before}{middle_cut(name, LONGEST_SHORT_REASON - len(before) - len(behind))}{behind}"


def _blocks(job: JobView) -> bool:
    return (job.waiting.code if job.waiting else "") in _BLOCKS


def _free(pool: Mapping[str, Any]) -> Mapping[str, Mapping[str, int]] | None:
    """Return what is free by capacity type and instance type; None where an answer does not say it."""
    try:
        return {
            kind: {printable(name): int(count) for name, count in counts.items()}
            for kind, counts in pool["free"].items()
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
