"""Refuse a model whose state does not fit, before any of its memory is allocated.

The state is what stays for the whole run: weights, gradients and optimizer. A step needs more, which is not
counted here, so a model that passes may still run out of memory; `python -m tools.training.plan` estimates
that too.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch.distributed as dist
from torch import nn

from training.config.choices import OptimizerName, Precision, Strategy
from training.config.sections import StepOptions
from training.errors import DoesNotFitError
from training.models.optimizers import local_part
from training.ranks.world import World

USABLE = 0.92
"""Usable share of a GPU's memory, a guess; CUDA's context, NCCL's buffers and fragmentation take the rest."""
_SHARDED_BY_ALL = {Strategy.FULL_SHARD, Strategy.SHARD_GRAD_OP, Strategy.TP}
_STATE = dict.fromkeys(Precision, 16) | {Precision.BF16_PURE: 10}
"""Bytes of a trained parameter: weight, gradient, and two moments, or those and the rest of Kahan's sum."""
_FROZEN = dict.fromkeys(Precision, 2) | {Precision.FP32: 4}
"""Bytes of a frozen parameter beside which adapters are trained: the weight, in the compute precision."""
_SMALLER = {OptimizerName.ADAMW_8BIT: 10, OptimizerName.MUON: 12}
"""Bytes of a trained parameter with moments of a byte each, or one of four; few parameters take more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes of memory for one rank."""

    device: int | None
    """Usable memory of its device; None if it is unknown."""
    host: int | None
    """This rank's share of the host's memory; None if the system does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Part of a model that a rank holds."""

    elements: int
    """Elements of parameters on this rank."""
    whole: int
    """Elements of the whole model."""
    precision: Precision
    strategy: Strategy
    offloaded: bool
    on_gpu: bool
    """Whether there is a GPU, so that its memory and the host's are different."""
    frozen: float = 0.0
    """Share of the whole model that is not trained: only weights are held of it."""
    optimizer: OptimizerName = OptimizerName.ADAMW

    @classmethod
    def of(cls, model: nn.Module, config: StepOptions, world: World) -> Self:
        parameters = list(model.parameters())
        return cls(
            elements=sum(local_part(parameter).numel() for parameter in parameters),
            whole=sum(parameter.numel() for parameter in parameters),
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
    """Return the share of the elements that are not trained."""
    sizes = [(parameter.numel(), parameter.requires_grad) for parameter in parameters]
    return sum(size for size, is_trained in sizes if not is_trained) / sum(size for size, _ in sizes)


def refuse_unless_it_fits(model: nn.Module, config: StepOptions, world: World) -> None:
    """Refuse a model that does not fit. Every rank calls, with the sharded model still on the meta device.

    Raises:
        DoesNotFitError: On every rank. It says what the rank that lacks most needs and has, and what would
        fit.
    """
    state, memory = _worst_off(State.of(model, config, world), memory_of(world), ranks=world.size)
    room = room_for(state, memory)
    if room is not None and state.bytes > room:
        would_fit = remedies(state, memory, ranks=world.size)
        raise DoesNotFitError(need=state.bytes, room=room, where=_where(state), would_fit=would_fit)


def _worst_off(state: State, memory: Memory, *, ranks: int) -> tuple[State, Memory]:
    """Return the state and memory of the rank that lacks most, so that all ranks decide alike."""
    everyone: list[tuple[State, Memory]] = [(state, memory)] * ranks
    dist.all_gather_object(everyone, (state, memory))
    return max(everyone, key=lambda rank: _missing(*rank))


def _missing(state: State, memory: Memory) -> int:
    room = room_for(state, memory)
    return 0 if room is None else state.bytes - room


def room_for(state: State, memory: Memory) -> int | None:
    """Return the bytes that the state may take; None if they are unknown."""
    return memory.host if state.offloaded else memory.device


def remedies(state: State, memory: Memory, *, ranks: int) -> list[str]:
    """Return changes that would each make room for the state, the mildest first."""
    room = room_for(state, memory)
    if not room:
        return []
    changes = []
    least = math.ceil(state.bytes_of(state.whole, state.precision) / room)
    sharded = "" if state.strategy in _SHARDED_BY_ALL else "strategy full_shard"
    if least > ranks:
        changes.append(f"{least} ranks instead of {ranks}" + (f" with {sharded}" if sharded else ""))
    elif sharded:
        changes.append(sharded)
    if state.bytes_of(state.elements, Precision.BF16_PURE) <= room < state.bytes:
        changes.append("precision bf16_pure")
    if _could_be_offloaded(state) and memory.host is not None and state.bytes <= memory.host:
        changes.append("cpu_offload true")
    return changes


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
    """Return the bytes that the container's processes may still take together; None if they are unknown."""
    known = [
        _number(root / "sys/fs/cgroup/memory.max"),
        _number(root / "sys/fs/cgroup/memory/memory.limit_in_bytes"),
        _available(root / "proc/meminfo"),
    ]
    return min((limit for limit in known if limit is not None), default=None)


def _number(path: Path) -> int | None:
    """Read a limit; None if there is none (`max`) or no such file."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _available(path: Path) -> int | None:
    """Read ``MemAvailable``, which the kernel gives in kB and means KiB by (proc(5))."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    kibibytes = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(kibibytes[0]) * 1024 if kibibytes else None
