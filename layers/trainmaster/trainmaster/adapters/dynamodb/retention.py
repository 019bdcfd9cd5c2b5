"""How long rows are kept: their TTL."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long rows of finished jobs are kept."""

    days: int

    def of_final(self, ended_at: datetime) -> int:
        """TTL (epoch seconds) of a final job, its request and the alias of its name."""
        return int((ended_at + timedelta(days=self.days)).timestamp())

    def of_line(self, at: datetime) -> int:
        """TTL of rows written while the job lives: attempts, transitions, later aliases.

        Twice as long, so that they outlive the job unless it waited for longer than ``days``.
        """
        return int((at + timedelta(days=2 * self.days)).timestamp())

    def of_history(self, at: datetime) -> int:
        """TTL of what is remembered of an instant."""
        return int((at + timedelta(days=self.days)).timestamp())
