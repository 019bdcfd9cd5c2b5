"""Read the queue of one pool: its order from any rank on, for people, and the candidates of a pass."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain, islice, repeat
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.calls import PAGE, SortKeys
from trainmaster.adapters.dynamodb.guard import MOST_SKIPPED, GuardedReads, Item, Report, unreported
from trainmaster.adapters.dynamodb.pool_rows import TeamRow, lane_row, team_row, waiting_row
from trainmaster.core.planning.candidates import (
    FIRST,
    HEADS,
    MAX_KNOWN,
    MAX_LANES,
    LaneRead,
    lanes_to_read,
    order_to_read,
    ring_point,
    teams_to_read,
)
from trainmaster.core.planning.fair_share import shifted
from trainmaster.core.planning.snapshot import LaneRow, WaitingJob
from trainmaster.core.records import SetAside

AT_ONCE = 1000
"""Rows of one call where all are wanted; DynamoDB returns at most 1 MB."""


@dataclass(slots=True)
class Candidates:
    """Collects the entries and empty lanes that a pass has read of a queue."""

    entries: dict[str, WaitingJob] = field(default_factory=dict)
    """Entries by the job's name."""
    empty: tuple[LaneRow, ...] = ()
    earlier: tuple[LaneRow, ...] = ()
    is_whole: bool = False
    """Whether every waiting job is among the entries."""

    def add(self, entries: Iterable[WaitingJob]) -> None:
        for entry in entries:
            self.entries.setdefault(entry.name, entry)

    @property
    def waiting(self) -> tuple[WaitingJob, ...]:
        return tuple(self.entries.values())


Beside = Callable[[Iterable[Callable[[], object]]], None]
"""Runs all tasks and returns when the last is done."""


def one_by_one(tasks: Iterable[Callable[[], object]]) -> None:
    for task in tasks:
        task()


