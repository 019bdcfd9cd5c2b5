"""The table, for those who count it again, and the register of its rows that cannot be understood."""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from trainmaster.core.records import SetAside
from trainmaster.core.row_differences import Difference, PoolFound, Repair, TablePage


class RepairReader(Protocol):
    """A recount of the table: how far it is, and what it found."""

    def repair(self) -> Repair | None:
        """The newest one; None: nobody has asked for any."""

    def save(self, repair: Repair) -> None: ...

    def found(self, repair: Repair) -> tuple[dict[str, PoolFound], tuple[SetAside, ...]]:
        """What the pages read so far found of each pool, and rows of jobs that cannot be understood."""

    def differences(self, repair: Repair) -> tuple[Difference, ...]:
        """Of the pools that were counted so far."""


class RepairStore(RepairReader, Protocol):
    def page(self, position: tuple[str, str] | None) -> TablePage:
        """One page of the whole table, from the beginning or from behind a position."""

    def note(self, repair: Repair, page: TablePage) -> None:
        """Keep what it found."""

    def recount(self, pool: str, counted: PoolFound, *, apply: bool) -> tuple[Difference, ...]:
        """What the pool's rows say otherwise than its jobs; with ``apply`` they are written again.

        Raises LostRaceError when the pool kept changing.
        """

    def keep_differences(self, repair: Repair, pool: str, differences: Iterable[Difference]) -> None: ...


class SetAsideRegister(Protocol):
    def noted(self, *, now: datetime) -> tuple[SetAside, ...]:
        """Rows that could not be understood in the last minutes, by their keys."""

    def forget(self) -> None:
        """Rows that are still broken are noted again by whoever stumbles over them."""
