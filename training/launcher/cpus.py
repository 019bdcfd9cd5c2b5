"""Which CPUs each rank of a host gets. launch.py uses this file from launcher/ beside it.

Only Python's standard library, as in launch.py.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """One that this process may run on."""

    number: int
    core: str  # equal for the hardware threads of one core
    node: int  # the memory that is near


def host_cpus(system: Path = Path("/sys/devices/system")) -> list[Cpu]:
    """As Linux tells it. Where it does not, each CPU is a core, and all memory is equally near."""

    def text(path: Path, default: str) -> str:
        return path.read_text().strip() if path.is_file() else default

    near = dict[int, int]()
    for place in system.glob("node/node[0-9]*"):
        for span in filter(None, text(place / "cpulist", "").split(",")):
            first, _, last = span.partition("-")
            near |= dict.fromkeys(range(int(first), int(last or first) + 1), int(place.name[4:]))
    cores = {cpu: system / f"cpu/cpu{cpu}/topology/thread_siblings_list" for cpu in os.sched_getaffinity(0)}
    return [Cpu(number=cpu, core=text(path, str(cpu)), node=near.get(cpu, 0)) for cpu, path in cores.items()]


def cpu_shares(cpus: Sequence[Cpu], ranks: str) -> list[list[int]]:
    """The CPUs of each rank of a host without GPUs, one for each core: matrices gain nothing from the second.

    ``ranks``: how many, or ``numa``: one for each node of memory. Neighbours come first, so that no rank has
    cores of two nodes where that can be avoided.
    """
    firsts = {one.core: one for one in sorted(cpus, key=lambda one: -one.number)}
    ordered = sorted(firsts.values(), key=lambda one: (one.node, one.number))
    count = len({one.node for one in cpus}) if ranks == "numa" else int(ranks)
    cuts = [len(ordered) * at // count for at in range(count + 1)]
    return [[one.number for one in ordered[first:end]] for first, end in pairwise(cuts)]


def numa_shares() -> list[list[int]]:
    """Of this host: a share for each node of its memory."""
    return cpu_shares(host_cpus(), "numa")


def threads_of(ranks: int) -> int:
    """Cores that each of so many ranks of this host has to itself."""
    return min(len(one) for one in cpu_shares(host_cpus(), str(ranks)))


def keep_to_nodes(pids: Sequence[int]) -> None:
    """Before they have touched any memory: it then is where their cores are."""
    cpus = host_cpus()
    for pid, node in zip(pids, sorted({one.node for one in cpus}), strict=True):
        with suppress(ProcessLookupError):
            os.sched_setaffinity(pid, {one.number for one in cpus if one.node == node})
