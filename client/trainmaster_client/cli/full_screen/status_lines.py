"""How fresh the picture is: the line at the top, and the one below it when something is wrong."""

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from trainmaster.core.jobs.spans import length

SLOW = timedelta(seconds=5)
"""A read that takes longer is mentioned."""


@dataclass(slots=True, kw_only=True)
class Freshness:
    """Freshness of one picture that is read again and again."""

    answered_at: datetime | None = None
    """Instant of the last answer; None if there was none yet."""
    asked_at: datetime | None = None
    """Instant of the pending request; None if no answer is awaited."""
    error: str = ""
    """Reason why the last read failed; empty if it did not."""

    def asked(self, *, now: datetime) -> None:
        self.asked_at = now

    def answered(self, *, now: datetime) -> None:
        self.answered_at, self.asked_at, self.error = now, None, ""

    def failed(self, error: Exception) -> None:
        self.asked_at, self.error = None, " ".join(str(error).split())

    def trouble(self, *, now: datetime, zone: tzinfo | None = None) -> str:
        """Say what is wrong; empty if all is well."""
        waited = now - self.asked_at if self.asked_at else timedelta()
        why = self.error or (f"no answer for {length(waited)}" if waited >= SLOW else "")
        if not why:
            return ""
        if self.answered_at is None:
            return why
        then = self.answered_at.astimezone(zone)
        return f"STALE, of {then:%H:%M:%S} ({length(now - self.answered_at)} ago): {why}"


def status_line(*, region: str, seconds: float, may_change: bool, now: datetime) -> str:
    """Write the status line; ``now`` is in the zone of all times on the screen, named only here."""
    rights = "changes allowed" if may_change else "read-only"
    return f"trainmaster  {region}  {rights}  {now:%H:%M:%S %Z}  every {seconds:g} s"
