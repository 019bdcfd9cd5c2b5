"""What a processor does with bf16, as Linux tells it and as oneDNN is allowed to.

All that PyTorch calls bf16 on a CPU without such instructions is fp32 with casts around it: a step takes
twice to six times as long as in fp32.
"""

import platform
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_INSTRUCTIONS = {"amx_bf16": "AMX", "avx512_bf16": "AVX512-BF16", "bf16": "bf16 of Armv8.6"}
"""By the kernel's flag, the fastest first."""
_ISA_LIMITS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
"""Variables that keep oneDNN, which multiplies torch's matrices on x86-64, from newer instructions. The first
counts. Source: oneDNN documentation, CPU dispatcher control."""
_WITH_BF16 = ("DEFAULT", "ALL", "AVX512_CORE_BF16", "AVX512_CORE_FP16", "AVX512_CORE_AMX", "AVX10")
"""How the values of those variables begin that leave bf16 on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    name: str
    flags: frozenset[str]
    """As the kernel calls them; empty: it does not tell."""

    @property
    def bf16(self) -> str:
        """The instructions that multiply bf16; empty: there are none."""
        return bf16_instructions(self.flags)

    def slow_bf16(self, env: Mapping[str, str], *, has_kernels: bool) -> str:
        """Say why bf16 is slower than fp32 here; empty: it is not.

        Args:
            env: Where oneDNN's own variables may hide the instructions.
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
    found = {key.strip(): value.strip() for key, _, value in reversed(lines)}  # the first CPU's win
    flags = found.get("flags", found.get("Features", ""))
    return Processor(name=found.get("model name", otherwise), flags=frozenset(flags.split()))


def this_processor() -> Processor:
    return processor(_CPUINFO.read_text() if _CPUINFO.exists() else "", otherwise=platform.machine())
