"""The API's views of jobs as typed data. Parsing is lenient, as a view may be masked or get new members."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self, TypeVar

from trainmaster_client.api import Document
from trainmaster_client.errors import MalformedViewError
from trainmaster_client.http.answers import printable

FINAL_STATES = frozenset({"completed", "failed", "stopped"})
WAITING_STATES = frozenset({"pending", "preempted", "held"})
LIVE_STATES = frozenset({"starting", "running", "preempting", "stopping"})
"""States in which a job holds instances."""
NO_NAME = "(other team's)"
"""Stands for the name of a job that the caller may not see by name."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    code: str
    message: str

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Self:
        return cls(code=printable(document.get("code")), message=printable(document.get("message")))

    def beside(self, state: str) -> str:
        """Write the reason for use next to the state; a code that only repeats the state is left out."""
        code = "" if self.code == state else self.code
        return ": ".join(part for part in (code, self.message) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    at: datetime
    attempt: int
    to: str
    reason: Reason | None

    @property
    def why(self) -> str:
        return self.reason.beside(self.to) if self.reason else ""

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Self:
        return cls(
            at=datetime.fromisoformat(document["at"]),
            attempt=int(document.get("attempt") or 0),
            to=printable(document["to"]),
            reason=_optional(document.get("reason"), Reason.parse),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    number: int
    training_job_name: str
    training_job_arn: str
    """Empty until SageMaker has confirmed that it has the training job."""
    status: str
    secondary_status: str
    capacity_type: str
    started_at: datetime | None
    ended_at: datetime | None
    reason: Reason | None
    diagnosis: str | None
    """Cause of the failure and what its owner can do; None if it did not fail, or was not examined."""
    last_checkpoint: datetime | None
    """Time of the newest known checkpoint; None if there is none, or it was not looked for."""
    last_checkpoint_is_lower_bound: bool
    """Whether there may be a newer checkpoint."""
    idle_since: datetime | None
    stop_due: datetime | None
    underused_since: datetime | None
    underused_stop_due: datetime | None
    unmonitored: Reason | None
    checkpoint_overdue: bool
    loss: Reason | None = None
    """How its loss breaks the policy's rule; None: it does not, or there is no such rule."""
    loss_stop_due: datetime | None = None

    @property
    def why(self) -> str:
        return self.reason.beside(self.status.lower()) if self.reason else ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings that its owner should know while it runs."""
        if self.ended_at is not None:
            return ()
        lines = []
        if self.idle_since is not None:
            due = self.stop_due
            then = f"; it will be stopped at {_time(due)} unless they are used again" if due else ""
            lines.append(f"its GPUs have been idle since {_time(self.idle_since)}{then}")
        if self.underused_since is not None:
            due = self.underused_stop_due
            then = f"; it will be stopped at {_time(due)} unless they are used more" if due else ""
            lines.append(f"its GPUs have been underused since {_time(self.underused_since)}{then}")
        if self.loss is not None:
            due = self.loss_stop_due
            then = f"; it will be stopped at {_time(due)} unless that recovers" if due else ""
            lines.append(f"{self.loss.message}{then}")
        if self.unmonitored is not None:
            lines.append(f"its GPUs are not monitored: {self.unmonitored.message}")
        if self.checkpoint_overdue:
            lines.append("its newest checkpoint is older than the policy allows")
        return tuple(lines)

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Self:
        return cls(
            number=int(document["attempt"]),
            training_job_name=printable(document.get("training_job_name")),
            training_job_arn=printable(document.get("training_job_arn")),
            status=printable(document.get("status")),
            secondary_status=printable(document.get("secondary_status")),
            capacity_type=printable(document.get("capacity_type")),
            started_at=_optional(document.get("started_at"), datetime.fromisoformat),
            ended_at=_optional(document.get("ended_at"), datetime.fromisoformat),
            reason=_optional(document.get("reason"), Reason.parse),
            diagnosis=_optional(document.get("diagnosis"), _diagnosis),
            last_checkpoint=_optional(document.get("last_checkpoint"), datetime.fromisoformat),
            last_checkpoint_is_lower_bound=bool(document.get("last_checkpoint_is_lower_bound")),
            idle_since=_optional(document.get("idle_since"), datetime.fromisoformat),
            stop_due=_optional(document.get("stop_due"), datetime.fromisoformat),
            underused_since=_optional(document.get("underused_since"), datetime.fromisoformat),
            underused_stop_due=_optional(document.get("underused_stop_due"), datetime.fromisoformat),
            unmonitored=_optional(document.get("unguarded"), Reason.parse),
            checkpoint_overdue=bool(document.get("checkpoint_overdue")),
            loss=_optional(document.get("loss"), Reason.parse),
            loss_stop_due=_optional(document.get("loss_stop_due"), datetime.fromisoformat),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    job: str
    """Its name; empty if the caller may not see it."""
    state: str
    kind: str = "afterok"
    """Type of the condition, such as ``afterany``."""

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def condition(self) -> str:
        """The condition as a tag has it, without the type that is meant anyway."""
        name = self.job or NO_NAME
        return name if self.kind == "afterok" else f"{self.kind}:{name}"

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Self:
        return cls(
            job=printable(document.get("job")),
            state=printable(document.get("state")),
            kind=printable(document.get("type") or "afterok"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job as the caller may see it.

    Another team's job has no name, and beside team, pool, state, priority, instances and position only
    instants.
    """

    name: str | None
    team: str
    pool: str
    state: str
    priority: int
    instances_by_type: Mapping[str, int]
    is_spot: bool
    submitted_by: str
    submitted_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    training_since: datetime | None
    """When the live attempt began to train; None if it does not train, or the stack does not say."""
    ends_by: datetime | None
    """When its instances are free at the latest; None: not known yet, or the stack does not say."""
    position: int | None
    ahead_at_least: int | None
    waiting: Reason | None
    reason: Reason | None
    parents: tuple[Parent, ...]
    """Jobs that it waits for, as its tag ``trainmaster:after`` names them."""
    array: str
    """Name of the array that it is a task of; empty if it is none."""
    attempt: int | None
    training_job_name: str
    cost_usd: float | None
    """None if a price is unknown, or the caller may not see it."""
    attempts: tuple[Attempt, ...]
    history: tuple[Transition, ...]
    """Transitions of the job, oldest first."""
    widths: tuple[int, ...] = ()
    """Instance counts that an elastic job may run with; empty for other jobs."""
    width_note: str = ""
    """The queue's words about its present width; empty if there are none."""
    is_on_plan: bool = False
    """Whether it runs on a training plan, or waits for one alone."""

    @property
    def instances(self) -> str:
        shapes = [f"{count}x {kind}" for kind, count in self.instances_by_type.items()]
        return ", ".join(shapes) + (" spot" if self.is_spot else " on a plan" if self.is_on_plan else "")

    @property
    def instance_count(self) -> int:
        """Instances of all types together."""
        return sum(self.instances_by_type.values())

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def is_waiting(self) -> bool:
        return self.state in WAITING_STATES

    @property
    def is_live(self) -> bool:
        return self.state in LIVE_STATES

    @property
    def why(self) -> str:
        """Say why it waits, or why it is in its state; empty if no reason is known."""
        reason = self.waiting or self.reason
        return reason.beside(self.state) if reason else ""


def job_view(document: Document) -> JobView:
    """Read a view. Raises MalformedViewError."""
    try:
        return _job_view(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedViewError(f"{type(error).__name__}: {error}") from error


def _job_view(document: Document) -> JobView:
    transitions = [Transition.parse(entry) for entry in document.get("history") or ()]
    return JobView(
        name=_optional(document.get("name"), printable),
        team=printable(document.get("team")),
        pool=printable(document.get("pool")),
        state=printable(document["state"]),
        priority=int(document.get("priority") or 0),
        instances_by_type={
            printable(kind): int(count) for kind, count in (document.get("instances") or {}).items()
        },
        is_spot=document.get("capacity_type") == "spot",
        is_on_plan=document.get("capacity_type") == "plan",
        widths=tuple(int(count) for count in (document.get("elastic") or {}).get("widths") or ()),
        width_note=printable((document.get("elastic") or {}).get("why")),
        submitted_by=printable(document.get("submitted_by")),
        submitted_at=_optional(document.get("submitted_at"), datetime.fromisoformat),
        started_at=_optional(document.get("started_at"), datetime.fromisoformat),
        ended_at=_optional(document.get("ended_at"), datetime.fromisoformat),
        training_since=_optional(document.get("training_since"), datetime.fromisoformat),
        ends_by=_optional(document.get("ends_by"), datetime.fromisoformat),
        position=_optional(document.get("position"), int),
        ahead_at_least=_optional(document.get("ahead_at_least"), int),
        waiting=_optional(document.get("waiting"), Reason.parse),
        reason=_optional(document.get("reason"), Reason.parse),
        parents=tuple(Parent.parse(entry) for entry in document.get("after") or ()),
        array=printable((document.get("array") or {}).get("name")),
        attempt=_optional(document.get("attempt"), int),
        training_job_name=printable(document.get("training_job_name")),
        cost_usd=_optional(document.get("cost_usd"), float),
        attempts=tuple(Attempt.parse(entry) for entry in document.get("attempts") or ()),
        history=tuple(sorted(transitions, key=lambda transition: transition.at)),
    )


def _optional(value: Any, parse: Callable[[Any], T]) -> T | None:  # noqa: ANN401  JSON
    return None if value is None else parse(value)


def _diagnosis(document: Mapping[str, Any]) -> str:
    code, evidence = document.get("exit_code"), document.get("evidence")
    exited = f", exit code {printable(code)}" if code is not None else ""
    seen = f" ({printable(evidence)})" if evidence else ""
    return f"{printable(document.get('class'))}{exited}: {printable(document.get('advice'))}{seen}"


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S")
