"""Count how often each team has called in this minute, and report it to the table occasionally."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.core.errors import ShareExceededError, UnavailableError
from trainmaster.core.records import TeamCalls
from trainmaster.core.submission.api_shares import ASKING_FOR, ShareBucket, Throttle, over_share
from trainmaster.ports import ReadCountStore

REPORTED_EVERY = timedelta(seconds=1)
"""Shortest time between two writes for a team, in each instance of the function."""
LEFT_ALONE = timedelta(seconds=10)
"""How long the table is left alone after a failed count, so that counts do not slow down answers."""
PARTS = 100
"""An instance keeps less than this part of the limit to itself, so that rare reads cost no write."""
KEPT_SECONDS = 0.25
"""An instance keeps less than a team may call in this time to itself, for the same reason."""
MOST_REMEMBERED = 1000
"""Callers that are remembered as refused and turned away without a read."""


@dataclass(slots=True)
class _Tally:
    """Counts the calls of one team, as this instance knows them."""

    total: TeamCalls = field(default_factory=TeamCalls)
    """Sum over all instances when this one last reported."""
    reads: int = 0
    """Reads that are not reported yet."""
    calls: int = 0
    """Calls that are not reported yet, reads included."""
    not_before: datetime | None = None
    """When the next count may go to the table; None if it may at any time."""
    bucket: ShareBucket | None = None

    def may_report(self, now: datetime) -> bool:
        return self.not_before is None or now >= self.not_before


class ReadCounts:
    """Counts for one instance of the function, exact except for what others have not reported yet.

    Args:
        store: Adds up the counts of all instances.
        throttle: Rate limit of the API's stage, which teams share; None if there is none.
        monotonic: Seconds of a clock that only goes forward. Shares are about the load of this second on
            machines, so they follow no clock that a test or a twin moves by hand.
    """

    def __init__(
        self,
        store: ReadCountStore,
        *,
        throttle: Throttle | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._throttle = throttle
        self._monotonic = monotonic
        self._minute: datetime | None = None
        self._tallies: dict[str, _Tally] = {}
        """Counts by team."""
        self._refused: dict[str, tuple[str, int]] = {}
        """Team and limit of callers that are refused until the minute is over, by caller."""
        self._turned_away: dict[str, tuple[str, float]] = {}
        """Team, and the second of the monotonic clock until which it is turned away, by caller."""
        self._asked_at: dict[str, float] = {}
        """Second of the monotonic clock of each team's last call, as far as this instance knows."""
        self._seen_calls: dict[str, int] = {}
        """Calls of each team in this minute, as last read from the table."""

    # ---- reads in a minute

    def within(self, team: str, *, most: int, now: datetime) -> bool:
        """Count a read of the team; False, and not counted, if it has read too often in this minute."""
        tally = self._tally(team, now)
        if tally.total.reads + tally.reads >= most:
            return False
        tally.reads += 1
        if tally.reads * PARTS >= most and tally.may_report(now):
            self._report(team, tally, now)
        return tally.total.reads + tally.reads <= most

    def refuse(self, user_arn: str, team: str, *, most: int) -> None:
        """Remember a caller until the minute is over, so that refusing it again reads nothing."""
        if len(self._refused) < MOST_REMEMBERED:
            self._refused[user_arn] = (team, most)

    def refused(self, user_arn: str | None, *, now: datetime) -> tuple[str, int] | None:
        """Return team and limit of a caller that is refused; None for any other caller."""
        self._turn(now)
        return self._refused.get(user_arn or "")

    # ---- calls in a second

    def weigh(self, team: str, *, user_arn: str, now: datetime, may_refuse: bool = True) -> None:
        """Take one call from the team's share of the API's throttle.

        Raises:
            ShareExceededError: Nothing is left of it, and the call may be refused.
        """
        if self._throttle is None:
            return
        tally, instant = self._tally(team, now), self._monotonic()
        self._asked_at[team] = instant
        share = self._throttle.share(self._asking(instant))
        bucket = tally.bucket
        if (
            bucket is None
        ):  # a new instance begins with a full burst; the table corrects that at its first report
            bucket = tally.bucket = ShareBucket(tokens=max(share.burst, 1), filled_at=instant)
        bucket.fill(share, now=instant)
        wait = bucket.seconds_until_next(share)
        if wait and may_refuse:
            if len(self._turned_away) < MOST_REMEMBERED:
                self._turned_away[user_arn] = (team, instant + wait)
            raise self._over_share(team, wait, instant)
        bucket.tokens -= 1
        tally.calls += 1
        if tally.calls >= KEPT_SECONDS * share.per_second and tally.may_report(now):
            self._report(team, tally, now)

    def turn_away(self, user_arn: str | None) -> None:
        """Refuse a caller whose team had nothing left a moment ago, without a read.

        Raises ShareExceededError.
        """
        known = self._turned_away.get(user_arn or "")
        if known is None:
            return
        team, until = known
        instant = self._monotonic()
        if instant < until:
            raise self._over_share(team, until - instant, instant)
        del self._turned_away[user_arn or ""]

    def _over_share(self, team: str, wait: float, instant: float) -> ShareExceededError:
        assert self._throttle is not None, "without one nobody is weighed"
        return over_share(team, self._throttle, asking=self._asking(instant), wait_seconds=wait)

    def _asking(self, instant: float) -> int:
        since = instant - ASKING_FOR.total_seconds()
        return sum(asked_at >= since for asked_at in self._asked_at.values())

    # ---- the minute, and the table

    def _tally(self, team: str, now: datetime) -> _Tally:
        self._turn(now)
        return self._tallies.setdefault(team, _Tally())

    def _turn(self, now: datetime) -> None:
        minute = now.replace(second=0, microsecond=0)
        if minute == self._minute:
            return
        self._minute = minute
        self._refused.clear()
        self._seen_calls.clear()
        for tally in self._tallies.values():
            tally.total, tally.reads, tally.calls = TeamCalls(), 0, 0

    def _report(self, team: str, tally: _Tally, now: datetime) -> None:
        counted = TeamCalls(reads=tally.reads, calls=tally.calls)
        try:
            totals = self._store.add_calls(team, counted, at=now)
        except UnavailableError:  # its outcome may be unknown; nobody pays for that but the limit
            tally.not_before = now + LEFT_ALONE
            return
        self._note_asking(totals)
        total = totals[team]
        if tally.bucket is not None:  # what the other instances have let in
            tally.bucket.tokens -= max(total.calls - tally.total.calls - tally.calls, 0)
        tally.total, tally.reads, tally.calls = total, 0, 0
        tally.not_before = now + REPORTED_EVERY

    def _note_asking(self, totals: Mapping[str, TeamCalls]) -> None:
        """Note which teams other instances have served since the last report."""
        instant = self._monotonic()
        for name, total in totals.items():
            if total.calls > self._seen_calls.get(name, 0):
                self._asked_at[name] = instant
        self._seen_calls = {name: total.calls for name, total in totals.items()}
