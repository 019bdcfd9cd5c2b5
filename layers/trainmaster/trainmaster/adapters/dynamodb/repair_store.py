"""RepairStore over DynamoDB: how far a repair is, and the read of the whole table in slices."""

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
"""Rows of one page at most; DynamoDB ends it at 1 MB."""
MOST_SHOWN = 200
"""Differences of one pool that a report lists."""


class DynamoRepairStore(PoolRecounts):
    """RepairStore: see ``ports``."""

    # ---- how far it is

    def repair(self) -> Repair | None:
        item = self._rows.get(_STATE)
        return None if item is None else decode(Repair, item)

    def save(self, repair: Repair) -> None:
        self._put(_STATE, encode(repair))

    def note(self, repair: Repair, page: TablePage) -> None:
        """Under the position it begins at, so that a page that is read again is noted once."""
        pools = {pool: [one.names, one.lanes] for pool, one in page.found.items()}
        content = {"pools": json.dumps(pools), "broken": [encode(one) for one in page.broken]}
        self._put(("REPAIR", f"{repair.id}#part#{repair.pages:06d}"), content)

    def found(self, repair: Repair) -> tuple[dict[str, PoolFound], tuple[SetAside, ...]]:
        """Of all pages."""
        pools: dict[str, PoolFound] = {}
        broken: list[SetAside] = []
        for item in self._parts(repair, "part"):
            for pool, (names, lanes) in json.loads(item["pools"]).items():
                one = pools.setdefault(pool, PoolFound())
                one.names += names
                one.lanes += [lane for lane in lanes if lane not in one.lanes]
            broken += [decode(SetAside, one) for one in item["broken"]]
        return pools, tuple(broken)

    def keep_differences(self, repair: Repair, pool: str, found: Iterable[Difference]) -> None:
        kept = [encode(one) for one in list(found)[:MOST_SHOWN]]
        self._put(("REPAIR", f"{repair.id}#diff#{pool}"), {"differences": kept})

    def differences(self, repair: Repair) -> tuple[Difference, ...]:
        parts = self._parts(repair, "diff")
        return tuple(decode(Difference, one) for item in parts for one in item["differences"])

    def _parts(self, repair: Repair, kind: str) -> Iterator[Item]:
        return self._rows.query("REPAIR", SortKeys.beginning(f"{repair.id}#{kind}#"))

    def _put(self, key: layout.Key, content: Mapping[str, Any]) -> None:
        pk, sk = key
        self._rows.change("put_item", Item=to_attributes({"pk": pk, "sk": sk, **content}))

    # ---- the read of the whole table

    def page(self, position: tuple[str, str] | None) -> TablePage:
        items, behind = self._rows.scan(behind=position, most=PAGE_ROWS, wanted=_is_wanted)
        found: dict[str, PoolFound] = {}
        broken: list[SetAside] = []
        jobs = 0
        for item in items:
            if item["sk"] == "job" and item["pk"].startswith("J#"):
                jobs += 1
                _note_job(item, found, broken)
            else:
                _note_row(item, found)
        return TablePage(found=found, broken=tuple(broken), jobs=jobs, position=behind)


def _is_wanted(pk: str, sk: str) -> bool:
    return sk in {"job", layout.COUNTERS} or pk.startswith(("Q#", "OT#", "R#", "B#"))


def _note_job(item: Item, found: dict[str, PoolFound], broken: list[SetAside]) -> None:
    try:
        job = job_row(item)
    except Exception as error:  # noqa: BLE001  the bulkhead: the report says what is wrong with it
        broken.append(described(item, error))
        return
    if not job.is_final:
        found.setdefault(job.spec.pool, PoolFound()).names.append(job.name)


def _note_row(item: Item, found: dict[str, PoolFound]) -> None:
    pool = pool_of(item["pk"])
    if pool is None:
        return
    one = found.setdefault(pool, PoolFound())
    if item["pk"].startswith(("Q#", "OT#")) and item["pk"] not in one.lanes:
        one.lanes.append(item["pk"])
