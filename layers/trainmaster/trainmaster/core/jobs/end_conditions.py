"""The jobs that a job waits for, and under which of their ends it may run.

Only a parent's final state counts: retries, preemptions and requeues of the parent do not end it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType

NOT_YET = datetime(9999, 1, 1, tzinfo=UTC)
"""``Job.not_before`` of a job that waits for others: it is parked, so no pass reads it, and a release that
does not know conditions leaves it where it is."""
MOST_PARENTS = 20
"""Conditions of one job at most: each takes three rows of the transaction that stores it, which has 100."""


class ConditionKind(StrEnum):
    """Under which end of the parent the child may run."""

    AFTER_OK = "afterok"
    AFTER_ANY = "afterany"
    AFTER_NOT_OK = "afternotok"
    AFTER_CORR = "aftercorr"
    """Between arrays: each task may run once the parent's task of the same index has completed."""


class ParentEnd(StrEnum):
    """A parent's final state. The values are those of ``JobState``."""

    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"


_HOLDS_AFTER: Mapping[ConditionKind, frozenset[ParentEnd]] = MappingProxyType(
    {
        ConditionKind.AFTER_OK: frozenset({ParentEnd.COMPLETED}),
        ConditionKind.AFTER_ANY: frozenset(ParentEnd),
        ConditionKind.AFTER_NOT_OK: frozenset({ParentEnd.FAILED, ParentEnd.STOPPED}),
        ConditionKind.AFTER_CORR: frozenset(ParentEnd),
    }
)


def holds_after(kind: ConditionKind) -> frozenset[ParentEnd]:
    """Return the ends of a parent after which a condition of this kind holds."""
    return _HOLDS_AFTER[kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """The job whose end began it, where others ended because of that end."""

    name: str
    entry_id: str
    team: str
    message: str
    """Its final state and reason, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedParent:
    """A job that is final, as those that waited for it need to know it."""

    entry_id: str
    end: ParentEnd
    root: Root
    """Cause that ended dependents name: the parent itself, or the job that it ended for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One parent of a job, and how it has to end."""

    kind: ConditionKind
    job: str
    """Name of the parent."""
    entry_id: str
    """Entry id of the parent's submission: a later job of the same name is another one."""
    team: str
    """Team of the parent: its name is shown to those who may see jobs of this team."""
    end: ParentEnd | None = None
    """The parent's end; None if it has not ended, as far as the child was informed."""
    array: str | None = None
    """The array that the parent is, or is a task of and no job yet when this was written; None: a job."""
    array_ver: int | None = None
    """``Array.ver`` when this was written; None without ``array``."""

    @property
    def holds(self) -> bool | None:
        """Tell whether the condition holds; None if that is not decided yet.

        One that is about single tasks holds for the array as a whole: its tasks are looked at one by one.
        """
        if self.kind is ConditionKind.AFTER_CORR:
            return True
        return None if self.end is None else self.end in _HOLDS_AFTER[self.kind]

    def known_as(self, *, to: str) -> str:
        """Return the parent as team ``to`` may hear of it: names stay within their team."""
        return self.job if self.team == to else f"a job of team {self.team}"

    def text(self, *, to: str) -> str:
        """Return the condition in the words of the tag, e.g. ``afterok:prepare``."""
        return f"{self.kind}:{self.known_as(to=to)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """All conditions of a job; every one of them must hold."""

    conditions: tuple[Condition, ...]
    hold_when_impossible: bool = False
    """Its owner wants it held, not ended, once a condition can hold no more."""
    root: Root | None = None
    """Why a condition can hold no more; None: each may still hold."""

    @property
    def all_hold(self) -> bool:
        return all(condition.holds for condition in self.conditions)

    @property
    def open(self) -> tuple[Condition, ...]:
        """Conditions that are not decided yet."""
        return tuple(condition for condition in self.conditions if condition.holds is None)

    @property
    def impossible(self) -> tuple[Condition, ...]:
        """Conditions that can hold no more."""
        return tuple(condition for condition in self.conditions if condition.holds is False)

    def with_end(self, entry_id: str, end: ParentEnd) -> "Dependencies":
        """Return them knowing how the parent of this submission ended."""
        return replace(
            self,
            conditions=tuple(
                replace(condition, end=end) if condition.entry_id == entry_id else condition
                for condition in self.conditions
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependent:
    """A job that has, or had, a condition on another."""

    name: str
    entry_id: str
    team: str
    is_array: bool | None = None  # True: an array, not a job
