"""Runs a function on several ranks, each a process with gloo, without a launcher.

The processes are forked from a server that has loaded torch once, so a world of four costs little more
than what it computes. The function is found by its name, so it stands at the top of a module; arguments
and results travel as pickles.
"""

import gc
import multiprocessing
import os
import pickle
import traceback
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FileStore

from training.ranks.world import World

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_SECONDS = 400
"""A world that is not done by then hangs."""
_LOADED_ONCE = ["torch.distributed.fsdp", "torch.distributed.checkpoint.state_dict", "torch._dynamo"]


class RankFailedError(Exception):
    """What the first rank that failed had to say; the others were ended."""


def in_world(
    ranks: int,
    function: Callable[Concatenate[World, Arguments], Result],
    *arguments: Arguments.args,
    **keywords: Arguments.kwargs,
) -> list[Result]:
    """Call ``function(world, ...)`` on every rank of one host; the results by rank.

    Raises:
        RankFailedError: A rank raised, died or hung.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LOADED_ONCE)
    with TemporaryDirectory() as name:
        place = Path(name)
        (place / "call").write_bytes(pickle.dumps((function, arguments, keywords)))
        processes = [context.Process(target=_rank, args=(rank, ranks, name)) for rank in range(ranks)]
        for process in processes:
            process.start()
        try:
            _join(processes, place)
        finally:
            for process in processes:
                process.kill()
                process.join()
        return [pickle.loads((place / f"result-{rank}").read_bytes()) for rank in range(ranks)]


def _join(processes: list[ForkServerProcess], place: Path) -> None:
    running: dict[int, tuple[int, ForkServerProcess]] = {
        process.sentinel: (rank, process) for rank, process in enumerate(processes)
    }
    while running:
        ended = wait(running, timeout=_SECONDS)
        if not ended:
            raise RankFailedError(f"ranks {[rank for rank, _ in running.values()]} hang")
        for sentinel in ended:
            assert isinstance(sentinel, int)
            rank, process = running.pop(sentinel)
            process.join()
            if process.exitcode:
                raise RankFailedError(_first_error(place) or f"rank {rank}: exit code {process.exitcode}")


def _first_error(place: Path) -> str | None:
    """What the others say after it is only that they miss the one that failed."""
    errors = sorted(place.glob("error-*"), key=lambda path: path.stat().st_mtime_ns)
    return errors[0].read_text() if errors else None


def _rank(rank: int, ranks: int, name: str) -> None:
    """What a process does."""
    place = Path(name)
    # All ranks share the cores of this machine.
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    try:
        function, arguments, keywords = pickle.loads((place / "call").read_bytes())
        dist.init_process_group(
            "gloo", store=FileStore(str(place / "store"), ranks), rank=rank, world_size=ranks
        )
        world = World(
            rank=rank, size=ranks, local_rank=rank, ranks_per_host=ranks, device=torch.device("cpu")
        )
        result: Any = function(world, *arguments, **keywords)
        (place / f"result-{rank}").write_bytes(pickle.dumps(result))
        dist.barrier()  # who leaves early takes its connections along
    except BaseException:
        (place / f"error-{rank}").write_text(f"rank {rank}: {traceback.format_exc()}")
        raise
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
        gc.collect()  # gloo's threads may still hold tensors (pytorch/pytorch#179291)
