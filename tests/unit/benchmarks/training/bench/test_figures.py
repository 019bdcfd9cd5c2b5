"""What is made of the times that were measured."""

from typing import Any

import pytest
from trainmaster_client.report import Report

from benchmarks.training.bench.figures import check_modes, modes_table, priced


def _facts(
    mode: str, mfu: float | None, *, preset: str = "llama-1b", losses: tuple[float, float] = (10.4, 9.0)
) -> dict[str, Any]:
    measured = {"mode": mode, "mfu": mfu, "losses": losses}
    return {"preset": preset, "sequence_length": 4096, "precision": "bf16", "modes": [measured]}


@pytest.mark.parametrize(
    ("mode", "mfu", "ok"),
    [
        pytest.param("eager", 33.0, True, id="eager reaches its floor"),
        pytest.param("eager", 32.9, False, id="eager misses it"),
        pytest.param("compiled", 45.0, True, id="compiled reaches its floor"),
        pytest.param("compiled", 44.9, False, id="compiled misses it"),
        pytest.param("eager", None, None, id="without a known peak there is no floor"),
    ],
)
def test_a_floor_is_held_where_the_peak_is_known(mode: str, mfu: float | None, *, ok: bool | None) -> None:
    report = Report("bench")
    check_modes(report, _facts(mode, mfu))
    assert [(one.id, one.ok) for one in report.checks] == [(f"{mode}-learns", True), (f"{mode}-mfu", ok)]


def test_another_model_has_no_floor() -> None:
    report = Report("bench")
    check_modes(report, _facts("eager", 5.0, preset="llama2-7b"))
    assert report.checks[1].skipped == "is for llama-1b, 4096 tokens, bf16"


def test_steps_that_train_nothing_are_worth_nothing() -> None:
    report = Report("bench")
    check_modes(report, _facts("eager", 50.0, losses=(10.4, 10.4)))
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
    assert modes_table(told).splitlines() == [
        "llama-1b, 4096 tokens, batch 8, bf16",
        "1 x NVIDIA H200, 16 threads, torch 2.13.0; 989 TFLOP/s dense bf16 (a datasheet)",
        "mode          tokens/s   ms/step    CPU ms   TFLOP/s   MFU %     GiB  warm-up s",
        "eager          41234.5     800.0     210.0    400.10    40.5    61.3        3.0",
    ]


def test_samples_per_usd_follow_from_the_median_step_and_the_price_of_an_hour() -> None:
    results = {
        "bf16": {"batch": 64, "step_seconds": [0.5, 0.4, 0.6]},
        "bf16-batch": {"batch": 64, "tried": {}},
    }
    assert priced(results, {}) == []
    head, line = priced(results, {"usd_hour": 5.0})
    assert head == "at 5 USD an hour:"
    assert line.split() == ["bf16", "128.0", "samples/s", "92,160", "samples/USD"]
