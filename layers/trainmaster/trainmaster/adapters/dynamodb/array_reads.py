"""Read arrays: each row by itself, unreadable ones set aside like those of jobs."""

import gzip
import zlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from itertools import islice, takewhile
from typing import Any

from trainmaster.adapters.dynamodb import array_layout as rows
from trainmaster.adapters.dynamodb.array_counting import WORD_BITS
from trainmaster.adapters.dynamodb.array_layout import array_key
from trainmaster.adapters.dynamodb.calls import SortKeys
from trainmaster.adapters.dynamodb.codec import decode, named
from trainmaster.adapters.dynamodb.guard import GuardedReads, Item, require
from trainmaster.core.arrays.array_model import (
    DEFAULT_STOP_AFTER,
    Array,
    ArrayRequest,
    ArraySums,
    Numbering,
    TaskEnds,
    TaskJobs,
    unpacked_request,
)
from trainmaster.core.errors import RowSetAsideError
from trainmaster.core.jobs.index_sets import all_bits, unpacked
from trainmaster.core.jobs.model import Job
from trainmaster.core.records import SetAside

BATCH = 100
"""Keys of one BatchGetItem. Source: DynamoDB limits."""


class ArrayReads(GuardedReads):
    """See ``ArrayReader``."""

    def array(self, name: str) -> Array | None:
        item = self._rows.get(array_key(name))
        if item is None:
            return None
        for array in self._understood([item], array_row):
            return array
        raise RowSetAsideError("/".join(array_key(name)), subject=name)

    def arrays(self, names: Iterable[str]) -> dict[str, Array]:
        wanted = [array_key(name) for name in dict.fromkeys(names)]
        arrays: dict[str, Array] = {}
        for start in range(0, len(wanted), BATCH):
            items = self._rows.several(wanted[start : start + BATCH])
            arrays |= {array.name: array for array in self._understood(items, array_row)}
        return arrays

    def array_request(self, name: str) -> ArrayRequest:
        key = rows.array_request_key(name)
        item = self._rows.get(key)
        for request in self._understood([] if item is None else [item], array_request_row):
            return request
        if item is None:
            self._report(SetAside(key="/".join(key), error="the array has no request"))
        raise RowSetAsideError("/".join(key), subject=name)

    def open_arrays(self, pool: str | None, *, after: str, limit: int) -> tuple[tuple[str, str], ...]:
        partition, first = rows.open_array_key(pool or "", "")
        behind = SortKeys.behind(after or (first if pool else "")) if after or pool else None
        items = islice(self._rows.query(partition, behind, page=limit), limit)
        ours = takewhile(lambda row: pool is None or row["sk"].startswith(first), items)
        return tuple((row["sk"], row["sk"].partition("#")[2]) for row in ours)

    def ended_arrays(self, team: str, *, after: str, limit: int) -> tuple[tuple[str, str], ...]:
        partition, _ = rows.ended_array_key(team, "", "")
        behind = SortKeys.before(after) if after else None
        items = self._rows.query(partition, behind, backwards=True, page=limit)
        return tuple((row["sk"], row["sk"].partition("#")[2]) for row in islice(items, limit))


def array_row(item: Item) -> Array:
    """Decode an array. Raises for a row that cannot be understood."""
    template = decode(Job, item["job"])
    require(item["pk"] == array_key(template.name)[0], f"it is array {template.name}")
    indices = unpacked(zlib.decompress(item["tasks"]))
    unexpanded = int.from_bytes(item["unexpanded"], "little")
    require(bool(indices) and unexpanded <= all_bits(len(indices)), "its tasks are not those of its indices")
    ended_at = item.get(rows.ENDED_AT)
    if item.get(rows.HAS_DEPENDENTS):
        template = replace(template, has_dependents=True)
    return Array(
        template=template,
        indices=indices,
        unexpanded=unexpanded,
        ver=_whole(item["ver"]),
        at_most=item.get(rows.AT_MOST),
        stop_after_failures=item.get("stop_after", DEFAULT_STOP_AFTER),
        held=item.get(rows.ARRAY_HELD, False),
        held_because=item.get("held_because"),
        jobs=TaskJobs(
            waiting=item.get(rows.WAITING, 0), held=item.get(rows.HELD, 0), running=item.get(rows.RUNNING, 0)
        ),
        ends=_ends(item),
        sums=ArraySums(
            instance_seconds=item.get(rows.INSTANCE_SECONDS, 0),
            cents=item.get(rows.CENTS, 0),
            unpriced=item.get(rows.UNPRICED, 0),
        ),
        recent=tuple(item.get(rows.RECENT, ())),
        awaited=frozenset(item.get(rows.AWAITED, ())),
        to_stop=int.from_bytes(item.get("to_stop", b""), "little"),
        stopped_by=item.get("stopped_by"),
        cancelled=item.get("cancelled", False),
        ended_at=None if ended_at is None else datetime.fromisoformat(ended_at),
        rerun_of=item.get("rerun_of"),
        first_numbering=decode(Numbering, item["first_numbering"]) if "first_numbering" in item else None,
        folder=item.get("folder"),
    )


def _ends(item: Item) -> TaskEnds:
    return TaskEnds(
        completed=_bits(item, rows.COMPLETED),
        failed=_bits(item, rows.FAILED),
        stopped=_bits(item, rows.STOPPED),
        name_taken=_bits(item, rows.NAME_TAKEN),
        orphaned=_bits(item, rows.ORPHANED),
    )


def _bits(item: Item, prefix: str) -> int:
    return sum(_whole(word) << (int(number) * WORD_BITS) for number, word in named(item, prefix))


def _whole(content: Any) -> int:
    require(type(content) is int, f"{content!r} is not a whole number")
    return int(content)


def array_request_row(item: Item) -> ArrayRequest:
    return unpacked_request(gzip.decompress(bytes(item["body"])))
