"""Why jobs wait: what each knows of it, and how many hear of it at once."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from trainmaster.core.errors import LostRaceError, WriteRefusedError
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.told_reasons import ToldReasons


class ReasonStore(Protocol):
    def told_reasons(self, pool: str) -> ToldReasons:
        """Of the candidates of the last look; of a row that is gone or broken, none."""

    def note_told(self, pool: str, told: ToldReasons) -> None:
        """Instead of what ``told`` was read as; where others wrote meanwhile nothing is known after it."""

    def commit_each(
        self, changes: Sequence[Change], *, at: datetime
    ) -> Mapping[str, LostRaceError | WriteRefusedError]:
        """Write changes that have nothing to do with each other, in as few transactions as it takes.

        Returns by job why it was not written; the others are.
        """
