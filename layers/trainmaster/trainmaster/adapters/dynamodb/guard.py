"""Decode rows one by one: an unreadable row is set aside, and affects only the job or pool it names."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from trainmaster.adapters.dynamodb.calls import Rows
from trainmaster.core.records import SetAside

T = TypeVar("T")
Item = Mapping[str, Any]
Report = Callable[[SetAside], None]
MAX_ERROR_CHARACTERS = 200
MOST_SKIPPED = 100
"""Consecutive unreadable rows that a bounded read skips before it leaves the rest to the next read."""

_POOL_ROWS = frozenset((*"RBTWPHESQOLDCG", "OT", "DL", "DW"))
"""Prefixes of the partitions that name a pool."""


def unreported(_: SetAside) -> None:
    """Ignore a row set aside, for readers that report nothing."""


def pool_of(partition: str) -> str | None:
    """Return the pool that a partition key names; None if it names none."""
    kind, *rest = partition.split("#")
    return rest[0] if kind in _POOL_ROWS and rest else None


def described(item: Item, error: Exception, *, attribute: str | None = None) -> SetAside:
    """Describe an unreadable row, or one attribute of it, for the register."""
    pk, sk = str(item.get("pk", "")), str(item.get("sk", ""))
    spec = item.get("spec")
    pool = pool_of(pk) or (spec.get("pool") if isinstance(spec, dict) else None)
    return SetAside(
        key="/".join(part for part in (pk, sk, attribute) if part),
        error=f"{type(error).__name__}: {error}"[:MAX_ERROR_CHARACTERS],
        pool=pool if isinstance(pool, str) else None,
    )


class MisplacedError(ValueError):
    """A row lies under a key that is not its own."""


def require(holds: bool, why: str) -> None:  # noqa: FBT001
    if not holds:
        raise MisplacedError(why)


class GuardedReads:
    """The base of all readers of the table: its calls, and where unreadable rows are reported."""

    def __init__(self, client: Any, *, table: str, report: Report = unreported) -> None:
        self._rows = Rows(client, table=table)
        self._report = report

    def _understood(self, items: Iterable[Item], make: Callable[[Item], T]) -> Iterator[T]:
        """Yield what ``make`` makes of the rows; rows that it cannot read are reported and left out."""
        yield from understood(items, make, self._report)


def understood(items: Iterable[Item], make: Callable[[Item], T], report: Report) -> Iterator[T]:
    """Yield what ``make`` makes of the rows; rows that it cannot read are reported and left out."""
    for row in items:
        try:
            made = make(row)
        except Exception as error:  # noqa: BLE001  the bulkhead: whatever is wrong with it, it is one row
            report(described(row, error))
        else:
            yield made
