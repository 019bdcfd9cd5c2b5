"""Refuses a model whose state does not fit, before any of its memory is taken.

Counted is what stays for the whole run: weights, gradients and optimizer. What a step needs on top is not, so
a model that passes may still run out of memory; `python -m tools.training.plan` estimates that too.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch.distributed as dist
from torch import nn

from training.config import TrainConfig
from training.config.choices import OptimizerName, Precision, Strategy
from training.errors import DoesNotFitError
from training.models.optimizers import local_part
from training.ranks.world import World

USABLE = 0.92
"""Of a GPU's memory; the rest goes to the CUDA context, NCCL's buffers and fragmentation. A guess."""
_SHARDED_BY_ALL = {Strategy.FULL_SHARD, Strategy.SHARD_GRAD_OP, Strategy.TP}
_STATE = dict.fromkeys(Precision, 16) | {Precision.BF16_PURE: 10}
"""Bytes a parameter: weight, gradient, and two moments, or those and the rest of Kahan's sum."""
_FROZEN = dict.fromkeys(Precision, 2) | {Precision.FP32: 4}
"""Of one beside which adapters are trained: the weight, as it is computed with."""
_SMALLER = {OptimizerName.ADAMW_8BIT: 10, OptimizerName.MUON: 12}
"""Likewise, with moments of a byte each, or one of four; what few parameters take more is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """In bytes, for one rank."""

    device: int | None
    """None: nobody knows."""
    host: int | None
    """This rank's share of it; None: the system does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a rank holds of a model."""

    elements: int
    """Of parameters, on this rank."""
    whole: int
    """Of the whole model."""
    precision: Precision
    strategy: Strategy
    offloaded: bool
    on_gpu: bool
    """There is a GPU, so its memory and the host's are two things."""
    frozen: float = 0.0
    """The share of the whole that is not trained: of it there are weights alone."""
    optimizer: OptimizerName = OptimizerName.ADAMW

    @classmethod
    def of(cls, model: nn.Module, config: TrainConfig, world: World) -> Self:
        parameters = list(model.parameters())
        return cls(
            elements=sum(local_part(one).numel() for one in parameters),
            whole=sum(one.numel() for one in parameters),
            precision=config.precision,
            strategy=config.strategy,
            offloaded=config.cpu_offload,
            on_gpu=world.device.type != "cpu",
            frozen=_share(parameters),
            optimizer=config.optimizer,
        )

    @property
    def bytes(self) -> int:
        return self.bytes_of(self.elements, self.precision)

    def bytes_of(self, elements: int, precision: Precision) -> int:
        trained = _STATE[precision]
        if precision is not Precision.BF16_PURE:
            trained = _SMALLER.get(self.optimizer, trained)
        return math.ceil(elements * (trained + self.frozen * (_FROZEN[precision] - trained)))


def _share(parameters: Iterable[nn.Parameter]) -> float:
    """Of what is not trained."""
    sizes = [(one.numel(), one.requires_grad) for one in parameters]
    return sum(size for size, is_trained in sizes if not is_trained) / sum(size for size, _ in sizes)


def refuse_unless_it_fits(model: nn.Module, config: TrainConfig, world: World) -> None:
    """Every rank calls, with the sharded model still on the meta device; all are refused together.

    Raises:
        DoesNotFitError: What the rank that is worst off needs and has, and what would fit.
    """
    state, memory = _worst_off(State.of(model, config, world), memory_of(world), ranks=world.size)
    room = room_for(state, memory)
    if room is not None and state.bytes > room:
        would_fit = remedies(state, memory, ranks=world.size)
        raise DoesNotFitError(need=state.bytes, room=room, where=_where(state), would_fit=would_fit)


def _worst_off(state: State, memory: Memory, *, ranks: int) -> tuple[State, Memory]:
    """Of all ranks, so that they all come to the same conclusion."""
    everyone: list[tuple[State, Memory]] = [(state, memory)] * ranks
    dist.all_gather_object(everyone, (state, memory))
    return max(everyone, key=lambda one: _missing(*one))


def _missing(state: State, memory: Memory) -> int:
    room = room_for(state, memory)
    return 0 if room is None else state.bytes - room


def room_for(state: State, memory: Memory) -> int | None:
    """Bytes that there are for the state; None: nobody knows."""
    return memory.host if state.offloaded else memory.device


def remedies(state: State, memory: Memory, *, ranks: int) -> list[str]:
    """Each alone would make room for the state, the mildest first."""
    room = room_for(state, memory)
    if not room:
        return []
    found = []
    least = math.ceil(state.bytes_of(state.whole, state.precision) / room)
    sharded = "" if state.strategy in _SHARDED_BY_ALL else "strategy full_shard"
    if least > ranks:
        found.append(f"{least} ranks instead of {ranks}" + (f" with {sharded}" if sharded else ""))
    elif sharded:
        found.append(sharded)
    if state.bytes_of(state.elements, Precision.BF16_PURE) <= room < state.bytes:
        found.append("precision bf16_pure")
    if _could_be_offloaded(state) and memory.host is not None and state.bytes <= memory.host:
        found.append("cpu_offload true")
    return found


def _could_be_offloaded(state: State) -> bool:
    return state.on_gpu and not state.offloaded and state.strategy is not Strategy.NO_SHARD


def _where(state: State) -> str:
    if state.on_gpu and not state.offloaded:
        return f"of its GPU, {USABLE:.0%} of the memory"
    return "of the host, shared with its other ranks"


def memory_of(world: World) -> Memory:
    whole = host_memory()
    host = None if whole is None else whole // world.ranks_per_host
    total = world.accelerator.total_memory(world.device)
    if total is None:
        return Memory(device=host, host=host)
    return Memory(device=int(total * USABLE), host=host)


def host_memory(root: Path = Path("/")) -> int | None:
    """Bytes that the processes of this container may still take together; None: the system does not tell."""
    known = [
        _number(root / "sys/fs/cgroup/memory.max"),
        _number(root / "sys/fs/cgroup/memory/memory.limit_in_bytes"),
        _available(root / "proc/meminfo"),
    ]
    return min((one for one in known if one is not None), default=None)


def _number(path: Path) -> int | None:
    """What a limit says; `max` is none."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _available(path: Path) -> int | None:
    """``MemAvailable``, which the kernel gives in kB and means KiB by (proc(5))."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else None
