"""How the screen is used, and where its time comes from."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from trainmaster_client.cli.full_screen.app_parts import in_a_thread

USUAL_SECONDS = 5.0


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopOptions:
    seconds: float = USUAL_SECONDS
    """Seconds between two looks."""
    may_change: bool = False
    now: Callable[[], datetime] = _now
    in_background: Callable[[Callable[[], None]], None] = in_a_thread
    zone: tzinfo | None = None
    """Time zone of the times shown; None means this machine's."""
