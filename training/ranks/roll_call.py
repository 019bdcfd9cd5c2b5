"""Finds out which ranks came to the start, and names the missing ones before anything waits for them."""

import json
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

import torch.distributed as dist
from torch._C._distributed_c10d import Store

from training.errors import listed

_TELLING_SECONDS = 10.0
"""Seconds for a message to reach the ranks that are there."""
_SHOWN = 8
"""The most hosts, and runs of ranks, in a message, as a failure message is short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """The place of one rank among all, and what it knows of the others."""

    rank: int
    size: int
    ranks_per_host: int
    host: str
    hosts: Sequence[str] = ()
    """Hosts of the job, in no certain order; empty if they are not known."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Self:
        size, per_host = int(env["WORLD_SIZE"]), int(env.get("LOCAL_WORLD_SIZE", "1"))
        hosts = json.loads(env.get("SM_HOSTS", "[]"))
        return cls(
            rank=int(env["RANK"]),
            size=size,
            ranks_per_host=per_host,
            host=env.get("SM_CURRENT_HOST", socket.gethostname()),
            # Hosts of instance groups that do not train are among SageMaker's, too.
            hosts=hosts if len(hosts) * per_host == size else (),
        )

    def described(self, missing: Collection[int], present: Mapping[int, str]) -> str:
        """Describe missing ranks with their hosts: `host algo-2 (ranks 8-15)`.

        ``present`` has the host of each rank that is here.
        """
        ranks = f"{_counted('rank', missing)} {listed(_runs(sorted(missing)), most=_SHOWN)}"
        numbers = {rank // self.ranks_per_host for rank in missing}
        partly = {host for rank, host in present.items() if rank // self.ranks_per_host in numbers}
        names = sorted(partly | (set(self.hosts) - set(present.values())), key=lambda host: (len(host), host))
        return f"{_counted('host', names)} {listed(names, most=_SHOWN)} ({ranks})" if names else ranks


def _counted(word: str, things: Collection[object]) -> str:
    return word if len(things) == 1 else word + "s"


def _runs(numbers: Sequence[int]) -> list[str]:
    """Join ascending numbers into runs, as in `0-3`, `7`."""
    starts = [number for number in numbers if number - 1 not in numbers]
    ends = [number for number in numbers if number + 1 not in numbers]
    return [
        str(first) if first == last else f"{first}-{last}" for first, last in zip(starts, ends, strict=True)
    ]


class RollCall:
    """Every rank reports at a store that it is here; the first rank sees which did and tells the others.

    Stores are torch's: the first rank's process usually serves it, so that rank leaves last. Each
    ``occasion`` serves once.
    """

    def __init__(self, store: Store, seat: Seat) -> None:
        self._store, self._seat = store, seat

    def missing(self, occasion: str, *, seconds: float) -> str:
        """Name the ranks that do not call this within ``seconds``, in words; empty if all did.

        Every rank calls.
        """
        calls = [f"{occasion}/{rank}" for rank in range(self._seat.size)]
        self._store.set(calls[self._seat.rank], self._seat.host)
        verdict = f"{occasion}/missing"
        if self._seat.rank == 0:
            return self._found(calls, verdict, seconds)
        if self._came(calls[:1], seconds) and self._came([verdict], seconds + _TELLING_SECONDS):
            who: str = self._store.get(verdict).decode()
            self._store.set(f"{calls[self._seat.rank]}/told", "yes")
            return who
        return "rank 0"

    def _found(self, calls: list[str], verdict: str, seconds: float) -> str:
        """Do the first rank's part: wait for all calls, and write into the store which ranks are missing."""
        if self._came(calls, seconds):
            self._store.set(verdict, "")
            return ""
        here = {rank: call for rank, call in enumerate(calls) if self._store.check([call])}
        hosts = {rank: self._store.get(call).decode() for rank, call in here.items()}
        who = self._seat.described(set(range(self._seat.size)) - set(here), hosts)
        self._store.set(verdict, who)
        # This process takes the store along, so the others must have read it.
        self._came([f"{call}/told" for rank, call in here.items() if rank], _TELLING_SECONDS)
        return who

    def _came(self, keys: list[str], seconds: float) -> bool:
        """Wait for all of the keys; False if some do not come. A store that went away has none."""
        try:
            self._store.wait(keys, timedelta(seconds=seconds))
        except dist.DistError:
            return False
        return True
