"""Ports that answer a process as they did before, let it change one thing more, and then stop it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainmaster.core.errors import TrainmasterError
from trainmaster.core.lifecycle.change import Change

READS = frozenset(
    {
        "job",
        "alias",
        "request",
        "snapshot",
        "pool_state",
        "current",
        "describe",
        "is_listed",
        "tags",
        "ring",
        "tell",
        "jobs",
    }
)
"""What changes nothing that a state holds: no need to stop before it."""


class SuspendedError(BaseException):
    """The process is about to change something; no ``except Exception`` sees it."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An answer that was an error."""

    error: TrainmasterError


@dataclass(slots=True, kw_only=True)
class Replay:
    """The answers of one process, and how far it may go."""

    answers: list[Any]
    may_change: bool
    outcome: str = "ok"
    """What becomes of a CreateTrainingJob."""
    given: int = field(default=0)

    def watched(self, port: object) -> Any:
        return _Watched(port, self)

    def around(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            if self.given == len(self.answers):
                self.answers.append(self._new_answer(name, method, args, named))
            answer = self.answers[self.given]
            self.given += 1
            if isinstance(answer, Raised):
                raise answer.error
            return answer

        return call

    def _new_answer(self, name: str, method: Callable[..., Any], args: Any, named: Any) -> Any:
        if name not in READS and not _only_explains(name, args):
            if not self.may_change:
                raise SuspendedError
            self.may_change = False
        if name == "create":
            named = {"outcome": self.outcome}
        try:
            return method(*args, **named)
        except TrainmasterError as error:
            return Raised(error)


def _only_explains(name: str, args: Any) -> bool:
    """Reasons of waiting jobs are not part of a state."""
    if name != "commit":
        return name in {"ranked", "warned"}
    changes: list[Change] = args[0]
    return all(
        one.before.state is one.after.state
        and one.before.live is one.after.live is None
        and one.before.not_before == one.after.not_before
        for one in changes
    )


class _Watched:
    """A port with every call of it watched."""

    def __init__(self, port: object, replay: Replay) -> None:
        self._port = port
        self._replay = replay

    def __getattr__(self, name: str) -> Any:
        call = self._replay.around(name, getattr(self._port, name))
        setattr(self, name, call)
        return call
