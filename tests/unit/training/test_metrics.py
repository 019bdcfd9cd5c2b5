import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from training.errors import ConfigError
from training.metrics import (
    METRIC_DEFINITIONS,
    PEAKS,
    Event,
    LinesFile,
    StepMetrics,
    Yardstick,
    event_in,
    event_line,
    metrics_in,
    peak_of,
)

METRICS = StepMetrics(
    step=120,
    loss=2.3456701,
    lr=3e-4,
    grad_norm=0.871,
    tokens=491_520_000,
    tok_s=379_000.25,
    tok_s_gpu=47_375.03,
    tflops_gpu=445.2,
    mfu=45.0,
    step_ms=345.6,
    data_ms=0.4,
    mem_gib=61.2,
    ckpt_step=100,
    ckpt_stall_ms=310.0,
    goodput=0.982,
    width=8,
    steps=1000,
)
ON_A_CPU = StepMetrics(
    step=1,
    loss=5.5,
    lr=3e-4,
    grad_norm=1e-7,
    tokens=1024,
    tok_s=9843.0,
    tok_s_gpu=9843.0,
    tflops_gpu=0.05,
    mfu=None,
    step_ms=104.0,
    data_ms=3.0,
    mem_gib=0.5,
    ckpt_step=0,
    ckpt_stall_ms=0.0,
    goodput=0.0,
    width=8,
    steps=1000,
)


def test_the_line_reads_as_documented() -> None:
    assert METRICS.line() == (
        "metric step=120 loss=2.345670100 lr=3.000000e-04 grad_norm=0.871 tokens=491520000 tok_s=379000.2 "
        "tok_s_gpu=47375.0 tflops_gpu=445.200 mfu=45.00 step_ms=345.6 data_ms=0.4 mem_gib=61.20 "
        "ckpt_step=100 ckpt_stall_ms=310.0 goodput=0.9820 width=8 steps=1000"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("train:step", 120),
        ("train:loss", 2.3456701),
        ("train:lr", 3e-4),
        ("train:grad_norm", 0.871),
        ("train:tokens", 491_520_000),
        ("train:tok_s", 379_000.2),
        ("train:tok_s_gpu", 47_375.0),
        ("train:tflops_gpu", 445.2),
        ("train:mfu", 45),
        ("train:step_ms", 345.6),
        ("train:data_ms", 0.4),
        ("train:mem_gib", 61.2),
        ("train:ckpt_step", 100),
        ("train:ckpt_stall_ms", 310),
        ("train:goodput", 0.982),
        ("train:width", 8),
    ],
)
def test_a_definition_reads_its_number_and_no_other(name: str, value: float) -> None:
    (regex,) = [one["Regex"] for one in METRIC_DEFINITIONS if one["Name"] == name]
    assert [float(found) for found in re.findall(regex, METRICS.line())] == [value]


def test_what_is_not_known_is_left_out_so_nobody_charts_a_made_up_zero() -> None:
    assert "mfu" not in ON_A_CPU.line()
    assert "mfu" not in json.loads(ON_A_CPU.as_json())
    (regex,) = [one["Regex"] for one in METRIC_DEFINITIONS if one["Name"] == "train:mfu"]
    assert re.findall(regex, ON_A_CPU.line()) == []


@pytest.mark.parametrize(
    "line",
    [
        "metric step=3 val_loss=5.4",
        "resumed from step=20 file=step-00000020/__0_0.distcp sha256=b886627c",
        "training preset=tiny parameters=803968 precision=bf16 seed=1 steps=60 batch_size=8 ranks=1",
        'event {"kind":"checkpoint","step":10}',
        "completed step=60",
    ],
)
def test_other_lines_and_other_losses_are_not_mistaken_for_metrics(line: str) -> None:
    found = {one["Name"] for one in METRIC_DEFINITIONS if re.search(one["Regex"], line)}
    assert found - {"train:step"} == set()
    assert found == set() or line.startswith("metric ")


def test_the_definitions_are_within_sagemakers_limits() -> None:
    """API reference, AlgorithmSpecification and MetricDefinition."""
    assert 10 < len(METRIC_DEFINITIONS) <= 40
    assert all(len(one["Name"]) <= 255 and len(one["Regex"]) <= 500 for one in METRIC_DEFINITIONS)


def test_programs_read_the_printed_numbers_back_as_text() -> None:
    found = metrics_in(METRICS.line())
    assert found is not None
    assert (found["step"], found["loss"], found["goodput"]) == ("120", "2.345670100", "0.9820")
    assert metrics_in("completed step=60") is None


def test_the_record_keeps_every_bit_of_the_loss() -> None:
    record = json.loads(replace(METRICS, loss=0.1).as_json())
    assert (record["step"], record["loss"], record["tok_s"]) == (120, 0.1, 379_000.25)
    assert record["loss_hex"] == "0x1.999999999999ap-4"


def test_an_event_line_is_its_kind_and_its_details() -> None:
    line = event_line(Event.RESUME, step=100)
    assert line == 'event {"kind":"resume","step":100}'
    assert event_in(line) == {"kind": "resume", "step": 100}
    assert event_in(METRICS.line()) is None


def test_a_later_attempt_goes_on_in_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "metrics.jsonl"
    for metrics in (ON_A_CPU, METRICS):
        file = LinesFile(path, option="metrics_file")
        file.add(metrics.as_json())
        file.close()
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 120]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"metrics_file .*/file/metrics.jsonl cannot be written: "):
        LinesFile(tmp_path / "file" / "metrics.jsonl", option="metrics_file")


@pytest.mark.parametrize(
    ("name", "tflops"),
    [
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA H100 NVL", 835),
        ("NVIDIA H200", 989),
        ("NVIDIA A100-SXM4-40GB", 312),
        ("NVIDIA L40S", 362),
        ("NVIDIA L4", 121),
        ("NVIDIA A10G", 70),
        ("NVIDIA B200", 2250),
    ],
)
def test_a_gpu_is_found_by_the_name_that_cuda_gives_it(name: str, tflops: float) -> None:
    peak = peak_of(name)
    assert peak is not None
    assert peak.tflops == tflops


@pytest.mark.parametrize("name", ["", "Tesla T4", "Tesla V100-SXM2-16GB", "NVIDIA L40", "NVIDIA A10"])
def test_an_unknown_device_has_no_peak_rather_than_another_ones(name: str) -> None:
    assert peak_of(name) is None


def test_every_peak_says_where_it_is_from() -> None:
    assert all(len(peak.source) > 10 for peak in PEAKS)


def test_speeds_follow_from_the_time_of_a_step() -> None:
    """llama-1b's 9.7 GFLOPs a token; 131,072 tokens on 8 H200s in 345.6 ms."""
    yardstick = Yardstick(
        tokens_per_step=131_072, ranks=8, flops_per_token=9.7e9, peak=peak_of("NVIDIA H200")
    )
    speed = yardstick.speed(0.3456)
    assert speed.tok_s == pytest.approx(379_259.26)
    assert speed.tok_s_gpu == pytest.approx(47_407.41)
    assert speed.tflops_gpu == pytest.approx(459.85, abs=0.01)
    assert speed.mfu == pytest.approx(46.5, abs=0.01)


def test_without_a_peak_there_is_no_mfu() -> None:
    speed = Yardstick(tokens_per_step=1024, ranks=1, flops_per_token=1e6, peak=None).speed(0.5)
    assert (speed.tok_s, speed.tflops_gpu, speed.mfu) == (2048.0, 0.002048, None)
