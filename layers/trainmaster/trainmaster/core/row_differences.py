"""Differences between rows as the jobs imply them and as they are stored, and the record of a recount."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from trainmaster.core.records import SetAside

WHOLE_ROW = "*"
"""Stands as a field's name for the whole row, which should be there, or should not."""

Row = Mapping[str, Any]
Rows = Mapping[str, Row]
"""Rows by key; a row has the fields that are compared, no others."""


class RepairState(StrEnum):
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One recount of the whole table, from the request to the end."""

    id: str
    """Id, made of the instant of the request."""
    state: RepairState
    apply: bool
    jobs_read: int = 0
    position: tuple[str, str] | None = None
    """Position up to which the table was read; None: not begun, or read through."""
    is_read: bool = False
    """Whether every job was read."""
    pages: int = 0
    """Number of pages read so far."""
    pools_done: tuple[str, ...] = ()
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    row: str
    field: str
    """Name of the field; ``*`` for the whole row."""
    stored: str | None
    computed: str | None


@dataclass(slots=True)
class PoolFound:
    """Facts about one pool from a read of the table."""

    names: list[str] = field(default_factory=list)
    """Names of jobs that are not final, broken ones included."""
    lanes: list[str] = field(default_factory=list)
    """Partitions of its queue that have rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePage:
    """Result of reading one page of the whole table."""

    found: Mapping[str, PoolFound]
    """Facts of the page by pool."""
    broken: tuple[SetAside, ...]
    jobs: int
    position: tuple[str, str] | None
    """Start of the next page; None: it was the last."""


def differences(expected: Rows, stored: Rows) -> Iterator[Difference]:
    """Yield the differences by row and field; a count that is missing is the same as 0."""
    for key in sorted(expected.keys() | stored.keys()):
        wanted, actual = expected.get(key), stored.get(key)
        if wanted is None or actual is None:
            if _says_something(wanted) or _says_something(actual):
                yield Difference(row=key, field=WHOLE_ROW, stored=_text(actual), computed=_text(wanted))
            continue
        for name in sorted(wanted.keys() | actual.keys()):
            if not _is_same(wanted.get(name), actual.get(name)):
                yield Difference(
                    row=key, field=name, stored=_text(actual.get(name)), computed=_text(wanted.get(name))
                )


def _says_something(row: Row | None) -> bool:
    """Tell whether a row holds anything: one of counts that are all 0 might as well be missing."""
    return row is not None and any(not _is_same(content, None) for content in row.values())


def _is_same(left: object, right: object) -> bool:
    if type(left) is type(right):
        return bool(left == right)
    return {type(left), type(right)} == {int, type(None)} and not left and not right


def _text(content: object) -> str | None:
    """Render a value on one line, cut, as people read the report."""
    if content is None:
        return None
    if isinstance(content, Mapping):
        return f"a row of {len(content)} fields"
    text = str(content)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."


MOST_CHARACTERS = 200
