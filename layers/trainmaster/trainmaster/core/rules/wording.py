"""How rules say what they allow."""

from collections.abc import Sequence

_MOST_LISTED = 5


def listed(allowed: Sequence[object]) -> str:
    """The first few, and how many more there are."""
    shown = ", ".join(str(one) for one in allowed[:_MOST_LISTED])
    more = len(allowed) - _MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown
