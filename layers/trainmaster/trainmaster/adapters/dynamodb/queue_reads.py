"""The queue of one pool: its order, read for people from any rank on, and the candidates of a pass."""

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
"""Rows of one call where all are wanted; DynamoDB gives no more than 1 MB."""


@dataclass(slots=True)
class Candidates:
    """Entries and empty lanes that a pass has read of a queue."""

    entries: dict[str, WaitingJob] = field(default_factory=dict)
    """Entries by the job's name."""
    empty: tuple[LaneRow, ...] = ()
    earlier: tuple[LaneRow, ...] = ()
    is_whole: bool = False
    """Everybody who waits is among them."""

    def add(self, entries: Iterable[WaitingJob]) -> None:
        for entry in entries:
            self.entries.setdefault(entry.name, entry)

    @property
    def waiting(self) -> tuple[WaitingJob, ...]:
        return tuple(self.entries.values())


Beside = Callable[[Iterable[Callable[[], object]]], None]
"""Does all of them before it comes back."""


def one_by_one(tasks: Iterable[Callable[[], object]]) -> None:
    for task in tasks:
        task()


class QueueReads(GuardedReads):
    """Queue entries that cannot be understood are passed over; it does not look on for ever."""

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
        """One read of the pool's order, and one of each lane that is not in it yet.

        With shifts one of each team's order, beside each other: within a team they change nothing.
        """
        teams = self._teams(pool)
        runs = self._shifted(pool, teams, after, limit, shifts) if shifts else []
        if not shifts:
            partitions = [layout.order_partition(pool), *(_partition(pool, one) for one in _earlier(teams))]
            runs = [self._behind(one, after, limit) for one in partitions]
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
        """``now``: None leaves out the lanes that nobody speaks for.

        Lanes are read before anybody: one that is found empty then, and that nobody was put into since it
        was read, is empty. Who belongs to no team that can be understood is no candidate.
        """
        queued = {row.name: row.queued for row in teams}
        known = [] if now is None else self._known_lanes(pool, now if any(queued.values()) else None)
        found = Candidates(earlier=_earlier(teams))

        def wanted(entry: WaitingJob) -> bool:
            return entry.name not in skip and entry.team in queued

        first = _Counted(self._rows.query(layout.order_partition(pool), page=FIRST))
        found.add(self._first(first, wanted, most=FIRST))
        found.is_whole = first.is_through and first.count == len(found.entries)
        self._read_heads(pool, queued, found, wanted)
        self._read_lanes(pool, lanes_to_read(known, found.waiting, now=now) if now else (), found, wanted)
        for items in self._parts([_Part(_partition(pool, lane)) for lane in found.earlier[:MAX_LANES]]):
            found.add(self._first(items, wanted, most=HEADS))
        return found

    def _read_heads(
        self, pool: str, queued: Mapping[str, int], found: Candidates, wanted: Callable[[WaitingJob], bool]
    ) -> None:
        """Read the first jobs of each team.

        If one read of the pool's order knows most teams, only those of the others.
        """
        teams = teams_to_read(found.waiting, queued)
        if most := order_to_read(teams, queued):
            known = found.waiting
            after = _behind(known[-1].rank if known else None)
            further = self._rows.query(layout.order_partition(pool), after, page=AT_ONCE)
            found.add(self._first(further, wanted, most=most))
            teams = teams_to_read(found.waiting, queued)
        for items in self._parts([_Part(layout.team_order_partition(pool, team)) for team in teams]):
            found.add(self._first(items, wanted, most=HEADS))

    def _read_lanes(
        self,
        pool: str,
        reads: Sequence[LaneRead],
        found: Candidates,
        wanted: Callable[[WaitingJob], bool],
    ) -> None:
        """Read lanes; if every job is known already, read nothing: a job that is not among them has left."""
        read_now = repeat(()) if found.is_whole else self._parts([_part(pool, read) for read in reads])
        empty: list[LaneRow] = []
        for read, rows in zip(reads, read_now, strict=False):
            items = _Counted(rows)
            found.add(self._first(items, wanted, most=read.most))
            if not items.count and read.after is None:
                empty.append(read.lane)
        found.empty = tuple(empty)

    def _known_lanes(self, pool: str, now: datetime | None) -> list[LaneRow]:
        """Read lanes from the point of this minute on, then from the first again.

        With None just the first ones.
        """
        partition = layout.lanes_partition(pool)
        if now is None:
            rows = islice(self._rows.query(partition, page=MAX_KNOWN), MAX_KNOWN)
            return list(self._understood(rows, lane_row))
        point = ring_point(now)
        behind = islice(self._rows.query(partition, SortKeys.behind(point), page=MAX_KNOWN), MAX_KNOWN)
        found = list(self._understood(behind, lane_row))
        if len(found) < MAX_KNOWN:
            rest = self._rows.query(partition, SortKeys.up_to(point), page=MAX_KNOWN - len(found))
            found += self._understood(islice(rest, MAX_KNOWN - len(found)), lane_row)
        return found

    def _parts(self, parts: Sequence["_Part"]) -> list[Iterator[Item]]:
        """The first page of each, read beside each other, and who draws further than that reads on."""
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
        """A generator: nothing is read before somebody draws."""
        yield from self._rows.query(part.partition, SortKeys.behind(after), page=part.page)

    def _first(
        self, items: Iterable[Item], wanted: Callable[[WaitingJob], bool], *, most: int
    ) -> Iterator[WaitingJob]:
        entries = self._understood(islice(items, most + MOST_SKIPPED), waiting_row)
        return islice((entry for entry in entries if wanted(entry)), most)

    # ---- teams

    def _teams(self, pool: str, known: frozenset[str] = frozenset()) -> list[TeamRow]:
        """A row that is gone, or was made again by an increment, says nothing of the jobs before that."""
        understand = partial(team_row, report=self._report)
        found = self._understood(self._rows.query(layout.team_partition(pool)), understand)
        rows = {row.name: row for row in found}
        lost = sorted(team for team in known if team not in rows or not rows[team].is_counted)
        for team in lost:
            error = "the pool counts the team, and its row is gone or was made again since"
            self._report(SetAside(key="/".join(layout.team_key(pool, team)), error=error, pool=pool))
        return [row for name, row in rows.items() if name not in lost]


_Page = tuple[list[dict[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the queue, from some rank on."""

    partition: str
    keys: SortKeys | None = None
    page: int = HEADS


class _Counted:
    """Rows as they are drawn: how many, and whether there were no more."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = items
        self.count = 0
        self.is_through = False

    def __iter__(self) -> Iterator[Item]:
        for item in self._items:
            self.count += 1
            yield item
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
