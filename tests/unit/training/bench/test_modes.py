"""What is made of the times that were measured."""

import pytest
from trainmaster_client.report import Report

from tests.markdown import codes, text_of
from tests.markdown import table as rows_of
from training.bench.modes import Measured, Mode, _read, check, table
from training.config import TrainConfig
from training.metrics import Speed

_TUNED = rows_of(
    text_of("docs/training/cpu.md"), "options", "variables", "tokens/s", "compared with the first", "runs"
)
_ONE_B = TrainConfig(preset="llama-1b")


def _measured(mode: Mode, mfu: float | None, *, losses: tuple[float, float] = (10.4, 9.0)) -> Measured:
    return Measured(
        mode=mode,
        first_seconds=1.0,
        laps=(0.5, 0.6, 0.7),
        cpu_laps=(0.1, 0.1, 0.1),
        speed=Speed(tok_s=1000.0, tok_s_gpu=1000.0, tflops_gpu=400.0, mfu=mfu),
        losses=losses,
        memory_bytes=2**30,
    )


@pytest.mark.parametrize(
    ("mode", "mfu", "ok"),
    [
        pytest.param(Mode.EAGER, 33.0, True, id="eager reaches its floor"),
        pytest.param(Mode.EAGER, 32.9, False, id="eager misses it"),
        pytest.param(Mode.COMPILED, 45.0, True, id="compiled reaches its floor"),
        pytest.param(Mode.COMPILED, 44.9, False, id="compiled misses it"),
        pytest.param(Mode.EAGER, None, None, id="without a known peak there is no floor"),
    ],
)
def test_a_floor_is_held_where_the_peak_is_known(mode: Mode, mfu: float | None, *, ok: bool | None) -> None:
    report = Report("bench")
    check(report, _ONE_B, [_measured(mode, mfu)])
    assert [(one.id, one.ok) for one in report.checks] == [(f"{mode}-learns", True), (f"{mode}-mfu", ok)]


def test_another_model_has_no_floor() -> None:
    report = Report("bench")
    check(report, TrainConfig(preset="llama2-7b"), [_measured(Mode.EAGER, 5.0)])
    assert report.checks[1].skipped == "is for llama-1b, 4096 tokens, bf16"


def test_steps_that_train_nothing_are_worth_nothing() -> None:
    report = Report("bench")
    check(report, _ONE_B, [_measured(Mode.EAGER, 50.0, losses=(10.4, 10.4))])
    assert report.checks[0].ok is False


def test_the_table_has_the_peak_and_its_source() -> None:
    told = {
        "preset": "llama-1b",
        "sequence_length": 4096,
        "batch_size": 8,
        "precision": "bf16",
        "ranks": 1,
        "device": "NVIDIA H200",
        "threads": 16,
        "torch": "2.13.0",
        "peak": {"device": "H200", "tflops": 989, "source": "a datasheet"},
        "modes": [
            {
                "mode": "eager",
                "tok_s": 41234.5,
                "step_seconds": [0.8, 0.79, 0.9],
                "step_cpu_seconds": [0.21, 0.2, 0.3],
                "tflops_gpu": 400.1,
                "mfu": 40.45,
                "memory_gib": 61.26,
                "warm_up_seconds": 3.0,
            }
        ],
    }
    assert table(told).splitlines() == [
        "llama-1b, 4096 tokens, batch 8, bf16",
        "1 x NVIDIA H200, 16 threads, torch 2.13.0; 989 TFLOP/s dense bf16 (a datasheet)",
        "mode          tokens/s   ms/step    CPU ms   TFLOP/s   MFU %     GiB  warm-up s",
        "eager          41234.5     800.0     210.0    400.10    40.5    61.3        3.0",
    ]


@pytest.mark.parametrize("row", _TUNED, ids=lambda row: f"{row[0]} {row[1]}")
def test_what_the_guide_of_cpus_measured_can_be_measured_again(row: list[str]) -> None:
    (options,) = codes(row[0])
    config, chosen = _read([*options.split(), "--sequence-length", "512"])
    assert (config.preset, config.shape.sequence_length, len(chosen.chosen)) == ("tiny", 512, 1)
    assert row[3] == f"{float(row[2].replace(',', '')) / 5450:.1f}"
