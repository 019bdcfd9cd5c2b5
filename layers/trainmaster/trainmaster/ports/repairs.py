"""The table for a recount, and the register of unreadable rows."""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from trainmaster.core.records import SetAside
from trainmaster.core.row_differences import Difference, PoolFound, Repair, TablePage


class RepairReader(Protocol):
    """Reads a recount of the table: its progress and its findings."""

    def repair(self) -> Repair | None:
        """Return the newest repair; None if there never was one."""

    def save(self, repair: Repair) -> None: ...

    def found(self, repair: Repair) -> tuple[dict[str, PoolFound], tuple[SetAside, ...]]:
        """Return what the pages read so far contain of each pool, and the rows of unreadable jobs."""

    def differences(self, repair: Repair) -> tuple[Difference, ...]:
        """Return the differences of the pools that were counted so far."""


class RepairStore(RepairReader, Protocol):
    def page(self, position: tuple[str, str] | None) -> TablePage:
        """Read one page of the whole table, from the beginning or from behind a position."""

    def note(self, repair: Repair, page: TablePage) -> None:
        """Store what a page contains."""

    def recount(self, pool: str, counted: PoolFound, *, apply: bool) -> tuple[Difference, ...]:
        """Compare the pool's rows with its jobs and return the differences; with ``apply`` correct the rows.

        Raises LostRaceError if the pool kept changing.
        """

    def keep_differences(self, repair: Repair, pool: str, differences: Iterable[Difference]) -> None: ...


class SetAsideRegister(Protocol):
    def noted(self, *, now: datetime) -> tuple[SetAside, ...]:
        """Return rows that were unreadable in the last minutes, in order of key."""

    def forget(self) -> None:
        """Clear the register; rows that are still broken are noted again when they are read."""
