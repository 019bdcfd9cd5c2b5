"""What rows should say by the jobs, and what they say: the differences, and what a recount is called."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from trainmaster.core.records import SetAside

WHOLE_ROW = "*"
"""As a field: the row should be there, or should not."""

Row = Mapping[str, Any]
Rows = Mapping[str, Row]
"""By their keys: the fields that are compared, no others."""


class RepairState(StrEnum):
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One recount of the whole table, from the request to the end."""

    id: str
    """When it was asked for."""
    state: RepairState
    apply: bool
    jobs_read: int = 0
    position: tuple[str, str] | None = None
    """How far the table was read; None: not begun, or read through."""
    is_read: bool = False
    """Every job was read."""
    pages: int = 0
    """Of the read, so far."""
    pools_done: tuple[str, ...] = ()
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    row: str
    field: str
    """``*``: the whole row."""
    stored: str | None
    computed: str | None


@dataclass(slots=True)
class PoolFound:
    """What a read of the table knows of one pool."""

    names: list[str] = field(default_factory=list)
    """Of jobs that are not final, broken ones included."""
    lanes: list[str] = field(default_factory=list)
    """Partitions of its queue that have rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePage:
    """What one page of the read of the whole table found."""

    found: Mapping[str, PoolFound]
    """By pool."""
    broken: tuple[SetAside, ...]
    jobs: int
    position: tuple[str, str] | None
    """Where the next one begins; None: it was the last."""


def differences(expected: Rows, stored: Rows) -> Iterator[Difference]:
    """By row and field; a count that is missing is the same as 0."""
    for key in sorted(expected.keys() | stored.keys()):
        wanted, found = expected.get(key), stored.get(key)
        if wanted is None or found is None:
            if _says_something(wanted) or _says_something(found):
                yield Difference(row=key, field=WHOLE_ROW, stored=_text(found), computed=_text(wanted))
            continue
        for name in sorted(wanted.keys() | found.keys()):
            if not _is_same(wanted.get(name), found.get(name)):
                yield Difference(
                    row=key, field=name, stored=_text(found.get(name)), computed=_text(wanted.get(name))
                )


def _says_something(row: Row | None) -> bool:
    """A row of counts that are all 0 might as well not be there."""
    return row is not None and any(not _is_same(content, None) for content in row.values())


def _is_same(one: object, other: object) -> bool:
    if type(one) is type(other):
        return bool(one == other)
    return {type(one), type(other)} == {int, type(None)} and not one and not other


def _text(content: object) -> str | None:
    """On one line, cut: a report is for people."""
    if content is None:
        return None
    if isinstance(content, Mapping):
        return f"a row of {len(content)} fields"
    text = str(content)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."


MOST_CHARACTERS = 200
