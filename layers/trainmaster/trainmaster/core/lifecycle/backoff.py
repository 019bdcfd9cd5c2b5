"""How long a job waits after a start that was refused, or before an attempt is retried."""

import hashlib
from datetime import timedelta

BACKOFF_FIRST = timedelta(seconds=10)
BACKOFF_MAX = timedelta(minutes=15)


def backoff(
    entry_id: str, refused: int, *, first: timedelta = BACKOFF_FIRST, most: timedelta = BACKOFF_MAX
) -> timedelta:
    """Full jitter (uniform up to the exponential limit), drawn from a hash so that it can be repeated."""
    ceiling: timedelta = min(most, first * 2 ** min(refused, 10))
    digest = hashlib.blake2b(f"{entry_id}:{refused}".encode(), digest_size=7).digest()
    return max(timedelta(seconds=1), ceiling * (int.from_bytes(digest, "big") / 2**56))
