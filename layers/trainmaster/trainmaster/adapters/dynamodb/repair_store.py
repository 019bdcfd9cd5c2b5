"""Implement RepairStore over DynamoDB: the progress of a repair, and the whole table read page by page."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.attribute_values import to_attributes
from trainmaster.adapters.dynamodb.calls import SortKeys
from trainmaster.adapters.dynamodb.codec import decode, encode
from trainmaster.adapters.dynamodb.guard import Item, described, pool_of
from trainmaster.adapters.dynamodb.pool_reads import job_row
from trainmaster.adapters.dynamodb.pool_recounts import PoolRecounts
from trainmaster.core.records import SetAside
from trainmaster.core.row_differences import Difference, PoolFound, Repair, TablePage

_STATE = ("REPAIR", "state")
PAGE_ROWS = 5000
"""Rows of one page at most; DynamoDB ends a page at 1 MB."""
MOST_SHOWN = 200
"""Differences of one pool that a report lists."""


class DynamoRepairStore(PoolRecounts):
    """Implements RepairStore; see ``ports``."""

    # ---- how far it is

    def repair(self) -> Repair | None:
        item = self._rows.get(_STATE)
        return None if item is None else decode(Repair, item)

    def save(self, repair: Repair) -> None:
        self._put(_STATE, encode(repair))

    def note(self, repair: Repair, page: TablePage) -> None:
        """Save a page under its number, so that a page that is read again is noted once."""
        pools = {pool: [counted.names, counted.lanes] for pool, counted in page.found.items()}
        content = {"pools": json.dumps(pools), "broken": [encode(broken_row) for broken_row in page.broken]}
        self._put(("REPAIR", f"{repair.id}#part#{repair.pages:06d}"), content)

    def found(self, repair: Repair) -> tuple[dict[str, PoolFound], tuple[SetAside, ...]]:
        """Return what all pages of the repair noted: names and lanes by pool, and the unreadable rows."""
        pools: dict[str, PoolFound] = {}
        broken: list[SetAside] = []
        for part in self._parts(repair, "part"):
            for pool, (names, lanes) in json.loads(part["pools"]).items():
                counted = pools.setdefault(pool, PoolFound())
                counted.names += names
                counted.lanes += [lane for lane in lanes if lane not in counted.lanes]
            broken += [decode(SetAside, broken_row) for broken_row in part["broken"]]
        return pools, tuple(broken)

    def keep_differences(self, repair: Repair, pool: str, differences: Iterable[Difference]) -> None:
        kept = [encode(difference) for difference in list(differences)[:MOST_SHOWN]]
        self._put(("REPAIR", f"{repair.id}#diff#{pool}"), {"differences": kept})

    def differences(self, repair: Repair) -> tuple[Difference, ...]:
        parts = self._parts(repair, "diff")
        return tuple(decode(Difference, difference) for part in parts for difference in part["differences"])

    def _parts(self, repair: Repair, kind: str) -> Iterator[Item]:
        return self._rows.query("REPAIR", SortKeys.beginning(f"{repair.id}#{kind}#"))

    def _put(self, key: layout.Key, content: Mapping[str, Any]) -> None:
        pk, sk = key
        self._rows.change("put_item", Item=to_attributes({"pk": pk, "sk": sk, **content}))

    # ---- the read of the whole table

    def page(self, position: tuple[str, str] | None) -> TablePage:
        items, behind = self._rows.scan(behind=position, most=PAGE_ROWS, wanted=_is_wanted)
        by_pool: dict[str, PoolFound] = {}
        broken: list[SetAside] = []
        jobs = 0
        for row in items:
            if row["sk"] == "job" and row["pk"].startswith("J#"):
                jobs += 1
                _note_job(row, by_pool, broken)
            else:
                _note_row(row, by_pool)
        return TablePage(found=by_pool, broken=tuple(broken), jobs=jobs, position=behind)


def _is_wanted(pk: str, sk: str) -> bool:
    return sk in {"job", layout.COUNTERS} or pk.startswith(("Q#", "OT#", "R#", "B#"))


def _note_job(item: Item, by_pool: dict[str, PoolFound], broken: list[SetAside]) -> None:
    try:
        job = job_row(item)
    except Exception as error:  # noqa: BLE001  the bulkhead: the report says what is wrong with it
        broken.append(described(item, error))
        return
    if not job.is_final:
        by_pool.setdefault(job.spec.pool, PoolFound()).names.append(job.name)


def _note_row(item: Item, by_pool: dict[str, PoolFound]) -> None:
    pool = pool_of(item["pk"])
    if pool is None:
        return
    counted = by_pool.setdefault(pool, PoolFound())
    if item["pk"].startswith(("Q#", "OT#")) and item["pk"] not in counted.lanes:
        counted.lanes.append(item["pk"])
