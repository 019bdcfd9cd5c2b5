"""Back-off: how long a job waits after a start that was refused, or before an attempt is retried."""

import hashlib
from datetime import timedelta

BACKOFF_FIRST = timedelta(seconds=10)
BACKOFF_MAX = timedelta(minutes=15)


def backoff(
    entry_id: str, refused: int, *, first: timedelta = BACKOFF_FIRST, most: timedelta = BACKOFF_MAX
) -> timedelta:
    """Return a wait with full jitter (uniform up to the exponential limit), which a hash makes repeatable.

    Args:
        entry_id: Id of the submission, which seeds the jitter.
        refused: Number of refusals so far, 0 and up.
        first: Upper limit of the first wait.
        most: Upper limit of every wait.
    """
    ceiling: timedelta = min(most, first * 2 ** min(refused, 10))
    digest = hashlib.blake2b(f"{entry_id}:{refused}".encode(), digest_size=7).digest()
    # Seven bytes of the hash are 56 bits: a uniform number in [0, 1).
    return max(timedelta(seconds=1), ceiling * (int.from_bytes(digest, "big") / 2**56))
