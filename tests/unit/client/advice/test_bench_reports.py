"""Reports of ``benchmarks.training.bench`` as speeds of shapes."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from trainmaster_client.advice.bench_reports import BenchReport, bench_runs, read_report
from trainmaster_client.advice.shapes import read_shapes
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.report import Report

from benchmarks.training.bench.cases import Record, State

TRAINED: Mapping[str, Any] = {"step_seconds": [0.5], "losses": [9.0, 8.0], "batch": 8, "flops_per_token": 6e9}


def row(name: str, tok_s: Any = 100.0, *, state: State = State.OK, **result: Any) -> Record:
    speed = {} if tok_s is None else {"tok_s": tok_s, "tok_s_gpu": tok_s}
    return Record(id=name, state=state, result={**TRAINED, **speed, **result})


def suite(*rows: Record, name: str = "vit-huge") -> dict[str, Any]:
    report = Report(name=f"benchmarks.training.bench.{name}")
    report.facts = {"suite": name, "results": [record.as_json() for record in rows]}
    return report.as_json()


def modes(speeds: Mapping[str, float], *, ranks: int = 1, **facts: Any) -> dict[str, Any]:
    report = Report(name="benchmarks.training.bench")
    of_modes = [
        {"mode": mode, "tok_s": speed, "tok_s_gpu": speed / ranks, "losses": [9.0, 8.0]}
        for mode, speed in speeds.items()
    ]
    usual = {"preset": "tiny", "sequence_length": 256, "precision": "fp32", "flops_per_token": 1e6}
    report.facts = {**usual, **facts, "ranks": ranks, "modes": of_modes}
    return report.as_json()


def read(document: Any, shape: str = "ml.g5.xlarge=1", source: str = "a.json") -> BenchReport:
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    (alternative,) = read_shapes(shape, where="--bench")
    return read_report(content, source=source, shape=alternative)


def test_a_suite_is_read_as_it_was_written() -> None:
    data = Record(id="data", state=State.OK, result={"tok_s": 9e9, "batch_ms": 1.0})
    report = read(suite(row("bf16", 120.0), row("float8", state=State.FAILED), data))
    assert list(report.rows) == ["bf16"], "only rows that trained, and to the end"
    speed = report.rows["bf16"]
    assert (speed.unit, speed.per_second, speed.ranks) == ("tokens", 120.0, 1)


def test_the_modes_of_one_model_are_read_as_they_were_written() -> None:
    report = read(modes({"eager": 100.0, "compiled": 150.0}, ranks=4), "ml.g5.12xlarge=1")
    assert {name: speed.per_second for name, speed in report.rows.items()} == {"eager": 100, "compiled": 150}
    assert report.rows["eager"].ranks == 4
    assert report.rows["eager"].model["preset"] == "tiny"


def test_samples_are_the_unit_of_a_row_without_tokens() -> None:
    report = read(suite(row("mlp-bf16", None, samples_s=7.0, layers=8, width=20480)))
    assert (report.rows["mlp-bf16"].unit, report.rows["mlp-bf16"].per_second) == ("samples", 7.0)


def test_the_row_that_is_fastest_and_common_is_compared() -> None:
    first = read(suite(row("bf16", 100.0), row("float8", 150.0), row("other", 900.0)))
    second = read(suite(row("float8", 60.0), row("bf16", 50.0)), "ml.g6.xlarge=1", "b.json")
    found = bench_runs([first, second], row=None)
    assert found.metric == "tokens a second of bench's float8"
    assert [(str(run.shape.capacity), run.per_second) for run in found.runs] == [
        ("ml.g5.xlarge", 150.0),
        ("ml.g6.xlarge", 60.0),
    ]
    assert [run.per_second for run in bench_runs([first, second], row="bf16").runs] == [100.0, 50.0]


def refused(document: Any, shape: str = "ml.g5.xlarge=1") -> str:
    with pytest.raises(InvalidArgumentError) as error:
        read(document, shape)
    return str(error.value)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        pytest.param(b"{", "a.json is not JSON", id="no JSON"),
        pytest.param([], "it has no name", id="no object"),
        pytest.param({"name": "benchmarks.scale", "facts": {}}, "its name is benchmarks.scale", id="another"),
        pytest.param(
            {"name": "benchmarks.training.bench.cpu", "facts": {"results": 3}},
            "facts.results is 3",
            id="no list",
        ),
        pytest.param(
            {"name": "benchmarks.training.bench", "facts": {"modes": [{"tok_s": 4.0}]}},
            "facts.modes[0] is",
            id="a mode without a name",
        ),
        pytest.param(suite(row("bf16", "fast")), "facts.results[0].result.tok_s is fast", id="a word"),
        pytest.param(suite(row("bf16", None)), "facts.results[0].result.tok_s is missing", id="no speed"),
        pytest.param(suite(row("bf16", -1.0)), "facts.results[0].result.tok_s is -1.0", id="negative"),
        pytest.param(suite(row("bf16", 10**400)), "facts.results[0].result.tok_s is 1000", id="too large"),
        pytest.param(suite(row("bf16", float("nan"))), "facts.results[0].result.tok_s is nan", id="NaN"),
        pytest.param(b"\xff{}", "a.json is not JSON", id="no text"),
        pytest.param(b"[" * 200_000, "a.json is not JSON", id="nested without end"),
        pytest.param(suite(row("bf16", True)), "facts.results[0].result.tok_s is True", id="no number"),
        pytest.param(suite(row("bf16", state=State.FAILED)), "no row with a measured speed", id="all failed"),
    ],
)
def test_a_bad_file_is_answered_with_its_field_and_a_right_example(document: Any, words: str) -> None:
    message = refused(document)
    assert words in message
    assert "e.g. " in message or "python -m benchmarks.training.bench" in message or "--resume" in message


def test_a_speed_of_one_accelerator_is_none_of_eight() -> None:
    message = refused(suite(row("bf16")), "ml.p5.48xlarge=1")
    assert "bf16 is the speed of 1 rank, and ml.p5.48xlarge=1 has accelerators for 8" in message
    assert "torchrun --nproc-per-node 8" in message
    read(suite(row("bf16")), "ml.c5.4xlarge=1")  # without accelerators there is nothing to count


@pytest.mark.parametrize(
    ("device", "shape"),
    [
        ("NVIDIA A10G", "ml.g5.xlarge=1"),
        ("NVIDIA L4", "ml.g6.xlarge=1"),
        ("Tesla V100-SXM2-16GB", "ml.p3.2xlarge=1"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "ml.g7e.2xlarge=1"),
    ],
)
def test_the_device_of_a_report_is_that_of_its_shape(device: str, shape: str) -> None:
    read(modes({"eager": 1.0}, device=device), shape)
    of_suite = Record(id="device", state=State.OK, result={"name": device})
    read(suite(of_suite, row("eager")), shape)
    for other in ("NVIDIA L40S", "AMD EPYC"):
        words = f"a.json was written on {other}, and {shape} has"
        assert words in refused(modes({"eager": 1.0}, device=other), shape)
        of_other = Record(id="device", state=State.OK, result={"name": other})
        assert words in refused(suite(of_other, row("eager")), shape)


def incomparable(first: Any, second: Any, row_name: str | None = None) -> str:
    reports = [read(first), read(second, "ml.g6.xlarge=1", "b.json")]
    with pytest.raises(InvalidArgumentError) as error:
        bench_runs(reports, row=row_name)
    return str(error.value)


def test_reports_of_different_work_are_not_compared() -> None:
    assert "flops_per_token is 6000000000.0 in a.json and 7000000000.0 in b.json" in incomparable(
        suite(row("bf16")), suite(row("bf16", flops_per_token=7e9))
    )
    assert "precision is fp32 in a.json and bf16 in b.json" in incomparable(
        modes({"eager": 1.0}), modes({"eager": 1.0}, precision="bf16")
    )
    assert "report is benchmarks.training.bench.vit-huge" in incomparable(
        suite(row("compiled")), suite(row("compiled"), name="h200")
    )
    assert "no row in common" in incomparable(suite(row("bf16")), suite(row("float8")))
    assert "no common row eager" in incomparable(suite(row("bf16")), suite(row("bf16")), "eager")
