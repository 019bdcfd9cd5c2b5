"""Who came to the start, and who is missed: said by name, before anything waits for them."""

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
"""For a message to reach the ranks that are there."""
_SHOWN = 8
"""Hosts, and runs of ranks: a failure message is short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where a rank sits, and what it knows of the others."""

    rank: int
    size: int
    ranks_per_host: int
    host: str
    hosts: Sequence[str] = ()
    """Of the job, in no certain order; empty where they are not known."""

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
        """`host algo-2 (ranks 8-15)`. ``present``: the host of each rank that is here."""
        ranks = f"{_counted('rank', missing)} {listed(_runs(sorted(missing)), most=_SHOWN)}"
        numbers = {rank // self.ranks_per_host for rank in missing}
        partly = {host for rank, host in present.items() if rank // self.ranks_per_host in numbers}
        names = sorted(partly | (set(self.hosts) - set(present.values())), key=lambda one: (len(one), one))
        return f"{_counted('host', names)} {listed(names, most=_SHOWN)} ({ranks})" if names else ranks


def _counted(word: str, things: Collection[object]) -> str:
    return word if len(things) == 1 else word + "s"


def _runs(numbers: Sequence[int]) -> list[str]:
    """`0-3`, `7`, of ascending numbers."""
    starts = [one for one in numbers if one - 1 not in numbers]
    ends = [one for one in numbers if one + 1 not in numbers]
    return [
        str(first) if first == last else f"{first}-{last}" for first, last in zip(starts, ends, strict=True)
    ]


class RollCall:
    """Every rank says at a store that it is here; the first rank looks who did and tells the others.

    Stores are torch's: the first rank's process usually serves it, so that rank leaves last. Each
    ``occasion`` serves once.
    """

    def __init__(self, store: Store, seat: Seat) -> None:
        self._store, self._seat = store, seat

    def missing(self, occasion: str, *, seconds: float) -> str:
        """Who does not call this within ``seconds``, in words; empty: all are here. Every rank calls."""
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
        """What the first rank does."""
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
        """Wait for all of the keys. A store that went away has none."""
        try:
            self._store.wait(keys, timedelta(seconds=seconds))
        except dist.DistError:
            return False
        return True
