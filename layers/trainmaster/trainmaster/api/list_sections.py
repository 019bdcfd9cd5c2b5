"""The sections of a list of jobs: running, waiting and parked for each pool, finished for each team."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from trainmaster.api.request_context import ApiReader
from trainmaster.core.jobs.model import FINAL, LIVE, WAITING, JobState, epoch_ms

Order: TypeAlias = tuple[int | str, ...]
"""An entry's position in its section; the name is the last part, so no two are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Describes one line of the queue, before its job is read."""

    name: str
    team: str
    state: JobState
    order: Order
    ver: int = 0
    """Version of the job when its entry was written; any change but one of its reason rewrites it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSection:
    name: str
    read: Callable[[Order | None, int], Sequence[Entry]]
    """Reads at most so many entries from behind a position, in order."""
    has_turns: bool = False
    """Whether its entries have positions."""


Shifts: TypeAlias = Callable[[str], Mapping[str, int] | None]
"""Returns how past use moves the jobs of each team of a pool; None if it does not."""


def unfinished(
    pools: Iterable[str], state: JobState | None, reader: ApiReader, shifts: Shifts
) -> list[ListSection]:
    """List the sections pool by pool: running, waiting for a turn, waiting for something else."""
    list_sections: list[ListSection] = []
    for pool in pools:
        if state is None or state in LIVE:
            list_sections.append(_running(pool, reader))
        if state is None or state in WAITING:
            list_sections.append(_waiting(pool, reader, shifts))
        if state is None or state in WAITING or state is JobState.HELD:
            list_sections.append(_parked(pool, reader))
    return list_sections


def finished(teams: Iterable[str], state: JobState, reader: ApiReader) -> list[ListSection]:
    """List the sections team by team, the newest end first."""
    assert state in FINAL, state
    return [_finished(team, state, reader) for team in teams]


def _running(pool: str, reader: ApiReader) -> ListSection:
    def read(after: Order | None, limit: int) -> Sequence[Entry]:
        entries = (
            Entry(
                name=job.name,
                team=job.team,
                state=job.state,
                order=(-job.priority, epoch_ms(job.claimed_at), job.name),
                ver=job.ver,
            )
            for job in reader.running(pool)
        )
        return sorted((entry for entry in entries if after is None or entry.order > after), key=_order)[
            :limit
        ]

    return ListSection(name=f"running:{pool}", read=read)


def _waiting(pool: str, reader: ApiReader, shifts: Shifts) -> ListSection:
    known = cache(shifts)  # once for all reads of an answer

    def read(after: Order | None, limit: int) -> Sequence[Entry]:
        rows = reader.waiting(pool, after=_pair(after), limit=limit, shifts=known(pool))
        return [
            Entry(name=row.name, team=row.team, state=row.state, order=row.rank, ver=row.ver) for row in rows
        ]

    return ListSection(name=f"waiting:{pool}", read=read, has_turns=True)


def _parked(pool: str, reader: ApiReader) -> ListSection:
    def read(after: Order | None, limit: int) -> Sequence[Entry]:
        rows = reader.parked(pool, after=_pair(after), limit=limit)
        return [
            Entry(
                name=row.name,
                team=row.team,
                state=row.state,
                order=(row.parked_until_ms, row.name),
                ver=row.ver,
            )
            for row in rows
        ]

    return ListSection(name=f"parked:{pool}", read=read)


def _finished(team: str, state: JobState, reader: ApiReader) -> ListSection:
    def read(after: Order | None, limit: int) -> Sequence[Entry]:
        behind = None if after is None else (str(after[0]), str(after[1]))
        rows = reader.finished(team, state=state, after=behind, limit=limit)
        return [Entry(name=name, team=team, state=state, order=(ended_at, name)) for ended_at, name in rows]

    return ListSection(name=f"finished:{team}", read=read)


def _pair(after: Order | None) -> tuple[int, str] | None:
    return None if after is None else (int(after[0]), str(after[1]))


def _order(entry: Entry) -> Order:
    return entry.order
