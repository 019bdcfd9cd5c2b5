"""The ranks that save and load together, their machines, the thread that saves, and failures in words."""

import os
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import torch.distributed as dist
from torch.distributed.checkpoint.api import CheckpointException

from training.preemptible import listed
from training.preemptible.checkpoint.store import CheckpointStore

T = TypeVar("T")

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SHOWN = 3
"""The most ranks with one message, and the most messages, that are named: hundreds of ranks may fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error of one rank, in words."""

    message: str
    is_of_store: bool
    """True if the store failed; False if the data that were read or the program did."""


class RanksFailedError(Exception):
    """Raised on all ranks when any of them failed."""

    def __init__(self, failures: Mapping[int, Failure]) -> None:
        super().__init__("; ".join(f"rank {rank}: {failure.message}" for rank, failure in failures.items()))
        self.failures = dict(failures)


def failures_of(error: CheckpointException | RanksFailedError, store: CheckpointStore) -> dict[int, Failure]:
    """Return what went wrong on each rank that failed, by rank."""
    if isinstance(error, RanksFailedError):
        return error.failures
    return {rank: judged(cause, store) for rank, (cause, _) in error.failures.items()}


def judged(error: BaseException, store: CheckpointStore) -> Failure:
    explained = store.explained(error)
    return Failure(message=explained or f"{type(error).__name__}: {error}", is_of_store=explained is not None)


def described(failures: Mapping[int, Failure]) -> str:
    """Describe the failures in one line.

    Ranks with the same message are named together, the first few of each.
    """
    by_message: dict[str, list[str]] = {}
    for rank, failure in sorted(failures.items()):
        by_message.setdefault(failure.message, []).append(str(rank))
    lines = [
        f"rank{'s' if len(ranks) > 1 else ''} {listed(ranks, most=_SHOWN)}: {message}"
        for message, ranks in by_message.items()
    ]
    return listed(lines, most=_SHOWN, between="; ")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer(Generic[T]):
    value: T | None = None
    failure: Failure | None = None


class Ranks:
    """All ranks, in a process group of its own on the CPUs, so that nothing waits for a GPU.

    Every rank makes one.

    It is one rank alone where torch.distributed is not initialised.

    Two threads need two of them: their messages must not mix.
    """

    def __init__(self, store: CheckpointStore) -> None:
        together = dist.is_available() and dist.is_initialized()
        self.group = dist.new_group(backend="gloo") if together else None
        self.rank = dist.get_rank() if together else 0
        self.size = dist.get_world_size() if together else 1
        self._store = store

    def gathered(self, value: T) -> list[T]:
        """Return every rank's value, on all ranks."""
        if self.group is None:
            return [value]
        values: list[T | None] = [None] * self.size
        dist.all_gather_object(values, value, group=self.group)
        return values  # type: ignore[return-value]

    def agreed(self, work: Callable[[], T]) -> list[T]:
        """Do the work on every rank, and return each rank's result.

        Raises:
            RanksFailedError: Raised on all ranks, so that none waits for one that left.
        """
        try:
            answer = _Answer(value=work())
        except Exception as error:  # noqa: BLE001  raised below, with those of the other ranks
            answer = _Answer(failure=judged(error, self._store))
        answers = self.gathered(answer)
        failures = {rank: answer.failure for rank, answer in enumerate(answers) if answer.failure}
        if failures:
            raise RanksFailedError(failures)
        return [answer.value for answer in answers]  # type: ignore[misc]


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    machines: tuple[tuple[int, ...], ...]
    """The ranks of each machine."""
    lookouts: Mapping[int, str]
    """The ranks that list and remove files, each with the name of its host: the first rank of each host, or
    the first rank alone where the store is shared."""

    def ranks_beside(self, rank: int) -> int:
        """Count the ranks on the machine of this one, itself included."""
        return next(len(ranks) for ranks in self.machines if rank in ranks)


def found_places(ranks: Ranks, store: CheckpointStore) -> Places:
    """Find out which ranks share a machine; every rank calls.

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


class Background:
    """One piece of work at a time in a thread of its own; its error is kept for whoever asks next."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, work: Callable[[], None]) -> None:
        """The one before must have been waited for."""
        assert self._thread is None

        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001  raised in the thread that asks
                self._error = error

        # A daemon: a rank that fails leaves, even if the others never answer its last save.
        self._thread = threading.Thread(target=run, name="checkpoint", daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it is done; at most so long. Raises, once, what the work raised."""
        if self._thread is not None:
            self._thread.join(seconds)
            if self._thread.is_alive():
                return False
        self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error
        return True
