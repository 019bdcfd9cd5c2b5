"""One state of the world, small enough to be compared with millions of others."""

from dataclasses import dataclass
from typing import NamedTuple

from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.planning.snapshot import PreemptionReservation, WarmPool


class State(NamedTuple):
    """All that matters of one instant, as tokens."""

    jobs: tuple[int, ...]
    rows: int
    training: tuple[int, ...]
    processes: tuple["Moving", ...]
    left: tuple[int, ...]
    """Faults that may still come, by ``Budget``'s fields."""
    stops: frozenset[str]
    """Jobs whose users were told that they stop."""


class Moving(NamedTuple):
    """A process stopped before a write: what it does, and the answers it has had."""

    act: str
    subject: str
    late: int
    """How many leases of the job were over when it began."""
    answers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """Counters of the pool and what hangs on them."""

    used: int
    warm: int
    holds: tuple[PreemptionReservation, ...]
    warm_pools: tuple[WarmPool, ...]
    limit: AccountLimit | None
