"""How many calls of each operation an account may make in a second."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(slots=True, kw_only=True)
class _Bucket:
    tokens: float
    filled_at: datetime


@dataclass(slots=True)
class Rates:
    """A token bucket for each operation: it holds what one second brings, but at least one call."""

    _buckets: dict[str, _Bucket] = field(default_factory=dict)

    def take(self, operation: str, rates: Mapping[str, float], now: datetime) -> bool:
        """Tell whether this call is within the rate; a call that is not uses nothing up."""
        rate = rates.get(operation)
        if rate is None:
            return True
        most = max(1.0, rate)
        bucket = self._buckets.setdefault(operation, _Bucket(tokens=most, filled_at=now))
        passed = max(0.0, (now - bucket.filled_at).total_seconds())
        bucket.tokens, bucket.filled_at = min(most, bucket.tokens + passed * rate), now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True
