"""Which ranks share a machine, and which of them look after the files there."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from training.checkpoint.ranks import Ranks
from training.checkpoint.store import CheckpointStore

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    machines: tuple[tuple[int, ...], ...]
    """Their ranks."""
    lookouts: Mapping[int, str]
    """By rank, the hosts whose files it sees and removes: the first rank of each, of a shared store one."""

    def ranks_beside(self, rank: int) -> int:
        """On its machine, itself included."""
        return next(len(ranks) for ranks in self.machines if rank in ranks)


def found_places(ranks: Ranks, store: CheckpointStore) -> Places:
    """Every rank calls.

    The host name alone would not do: containers may all be called ``localhost``. Two directories on one
    machine count as two hosts.
    """
    boot = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""
    by_machine: dict[tuple[str, str, str], list[int]] = {}
    for rank, machine in enumerate(ranks.gathered((socket.gethostname(), boot, os.fspath(store.location)))):
        by_machine.setdefault(machine, []).append(rank)
    machines = tuple(tuple(found) for found in by_machine.values())
    if store.is_shared:
        return Places(machines=machines, lookouts={0: store.location})
    names = {found[0]: f"{host}:{location}" for (host, _, location), found in by_machine.items()}
    return Places(machines=machines, lookouts=names)
