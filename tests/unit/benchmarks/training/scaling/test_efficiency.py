"""What a scaling measurement says, and what it does not claim."""

import json
from pathlib import Path

import pytest

from benchmarks.training.scaling.__main__ import main
from benchmarks.training.scaling.efficiency import Measured, caveat, communication_share, facts


def _measured(world: int, *seconds: float, error: str = "") -> Measured:
    return Measured(
        world=world, tokens_per_step=100 * world, step_seconds=seconds, communication_share=None, error=error
    )


def test_efficiency_is_of_a_rank_against_the_smallest_world_that_was_measured() -> None:
    runs = [_measured(1, error="rank 0: exit code 1"), _measured(2, 1.0, 1.0, 9.0), _measured(4, 2.0, 2.0)]
    worlds = facts(runs, told={}, warning="")["worlds"]
    assert [one["efficiency"] for one in worlds] == [None, 1.0, 0.5]
    assert [one["tokens_per_second"] for one in worlds] == [None, 200.0, 200.0]
    assert [one["ok"] for one in worlds] == [False, True, True]


def test_a_cpu_says_nothing_about_scaling() -> None:
    assert caveat([1, 8], device="cpu", cores=2).startswith("8 ranks share 2 cores: this tests the command")
    assert caveat([1, 2], device="cpu", cores=2)
    assert caveat([1, 8], device="NVIDIA H100", cores=2) == ""


def test_collectives_that_overlap_count_once(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "name": "aten::mm", "cat": "cpu_op", "ts": 0, "dur": 100},
        {"ph": "X", "name": "gloo:all_reduce", "cat": "user_annotation", "ts": 10, "dur": 20},
        {"ph": "X", "name": "gloo:all_gather", "cat": "user_annotation", "ts": 20, "dur": 20},
        {"ph": "X", "name": "ncclDevKernel_AllGather", "cat": "kernel", "ts": 90, "dur": 10},
        {"ph": "X", "name": "nccl:all_gather", "cat": "gpu_user_annotation", "ts": 50, "dur": 10},
    ]
    (tmp_path / "trace").write_text(json.dumps({"traceEvents": events}))
    assert communication_share(tmp_path / "trace") == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(["--worlds", "2,x"], "--worlds '2,x' must be different numbers of ranks", id="worlds"),
        pytest.param(["--option", "lr"], "--option has 'lr'; wanted is NAME=VALUE", id="option"),
        pytest.param(["--strategy", "most"], "strategy must be one of", id="an option of the program"),
    ],
)
def test_wrong_usage_is_refused_before_anything_runs(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert problem in capsys.readouterr().err