class QueueReads(GuardedReads):
    """Skips unreadable entries of the queue, but only a bounded number of them."""

    def __init__(
        self, client: Any, *, table: str, report: Report = unreported, beside: Beside = one_by_one
    ) -> None:
        super().__init__(client, table=table, report=report)
        self._beside = beside

    # ---- in turn, for people

    def queue_length(self, pool: str) -> int:
        return sum(row.queued for row in self._teams(pool))

    def waiting(
        self,
        pool: str,
        *,
        after: tuple[int, str] | None,
        limit: int,
        shifts: Mapping[str, int] | None = None,
    ) -> tuple[WaitingJob, ...]:
        """Read the pool's order, and each lane that is not in it yet.

        With shifts each team's order is read, side by side: within a team shifts change nothing.
        """
        teams = self._teams(pool)
        runs = self._shifted(pool, teams, after, limit, shifts) if shifts else []
        if not shifts:
            partitions = [layout.order_partition(pool), *(_partition(pool, lane) for lane in _earlier(teams))]
            runs = [self._behind(partition, after, limit) for partition in partitions]
        merged = heapq.merge(*runs, key=lambda entry: entry.rank)
        return tuple(islice(_once(merged), limit))

    def _shifted(
        self,
        pool: str,
        teams: Iterable[TeamRow],
        after: tuple[int, str] | None,
        limit: int,
        shifts: Mapping[str, int],
    ) -> list[Iterator[WaitingJob]]:
        own = [(row.name, layout.team_order_partition(pool, row.name)) for row in teams if row.queued]
        own += [(lane.team, _partition(pool, lane)) for lane in _earlier(teams)]
        page = max(HEADS, min(limit, PAGE) // max(len(own), 1))
        parts = []
        for team, partition in own:
            behind = None if after is None else (after[0] - shifts.get(team, 0), after[1])
            parts.append(_Part(partition, _behind(behind), page))
        return [
            (shifted(entry, shifts) for entry in self._understood(items, waiting_row))
            for items in self._parts(parts)
        ]

    def _behind(self, partition: str, after: tuple[int, str] | None, limit: int) -> Iterator[WaitingJob]:
        items = self._rows.query(partition, _behind(after), page=min(limit, PAGE))
        return self._understood(items, waiting_row)

    # ---- a pass

    def _candidates(
        self, pool: str, teams: Iterable[TeamRow], skip: frozenset[str], *, now: datetime | None
    ) -> Candidates:
        """Read the candidates of a pass; with ``now`` None the lanes that no candidate covers are left out.

        Lanes are listed before entries: a lane that is then found empty, and that no job entered since it
        was listed, is empty. Jobs of unreadable teams are no candidates.
        """
        queued = {row.name: row.queued for row in teams}
        known = [] if now is None else self._known_lanes(pool, now if any(queued.values()) else None)
        candidates = Candidates(earlier=_earlier(teams))

        def wanted(entry: WaitingJob) -> bool:
            return entry.name not in skip and entry.team in queued

        first = _Counted(self._rows.query(layout.order_partition(pool), page=FIRST))
        candidates.add(self._first(first, wanted, most=FIRST))
        # The page held the whole queue, and every entry of it is a candidate: no other read finds more.
        candidates.is_whole = first.is_through and first.count == len(candidates.entries)
        self._read_heads(pool, queued, candidates, wanted)
        self._read_lanes(
            pool, lanes_to_read(known, candidates.waiting, now=now) if now else (), candidates, wanted
        )
        for items in self._parts([_Part(_partition(pool, lane)) for lane in candidates.earlier[:MAX_LANES]]):
            candidates.add(self._first(items, wanted, most=HEADS))
        return candidates

    def _read_heads(
        self,
        pool: str,
        queued: Mapping[str, int],
        candidates: Candidates,
        wanted: Callable[[WaitingJob], bool],
    ) -> None:
        """Read the first jobs of each team, or one page of the pool's order where that covers most teams."""
        teams = teams_to_read(candidates.waiting, queued)
        if most := order_to_read(teams, queued):
            known = candidates.waiting
            after = _behind(known[-1].rank if known else None)
            further = self._rows.query(layout.order_partition(pool), after, page=AT_ONCE)
            candidates.add(self._first(further, wanted, most=most))
            teams = teams_to_read(candidates.waiting, queued)
        for items in self._parts([_Part(layout.team_order_partition(pool, team)) for team in teams]):
            candidates.add(self._first(items, wanted, most=HEADS))

    def _read_lanes(
        self,
        pool: str,
        reads: Sequence[LaneRead],
        candidates: Candidates,
        wanted: Callable[[WaitingJob], bool],
    ) -> None:
        """Read lanes; if every job is known already, read nothing: a job that is not among them has left."""
        read_now = repeat(()) if candidates.is_whole else self._parts([_part(pool, read) for read in reads])
        empty: list[LaneRow] = []
        for read, rows in zip(reads, read_now, strict=False):
            items = _Counted(rows)
            candidates.add(self._first(items, wanted, most=read.most))
            if not items.count and read.after is None:
                empty.append(read.lane)
        candidates.empty = tuple(empty)

    def _known_lanes(self, pool: str, now: datetime | None) -> list[LaneRow]:
        """List lanes in a ring from this minute's point on; with None only the first ones."""
        partition = layout.lanes_partition(pool)
        if now is None:
            rows = islice(self._rows.query(partition, page=MAX_KNOWN), MAX_KNOWN)
            return list(self._understood(rows, lane_row))
        point = ring_point(now)
        behind = islice(self._rows.query(partition, SortKeys.behind(point), page=MAX_KNOWN), MAX_KNOWN)
        lanes = list(self._understood(behind, lane_row))
        if len(lanes) < MAX_KNOWN:
            rest = self._rows.query(partition, SortKeys.up_to(point), page=MAX_KNOWN - len(lanes))
            lanes += self._understood(islice(rest, MAX_KNOWN - len(lanes)), lane_row)
        return lanes

    def _parts(self, parts: Sequence["_Part"]) -> list[Iterator[Item]]:
        """Read the first page of each part side by side; further pages are read as they are drawn."""
        pages: list[_Page | Exception | None] = [None] * len(parts)

        def read(number: int) -> None:
            part = parts[number]
            try:
                pages[number] = self._rows.first(part.partition, part.keys, most=part.page)
            except Exception as error:  # noqa: BLE001  raised below, in the order of the parts
                pages[number] = error

        self._beside(partial(read, number) for number in range(len(parts)))
        return [self._from(page, part) for page, part in zip(pages, parts, strict=True)]

    def _from(self, page: "_Page | Exception | None", part: "_Part") -> Iterator[Item]:
        assert page is not None, part
        if isinstance(page, Exception):
            raise page
        items, are_more = page
        return chain(items, self._rest(items[-1]["sk"], part) if items and are_more else ())

    def _rest(self, after: str, part: "_Part") -> Iterator[Item]:
        """Yield further pages; as a generator it reads nothing before the first is drawn."""
        yield from self._rows.query(part.partition, SortKeys.behind(after), page=part.page)

    def _first(
        self, items: Iterable[Item], wanted: Callable[[WaitingJob], bool], *, most: int
    ) -> Iterator[WaitingJob]:
        entries = self._understood(islice(items, most + MOST_SKIPPED), waiting_row)
        return islice((entry for entry in entries if wanted(entry)), most)

    # ---- teams

    def _teams(self, pool: str, known: frozenset[str] = frozenset()) -> list[TeamRow]:
        """Read the teams; a counted team whose row is gone, or was made again by an increment, is omitted."""
        understand = partial(team_row, report=self._report)
        understood = self._understood(self._rows.query(layout.team_partition(pool)), understand)
        rows = {row.name: row for row in understood}
        lost = sorted(team for team in known if team not in rows or not rows[team].is_counted)
        for team in lost:
            error = "the pool counts the team, and its row is gone or was made again since"
            self._report(SetAside(key="/".join(layout.team_key(pool, team)), error=error, pool=pool))
        return [row for name, row in rows.items() if name not in lost]


_Page = tuple[list[dict[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class _Part:
    """Describes a part of the queue, from some rank on."""

    partition: str
    keys: SortKeys | None = None
    page: int = HEADS


class _Counted:
    """Counts rows as they are drawn, and notes whether there were no more."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = items
        self.count = 0
        self.is_through = False

    def __iter__(self) -> Iterator[Item]:
        for row in self._items:
            self.count += 1
            yield row
        self.is_through = True


def _earlier(teams: Iterable[TeamRow]) -> tuple[LaneRow, ...]:
    return tuple(
        LaneRow(team=row.name, text=text, puts=count)
        for row in teams
        for text, count in sorted(row.earlier_lanes.items())
    )


def _partition(pool: str, lane: LaneRow) -> str:
    return layout.queue_partition(pool, lane.team, lane.text)


def _part(pool: str, read: LaneRead) -> _Part:
    return _Part(_partition(pool, read.lane), _behind(read.after), read.most)


def _behind(after: tuple[int, str] | None) -> SortKeys | None:
    return None if after is None else SortKeys.behind(layout.rank_text(*after))


def _once(entries: Iterable[WaitingJob]) -> Iterator[WaitingJob]:
    """Yield entries in their order, a job that comes twice in a row only once."""
    last: str | None = None
    for entry in entries:
        if entry.name != last:
            yield entry
        last = entry.name
