"""How busy the machine is, and two of its cores: only a quiet machine shows how long something takes."""

import os
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CORES = 2
QUIET_LOAD = 1.5
"""Processes that want to run, as a mean of a minute: whoever called this may be one, another one disturbs."""
QUIET_SHARE = 0.1
"""Of the machine's cores, what others may use while it runs."""
_STAT = Path("/proc/stat")
_IDLE = (3, 4)
"""Fields of the line ``cpu``: idle and iowait. Source: proc(5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """What has been used up to now."""

    seconds: float
    own_cpu_seconds: float
    """Of this process and all that it started and that have ended."""
    machine_cpu_seconds: float


def now() -> Instant:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Instant(
        seconds=time.monotonic(),
        own_cpu_seconds=sum(one.ru_utime + one.ru_stime for one in used),
        machine_cpu_seconds=busy_seconds(_STAT.read_text(encoding="ascii"), os.sysconf("SC_CLK_TCK")),
    )


def busy_seconds(stat: str, ticks: int) -> float:
    """Of all cores since the machine started, from the text of ``/proc/stat``; ``ticks`` a second."""
    counts = [int(word) for word in stat.partition("\n")[0].split()[1:9]]  # guests are counted as users too
    return sum(count for number, count in enumerate(counts) if number not in _IDLE) / ticks


def use_two_cores() -> list[int]:
    """Run on two cores from now on, with all that is started; which."""
    mine = sorted(os.sched_getaffinity(0))[:CORES]
    os.sched_setaffinity(0, mine)
    return mine


def others_share(first: Instant, last: Instant, *, cores: int) -> float:
    """The part of the machine's cores that others used in between."""
    own = last.own_cpu_seconds - first.own_cpu_seconds
    busy = last.machine_cpu_seconds - first.machine_cpu_seconds
    return max(0.0, busy - own) / (cores * (last.seconds - first.seconds))


def why_not_quiet(*, load: float, others: float, cores: Sequence[int]) -> str | None:
    """Why a time of day from this machine would say little; None: it says what it seems to."""
    if len(cores) < CORES:
        return f"the target is for {CORES} cores, and there is {len(cores)}"
    if load > QUIET_LOAD:
        return f"the machine was busy: load {load:.2f} at the start, quiet is {QUIET_LOAD}"
    if others > QUIET_SHARE:
        return f"the machine was busy: others used {others:.0%} of its cores, quiet is {QUIET_SHARE:.0%}"
    return None
