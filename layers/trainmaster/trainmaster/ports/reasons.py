"""Notes of passes: why jobs wait, which policy a pool knows, and whether passes in a row work on it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from trainmaster.core.errors import LostRaceError, WriteRefusedError
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.plan_reasons import ToldReasons


class ReasonStore(Protocol):
    def told_reasons(self, pool: str) -> ToldReasons:
        """Read the reasons sent to candidates of the last look; empty if the row is gone or broken."""

    def note_told(self, pool: str, reasons: ToldReasons) -> None:
        """Replace the reasons that were read; if others wrote meanwhile, none are known afterwards."""

    def commit_each(
        self, changes: Sequence[Change], *, at: datetime
    ) -> Mapping[str, LostRaceError | WriteRefusedError]:
        """Write independent changes in as few transactions as possible.

        Returns the error by job for changes that were not written; all others were.
        """


class PoolMarkStore(Protocol):
    def tell_policy(self, pool: str, version: int) -> None:
        """Store the policy's version with a pool that knows none, or only an earlier one."""

    def change_chain(self, pool: str, before: datetime | None, after: datetime | None) -> bool:
        """Set until when the pool is left to passes in a row; None if it is not left to any.

        Returns False and writes nothing if the stored value is not ``before`` any more.
        """
