"""The devices that the program trains on: a CPU, a CUDA GPU, or a Trainium core ("neuron").

Everything that differs between devices is here; the loop, worlds, metrics and memory ask the same questions
of each. Trainium has not been run: notes mark those of its names that are not certain.
"""

import importlib
import os
import platform
import resource
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch

from training.config.choices import DeviceName
from training.errors import MissingPackageError

_CPUINFO = Path("/proc/cpuinfo")
_INSTRUCTIONS = {"amx_bf16": "AMX", "avx512_bf16": "AVX512-BF16", "bf16": "bf16 of Armv8.6"}
"""Names of instructions that multiply bf16 by the kernel's flag, the fastest first."""
_ISA_LIMITS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
"""Variables that keep oneDNN, which multiplies torch's matrices on x86-64, from newer instructions. The first
counts. Source: oneDNN documentation, CPU dispatcher control."""
_WITH_BF16 = ("DEFAULT", "ALL", "AVX512_CORE_BF16", "AVX512_CORE_FP16", "AVX512_CORE_AMX", "AVX10")
"""Beginnings of the values of those variables that leave bf16 on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    name: str
    flags: frozenset[str]
    """Features as the kernel calls them; empty if it does not tell."""

    @property
    def bf16(self) -> str:
        """Return the name of the instructions that multiply bf16; empty if there are none."""
        return bf16_instructions(self.flags)

    def slow_bf16(self, env: Mapping[str, str], *, has_kernels: bool) -> str:
        """Say why bf16 is slower than fp32 here; empty if it is not.

        Args:
            env: Environment variables: oneDNN's own may hide the instructions.
            has_kernels: The installed torch uses them.
        """
        if not self.flags:
            return f"nothing tells what {self.name or 'this processor'} does with bf16"
        if not self.bf16:
            return f"{self.name} has neither {_INSTRUCTIONS['amx_bf16']} nor {_INSTRUCTIONS['avx512_bf16']}"
        limit = next((f"{name}={env[name]}" for name in _ISA_LIMITS if env.get(name)), "")
        if limit and "bf16" not in self.flags and not limit.partition("=")[2].upper().startswith(_WITH_BF16):
            return f"{limit} hides {self.bf16} of {self.name}"
        return "" if has_kernels else f"this build of torch does not use {self.bf16} of {self.name}"


def bf16_instructions(flags: Collection[str]) -> str:
    return next((name for flag, name in _INSTRUCTIONS.items() if flag in flags), "")


def processor(text: str, *, otherwise: str) -> Processor:
    """Read the text of /proc/cpuinfo; Arm's has no name, so it gets ``otherwise``."""
    lines = [line.partition(":") for line in text.splitlines()]
    fields = {key.strip(): value.strip() for key, _, value in reversed(lines)}  # the first CPU's win
    flags = fields.get("flags", fields.get("Features", ""))
    return Processor(name=fields.get("model name", otherwise), flags=frozenset(flags.split()))


def this_processor() -> Processor:
    return processor(_CPUINFO.read_text() if _CPUINFO.exists() else "", otherwise=platform.machine())


_PLUGIN = "torch_neuronx"
"""AWS's package for Trainium. That importing it makes torch know the device type "neuron" is an
assumption."""
_NEURON = "neuron"
_FIRST_WITH_BF16 = 8
"""Major compute capability of the first GPUs that multiply bf16 (A100). Before it (V100: 7.0, T4: 7.5) torch
computes in fp32 and casts. Source: NVIDIA, CUDA C++ programming guide, arithmetic instructions."""


class Accelerator(ABC):
    """One kind of device; ``device`` is always the rank's own."""

    backend: str
    """Backend of the process group; collectives of tensors on the CPU go over gloo in any case."""
    runs_ahead = True
    """True if the host is done with a step before the device is."""

    @abstractmethod
    def device(self, local_rank: int) -> torch.device:
        """Return this rank's device, which is the one that is used from now on."""

    def seed(self, seed: int) -> None:
        """Seed all generators that a step on this device draws from."""
        torch.manual_seed(seed)

    def synchronize(self, _device: torch.device) -> None:
        """Wait until the device has done all its work."""
        return

    def end_step(self) -> None:
        """Separate the steps, on devices that collect operations in a graph: this step's graph ends here."""
        return

    def name(self, _device: torch.device) -> str:
        """Return the name by which its peak is looked up; empty if it has no known peak."""
        return ""

    def peak_memory(self, _device: torch.device) -> int:
        """Return the most bytes in use so far; those of this process where the device does not tell."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux counts in KiB

    def total_memory(self, _device: torch.device) -> int | None:
        """Return the bytes of the device's own memory; None if it uses the host's."""
        return None

    def slow_bf16(self, _device: torch.device) -> str:
        """Say what the device lacks to compute bf16 faster than fp32; empty if it lacks nothing."""
        return ""


class Cpu(Accelerator):
    backend = "gloo"
    runs_ahead = False

    def device(self, _local_rank: int) -> torch.device:
        return torch.device("cpu")

    def seed(self, seed: int) -> None:
        """Seed the CPU's generator alone.

        Torch.manual_seed would note it for each device, with a stack trace.
        """
        torch.default_generator.manual_seed(seed)

    def slow_bf16(self, _device: torch.device) -> str:
        """Ask the processor, and whether this build of torch has kernels for what it has."""
        # The name says mkldnn on Arm, too, where the kernels are those of Arm's compute library.
        has_kernels = torch.backends.mkldnn.is_available() and bool(  # type: ignore[no-untyped-call]  # torch's
            torch.ops.mkldnn._is_mkldnn_bf16_supported()  # noqa: SLF001  no public way
        )
        return this_processor().slow_bf16(os.environ, has_kernels=has_kernels)


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

    def slow_bf16(self, device: torch.device) -> str:
        major, minor = torch.cuda.get_device_capability(device)
        if major >= _FIRST_WITH_BF16:
            return ""
        name = torch.cuda.get_device_name(device)
        return f"{name} has no bf16 units: its compute capability is {major}.{minor}, and 8.0 has them"


class Neuron(Accelerator):
    """A Trainium core, through PyTorch's interface for devices of other makers (torch.get_device_module).

    It was not run on hardware. The names of that interface, `set_device`, `synchronize`, are certain; the
    device type, the name of its backend, and what it reports about memory are not: what it does not report is
    left out.
    """

    backend = "cpu:gloo,neuron:neuron"

    def __init__(self, module: ModuleType) -> None:
        """Use this device ``module``, as torch.get_device_module gives it."""
        self._module = module

    @classmethod
    def loaded(cls) -> "Neuron":
        """Load AWS's package. Raises MissingPackageError if this image has no support for Trainium."""
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
        """End the step's graph, where the backend collects one instead of running operations."""
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
    """Choose the accelerator for this device name. Raises MissingPackageError."""
    if name is DeviceName.NEURON:
        return Neuron.loaded()
    on_gpu = name is DeviceName.CUDA or (name is DeviceName.AUTO and torch.cuda.is_available())
    return Cuda() if on_gpu else Cpu()


def accelerator_of(device: torch.device) -> Accelerator:
    """Return the accelerator of an existing device."""
    return accelerator(DeviceName(device.type))
