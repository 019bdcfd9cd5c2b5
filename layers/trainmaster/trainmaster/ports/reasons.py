"""What passes note: why jobs wait, which policy a pool knows, whether passes in a row are at it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from trainmaster.core.errors import LostRaceError, WriteRefusedError
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.plan_reasons import ToldReasons


class ReasonStore(Protocol):
    def told_reasons(self, pool: str) -> ToldReasons:
        """Of the candidates of the last look; of a row that is gone or broken, none."""

    def note_told(self, pool: str, reasons: ToldReasons) -> None:
        """Instead of what ``told`` was read as; where others wrote meanwhile nothing is known after it."""

    def commit_each(
        self, changes: Sequence[Change], *, at: datetime
    ) -> Mapping[str, LostRaceError | WriteRefusedError]:
        """Write changes that have nothing to do with each other, in as few transactions as it takes.

        Returns by job why it was not written; the others are.
        """


class PoolMarkStore(Protocol):
    def tell_policy(self, pool: str, version: int) -> None:
        """Have a pool know this version that has heard of none, or of an earlier one only."""

    def change_chain(self, pool: str, before: datetime | None, after: datetime | None) -> bool:
        """Until when the pool is left to passes in a row; None: it is not left to any.

        False, and nothing written, where it is not ``before`` any more.
        """
