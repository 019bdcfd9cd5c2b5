"""Decides which checkpoints each run of ``reconcile`` looks at: each job's in one of five."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Self

from trainmaster.core.monitoring.checkpoints import CHECKPOINT_RUNS, looks_at

_MINUTES = tuple(datetime(2000, 1, 1, tzinfo=UTC) + timedelta(minutes=n) for n in range(CHECKPOINT_RUNS))


def _turn_of(instant: datetime) -> int:
    return int(instant.timestamp() // 60) % CHECKPOINT_RUNS


def _no_names() -> list[dict[str, None]]:
    return [{} for _ in range(CHECKPOINT_RUNS)]


@dataclass(slots=True, kw_only=True)
class CheckpointTurns:
    """Running jobs that save, by the turn that ``looks_at`` gives them."""

    turns: dict[str, int] = field(default_factory=dict)
    names: list[dict[str, None]] = field(default_factory=_no_names)

    def add(self, name: str) -> None:
        if name not in self.turns:
            turn = _turn_of(next(minute for minute in _MINUTES if looks_at(name, now=minute)))
            self.turns[name] = turn
            self.names[turn][name] = None

    def discard(self, name: str) -> None:
        turn = self.turns.pop(name, None)
        if turn is not None:
            del self.names[turn][name]

    def of(self, instant: datetime) -> list[str]:
        return list(self.names[_turn_of(instant)])

    def fork(self) -> Self:
        return type(self)(turns=dict(self.turns), names=[dict(names) for names in self.names])
