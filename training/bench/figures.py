"""What a suite's results come to: lines for a person, checks against what is expected."""

import statistics
from collections.abc import Mapping
from typing import Any

from trainmaster_client.report import Report

from training.bench.cases import CPU_ROWS, Record, State

Result = Mapping[str, Any]

_MFU_FLOORS = {"eager": 33.0, "compiled": 45.0}
"""Percent, llama-1b with 4,096 tokens in bf16 on one H100 or H200. Sources: docs/training/gpu.md."""
_FLOAT8_GAIN = 1.2
_STALL_SECONDS = 0.6
"""Of a checkpoint of 15 GB."""


def line_of(record: Record) -> str:
    what = record.reason or figures(record.result)
    return f"{record.id:22}{record.state:15}{record.seconds:7.1f} s  {what}"


def figures(result: Result) -> str:
    """The figures of one result, in the order of their worth."""
    if "matrix_tflops" in result:
        return _device(result)
    if "mfu" in result:
        return _steps(result)
    if "load_seconds" in result:
        return _checkpoint(result)
    if "tried" in result:
        tried = ", ".join(f"{size} {state}" for size, state in result["tried"].items())
        return f"largest batch {result['batch']} ({tried})"
    if "batch_ms" in result:
        read = f"{result['tok_s']:,.0f} tokens/s read, {result['batch_ms']:.2f} ms a batch"
        return f"{read}; {result['prepare_mb_s']:.0f} MB/s prepared"
    if "longest" in result:
        longest = ", ".join(f"{one['name']} {one['ms']:.1f} ms" for one in result["longest"][:3])
        return f"{result['path']}: {longest}"
    return ""


def _device(result: Result) -> str:
    peak = result["peak"]
    stated = f"{peak['tflops']:g} TFLOP/s dense bf16 ({peak['source']})" if peak else "no known peak"
    reached = f"{result['matrix_tflops']:.2f} TFLOP/s in matrices, {result['copy_gb_s']:.1f} GB/s copied"
    return f"{result['name']}, torch {result['torch']}, {result['threads']} threads: {stated}; {reached}"


def _steps(result: Result) -> str:
    mfu = "" if result["mfu"] is None else f", {result['mfu']:.1f} % MFU"
    step_ms = 1000 * statistics.median(result["step_seconds"])
    return (
        f"{result['tok_s']:,.0f} tokens/s x {result['flops_per_token'] / 1e9:.3f} GFLOP = "
        f"{result['tflops_gpu']:.3f} TFLOP/s{mfu}, {step_ms:.0f} ms a step, "
        f"batch {result['batch']}, {result['memory_gib']:.1f} GiB, {result['threads']} threads, "
        f"warm-up {result['warm_up_seconds']:.1f} s"
    )


def _checkpoint(result: Result) -> str:
    """The last save: the first allocates buffers that the others reuse."""
    stall, saved = result["stall_seconds"][-1], result["save_seconds"][-1]
    model, load = result["model_seconds"], result["load_seconds"]
    return (
        f"{result['bytes'] / 1e9:.2f} GB: stall {stall:.3f} s, saved in {saved:.2f} s; "
        f"back in {model + load:.2f} s (model {model:.2f}, checkpoint {load:.2f})"
    )


def table(facts: Mapping[str, Any]) -> str:
    records = [Record.of_json(one) for one in facts["results"]]
    lines = ["", f"suite {facts['suite']}", *(line_of(one) for one in records)]
    return "\n".join(lines + cpu_table({one.id: one.result for one in records if one.state is State.OK}))


def cpu_table(results: Mapping[str, Result]) -> list[str]:
    """By its name, what this CPU gains by cores, bf16 and compiling; empty: the suite has no such rows."""
    rows = {name: results[name] for name in CPU_ROWS if name in results}
    if not rows:
        return []
    here, first = next(iter(rows.values())), results.get(CPU_ROWS[0])
    lines = ["", f"{here['processor']}, bf16 by {here['bf16_instructions'] or 'no instructions of its own'}"]
    lines.append(f"{'':18}{'threads':>8}{'tokens/s':>12}{'ratio':>8}{'a CPU s':>12}{'ratio':>8}")
    for name, one in rows.items():
        of_first = ["-", "-"]
        if first:
            pairs = ((one["tok_s"], first["tok_s"]), (_per_cpu_second(one), _per_cpu_second(first)))
            of_first = [f"{ours / theirs:.2f}" for ours, theirs in pairs]
        lines.append(
            f"{name:18}{one['threads']:8}{one['tok_s']:12,.0f}{of_first[0]:>8}"
            f"{_per_cpu_second(one):12,.0f}{of_first[1]:>8}"
        )
    return lines


def _per_cpu_second(result: Result) -> float:
    """Tokens: what other programs on the machine change less than those of a second."""
    tokens = result["tok_s"] * statistics.median(result["step_seconds"])
    return float(tokens / statistics.median(result["step_cpu_seconds"]))


def check(report: Report, suite: str) -> None:
    """Each case has an outcome, each one that trains learns; on a GPU figures are held to their floors."""
    records = {one["id"]: Record.of_json(one) for one in report.facts["results"]}
    for record in records.values():
        if record.state is State.SKIPPED:
            report.skip(record.id, expected="measured", reason=record.reason)
        else:
            told = record.reason or figures(record.result)
            report.check(record.id, expected="measured", actual=told, ok=record.state is State.OK)
    for name, one in records.items():
        if losses := one.result.get("losses"):
            report.check(
                f"{name}-learns",
                expected=f"below {losses[0]:.4f}",
                actual=losses[1],
                ok=losses[1] < losses[0],
            )
    if suite == "h200":
        _check_floors(report, {name: one.result for name, one in records.items() if one.state is State.OK})


def _check_floors(report: Report, results: Mapping[str, Result]) -> None:
    for name, floor in _MFU_FLOORS.items():
        mfu = results.get(name, {}).get("mfu")
        _floor(report, f"{name}-mfu", f"at least {floor:g} % MFU", mfu, ok=mfu is not None and mfu >= floor)
    plain, fast = (results.get(name, {}).get("tok_s") for name in ("compiled", "compiled-float8"))
    gain = fast / plain if plain and fast else None
    _floor(
        report,
        "float8-gain",
        f"at least {_FLOAT8_GAIN} x compiled",
        gain,
        ok=gain is not None and gain >= _FLOAT8_GAIN,
    )
    stall = results["checkpoint"]["stall_seconds"][-1] if "checkpoint" in results else None
    _floor(
        report,
        "stall",
        f"at most {_STALL_SECONDS} s",
        stall,
        ok=stall is not None and stall <= _STALL_SECONDS,
    )


def _floor(report: Report, check_id: str, expected: str, actual: float | None, *, ok: bool) -> None:
    if actual is None:
        report.skip(check_id, expected=expected, reason="was not measured")
    else:
        report.check(check_id, expected=expected, actual=round(actual, 3), ok=ok)
