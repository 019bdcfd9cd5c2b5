"""Keep the register of unreadable rows, for ``GET /pools``, ``GET /repair`` and `doctor`."""

from contextlib import suppress
from datetime import datetime
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.attribute_values import to_attributes
from trainmaster.adapters.dynamodb.calls import key_attributes
from trainmaster.adapters.dynamodb.codec import decode, encode, iso
from trainmaster.adapters.dynamodb.guard import GuardedReads, Item
from trainmaster.adapters.dynamodb.retention import SET_ASIDE_ROWS, ttl
from trainmaster.core.errors import TrainmasterError
from trainmaster.core.monitoring.metrics import SET_ASIDE, Sample
from trainmaster.core.policy import UNMANAGED
from trainmaster.core.records import SetAside

MOST_NOTED = 25
"""Rows noted by one call of a function; the next call notes others."""


class DynamoRegister(GuardedReads):
    """Collects rows that readers report to ``see``; ``noted_now`` writes them at the end of a call."""

    def __init__(self, client: Any, *, table: str) -> None:
        super().__init__(client, table=table)
        self._seen: dict[str, SetAside] = {}
        """Rows reported during this call, by key."""

    def see(self, row: SetAside) -> None:
        self._seen[row.key] = row

    def noted_now(self, *, at: datetime) -> tuple[SetAside, ...]:
        """Return the rows reported since the last time, and note them; a failed note is made again soon."""
        seen = tuple(self._seen.values())
        self._seen.clear()
        with suppress(TrainmasterError):
            for row in seen[:MOST_NOTED]:
                self._note(row, at=at)
        return seen

    def samples(self, *, at: datetime) -> list[Sample]:
        """Sample the rows reported since the last time, each once, however often it was read."""
        return [
            Sample(metric=SET_ASIDE, value=1, of=row.pool or UNMANAGED, note=f"{row.key}: {row.error}")
            for row in self.noted_now(at=at)
        ]

    def noted(self, *, now: datetime) -> tuple[SetAside, ...]:
        """Return the rows noted in the last minutes and those reported in this call, in order of key."""
        items = self._rows.query(layout.set_aside_key("")[0])
        since = iso(now - SET_ASIDE_ROWS)
        rows = self._understood((stored for stored in items if stored.get("seen_at", "") >= since), _row)
        by_key = {row.key: row for row in rows} | self._seen
        return tuple(by_key[key] for key in sorted(by_key))

    def forget(self) -> None:
        self._seen.clear()
        for row in self._rows.query(layout.set_aside_key("")[0]):
            self._rows.change("delete_item", Key=key_attributes((row["pk"], row["sk"])))

    def _note(self, row: SetAside, *, at: datetime) -> None:
        pk, sk = layout.set_aside_key(row.key[: layout.MAX_SORT_KEY])
        item = {"pk": pk, "sk": sk, **encode(row), "seen_at": iso(at), "ttl": ttl(at, SET_ASIDE_ROWS)}
        self._rows.change("put_item", Item=to_attributes(item))


def _row(item: Item) -> SetAside:
    return decode(SetAside, item)
