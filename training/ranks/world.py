"""The processes that train together: one alone, or those that a launcher started."""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import HashStore, PrefixStore, Store, TCPStore

from training.config.choices import DeviceName
from training.errors import LostRanksError, MeetingError, MissingRanksError, TrainingError
from training.metrics import Event, event_line
from training.ranks.devices import Accelerator, accelerator, accelerator_of
from training.ranks.roll_call import RollCall, Seat

T = TypeVar("T")

FIRST_STEP = timedelta(minutes=30)
"""How long a collective may take until the first step is done: weights are loaded, blocks compiled."""
STEADY = timedelta(minutes=10)
"""How long a collective may take after the first step. A checkpoint of a slow host must fit in."""
_GATHERING_SECONDS = 15.0
"""Seconds for all ranks to notice that they cannot reach each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    rank: int
    size: int
    local_rank: int
    """Number among the ranks of this host; rank 0 of a host does what is done once a host."""
    ranks_per_host: int
    device: torch.device
    accelerator: Accelerator = field(default=None, compare=False)  # type: ignore[assignment]  # set below
    """The kind of device, which answers questions about it; None for that of the device's type."""
    ranks_per_share: int = 1
    """Neighbours that work on the same sequences, each with a part of the model."""

    def __post_init__(self) -> None:
        if self.accelerator is None:
            object.__setattr__(self, "accelerator", accelerator_of(self.device))

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @property
    def hosts(self) -> int:
        """Return how many hosts train: the width of an elastic job."""
        return self.size // self.ranks_per_host

    @property
    def data_rank(self) -> int:
        """Return the number of this rank's share of a batch."""
        return self.rank // self.ranks_per_share

    @property
    def data_ranks(self) -> int:
        """Return how many shares a batch is divided into."""
        return self.size // self.ranks_per_share

    def summed(self, mine: Tensor) -> Tensor:
        """Sum over the shares of a batch; the ranks of one share have the same number. Every rank calls."""
        total = mine.clone()
        dist.all_reduce(total)
        return total / self.ranks_per_share


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
        env: Variables as torchrun or our launcher set them; the process is alone if WORLD_SIZE is not set.
        join_seconds: How long to wait for ranks that have not come.
        on: The device to train on.
        waiting: Entered while others are waited for; no Python runs then, nor handlers of signals.

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
            # This rank failed, so the others cannot finish what is under way: to leave in order would wait.
            with suppress(RuntimeError):
                dist.distributed_c10d._abort_process_group()  # noqa: SLF001  no public way
        raise
    finally:
        _leave()


def together(work: Callable[[], T]) -> T:
    """Do the work on every rank and return this rank's result; raise on all if one rank fails.

    Every rank calls.

    Else the others would fail later, with a lost connection for a reason, and the job would be tried again
    as if the network were to blame.

    Raises:
        TrainingError: The rank's own, or the message of the first of those that failed.
    """
    failure: TrainingError | None = None
    try:
        value = work()
    except TrainingError as error:
        failure = error
    messages: list[str | None] = [None] * dist.get_world_size()
    dist.all_gather_object(messages, str(failure) if failure else None)
    if failure:
        raise failure
    for rank, message in enumerate(messages):
        if message:
            raise TrainingError(f"rank {rank}: {message}")
    return value


def expect_steady_steps() -> None:
    """Shorten the time that collectives may take, so that a rank that hangs is noticed soon.

    Every rank calls, after its first step.
    """
    dist.barrier()  # or a rank would give up on one that is still in its first step
    for group in list(dist.distributed_c10d._world.pg_map):  # noqa: SLF001  no public way to all groups
        dist.distributed_c10d._set_pg_timeout(STEADY, group)  # noqa: SLF001  torchtitan's way, too


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
    """Open the store that all ranks can reach; the first rank serves it, or torchrun does."""
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
    """Connect the ranks. Raises RuntimeError if one cannot be reached; the groups are of no use then."""
    dist.init_process_group(backend, store=store, rank=seat.rank, world_size=seat.size, timeout=timeout)
    group = None if backend == "gloo" else dist.new_group(backend="gloo", timeout=timeout)
    dist.monitored_barrier(group, timeout=timeout, wait_all_ranks=True)
    if group is not None:
        dist.destroy_process_group(group)
    dist.distributed_c10d._set_pg_timeout(FIRST_STEP)  # noqa: SLF001  torchtitan's way, too


def _first_line(error: Exception) -> str:
    """Return the error's first line, which leaves out the C++ stack trace."""
    return str(error).partition("\n")[0]


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
    # gloo's threads may still hold tensors, and then the interpreter aborts at exit
    # (pytorch/pytorch#179291): collect while they can still end.
    gc.collect()


def tell(world: World, event: Event, **details: float | str | None) -> None:
    """Print an event's line on the first rank; every rank may call, as the others do nothing."""
    if world.is_first:
        print(event_line(event, **details), flush=True)
