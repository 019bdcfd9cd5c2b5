"""The parts that a list of jobs is made of, each in an order of its own."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from trainmaster.api.request_context import ApiReader
from trainmaster.core.jobs.model import FINAL, LIVE, WAITING, JobState, epoch_ms

Order: TypeAlias = tuple[int | str, ...]
"""An entry's place in its stretch; the name is the last part, so no two are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the queue, before its job is read."""

    name: str
    team: str
    state: JobState
    order: Order


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    name: str
    read: Callable[[Order | None, int], Sequence[Entry]]
    """Entries from behind a place, at most so many, in their order."""
    has_turns: bool = False
    """Its entries have positions."""


def unfinished(pools: Iterable[str], state: JobState | None, reader: ApiReader) -> list[Stretch]:
    """Pool by pool: what runs, what waits its turn, what waits for something else."""
    stretches: list[Stretch] = []
    for pool in pools:
        if state is None or state in LIVE:
            stretches.append(_running(pool, reader))
        if state is None or state in WAITING:
            stretches.append(_waiting(pool, reader))
        if state is None or state in WAITING or state is JobState.HELD:
            stretches.append(_parked(pool, reader))
    return stretches


def finished(teams: Iterable[str], state: JobState, reader: ApiReader) -> list[Stretch]:
    """Team by team, the newest end first."""
    assert state in FINAL, state
    return [_finished(team, state, reader) for team in teams]


def _running(pool: str, reader: ApiReader) -> Stretch:
    def read(after: Order | None, limit: int) -> Sequence[Entry]:
        entries = (
            Entry(
                name=job.name,
                team=job.team,
                state=job.state,
                order=(-job.priority, epoch_ms(job.claimed_at), job.name),
            )
            for job in reader.running(pool)
        )
        return sorted((one for one in entries if after is None or one.order > after), key=_order)[:limit]

    return Stretch(name=f"running:{pool}", read=read)


def _waiting(pool: str, reader: ApiReader) -> Stretch:
    def read(after: Order | None, limit: int) -> Sequence[Entry]:
        rows = reader.waiting(pool, after=_pair(after), limit=limit)
        return [Entry(name=row.name, team=row.team, state=row.state, order=row.rank) for row in rows]

    return Stretch(name=f"waiting:{pool}", read=read, has_turns=True)


def _parked(pool: str, reader: ApiReader) -> Stretch:
    def read(after: Order | None, limit: int) -> Sequence[Entry]:
        rows = reader.parked(pool, after=_pair(after), limit=limit)
        return [
            Entry(name=row.name, team=row.team, state=row.state, order=(row.parked_until_ms, row.name))
            for row in rows
        ]

    return Stretch(name=f"parked:{pool}", read=read)


def _finished(team: str, state: JobState, reader: ApiReader) -> Stretch:
    def read(after: Order | None, limit: int) -> Sequence[Entry]:
        behind = None if after is None else (str(after[0]), str(after[1]))
        rows = reader.finished(team, state=state, after=behind, limit=limit)
        return [Entry(name=name, team=team, state=state, order=(ended_at, name)) for ended_at, name in rows]

    return Stretch(name=f"finished:{team}", read=read)


def _pair(after: Order | None) -> tuple[int, str] | None:
    return None if after is None else (int(after[0]), str(after[1]))


def _order(entry: Entry) -> Order:
    return entry.order
