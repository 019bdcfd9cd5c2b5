from pathlib import Path
from typing import Any

import pytest

from benchmarks.training.bench.figures import cpu_table
from training.config.choices import DeviceName, Precision
from training.models.precision import choose
from training.ranks.devices import Processor, bf16_instructions, processor

_MILAN = "processor\t: {}\nmodel name\t: AMD EPYC 7R13\nflags\t\t: fpu avx2 bmi2\n\n"
_GRAVITON = "processor\t: 0\nFeatures\t: fp asimd sve bf16 i8mm\nCPU implementer\t: 0x41\n"


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        pytest.param({"avx2", "avx512f", "avx512_bf16", "amx_bf16", "amx_tile"}, "AMX", id="Sapphire Rapids"),
        pytest.param({"avx2", "avx512f", "avx512_bf16"}, "AVX512-BF16", id="Zen 4"),
        pytest.param({"avx2", "avx512f", "avx512_vnni"}, "", id="Cascade Lake"),
        pytest.param({"amx_tile", "amx_int8"}, "", id="AMX without bf16"),
        pytest.param({"fp", "asimd", "sve", "bf16"}, "bf16 of Armv8.6", id="Graviton3"),
        pytest.param(set(), "", id="unknown"),
    ],
)
def test_the_fastest_bf16_instructions_follow_from_the_flags(flags: set[str], found: str) -> None:
    assert bf16_instructions(flags) == found


def test_a_processor_is_read_as_linux_tells_it() -> None:
    milan = processor(_MILAN.format(0) + _MILAN.format(1), otherwise="x86_64")
    assert (milan.name, set(milan.flags)) == ("AMD EPYC 7R13", {"fpu", "avx2", "bmi2"})
    graviton = processor(_GRAVITON, otherwise="aarch64")
    assert (graviton.name, graviton.bf16) == ("aarch64", "bf16 of Armv8.6")
    assert processor("", otherwise="arm64") == Processor(name="arm64", flags=frozenset())


@pytest.mark.parametrize(
    ("flags", "env", "has_kernels", "lacks"),
    [
        pytest.param({"avx512_bf16"}, {}, True, "", id="AVX512-BF16"),
        pytest.param({"amx_bf16", "avx512_bf16"}, {}, True, "", id="AMX"),
        pytest.param({"asimd", "bf16"}, {}, True, "", id="Graviton3"),
        pytest.param({"avx2"}, {}, True, "one has neither AMX nor AVX512-BF16", id="Zen 3"),
        pytest.param({"asimd", "sve"}, {}, True, "one has neither AMX nor AVX512-BF16", id="Graviton2"),
        pytest.param(set(), {}, True, "nothing tells what one does with bf16", id="no /proc/cpuinfo"),
        pytest.param(
            {"bf16"}, {}, False, "this build of torch does not use bf16 of Armv8.6 of one", id="torch without"
        ),
        pytest.param(
            {"avx512_bf16"},
            {"ONEDNN_MAX_CPU_ISA": "AVX2"},
            True,
            "ONEDNN_MAX_CPU_ISA=AVX2 hides AVX512-BF16 of one",
            id="hidden from oneDNN",
        ),
        pytest.param(
            {"amx_bf16", "avx512_bf16"},
            {"DNNL_MAX_CPU_ISA": "avx512_core_vnni"},
            True,
            "DNNL_MAX_CPU_ISA=avx512_core_vnni hides AMX of one",
            id="by its older name, in small letters",
        ),
        pytest.param(
            {"avx512_bf16"}, {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}, True, "", id="a limit that leaves it"
        ),
        pytest.param({"avx512_bf16"}, {"ONEDNN_MAX_CPU_ISA": ""}, True, "", id="an empty limit"),
        pytest.param({"bf16"}, {"ONEDNN_MAX_CPU_ISA": "AVX2"}, True, "", id="the limit is of x86-64 alone"),
    ],
)
def test_what_a_processor_lacks_for_fast_bf16(
    flags: set[str], env: dict[str, str], *, has_kernels: bool, lacks: str
) -> None:
    here = Processor(name="one", flags=frozenset(flags))
    assert here.slow_bf16(env, has_kernels=has_kernels) == lacks


def test_the_page_shows_the_lines_of_the_log() -> None:
    page = (Path(__file__).parents[4] / "docs/training/cpu.md").read_text()
    lacks = Processor(name="AMD EPYC 7R13", flags=frozenset({"avx2"})).slow_bf16({}, has_kernels=True)
    for wanted in (Precision.AUTO, Precision.BF16):
        lines = choose(wanted, device=DeviceName.CPU, slow=[lacks], kept=None).lines()
        assert f"```text\n{chr(10).join(lines)}\n```\n" in page


def _steps(*, threads: int, tok_s: float, seconds: float, cpu_seconds: float) -> dict[str, Any]:
    """The median of three laps counts."""
    laps, cpu_laps = [9.0, seconds, 0.1], [0.1, cpu_seconds, 9.0]
    of = {"processor": "AMD EPYC 7R13", "bf16_instructions": ""}
    return of | {"threads": threads, "tok_s": tok_s, "step_seconds": laps, "step_cpu_seconds": cpu_laps}


def test_the_table_of_a_cpu_compares_with_one_thread_of_fp32() -> None:
    results: dict[str, dict[str, Any]] = {
        "fp32-one-thread": _steps(threads=1, tok_s=2000.0, seconds=0.5, cpu_seconds=0.5),
        "bf16-compiled": _steps(threads=4, tok_s=3000.0, seconds=0.4, cpu_seconds=0.8),
        "eager": {"threads": 1, "tok_s": 1.0},
    }
    assert cpu_table(results) == [
        "",
        "AMD EPYC 7R13, bf16 by no instructions of its own",
        "                         threads    tokens/s   ratio     a CPU s   ratio",
        "fp32-one-thread                1       2,000    1.00       2,000    1.00",
        "bf16-compiled                  4       3,000    1.50       1,500    0.75",
    ]
    del results["fp32-one-thread"]
    assert cpu_table(results)[-1].split() == ["bf16-compiled", "4", "3,000", "-", "1,500", "-"]
    assert cpu_table({"eager": results["eager"]}) == []
