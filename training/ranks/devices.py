"""What the program asks of the device it trains on: a CPU, a CUDA GPU, or a Trainium core ("neuron").

Everything that differs between devices is here; the loop, worlds, metrics and memory ask the same questions
of each; and what a processor does with bf16, as Linux tells it. Trainium has not been run: what of its names
is not certain says so.
"""

import importlib
import platform
import resource
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch

from training.errors import MissingPackageError
from training.options.choices import DeviceName, Precision

_PLUGIN = "torch_neuronx"
"""AWS's package. That importing it makes torch know the device type "neuron" is an assumption."""
_NEURON = "neuron"
_CPUINFO = Path("/proc/cpuinfo")
_INSTRUCTIONS = {"amx_bf16": "AMX", "avx512_bf16": "AVX512-BF16", "bf16": "bf16 of Armv8.6"}
"""By the flag, the fastest first. All else that PyTorch calls bf16 on a CPU is fp32 with casts around it."""


class Accelerator(ABC):
    """One kind of device; ``device`` is always the rank's own."""

    backend: str
    """Of the process group; collectives of tensors on the CPU go over gloo in any case."""
    runs_ahead = True
    """The host is done with a step before the device is."""

    @abstractmethod
    def device(self, local_rank: int) -> torch.device:
        """Of this rank; from now on the one that is used."""

    def seed(self, seed: int) -> None:
        """All generators that a step on this device draws from."""
        torch.manual_seed(seed)

    def synchronize(self, _device: torch.device) -> None:
        """Wait until all that was asked for is done."""
        return

    def end_step(self) -> None:
        """Nothing of the next step belongs to the graph of this one."""
        return

    def name(self, _device: torch.device) -> str:
        """By which its peak is looked up; empty: it has none that is known."""
        return ""

    def peak_memory(self, _device: torch.device) -> int:
        """Bytes: the most that was in use so far; of this process where the device does not tell."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux counts in KiB

    def total_memory(self, _device: torch.device) -> int | None:
        """Bytes of its own; None: it uses the host's."""
        return None


class Cpu(Accelerator):
    backend = "gloo"
    runs_ahead = False

    def device(self, _local_rank: int) -> torch.device:
        return torch.device("cpu")

    def seed(self, seed: int) -> None:
        """Without the devices that torch.manual_seed would note it for, each with a trace of the stack."""
        torch.default_generator.manual_seed(seed)


class Cuda(Accelerator):
    backend = "cpu:gloo,cuda:nccl"

    def device(self, local_rank: int) -> torch.device:
        torch.cuda.set_device(local_rank)
        return torch.device("cuda", local_rank)

    def synchronize(self, device: torch.device) -> None:
        torch.cuda.synchronize(device)

    def name(self, device: torch.device) -> str:
        return torch.cuda.get_device_name(device)

    def peak_memory(self, device: torch.device) -> int:
        return torch.cuda.max_memory_allocated(device)

    def total_memory(self, device: torch.device) -> int | None:
        return torch.cuda.get_device_properties(device).total_memory


class Neuron(Accelerator):
    """Through the interface that PyTorch gives devices of other makers (torch.get_device_module).

    Not run on hardware. Certain are the names of that interface, `set_device`, `synchronize`; not certain are
    the device type, the name of its backend, and what it tells of memory: what it does not tell is left out.
    """

    backend = "cpu:gloo,neuron:neuron"

    def __init__(self, module: ModuleType) -> None:
        """``module``: as torch.get_device_module gives it."""
        self._module = module

    @classmethod
    def loaded(cls) -> "Neuron":
        """Raises MissingPackageError: this image has no support for Trainium."""
        try:
            importlib.import_module(_PLUGIN)
            return cls(torch.get_device_module(_NEURON))
        except (ImportError, RuntimeError) as error:
            raise MissingPackageError(what="device neuron", packages=[_PLUGIN]) from error

    def device(self, local_rank: int) -> torch.device:
        self._module.set_device(local_rank)
        return torch.device(_NEURON, local_rank)

    def synchronize(self, device: torch.device) -> None:
        self._module.synchronize(device)

    def end_step(self) -> None:
        """Where the backend collects a graph instead of running operations, it is cut here: once a step."""
        if (mark := getattr(self._module, "mark_step", None)) is not None:
            mark()

    def peak_memory(self, device: torch.device) -> int:
        if (peak := getattr(self._module, "max_memory_allocated", None)) is not None:
            return int(peak(device))
        return super().peak_memory(device)

    def total_memory(self, device: torch.device) -> int | None:
        if (properties := getattr(self._module, "get_device_properties", None)) is not None:
            return int(properties(device).total_memory)
        return super().total_memory(device)


def accelerator(name: DeviceName) -> Accelerator:
    """Raises MissingPackageError."""
    if name is DeviceName.NEURON:
        return Neuron.loaded()
    on_gpu = name is DeviceName.CUDA or (name is DeviceName.AUTO and torch.cuda.is_available())
    return Cuda() if on_gpu else Cpu()


def accelerator_of(device: torch.device) -> Accelerator:
    """That a device is one of."""
    return accelerator(DeviceName(device.type))


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    name: str
    flags: frozenset[str]
    """As the kernel calls them; empty: it does not tell."""

    @property
    def bf16(self) -> str:
        """The instructions that multiply bf16; empty: there are none."""
        return bf16_instructions(self.flags)


def bf16_instructions(flags: Collection[str]) -> str:
    return next((name for flag, name in _INSTRUCTIONS.items() if flag in flags), "")


def processor(text: str, *, otherwise: str) -> Processor:
    """Of the text of /proc/cpuinfo; Arm's has no name, so it gets ``otherwise``."""
    lines = [line.partition(":") for line in text.splitlines()]
    found = {key.strip(): value.strip() for key, _, value in reversed(lines)}  # the first CPU's win
    flags = found.get("flags", found.get("Features", ""))
    return Processor(name=found.get("model name", otherwise), flags=frozenset(flags.split()))


def this_processor() -> Processor:
    return processor(_CPUINFO.read_text() if _CPUINFO.exists() else "", otherwise=platform.machine())


def advice(here: Processor, precision: Precision) -> str:
    """Where bf16 is slower than fp32, what to choose; empty: nothing to say, or the kernel does not tell."""
    if precision not in {Precision.BF16, Precision.BF16_PURE} or here.bf16 or not here.flags:
        return ""
    lacks = " nor ".join(_INSTRUCTIONS[flag] for flag in ("amx_bf16", "avx512_bf16"))
    return (
        f"{here.name} has neither {lacks}, so {precision} is slower than fp32 on it: choose precision "
        "fp32, or an instance with them (AMX: c7i, m7i, r7i; AVX512-BF16: c7a, m7a, r7a; Graviton3 and later)"
    )
