"""How long rows are kept: DynamoDB deletes a row some time after its TTL, in epoch seconds.

A job that has not ended has none, nor have counters and policies.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.core.costs import spot_record
from trainmaster.core.durations.decay import FORGOTTEN

DEFAULT_DAYS = 90
"""Default of the template's parameter ``RetentionDays``."""
FOLDERS = timedelta(days=120)
"""Longer than nearly every job waits and runs, all attempts included."""
RUN_TIMES = timedelta(days=90)
"""After the last job of the team and lane."""
LEARNED_LENGTHS = FORGOTTEN
"""After the last job that a histogram has learned from."""
SPOT_DAYS = spot_record.KEPT + timedelta(days=1)
SUBMISSION_COUNTS = timedelta(hours=1)
"""A count is of one minute, and its team's limit looks at minutes."""
SET_ASIDE_ROWS = timedelta(minutes=10)
"""After the last read of such a row: later it is repaired, gone, or far back in its queue."""


def ttl(at: datetime, kept: timedelta) -> int:
    """Return the TTL of a row that is kept for this time after an instant."""
    return int((at + kept).timestamp())


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long rows of finished jobs are kept."""

    days: int

    def of_final(self, ended_at: datetime) -> int:
        """Return the TTL (epoch seconds) of a final job, its request and the alias of its name."""
        return ttl(ended_at, timedelta(days=self.days))

    def of_line(self, at: datetime) -> int:
        """Return the TTL of rows written while the job lives: attempts, transitions, later aliases.

        Twice as long, so that they outlive the job unless it waited for longer than ``days``.
        """
        return ttl(at, timedelta(days=2 * self.days))

    def of_history(self, at: datetime) -> int:
        """Return the TTL of a history row about this instant."""
        return ttl(at, timedelta(days=self.days))
