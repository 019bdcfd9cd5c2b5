"""Count one pool again at one instant: compare what follows from its jobs with its rows, and write it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.array_layout import HAS_ARRAYS
from trainmaster.adapters.dynamodb.array_recounts import TRIES, ArrayRecounts
from trainmaster.adapters.dynamodb.attribute_values import value
from trainmaster.adapters.dynamodb.calls import MAX_ITEMS, ConditionsFailedError, key_attributes
from trainmaster.adapters.dynamodb.codec import named
from trainmaster.adapters.dynamodb.counting import lane_item
from trainmaster.adapters.dynamodb.guard import Item, pool_of
from trainmaster.adapters.dynamodb.pool_reads import MOST_MARKED_TEAMS
from trainmaster.adapters.dynamodb.recount import (
    Recount,
    entries_of,
    entry_fields,
    judged,
    recounted,
    sums_of,
    undecodable,
)
from trainmaster.adapters.dynamodb.updates import Update
from trainmaster.adapters.dynamodb.writes import Operation
from trainmaster.core.errors import LostRaceError
from trainmaster.core.jobs.model import Job
from trainmaster.core.planning.snapshot import LaneRow
from trainmaster.core.row_differences import Difference, PoolFound, differences


class PoolRecounts(ArrayRecounts):
    def recount(self, pool: str, counted: PoolFound, *, apply: bool) -> tuple[Difference, ...]:
        """Compare the pool's rows with its jobs; with ``apply`` correct them.

        The tasks of its arrays come first, as the rows of a task name its array. Raises LostRaceError when
        the pool kept changing.
        """
        of_arrays = tuple(self._recount_arrays(pool, apply=apply))
        for _ in range(TRIES):
            before = self._sums(pool)
            lanes = self._lanes(pool)
            entries, jobs, broken = self._entries(pool, counted, before, lanes)
            warm = list(self._rows.query(layout.warm_partition(pool)))
            arrays = self._open_arrays(pool)
            if self._sums(pool) != before:
                continue
            wanted = recounted(pool, jobs.values(), broken, warm, arrays)
            different = tuple(differences(*_compared(wanted, entries, before, lanes)))
            if not apply:
                return (*of_arrays, *different)
            try:
                self._apply(pool, wanted, entries, jobs, before)
                self._add_lanes(wanted, lanes)
            except ConditionsFailedError:
                continue
            return (*of_arrays, *different)
        raise LostRaceError(f"pool {pool} kept changing")

    def _sums(self, pool: str) -> dict[layout.Key, Item]:
        key = layout.counters_key(pool)
        counters = self._rows.get(key)
        items = [*([] if counters is None else [counters]), *self._rows.query(layout.team_partition(pool))]
        return {(row["pk"], row["sk"]): row for row in items}

    def _lanes(self, pool: str) -> dict[layout.Key, Item]:
        return {(row["pk"], row["sk"]): row for row in self._rows.query(layout.lanes_partition(pool))}

    def _entries(
        self,
        pool: str,
        counted: PoolFound,
        sums: Mapping[layout.Key, Item],
        lanes: Mapping[layout.Key, Item],
    ) -> tuple[dict[layout.Key, Item], dict[str, Job], list[Item]]:
        """Return rows of queue, parking and running; the jobs behind them; rows whose jobs are unreadable."""
        jobs, broken = self._jobs(counted.names)
        partitions = {
            *counted.lanes,
            *(layout.queue_partition(pool, *team_and_lane) for team_and_lane in _named_lanes(sums, lanes)),
            *(layout.team_order_partition(pool, team) for _, team in sums),
            *(key[0] for job in jobs.values() if not job.is_final for key in entries_of(job)),
            layout.order_partition(pool),
            layout.running_partition(pool),
            layout.parked_partition(pool),
        }
        entries: dict[layout.Key, Item] = {
            (row["pk"], row["sk"]): row
            for partition in sorted(partitions)
            if pool_of(partition) == pool
            for row in self._rows.query(partition)
        }
        others = {_name_of(key) for key in entries} - jobs.keys() - broken
        other_jobs, others_broken = self._jobs(sorted(others))
        broken |= others_broken
        return entries, jobs | other_jobs, [row for key, row in entries.items() if _name_of(key) in broken]

    # ---- writing

    def _apply(
        self,
        pool: str,
        wanted: Recount,
        entries: Mapping[layout.Key, Item],
        jobs: Mapping[str, Job],
        sums: Mapping[layout.Key, Item],
    ) -> None:
        """Write entries before the sums that count them. Each write holds only while its job is as read."""
        for key in sorted(entries.keys() | wanted.entries.keys()):
            row = wanted.entries.get(key)
            if key in wanted.kept or (row and _holds(row, entries.get(key))):
                continue
            name = _name_of(key)
            change = self._delete(key) if row is None else self._writes.put(key, row)
            self._transactions.write([self._unchanged(name, jobs.get(name)), change])
        updates = [update for update in self._sum_updates(pool, wanted, sums) if update is not None]
        for start in range(0, len(updates), MAX_ITEMS):
            self._transactions.write(updates[start : start + MAX_ITEMS])

    def _add_lanes(self, wanted: Recount, lanes: Mapping[layout.Key, Item]) -> None:
        """Write lanes that are missing or broken, as if a job had just entered them."""
        for key, row in wanted.lanes.items():
            stored = lanes.get(key, {})
            if not _is_lane(row, stored):
                puts = stored.get(layout.LANE_PUTS)
                again = replace(row, puts=1 + (puts if isinstance(puts, int) else 0))
                self._transactions.write([self._writes.put(key, lane_item(again))])

    def _unchanged(self, name: str, job: Job | None) -> Operation:
        check: dict[str, Any] = {
            "TableName": self._table,
            "Key": key_attributes(layout.job_key(name)),
            "ConditionExpression": "attribute_not_exists(pk)" if job is None else "ver = :ver",
        }
        if job is not None:
            check["ExpressionAttributeValues"] = {":ver": value(job.ver)}
        return {"ConditionCheck": check}

    def _delete(self, key: layout.Key) -> Operation:
        return {"Delete": {"TableName": self._table, "Key": key_attributes(key)}}

    def _sum_updates(
        self, pool: str, wanted: Recount, sums: Mapping[layout.Key, Item]
    ) -> Iterator[Operation | None]:
        counters = layout.counters_key(pool)
        teams = {key for key in wanted.sums.keys() | sums.keys() if key != counters}
        for key in sorted(teams):
            yield self._set(key, wanted, sums.get(key, {}), marks=(layout.COUNTED,))
        marks = tuple(layout.known_team(team) for _, team in sorted(teams)[:MOST_MARKED_TEAMS])
        if wanted.has_arrays:
            marks = (*marks, HAS_ARRAYS)
        yield self._set(counters, wanted, sums.get(counters, {}), marks=marks)

    def _set(
        self, key: layout.Key, recount: Recount, stored: Item, *, marks: tuple[str, ...]
    ) -> Operation | None:
        """Set each counted field as it should be, if it is still as it was read."""
        wanted, judges = recount.sums.get(key, {}), recount.judges
        counted = sums_of(stored)
        fields = {name: wanted.get(name, 0) for name in sorted({*wanted, *counted}) if judges(name)}
        changed = {name: count for name, count in fields.items() if counted.get(name) != count}
        removed = sorted(undecodable(stored)) if key[1] == layout.COUNTERS else []
        new_marks = [mark for mark in marks if mark not in stored]
        if not (changed or removed or new_marks):
            return None
        change = Update(put=changed | dict.fromkeys(new_marks, True), remove=removed)
        for name in change.put:
            as_it_was = ("#n = :v", counted[name]) if name in counted else ("attribute_not_exists(#n)", None)
            change.conditions.append((as_it_was[0], name, as_it_was[1]))
        return self._writes.update(key, change)


def _compared(
    wanted: Recount,
    entries: Mapping[layout.Key, Item],
    sums: Mapping[layout.Key, Item],
    lanes: Mapping[layout.Key, Item],
) -> tuple[dict[str, Mapping[str, Any]], dict[str, Mapping[str, Any]]]:
    """Return expected and stored rows by their keys as text, with only the fields that we compare."""
    expected: dict[str, Mapping[str, Any]] = {
        "/".join(key): judged(row) for key, row in wanted.entries.items()
    }
    stored: dict[str, Mapping[str, Any]] = {
        "/".join(key): entry_fields(row, wanted.entries.get(key, row))
        for key, row in entries.items()
        if key not in wanted.kept
    }
    for key in wanted.sums.keys() | sums.keys():
        item = sums.get(key, {})
        counted = {name: count for name, count in sums_of(item).items() if wanted.judges(name)}
        expected["/".join(key)] = {
            name: count for name, count in wanted.sums.get(key, {}).items() if wanted.judges(name)
        }
        stored["/".join(key)] = counted | {name: item[name] for name in undecodable(item)}
    for key, row in wanted.lanes.items():
        if not _is_lane(row, lanes.get(key, {})):
            expected["/".join(key)] = {layout.LANE_TEAM: row.team, layout.LANE_TEXT: row.text}
    return expected, stored


def _holds(row: Mapping[str, Any], stored: Item | None) -> bool:
    return stored is not None and entry_fields(stored, row) == judged(row)


def _is_lane(row: LaneRow, stored: Item) -> bool:
    fields = ((layout.LANE_TEAM, row.team), (layout.LANE_TEXT, row.text))
    counts = isinstance(stored.get(layout.LANE_PUTS), int)
    return counts and all(stored.get(name) == content for name, content in fields)


def _named_lanes(
    sums: Mapping[layout.Key, Item], lanes: Mapping[layout.Key, Item]
) -> Iterator[tuple[str, str]]:
    """Yield team and lane of every lane's row, and of the lanes that the previous release left at teams."""
    for row in lanes.values():
        team, text = row.get(layout.LANE_TEAM), row.get(layout.LANE_TEXT)
        if isinstance(team, str) and isinstance(text, str):
            yield team, text
    for (_, team), row in sums.items():
        yield from ((team, lane) for lane, _ in named(row, layout.LANE) if lane)


def _name_of(key: layout.Key) -> str:
    return key[1] if key[0].startswith("R#") else key[1].partition("#")[2]
