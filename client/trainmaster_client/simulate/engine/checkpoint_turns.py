"""Decides which checkpoints each run of ``reconcile`` looks at: each job's in one of five."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Self

from trainmaster.core.monitoring.checkpoints import CHECKPOINT_RUNS, looks_at
from trainmaster.core.planning.snapshot import RunningJob

from trainmaster_client.simulate.engine.runs import Run

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
    nothing_new: dict[str, tuple[Run, RunningJob, float]] = field(default_factory=dict)
    """Run and row of jobs of which a look found nothing new, and the second of their next checkpoint."""

    def add(self, name: str) -> None:
        if name not in self.turns:
            turn = _turn_of(next(minute for minute in _MINUTES if looks_at(name, now=minute)))
            self.turns[name] = turn
            self.names[turn][name] = None

    def discard(self, name: str) -> None:
        turn = self.turns.pop(name, None)
        if turn is not None:
            del self.names[turn][name]
            self.nothing_new.pop(name, None)

    def of(self, instant: datetime) -> list[str]:
        return list(self.names[_turn_of(instant)])

    def finds_nothing(self, name: str, run: Run, entry: RunningJob, *, second: float) -> bool:
        """Tell whether a look surely finds nothing new: the last one did not, and none was written since."""
        looked = self.nothing_new.get(name)
        return looked is not None and looked[0] is run and looked[1] is entry and second < looked[2]

    def found_nothing(self, name: str, run: Run, entry: RunningJob, *, until: float) -> None:
        """Note a look that found nothing new, and the second in which the next checkpoint is written."""
        self.nothing_new[name] = (run, entry, until)

    def fork(self) -> Self:
        return type(self)(
            turns=dict(self.turns),
            names=[dict(names) for names in self.names],
            nothing_new=dict(self.nothing_new),
        )
