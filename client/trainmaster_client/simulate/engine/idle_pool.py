"""A pool in which a plan would have done nothing, and up to when that stays so."""

from dataclasses import dataclass
from datetime import datetime

from trainmaster.core.planning.snapshot import Snapshot

from trainmaster_client.simulate.engine.idle_times import idle_until
from trainmaster_client.simulate.engine.pool_state import PoolState


@dataclass(slots=True, kw_only=True)
class IdlePool:
    """A pool in which a plan would have done nothing."""

    version: int
    """Version of the pool's state."""
    snapshot: Snapshot
    since: datetime
    until: datetime | None = None
    """Instant up to which only a change makes a plan useful; None until that is asked."""

    def goes_on(self, state: PoolState, *, now: datetime) -> bool:
        """Tell whether a plan would do nothing now, either, as nothing but the clock has changed."""
        if state.version != self.version:
            return False
        if self.until is None:
            parked = state.parked.values()
            self.until = idle_until(self.snapshot, state.rules, parked, now=self.since)
        return self.since <= now < self.until
