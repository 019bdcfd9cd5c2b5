"""Defines what a suite consists of, and decides what comes next, from records and seconds alone."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class State(StrEnum):
    OK = "ok"
    OUT_OF_MEMORY = "out-of-memory"
    COMPILE_ERROR = "compile-error"
    FAILED = "failed"
    """It said why."""
    CRASHED = "crashed"
    """It could not: a signal ended it, or the whole suite ended with it."""
    TIME_LIMIT = "time-limit"
    """Its own."""
    SKIPPED = "skipped"
    """It cannot be measured here."""
    NO_TIME = "no-time-left"
    """The suite's seconds were used up; ``--resume`` makes up for it."""
    RUNNING = "running"


UNSETTLED = frozenset({State.NO_TIME, State.RUNNING})
MOST_STARTS = 2
"""A case during which the suite itself was ended this many times is what ends it."""


class Kind(StrEnum):
    DEVICE = "device"
    STEPS = "steps"
    BATCH = "batch"
    CHECKPOINT = "checkpoint"
    DATA = "data"
    TRACE = "trace"
    MLP = "mlp"
    """Steps of the article's row of square matrices, which is no model of the training program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    id: str
    kind: Kind
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of train.py and of ``benchmarks.training.bench``."""
    env: Mapping[str, str] = field(default_factory=dict)
    needs: float
    """Seconds that must be left for it to begin."""
    limit: float
    """Seconds after which it is given up; of each probe, where it is a search."""
    batch_of: str | None = None
    """The search whose batch it takes; where none was found, ``options`` has one."""
    memory_gib: float = 0.0
    """Host memory beyond what the program takes at the start, GiB; 0 means all."""
    batches: tuple[int, int] = (0, 0)
    """A search: the first batch tried, and the largest."""

    def task(self, batch: int | None = None) -> dict[str, Any]:
        """Return what the case's process gets."""
        size = {} if batch is None else {"batch-size": str(batch)}
        return {
            "id": self.id,
            "kind": self.kind,
            "options": {**self.options, **size},
            "env": dict(self.env),
            "memory_gib": self.memory_gib,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Record of a case, as the report has it."""

    id: str
    state: State
    seconds: float = 0.0
    reason: str = ""
    result: Mapping[str, Any] = field(default_factory=dict)
    starts: int = 1

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": round(self.seconds, 3)}

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> "Record":
        return cls(**{**document, "state": State(document["state"])})


def unsettled(cases: Sequence[Case], records: Mapping[str, Record]) -> list[Case]:
    """Return the cases that have no outcome yet, in the suite's order."""
    return [case for case in cases if case.id not in records or records[case.id].state in UNSETTLED]


def begun(case: Case, before: Record | None) -> Record:
    """Return the record while a case runs; or that it is given up, as it took the whole suite with it."""
    starts = before.starts if before and before.state is State.RUNNING else 0
    result = before.result if before else {}
    if starts >= MOST_STARTS:
        why = f"the suite was ended {starts} times while it ran"
        return Record(id=case.id, state=State.CRASHED, reason=why, result=result, starts=starts)
    return Record(id=case.id, state=State.RUNNING, result=result, starts=starts + 1)


def out_of_time(case: Case, left: float, before: Record | None) -> Record | None:
    """Return the record of a case for which too little time is left; None if it may begin."""
    if left >= case.needs:
        return None
    why = f"needs {case.needs:.0f} s of {max(0.0, left):.0f} s that are left: continue with --resume"
    return Record(
        id=case.id, state=State.NO_TIME, reason=why, result=before.result if before else {}, starts=0
    )


def next_batch(tried: Mapping[int, State], *, first: int, most: int) -> int | None:
    """Return the batch to try next: doubled until one does not fit, then between; None if it is known."""
    fits = largest(tried) or 0
    too_large = min((size for size, state in tried.items() if state is not State.OK), default=None)
    if too_large is None:
        return None if fits >= most else min(most, fits * 2 or first)
    if fits == 0:
        return too_large // 2 or None
    middle = (fits + too_large) // 2
    return middle if middle - fits >= max(1, fits // 8) else None


def largest(tried: Mapping[int, State]) -> int | None:
    return max((size for size, state in tried.items() if state is State.OK), default=None)


def batch_for(case: Case, records: Mapping[str, Record]) -> int | None:
    """Return the batch of the search it refers to; None leaves it to the case's options."""
    search = records.get(case.batch_of or "")
    batch = search.result.get("batch") if search else None
    return None if batch is None else int(batch)
