"""Speeds from reports of ``python -m benchmarks.training.bench``, for ``trainmaster advise --bench``.

A report says what it ran, and not on which instance type: the option names the shape. A row, such as
``compiled``, is compared between reports only if they are of one suite and one model.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.core.durations.work_speeds import FASTEST
from trainmaster.core.memory.accelerators import BY_TYPE
from trainmaster.core.request.options import Alternative

from trainmaster_client.advice.measured_work import Run
from trainmaster_client.advice.shapes import shape_text
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.http.answers import printable

EXAMPLE = "--bench ml.g5.xlarge=1,build/bench.json"
_NAME = "benchmarks.training.bench"
_UNITS = {"tok_s": "tokens", "samples_s": "samples"}
"""Keys of a result that tell a speed: of a model, and of the row of matrices. A speed of reading data has
neither a loss nor a step."""
_MODEL = ("preset", "sequence_length", "precision", "flops_per_token", "layers", "width")
"""Facts that are equal for speeds of one kind; batches may differ, as devices hold more or less."""
_NO_REPORT = f"Write it by: python -m {_NAME} --json FILE; then: {EXAMPLE}."


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRow:
    """One row of a report whose speed was measured."""

    unit: str
    per_second: float
    model: Mapping[str, object]
    """Facts of ``_MODEL`` about what was trained, as far as the report has them."""
    ranks: int
    """Processes that trained together, one for each accelerator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchReport:
    """One report, and the shape it was measured in."""

    source: str
    """The file, for messages."""
    shape: Alternative
    name: str
    """Which suite it is of."""
    rows: Mapping[str, BenchRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRuns:
    """One row of all reports."""

    metric: str
    runs: Sequence[Run]


def read_report(content: bytes, *, source: str, shape: Alternative) -> BenchReport:
    """Read a report as the bench wrote it.

    Raises:
        InvalidArgumentError: It is no such report, a value in it is not valid, or no row has a speed.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"--bench: {source} is not JSON: {error}.", hint=_NO_REPORT) from error
    name = document.get("name") if isinstance(document, Mapping) else None
    facts = document.get("facts") if isinstance(document, Mapping) else None
    is_bench = isinstance(name, str) and f"{name}.".startswith(f"{_NAME}.")
    if not is_bench or not isinstance(facts, Mapping):
        what = f"its name is {printable(name)}" if isinstance(name, str) else "it has no name"
        raise InvalidArgumentError(f"--bench: {source} is no report of {_NAME}: {what}.", hint=_NO_REPORT)
    rows = dict(_rows(facts, source=source))
    if not rows:
        raise InvalidArgumentError(
            f"--bench: {source} has no row with a measured speed.",
            hint="A row such as compiled has to have ended well: repeat the bench with --resume FILE.",
        )
    report = BenchReport(source=source, shape=shape, name=str(name), rows=rows)
    _check_device(report, _device_of(facts))
    _check_ranks(report)
    return report


def _rows(facts: Mapping[str, Any], *, source: str) -> Iterable[tuple[str, BenchRow]]:
    """Yield the rows that trained: of a suite its results, else the modes of one model."""
    key, id_key = ("results", "id") if "results" in facts else ("modes", "mode")
    entries = facts.get(key)
    if not isinstance(entries, list):
        raise _wrong(source, f"facts.{key}", entries, 'a list of rows, e.g. [{"mode": "compiled", ...}]')
    for number, entry in enumerate(entries):
        where = f"facts.{key}[{number}]"
        if not isinstance(entry, Mapping) or not isinstance(entry.get(id_key), str):
            raise _wrong(source, where, entry, f'an object with a name, e.g. {{"{id_key}": "compiled", ...}}')
        result, where = (
            (entry.get("result"), f"{where}.result") if key == "results" else ({**facts, **entry}, where)
        )
        if entry.get("state", "ok") == "ok" and isinstance(result, Mapping) and "losses" in result:
            yield entry[id_key], _row(result, source=source, where=where)


def _row(result: Mapping[str, Any], *, source: str, where: str) -> BenchRow:
    key = next((key for key in _UNITS if key in result), "tok_s")
    speed = _positive(result, key, source=source, where=where, example="15324.5")
    ranks = 1
    if "tok_s_gpu" in result:
        ranks = round(speed / _positive(result, "tok_s_gpu", source=source, where=where, example="15324.5"))
    model = {name: result[name] for name in _MODEL if isinstance(result.get(name), str | int | float)}
    return BenchRow(unit=_UNITS[key], per_second=speed, model=model, ranks=ranks)


def _positive(result: Mapping[str, Any], key: str, *, source: str, where: str, example: str) -> float:
    value = result.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= FASTEST:
        raise _wrong(source, f"{where}.{key}", value, f"a number above 0, e.g. {example}")
    return float(value)


def _wrong(source: str, field: str, value: object, expected: str) -> InvalidArgumentError:
    problem = "is missing" if value is None else f"is {printable(value)[:60]}"
    return InvalidArgumentError(f"--bench: {source}: {field} {problem}.", hint=f"It has to be {expected}.")


def _device_of(facts: Mapping[str, Any]) -> str:
    """Return the device as the driver names it; empty where a suite has no row of its device."""
    results = facts.get("results")
    rows = [row for row in results if isinstance(row, Mapping)] if isinstance(results, list) else []
    of_suite = next((row.get("result") for row in rows if row.get("id") == "device"), None)
    device = of_suite.get("name") if isinstance(of_suite, Mapping) else facts.get("device")
    return device if isinstance(device, str) else ""


def _check_device(report: BenchReport, device: str) -> None:
    """Refuse a report of another GPU than the shape has, as far as both are known by name."""
    accelerators = BY_TYPE.get(report.shape.capacity.instance_type)
    if accelerators is None or not accelerators.are_gpus or not device:
        return
    # Every word of the kind in any order, as in "NVIDIA RTX PRO 6000 Blackwell Server Edition".
    if not set(accelerators.kind.split()) <= set(re.split(r"[\s-]+", device)):
        raise InvalidArgumentError(
            f"--bench: {report.source} was written on {printable(device)}, and"
            f" {shape_text(report.shape)} has {accelerators.kind}.",
            hint="Name the shape that it was measured in, e.g. ml.g5.xlarge=1 for one A10G.",
        )


def _check_ranks(report: BenchReport) -> None:
    """Refuse a speed of another number of accelerators than the shape has: nobody knows how they scale."""
    per_instance = BY_TYPE.get(report.shape.capacity.instance_type)
    if per_instance is None:
        return
    count = per_instance.count * report.shape.count
    for name, row in report.rows.items():
        if row.ranks != count:
            ranks = "1 rank" if row.ranks == 1 else f"{row.ranks} ranks"
            raise InvalidArgumentError(
                f"--bench: {report.source}: {name} is the speed of {ranks}, and"
                f" {shape_text(report.shape)} has accelerators for {count}.",
                hint="Name the shape that it was measured in, e.g. ml.g5.xlarge=1 for one A10G; on a larger"
                f" one run as many ranks: torchrun --nproc-per-node {per_instance.count} -m {_NAME}.",
            )


def bench_runs(reports: Sequence[BenchReport], *, row: str | None) -> BenchRuns:
    """Return one row of all reports as runs of their shapes.

    Args:
        reports: At least one.
        row: The row to compare; None: the fastest of the first report that all have.

    Raises:
        InvalidArgumentError: The reports have no such row in common, or it is of different models.
    """
    first = reports[0]
    common = [name for name in first.rows if all(name in report.rows for report in reports)]
    if row is None and common:
        row = max(common, key=lambda name: first.rows[name].per_second)
    if row is None or row not in common:
        listed = "; ".join(f"{report.source}: {', '.join(report.rows)}" for report in reports)
        what = "no row in common" if row is None else f"no common row {row}"
        raise InvalidArgumentError(
            f"--bench: the reports have {what} ({printable(listed)}).",
            hint="Measure the same everywhere, e.g. --suite vit-huge, or name a row: --bench-row compiled.",
        )
    for report in reports[1:]:
        _check_alike(first, report, row)
    runs = [Run(shape=report.shape, per_second=report.rows[row].per_second) for report in reports]
    return BenchRuns(metric=f"{first.rows[row].unit} a second of bench's {row}", runs=runs)


def _work(report: BenchReport, row: str) -> Mapping[str, object]:
    """Return what has to be equal where a row is compared."""
    return {"report": report.name, "unit": report.rows[row].unit, **report.rows[row].model}


def _check_alike(first: BenchReport, other: BenchReport, row: str) -> None:
    """Refuse reports of different suites, models or units."""
    ours, theirs = _work(first, row), _work(other, row)
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            raise InvalidArgumentError(
                f"--bench: {row} is not of the same work in both: {name} is {printable(ours.get(name))} in"
                f" {first.source} and {printable(theirs.get(name))} in {other.source}.",
                hint=f"Measure the same model everywhere, e.g. python -m {_NAME} --preset llama-1b.",
            )
