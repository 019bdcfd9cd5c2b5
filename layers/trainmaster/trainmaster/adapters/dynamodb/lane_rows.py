"""Maintain rows of lanes: drop empty ones, and move lanes of the previous release into the pool's order."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import groupby, islice
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.attribute_values import to_attributes, value
from trainmaster.adapters.dynamodb.calls import MAX_ITEMS, ConditionsFailedError, Transactions, key_attributes
from trainmaster.adapters.dynamodb.counting import enters_lane
from trainmaster.adapters.dynamodb.guard import GuardedReads, Item, Report, unreported
from trainmaster.adapters.dynamodb.pool_rows import waiting_row
from trainmaster.adapters.dynamodb.updates import Update, Updates
from trainmaster.adapters.dynamodb.writes import Operation, Writes
from trainmaster.core.errors import LostRaceError
from trainmaster.core.planning.snapshot import LaneRow, WaitingJob

AT_ONCE = 30
"""Entries of one transaction: a check and two rows each, and the row of the lane."""
BATCH = 100
"""Keys of one BatchGetItem. Source: DynamoDB limits."""
LANES_AT_ONCE = 50
"""Most lanes of one team's row that one write drops."""


class LaneRows(GuardedReads):
    """Changes the rows of lanes for a pass; see ``JobStore``."""

    def __init__(self, client: Any, *, table: str, writes: Writes, report: Report = unreported) -> None:
        super().__init__(client, table=table, report=report)
        self._writes = writes
        self._transactions = Transactions(client)

    def drop_lanes(self, pool: str, lanes: Iterable[LaneRow]) -> None:
        """Drop many lanes in one transaction; a lane that a job entered meanwhile stays."""
        deletes = [self._dropped(pool, lane) for lane in lanes]
        for start in range(0, len(deletes), MAX_ITEMS):
            with suppress(LostRaceError):
                self._drop(deletes[start : start + MAX_ITEMS])

    def _drop(self, deletes: Sequence[Operation]) -> None:
        while deletes:
            try:
                self._transactions.write(deletes)
            except ConditionsFailedError as error:
                deletes = [delete for number, delete in enumerate(deletes) if number not in error.positions]
            else:
                return

    def _dropped(self, pool: str, lane: LaneRow) -> Operation:
        delete = {
            "TableName": self._writes.table,
            "Key": key_attributes(layout.lane_key(pool, lane.team, lane.text)),
            "ConditionExpression": "#puts = :seen",
            "ExpressionAttributeNames": {"#puts": layout.LANE_PUTS},
            "ExpressionAttributeValues": {":seen": value(lane.puts)},
        }
        return {"Delete": delete}

    def take_over(self, pool: str, lanes: Sequence[LaneRow], *, in_time: Callable[[], bool]) -> None:
        """Move lanes into the pool's order.

        A team's last lanes are forgotten only when each job in the team's order is also in a lane.
        """
        for team, of_team in groupby(sorted(lanes, key=_team_of), key=_team_of):
            left = list(of_team)
            while batch := left[:LANES_AT_ONCE]:
                del left[:LANES_AT_ONCE]
                done = [lane for lane in batch if self._is_in_order(pool, lane, in_time)]
                if left or self._is_tidy(pool, team, in_time):
                    self._forget(pool, team, done)

    def _is_in_order(self, pool: str, lane: LaneRow, in_time: Callable[[], bool]) -> bool:
        if not in_time():
            return False
        items = self._rows.query(layout.queue_partition(pool, lane.team, lane.text))
        while entries := list(islice(items, AT_ONCE)):
            if not in_time():
                return False
            self._into_order(pool, entries)
        return True

    def _is_tidy(self, pool: str, team: str, in_time: Callable[[], bool]) -> bool:
        """Remove orphans from the team's order, and tell whether that was done in time.

        After a rollback the previous release takes jobs out of their lanes, and knows no other row of them.
        """
        items = self._rows.query(layout.team_order_partition(pool, team))
        while entries := list(self._understood(islice(items, BATCH), waiting_row)):
            if not in_time():
                return False
            keys = {layout.queue_keys(pool, entry)[-1]: entry for entry in entries}
            there = {(row["pk"], row["sk"]) for row in self._rows.several(keys)}
            for key, entry in keys.items():
                if key not in there:
                    self._remove(pool, entry)
        return True

    def _remove(self, pool: str, entry: WaitingJob) -> None:
        """Remove a queue entry, unless the job comes back to its lane at this very instant."""
        *others, in_lane = layout.queue_keys(pool, entry)
        gone = {
            "TableName": self._writes.table,
            "Key": key_attributes(in_lane),
            "ConditionExpression": "attribute_not_exists(pk)",
        }
        deletes = [
            {"Delete": {"TableName": self._writes.table, "Key": key_attributes(key)}} for key in others
        ]
        with suppress(ConditionsFailedError):
            self._transactions.write([{"ConditionCheck": gone}, *deletes])

    def _forget(self, pool: str, team: str, lanes: Sequence[LaneRow]) -> None:
        """Drop empty lanes in one write, as the row may be large.

        If a job came in, the next look reads them again.
        """
        update = Update(remove=[f"{layout.LANE}{lane.text}" for lane in lanes])
        update.conditions += [("#n = :v", f"{layout.LANE}{lane.text}", lane.puts) for lane in lanes]
        if lanes:
            with suppress(ConditionsFailedError):
                self._transactions.write([self._writes.update(layout.team_key(pool, team), update)])

    def _into_order(self, pool: str, entries: Sequence[Item]) -> None:
        """Move entries all at once; or each by itself if one of them has left meanwhile."""
        there = {row["sk"] for row in self._rows.several(_order_key(pool, entry) for entry in entries)}
        missing = [entry for entry in entries if entry["sk"] not in there and self._is_understood(entry)]
        try:
            self._put(pool, missing)
        except ConditionsFailedError:
            for entry in missing:
                with suppress(ConditionsFailedError):
                    self._put(pool, [entry])

    def _is_understood(self, item: Item) -> bool:
        return any(True for _ in self._understood([item], waiting_row))

    def _put(self, pool: str, entries: Sequence[Item]) -> None:
        updates = Updates(Update)
        operations: list[Operation] = []
        for row in entries:
            entry = waiting_row(row)
            enters_lane(updates, pool, entry)
            order, of_team, in_lane = layout.queue_keys(pool, entry)
            content = {name: stored for name, stored in row.items() if name not in {"pk", "sk"}}
            operations += [self._as_seen(in_lane, entry.ver), *self._writes.puts((order, of_team), content)]
        if operations:
            self._transactions.write([*operations, *self._writes.updates(updates)])

    def _as_seen(self, key: layout.Key, ver: int) -> Operation:
        check = {
            "TableName": self._writes.table,
            "Key": key_attributes(key),
            "ConditionExpression": "ver = :seen",
            "ExpressionAttributeValues": to_attributes({":seen": ver}),
        }
        return {"ConditionCheck": check}


def _team_of(lane: LaneRow) -> str:
    return lane.team


def _order_key(pool: str, item: Item) -> layout.Key:
    return (layout.order_partition(pool), item["sk"])
