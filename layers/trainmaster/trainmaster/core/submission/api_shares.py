"""How much of the API's throttle one team may take: never all of it while another one asks."""

from dataclasses import dataclass
from datetime import timedelta
from math import ceil

from trainmaster.core.errors import FieldError, ShareExceededError

RULE = "api_share"
ASKING_FOR = timedelta(seconds=10)
"""A team counts as asking until this long after its last call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """A token bucket of requests: that of the API's stage, or a team's part of it."""

    per_second: float
    burst: float

    def share(self, asking: int) -> "Throttle":
        """Return the part of each team that asks, so that one part is left for the next team that does."""
        parts = asking + 1
        return Throttle(per_second=self.per_second / parts, burst=self.burst / parts)


@dataclass(slots=True, kw_only=True)
class ShareBucket:
    """Tokens left of one team's share. Seconds are those of a clock that only goes forward."""

    tokens: float
    filled_at: float

    def fill(self, share: Throttle, *, now: float) -> None:
        """Add what has come in since the last time; more than a burst is never kept."""
        gained = max(now - self.filled_at, 0) * share.per_second
        self.tokens = min(self.tokens + gained, max(share.burst, 1))
        self.filled_at = now

    def seconds_until_next(self, share: Throttle) -> float:
        """Tell how long it takes until one more call is let in; 0 where one is now."""
        return max(1 - self.tokens, 0) / share.per_second


def over_share(team: str, throttle: Throttle, *, asking: int, wait_seconds: float) -> ShareExceededError:
    """Make the answer to a team that calls more often than its share.

    Args:
        team: Whose share it is.
        throttle: That of the whole API.
        asking: Teams that ask at present, this one included.
        wait_seconds: Until its next call is let in.
    """
    share = throttle.share(asking)
    others = "alone" if asking == 1 else f"while {asking} teams ask"
    message = (
        f"team {team} asks more often than its share of the API, {share.per_second:.0f} of "
        f"{throttle.per_second:.0f} requests a second {others}"
    )
    wait = max(ceil(wait_seconds), 1)
    hint = f"try again in {wait} s, and ask less often: one list covers many jobs"
    error = FieldError(field="team", message=message, hint=hint, rule=RULE)
    return ShareExceededError(message, retry_after=wait, errors=[error])
