"""Whether one more save fits into the time that is left before the end."""

_SAFETY = 1.5
"""The last save may be slower than the one that was measured."""
_FIXED_SECONDS = 5.0
"""Agreeing, copying to the CPU, the manifest."""
_UNKNOWN_BYTES_PER_SECOND = 100e6
"""Where nothing was measured yet. A gp2 volume writes 128 to 250 MB/s (Amazon EBS user guide)."""


def seconds_needed(bytes_on_host: float, *, bytes_per_second: float | None) -> float:
    """For one blocking save, by the speed that a host wrote an earlier one with."""
    speed = bytes_per_second or _UNKNOWN_BYTES_PER_SECOND
    return bytes_on_host / speed * _SAFETY + _FIXED_SECONDS
