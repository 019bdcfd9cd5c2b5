"""First code of a function's process: sets the process clock to the twin's, then starts the runtime client.

Runs as a script, outside the package: a function sees its own code, the layer and installed packages, not
the twin. Arguments: the file in which the twin shares its clock, then the handler.
"""

import datetime as dt
import functools
import mmap
import runpy
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, SupportsIndex

_SHARED = struct.Struct(
    "<qq"
)  # as local/clock.py writes it: microseconds, twice; zero means the machine's clock
_MICROSECONDS = 1_000_000
_NANOSECONDS = 1_000

_LONGEST_SLEEP_SECONDS = 0.25
"""Longest sleep, in seconds, on a clock that stands still: enough for a back-off between processes, which
run in the machine's time."""

_real_sleep = time.sleep
_real_gmtime = time.gmtime
_real_localtime = time.localtime
_RealDate = dt.date
_RealDatetime = dt.datetime


class _TwinTime:
    """Reads the shared clock."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._memory = mmap.mmap(file.fileno(), _SHARED.size, access=mmap.ACCESS_READ)

    def is_the_machines(self) -> bool:
        """Tell whether the twin's clock is the machine's; a twin never changes the kind of its clock."""
        return not any(_SHARED.unpack_from(self._memory))

    def now_ns(self) -> int:
        while True:
            first, second = _SHARED.unpack_from(self._memory)
            if first == second:
                return int(first) * _NANOSECONDS

    def now(self) -> float:
        return self.now_ns() / (_MICROSECONDS * _NANOSECONDS)


class _LikeTheRealOne(type):
    """Values made before the change, or by C code, count as instances too; a subclass is on its own."""

    stands_for: type | None

    def __instancecheck__(cls, instance: object) -> bool:
        real = cls.__dict__.get("stands_for")
        return super().__instancecheck__(instance) if real is None else isinstance(instance, real)

    def __subclasscheck__(cls, subclass: type) -> bool:
        real = cls.__dict__.get("stands_for")
        return super().__subclasscheck__(subclass) if real is None else issubclass(subclass, real)


def _shift(twin: _TwinTime) -> None:
    """Let everything that asks Python for the time get the twin's."""

    class date(_RealDate, metaclass=_LikeTheRealOne):  # noqa: N801  it takes the place of datetime.date
        stands_for = _RealDate

        @classmethod
        def today(cls) -> Any:  # noqa: ANN401
            return cls.fromtimestamp(twin.now())

    class datetime(_RealDatetime, metaclass=_LikeTheRealOne):  # noqa: N801
        stands_for = _RealDatetime

        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Any:  # noqa: ANN401
            return cls.fromtimestamp(twin.now(), tz)

        @classmethod
        def utcnow(cls) -> Any:  # noqa: ANN401
            return cls.fromtimestamp(twin.now(), dt.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:  # noqa: ANN401
            return cls.now()

    for shifted in (date, datetime):
        shifted.__module__, shifted.__qualname__ = "datetime", shifted.__name__
        setattr(dt, shifted.__name__, shifted)
    time.sleep = _nod
    time.time = twin.now
    time.time_ns = twin.now_ns
    # Partials, because logging keeps ``gmtime`` in a class, where a plain function would become a method.
    time.gmtime = functools.partial(_converted, twin, _real_gmtime)
    time.localtime = functools.partial(_converted, twin, _real_localtime)


def _converted(
    twin: _TwinTime, convert: Callable[[float], time.struct_time], seconds: float | None = None
) -> time.struct_time:
    return convert(twin.now() if seconds is None else seconds)


def _nod(seconds: float | SupportsIndex) -> None:
    """Sleep briefly: the clock does not advance for sleepers, so a long sleep only costs machine time."""
    _real_sleep(min(float(seconds), _LONGEST_SLEEP_SECONDS))


def main() -> None:
    clock, handler = sys.argv[1:]
    twin = _TwinTime(Path(clock))
    if not twin.is_the_machines():
        _shift(twin)
    sys.argv[1:] = [handler]
    runpy.run_module("awslambdaric", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
