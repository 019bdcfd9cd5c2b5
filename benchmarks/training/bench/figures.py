"""Presents what modes and suites measured: lines for people, and checks. Loads no torch."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster_client.report import Report

from benchmarks.training.bench.cases import Record, State
from benchmarks.training.bench.suites import CPU_ROWS, MODELS, lever_rows

Result = Mapping[str, Any]

_MFU_FLOORS = {"eager": 33.0, "compiled": 45.0}
"""Percent, llama-1b with 4,096 tokens in bf16 on one H100 or H200. For comparison: a 1.3B model without
compile has 41 (mosaicml/llm-foundry, scripts/train/benchmarking), torchtitan's 8B 33 and compiled 39
(benchmarks/llama3_h100_202412), both on 8 H100."""
_HAS_FLOORS = {"preset": "llama-1b", "sequence_length": 4096, "precision": "bf16"}
_FLOAT8_GAIN = 1.2
_STALL_SECONDS = 0.6
"""Most seconds that saving a checkpoint of 15 GB may stall the training."""


def modes_table(facts: Mapping[str, Any]) -> str:
    what = f"{facts['sequence_length']} tokens, batch {facts['batch_size']}, {facts['precision']}"
    where = f"{facts['ranks']} x {facts['device']}, {facts['threads']} threads, torch {facts['torch']}"
    speed_head = f"{'mode':10}{'tokens/s':>12}{'ms/step':>10}{'CPU ms':>10}{'TFLOP/s':>10}{'MFU %':>8}"
    head = f"{speed_head}{'GiB':>8}{'warm-up s':>11}"
    lines = [f"{facts['preset']}, {what}", f"{where}; {_peak(facts['peak'])}", head]
    for row in facts["modes"]:
        mfu = "-" if row["mfu"] is None else f"{row['mfu']:.1f}"
        cpu_ms = 1000 * statistics.median(row["step_cpu_seconds"])
        lines.append(
            f"{row['mode']:10}{row['tok_s']:12.1f}{_step_ms(row):10.1f}{cpu_ms:10.1f}{row['tflops_gpu']:10.2f}"
            f"{mfu:>8}{row['memory_gib']:8.1f}{row['warm_up_seconds']:11.1f}"
        )
    return "\n".join(lines)


def _peak(peak: Mapping[str, Any] | None) -> str:
    return f"{peak['tflops']:g} TFLOP/s dense bf16 ({peak['source']})" if peak else "no known peak"


def _step_ms(result: Result) -> float:
    return float(1000 * statistics.median(result["step_seconds"]))


def line_of(record: Record) -> str:
    what = record.reason or figures(record.result)
    return f"{record.id:22}{record.state:15}{record.seconds:7.1f} s  {what}"


def figures(result: Result) -> str:
    """Write the figures of one result, in the order of their worth."""
    if "matrix_tflops" in result:
        return _device(result)
    if "mfu" in result:
        return _steps(result)
    if "samples_s" in result:
        size = f"{result['layers']} x {result['width']:,}, batch {result['batch']}"
        speed = f"{_step_ms(result):.1f} ms a step, {result['samples_s']:,.0f} samples/s"
        return f"{size}: {speed}, {result['memory_gib']:.1f} GiB"
    if "load_seconds" in result:
        return _checkpoint(result)
    if "tried" in result:
        tried = ", ".join(f"{size} {state}" for size, state in result["tried"].items())
        return f"largest batch {result['batch']} ({tried})"
    if "batch_ms" in result:
        read = f"{result['tok_s']:,.0f} tokens/s read, {result['batch_ms']:.2f} ms a batch"
        return f"{read}; {result['prepare_mb_s']:.0f} MB/s prepared"
    if "longest" in result:
        longest = ", ".join(f"{span['name']} {span['ms']:.1f} ms" for span in result["longest"][:3])
        return f"{result['path']}: {longest}"
    return ""


def _device(result: Result) -> str:
    reached = f"{result['matrix_tflops']:.2f} TFLOP/s in matrices, {result['copy_gb_s']:.1f} GB/s copied"
    here = f"{result['name']}, torch {result['torch']}, {result['threads']} threads"
    return f"{here}: {_peak(result['peak'])}; {reached}"


def _steps(result: Result) -> str:
    mfu = "" if result["mfu"] is None else f", {result['mfu']:.1f} % MFU"
    return (
        f"{result['tok_s']:,.0f} tokens/s x {result['flops_per_token'] / 1e9:.3f} GFLOP = "
        f"{result['tflops_gpu']:.3f} TFLOP/s{mfu}, {_step_ms(result):.0f} ms a step, "
        f"batch {result['batch']}, {result['memory_gib']:.1f} GiB, {result['threads']} threads, "
        f"warm-up {result['warm_up_seconds']:.1f} s"
    )


def _checkpoint(result: Result) -> str:
    """Write the figures of the last save: the first allocates buffers that the others reuse."""
    stall, saved = result["stall_seconds"][-1], result["save_seconds"][-1]
    model, load = result["model_seconds"], result["load_seconds"]
    return (
        f"{result['bytes'] / 1e9:.2f} GB: stall {stall:.3f} s, saved in {saved:.2f} s; "
        f"back in {model + load:.2f} s (model {model:.2f}, checkpoint {load:.2f})"
    )


def suite_table(facts: Mapping[str, Any]) -> str:
    records = [Record.of_json(document) for document in facts["results"]]
    lines = ["", f"suite {facts['suite']}", *(line_of(record) for record in records)]
    measured = {record.id: record.result for record in records if record.state is State.OK}
    lines += priced({name: measured[name] for name in measured if "batch" in measured[name]}, facts)
    return "\n".join(lines + cpu_table(measured))


def priced(results: Mapping[str, Result], facts: Mapping[str, Any]) -> list[str]:
    """Write the samples a second and per USD of each case with steps; empty without a price."""
    if not (price := facts.get("usd_hour")):
        return []
    lines = [f"at {price:g} USD an hour:"]
    for name, result in results.items():
        if "step_seconds" in result:
            samples = result["batch"] / statistics.median(result["step_seconds"])
            lines.append(f"{name:22}{samples:12,.1f} samples/s{3600 * samples / price:14,.0f} samples/USD")
    return lines


def cpu_table(results: Mapping[str, Result]) -> list[str]:
    """Compare what this CPU gains by each row of its suite; empty if the suite has no such rows."""
    groups = (CPU_ROWS, *(lever_rows(model) for model in MODELS))
    tables = (
        _compared({name: results[name] for name in rows if name in results}, rows[0]) for rows in groups
    )
    return [line for table in tables for line in table]


def _compared(rows: Mapping[str, Result], first_row: str) -> list[str]:
    """Write a line for each row, with its ratio to the first; that one may not have been measured."""
    if not rows:
        return []
    here, first = next(iter(rows.values())), rows.get(first_row)
    lines = ["", f"{here['processor']}, bf16 by {here['bf16_instructions'] or 'no instructions of its own'}"]
    lines.append(f"{'':24}{'threads':>8}{'tokens/s':>12}{'ratio':>8}{'a CPU s':>12}{'ratio':>8}")
    for name, result in rows.items():
        of_first = ["-", "-"]
        if first:
            pairs = ((result["tok_s"], first["tok_s"]), (_per_cpu_second(result), _per_cpu_second(first)))
            of_first = [f"{ours / theirs:.2f}" for ours, theirs in pairs]
        lines.append(
            f"{name:24}{result['threads']:8}{result['tok_s']:12,.0f}{of_first[0]:>8}"
            f"{_per_cpu_second(result):12,.0f}{of_first[1]:>8}"
        )
    return lines


def _per_cpu_second(result: Result) -> float:
    """Return tokens a CPU second, which other programs on the machine change less than tokens a second."""
    tokens = result["tok_s"] * statistics.median(result["step_seconds"])
    return float(tokens / statistics.median(result["step_cpu_seconds"]))


def check_modes(report: Report, facts: Mapping[str, Any]) -> None:
    has_floors = all(facts[name] == wanted for name, wanted in _HAS_FLOORS.items())
    for row in facts["modes"]:
        _check_learns(report, row["mode"], row["losses"])
        reason = "is for llama-1b, 4096 tokens, bf16"
        if row["mfu"] is None:
            reason = "needs a GPU whose bf16 peak is known"
        _check_mfu(report, row["mode"], row["mfu"] if has_floors else None, reason=reason)


def check_suite(report: Report) -> None:
    """Check that each case has an outcome and each trained one learns; on a GPU figures have floors."""
    records = {document["id"]: Record.of_json(document) for document in report.facts["results"]}
    for record in records.values():
        if record.state is State.SKIPPED:
            report.skip(record.id, expected="measured", reason=record.reason)
        else:
            outcome = record.reason or figures(record.result)
            report.check(record.id, expected="measured", actual=outcome, ok=record.state is State.OK)
    for name, record in records.items():
        if losses := record.result.get("losses"):
            _check_learns(report, name, losses)
    if report.facts["suite"] == "h200":
        _check_gpu(
            report, {name: record.result for name, record in records.items() if record.state is State.OK}
        )


def _check_learns(report: Report, name: str, losses: Sequence[float]) -> None:
    before, after = losses
    expected = f"a loss below that of the first step, {before:.4f}"
    report.check(f"{name}-learns", expected=expected, actual=round(after, 4), ok=after < before)


def _check_gpu(report: Report, results: Mapping[str, Result]) -> None:
    missing = "was not measured"
    for name in _MFU_FLOORS:
        _check_mfu(report, name, results.get(name, {}).get("mfu"), reason=missing)
    expected = f"at least {_FLOAT8_GAIN} x compiled"
    plain, fast = (results.get(name, {}).get("tok_s") for name in ("compiled", "compiled-float8"))
    if plain and fast:
        gain = fast / plain
        report.check("float8-gain", expected=expected, actual=round(gain, 3), ok=gain >= _FLOAT8_GAIN)
    else:
        report.skip("float8-gain", expected=expected, reason=missing)
    expected = f"at most {_STALL_SECONDS} s"
    if "checkpoint" in results:
        stall = results["checkpoint"]["stall_seconds"][-1]
        report.check("stall", expected=expected, actual=round(stall, 3), ok=stall <= _STALL_SECONDS)
    else:
        report.skip("stall", expected=expected, reason=missing)


def _check_mfu(report: Report, mode: str, mfu: float | None, *, reason: str) -> None:
    """Check the MFU; ``reason`` tells why there is none, or none that counts."""
    floor = _MFU_FLOORS[mode]
    expected = f"at least {floor:g} % MFU"
    if mfu is None:
        report.skip(f"{mode}-mfu", expected=expected, reason=reason)
    else:
        mfu = round(mfu, 1)
        report.check(f"{mode}-mfu", expected=expected, actual=f"{mfu} %", ok=mfu >= floor)
