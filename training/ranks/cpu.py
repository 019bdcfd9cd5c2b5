"""What a host's processor does with bf16, as Linux tells it."""

import platform
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from training.options.choices import Precision

_CPUINFO = Path("/proc/cpuinfo")
_INSTRUCTIONS = {"amx_bf16": "AMX", "avx512_bf16": "AVX512-BF16", "bf16": "bf16 of Armv8.6"}
"""By the flag, the fastest first. All else that PyTorch calls bf16 on a CPU is fp32 with casts around it."""


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
