"""The API's views of arrays and their tasks as typed data, and their counts in words. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from trainmaster_client.api import Document
from trainmaster_client.errors import FieldProblem, MalformedViewError, NotFoundError
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.job_views import FINAL_STATES, Reason

ROUTE = "/arrays/"
"""Beginning of the hint that the API gives where a job was asked for and an array has the name."""
MOST_FAILED_CHARACTERS = 200
"""Characters of the list of failed tasks in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCounts:
    """Number of tasks in each state; they add up to ``total``."""

    total: int = 0
    completed: int = 0
    failed: int = 0
    stopped: int = 0
    running: int = 0
    """Those that hold instances, from starting to stopping."""
    waiting: int = 0
    held: int = 0

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Self:
        return cls(**{field.name: int(document.get(field.name) or 0) for field in fields(cls)})


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayView:
    name: str
    team: str
    pool: str
    state: str
    priority: int
    at_most: int | None
    """Tasks that may run at once; None: as many as fit."""
    tasks: TaskCounts
    failed: str
    """Indices of the tasks that failed, as ``3,7-9``."""
    stopped: str
    reason: Reason | None
    waiting: Reason | None
    position: int | None
    """Position of its first waiting task."""
    submitted_at: str
    ended_at: str
    usd: float | None
    instance_hours: float | None
    rerun_of: str

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def why(self) -> str:
        """Say why no task starts, or why it ended; empty if no reason is known."""
        reason = self.reason if self.is_final else self.waiting or self.reason
        return "" if reason is None else reason.beside(self.state)

    @property
    def failure(self) -> str:
        """Say which tasks failed: ``3 of 64 tasks failed: 7, 8, 31``; empty if none did."""
        if not self.tasks.failed:
            return ""
        indices = self.failed.replace(",", ", ")
        if len(indices) > MOST_FAILED_CHARACTERS:
            indices = f"{indices[:MOST_FAILED_CHARACTERS].rpartition(',')[0]}, ..."
        return f"{self.tasks.failed} of {self.tasks.total} tasks failed: {indices}"

    @property
    def counts(self) -> str:
        """The counts that are not zero, the ended ones first."""
        tasks = self.tasks
        running = f"{tasks.running} running" + (f" of at most {self.at_most}" if self.at_most else "")
        parts = (
            f"{tasks.completed} of {tasks.total} completed",
            f"{tasks.failed} failed" if tasks.failed else "",
            f"{tasks.stopped} stopped" if tasks.stopped else "",
            running if tasks.running else "",
            f"{tasks.waiting} waiting" if tasks.waiting else "",
            f"{tasks.held} held" if tasks.held else "",
        )
        return ", ".join(part for part in parts if part)

    @property
    def line(self) -> str:
        """One line: its state, its counts, and why it does not go on."""
        why = self.failure if self.state == "failed" else self.why
        return f"{self.name}: {self.state}, {self.counts}" + (f" - {why}" if why else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    index: int
    name: str
    values: Mapping[str, str]
    """Hyperparameters of this task that differ from the request's."""
    state: str
    why: str
    code: str
    """Code of the reason of its end or wait, such as ``gpu-oom``; empty if there is none."""
    attempt: int | None
    """Number of its last attempt; None before there is one, or if it never became a job."""
    cost_usd: float | None
    started_at: str
    ended_at: str


def array_view(document: Document) -> ArrayView:
    """Read a view. Raises MalformedViewError."""
    try:
        return _array_view(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error


def _array_view(document: Document) -> ArrayView:
    reason, waiting = document.get("reason"), document.get("waiting")
    return ArrayView(
        name=printable(document["name"]),
        team=printable(document.get("team")),
        pool=printable(document.get("pool")),
        state=printable(document["state"]),
        priority=int(document.get("priority") or 0),
        at_most=_optional_int(document.get("at_most")),
        tasks=TaskCounts.parse(document["tasks"]),
        failed=printable(document.get("failed") or ""),
        stopped=printable(document.get("stopped") or ""),
        reason=None if reason is None else Reason.parse(reason),
        waiting=None if waiting is None else Reason.parse(waiting),
        position=_optional_int(document.get("position")),
        submitted_at=printable(document.get("submitted_at") or ""),
        ended_at=printable(document.get("ended_at") or ""),
        usd=_optional_float(document.get("usd")),
        instance_hours=_optional_float(document.get("instance_hours")),
        rerun_of=printable(document.get("rerun_of") or ""),
    )


def task_view(document: Document) -> TaskView:
    """Read a task. Raises MalformedViewError."""
    try:
        values = document.get("values") or {}
        reason = document.get("reason")
        return TaskView(
            index=int(document["index"]),
            name=printable(document["name"]),
            values={printable(name): printable(text) for name, text in values.items()},
            state=printable(document["state"]),
            why="" if reason is None else Reason.parse(reason).beside(printable(document["state"])),
            code="" if reason is None else Reason.parse(reason).code,
            attempt=_optional_int(document.get("attempt")),
            cost_usd=_optional_float(document.get("cost_usd")),
            started_at=printable(document.get("started_at") or ""),
            ended_at=printable(document.get("ended_at") or ""),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error


def is_about_array(error: NotFoundError) -> bool:
    """Tell whether no job has the name because an array has it: the API's hint is the array's route."""
    return any(_is_route(problem) for problem in error.problem.errors)


def job_or_array(job: Callable[[], Document], array: Callable[[], Document]) -> Document:
    """Ask for a job, and where an array has its name, for that; ``is_array`` tells which was answered.

    Raises NotFoundError where the name is nobody's.
    """
    try:
        return job()
    except NotFoundError as error:
        if not is_about_array(error):
            raise
        return array()


def is_array(document: Document) -> bool:
    """Tell whether a view is an array's."""
    return isinstance(document.get("tasks"), Mapping)


def _is_route(problem: FieldProblem) -> bool:
    return ROUTE in problem.hint


def _optional_int(value: object) -> int | None:
    return None if value is None else int(str(value))


def _optional_float(value: object) -> float | None:
    return None if value is None else float(str(value))
