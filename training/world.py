"""The processes that train together: one alone, or those that a launcher started."""

import gc
import json
import socket
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Self, TypeVar

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore, PrefixStore, Store, TCPStore

from training.choices import DeviceName
from training.devices import Accelerator, accelerator, accelerator_of
from training.errors import LostRanksError, MeetingError, MissingRanksError, TrainingError

T = TypeVar("T")

FIRST_STEP = timedelta(minutes=30)
"""How long a collective may take until the first step is done: weights are loaded, blocks compiled."""
STEADY = timedelta(minutes=10)
"""And after it. A checkpoint of a slow host must fit in."""
_GATHERING_SECONDS = 15.0
"""For all ranks to notice that they cannot reach each other."""
_TELLING_SECONDS = 10.0
"""For a message to reach the ranks that are there."""
_SHOWN = 8
"""Hosts, and runs of ranks: a failure message is short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    rank: int
    size: int
    local_rank: int
    """Among the ranks of this host; the one with 0 does what is done once a host."""
    ranks_per_host: int
    device: torch.device
    accelerator: Accelerator = field(default=None, compare=False)  # type: ignore[assignment]
    """What is asked of the device; None: as its type has it."""

    def __post_init__(self) -> None:
        if self.accelerator is None:
            object.__setattr__(self, "accelerator", accelerator_of(self.device))

    @property
    def is_first(self) -> bool:
        return self.rank == 0


@contextmanager
def joined_world(
    env: Mapping[str, str],
    *,
    join_seconds: float = 600.0,
    waiting: AbstractContextManager[None] | None = None,
    on: DeviceName = DeviceName.AUTO,
) -> Iterator[World]:
    """Join the process group and leave it in order.

    Args:
        env: As torchrun and our launcher set it; without WORLD_SIZE the process is alone.
        join_seconds: How long to wait for ranks that have not come.
        on: What is trained on.
        waiting: Entered while others are waited for, in which no Python runs, nor handlers of signals.

    Raises:
        MissingRanksError: Some did not come.
        LostRanksError: They came, and cannot reach each other.
        MeetingError: There is no place to meet.
    """
    kind = accelerator(on)
    device = kind.device(int(env.get("LOCAL_RANK", "0")))
    if "WORLD_SIZE" in env:
        with waiting or nullcontext():
            _join(env, kind, join_seconds)
    else:
        dist.init_process_group(kind.backend, store=HashStore(), rank=0, world_size=1)
    try:
        yield World(
            rank=dist.get_rank(),
            size=dist.get_world_size(),
            local_rank=int(env.get("LOCAL_RANK", "0")),
            ranks_per_host=int(env.get("LOCAL_WORLD_SIZE", "1")),
            device=device,
            accelerator=kind,
        )
    except BaseException:
        if kind.runs_ahead:
            _abandon_collectives()
        raise
    finally:
        _leave()


def together(work: Callable[[], T]) -> T:
    """What it gives; where a rank cannot do it, none goes on. Every rank calls.

    Else the others would fail later, with a lost connection for a reason, and the job would be tried again
    as if the network were to blame.

    Raises:
        TrainingError: The rank's own, or what the first of those that failed says.
    """
    failure: TrainingError | None = None
    try:
        value = work()
    except TrainingError as error:
        failure = error
    told: list[str | None] = [None] * dist.get_world_size()
    dist.all_gather_object(told, str(failure) if failure else None)
    if failure:
        raise failure
    for rank, message in enumerate(told):
        if message:
            raise TrainingError(f"rank {rank}: {message}")
    return value


def expect_steady_steps() -> None:
    """From now on collectives take no longer than a step: a rank that hangs is noticed soon.

    Every rank calls, after its first step.
    """
    dist.barrier()  # or a rank would give up on one that is still in its first step
    for group in list(dist.distributed_c10d._world.pg_map):  # noqa: SLF001  no public way to all groups
        dist.distributed_c10d._set_pg_timeout(STEADY, group)  # noqa: SLF001  torchtitan's way, too


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
        ranks = f"{_counted('rank', missing)} {_shown(_runs(sorted(missing)))}"
        numbers = {rank // self.ranks_per_host for rank in missing}
        partly = {host for rank, host in present.items() if rank // self.ranks_per_host in numbers}
        names = sorted(partly | (set(self.hosts) - set(present.values())), key=lambda one: (len(one), one))
        return f"{_counted('host', names)} {_shown(names)} ({ranks})" if names else ranks


def _counted(word: str, things: Collection[object]) -> str:
    return word if len(things) == 1 else word + "s"


def _shown(words: Sequence[str]) -> str:
    return ", ".join(words[:_SHOWN]) + (f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else "")


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


def _join(env: Mapping[str, str], kind: Accelerator, join_seconds: float) -> None:
    seat = Seat.from_env(env)
    store = _meeting_place(env, seat, join_seconds)
    calls = RollCall(PrefixStore("roll_call", store), seat)
    if who := calls.missing("join", seconds=join_seconds):
        raise MissingRanksError(who=who, seconds=join_seconds)
    store.set_timeout(FIRST_STEP)
    try:
        _connect(PrefixStore("group", store), seat, kind.backend, timedelta(seconds=join_seconds))
    except RuntimeError as error:
        _leave()
        who = calls.missing("failure", seconds=min(join_seconds, _GATHERING_SECONDS))
        raise LostRanksError(who=who, reason=_first_line(error)) from error


def _meeting_place(env: Mapping[str, str], seat: Seat, join_seconds: float) -> Store:
    """The store that all ranks can reach; the first rank serves it, or torchrun does."""
    address, port = env["MASTER_ADDR"], int(env["MASTER_PORT"])
    serves = seat.rank == 0 and env.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    try:
        return TCPStore(
            address,
            port,
            seat.size,
            is_master=serves,
            timeout=timedelta(seconds=join_seconds),
            wait_for_workers=False,  # we wait ourselves, and say for whom
            multi_tenant=True,
        )
    except dist.DistError as error:
        where = f"{address}:{port}"
        if serves:
            raise MeetingError(where=where, reason=_first_line(error)) from error
        raise MissingRanksError(who=f"rank 0, to be met at {where},", seconds=join_seconds) from error


def _connect(store: Store, seat: Seat, backend: str, timeout: timedelta) -> None:
    """Raises RuntimeError when a rank cannot be reached; afterwards the groups are of no use."""
    dist.init_process_group(backend, store=store, rank=seat.rank, world_size=seat.size, timeout=timeout)
    group = None if backend == "gloo" else dist.new_group(backend="gloo", timeout=timeout)
    dist.monitored_barrier(group, timeout=timeout, wait_all_ranks=True)
    if group is not None:
        dist.destroy_process_group(group)
    dist.distributed_c10d._set_pg_timeout(FIRST_STEP)  # noqa: SLF001  torchtitan's way, too


def _abandon_collectives() -> None:
    """This rank failed, so the others cannot finish what is under way; leaving in order would wait for it."""
    with suppress(RuntimeError):
        dist.distributed_c10d._abort_process_group()  # noqa: SLF001  no public way


def _first_line(error: Exception) -> str:
    """Without the C++ stack trace."""
    return str(error).partition("\n")[0]


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
    # gloo's threads may still hold tensors, and then the interpreter aborts at exit
    # (pytorch/pytorch#179291): collect while they can still end.
    gc.collect()
