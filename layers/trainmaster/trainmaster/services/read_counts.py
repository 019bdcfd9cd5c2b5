"""How often each team has read in this minute: counted here, told to the table occasionally."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.core.errors import UnavailableError
from trainmaster.ports import ReadCountStore

TOLD_EVERY = timedelta(seconds=1)
"""A team costs one write in this time at most, for each instance of the function."""
LEFT_ALONE = timedelta(seconds=10)
"""The table, after it did not take a count: a count must not slow the answers."""
PARTS = 100
"""An instance keeps less than this part of the limit to itself, so who reads occasionally costs no write."""
MOST_REMEMBERED = 1000
"""Callers that are refused unread."""


@dataclass(slots=True)
class _Tally:
    """Of one team."""

    total: int = 0
    """What all instances had told when this one told last."""
    untold: int = 0
    not_before: datetime | None = None
    """No count goes to the table before then."""

    def may_tell(self, now: datetime) -> bool:
        return self.not_before is None or now >= self.not_before


class ReadCounts:
    """For one instance of the function. The count of all is exact to what each has not told yet."""

    def __init__(self, store: ReadCountStore) -> None:
        self._store = store
        self._minute: datetime | None = None
        self._tallies: dict[str, _Tally] = {}
        """By team."""
        self._refused: dict[str, tuple[str, int]] = {}
        """By caller."""

    def within(self, team: str, *, most: int, now: datetime) -> bool:
        """Count a read of the team; False, and not counted, where it has read too often in this minute."""
        self._turn(now)
        tally = self._tallies.setdefault(team, _Tally())
        if tally.total + tally.untold >= most:
            return False
        tally.untold += 1
        if tally.untold * PARTS >= most and tally.may_tell(now):
            self._tell(team, tally, now)
        return tally.total + tally.untold <= most

    def refuse(self, user_arn: str, team: str, *, most: int) -> None:
        """Until the minute is over this caller is known by his name alone: refusing him reads nothing."""
        if len(self._refused) < MOST_REMEMBERED:
            self._refused[user_arn] = (team, most)

    def refused(self, user_arn: str | None, *, now: datetime) -> tuple[str, int] | None:
        """For which team, and its limit."""
        self._turn(now)
        return self._refused.get(user_arn or "")

    def _turn(self, now: datetime) -> None:
        minute = now.replace(second=0, microsecond=0)
        if minute == self._minute:
            return
        self._minute = minute
        self._refused.clear()
        for tally in self._tallies.values():
            tally.total = tally.untold = 0

    def _tell(self, team: str, tally: _Tally, now: datetime) -> None:
        try:
            tally.total = self._store.add_reads(team, tally.untold, at=now)
        except UnavailableError:  # its outcome may be unknown; nobody pays for that but the limit
            tally.not_before = now + LEFT_ALONE
        else:
            tally.untold = 0
            tally.not_before = now + TOLD_EVERY
