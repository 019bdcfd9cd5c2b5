"""The wait of a job's container for somebody who wants to look into it, as people write it."""

import re
from dataclasses import dataclass
from datetime import timedelta

from trainmaster.core.errors import BadOptionError, quoted

_WRITTEN = re.compile(r"(?P<failure>failure:)?(?P<count>[1-9][0-9]{0,5})(?P<unit>[smh])")
_UNITS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1)}
_LEAST, _MOST = timedelta(minutes=1), timedelta(hours=24)
_HOW = "write 30m to wait before training begins, failure:30m to wait once it has failed; from 1m to 24h"


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldOpen:
    """The longest wait, and when it is."""

    longest: timedelta
    is_after_failure: bool
    """Whether each attempt that fails waits before it ends; else the first one waits before it trains."""

    @property
    def variable(self) -> str:
        """Return what the launcher reads: seconds, behind ``failure:`` where it waits after a failure."""
        return f"{'failure:' * self.is_after_failure}{self.longest // timedelta(seconds=1)}"


def read_hold_open(text: str) -> HoldOpen:
    """Read ``30m`` or ``failure:30m``. Raises BadOptionError."""
    match = _WRITTEN.fullmatch(text)
    longest = int(match["count"]) * _UNITS[match["unit"]] if match else timedelta()
    if match is None or not _LEAST <= longest <= _MOST:
        raise BadOptionError(f"is {quoted(text)}, which is not a valid time to wait", _HOW)
    return HoldOpen(longest=longest, is_after_failure=match["failure"] is not None)
