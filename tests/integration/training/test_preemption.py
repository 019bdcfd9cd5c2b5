"""Stops that come at any moment, on two ranks: what is saved, what is lost, and that it is said."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor
from torch.nn import functional

from tests.integration.training.attempts import Job, finished
from tests.integration.training.worlds import in_world
from training.config import TrainConfig, read_config
from training.errors import NotFiniteError
from training.job import run_in
from training.preemptible.preempt import StopRequest
from training.ranks.world import World

_STEPS = 12


class StopWhen(StopRequest):
    """Asked when something is so, as if a signal had come then."""

    def __init__(self, is_time: Callable[[], bool], *, seconds_left: float = 100.0) -> None:
        super().__init__(seconds=seconds_left)
        self._is_time = is_time

    @property
    def asked(self) -> bool:
        return self._is_time()


def _config(place: Path, **options: object) -> TrainConfig:
    texts = {
        "steps": _STEPS,
        "batch_size": 4,
        "sequence_length": 32,
        "precision": "fp32",
        "export": "false",
        "checkpoint_every": 3,
        "checkpoint_dir": place / "checkpoints",
        "model_dir": place / "model",
        "metrics_file": place / "metrics",
    }
    given = [f"--{name}={value}" for name, value in {**texts, **options}.items()]
    return read_config(given, {})


def _reported(place: Path) -> int:
    """The newest step in the metrics file."""
    file = place / "metrics"
    lines = file.read_text().splitlines() if file.exists() else []
    return int(json.loads(lines[-1])["step"]) if lines else 0


def _attempt(world: World, /, place: Path, stop_at: int, seconds_left: float, **options: object) -> int:
    stop = StopWhen(lambda: bool(stop_at) and _reported(place) >= stop_at, seconds_left=seconds_left)
    return run_in(world, _config(place, **options), {}, stop)


def _status(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place / "checkpoints/status.json").read_bytes())
    return found


def _as_slow(place: Path, step: int, *, seconds: float) -> None:
    """The checkpoint of this step took so long to write, as its manifest tells the next attempt."""
    path = place / f"checkpoints/step-{step:08d}/manifest.json"
    manifest = json.loads(path.read_bytes())
    path.write_text(json.dumps(manifest | {"seconds": seconds}))


def test_T07_a_stop_saves_where_there_is_time_for_it(tmp_path: Path) -> None:
    assert in_world(2, _attempt, tmp_path, 4, 100.0) == [143, 143]
    status = _status(tmp_path)
    assert status["state"] == "preempted"
    # Which rank sees the fourth line first is chance: the vote is in the fifth step or in the one after.
    assert status["step"] in {5, 6}
    assert status["checkpoint"] == f"step-{status['step']:08d}"
    assert status["lost_steps"] == 0


def test_T07_a_stop_without_time_to_save_leaves_at_once_and_says_what_is_lost(tmp_path: Path) -> None:
    in_world(2, _attempt, tmp_path, 2, 100.0)
    first = _status(tmp_path)["step"]
    # So slow that no time would do, and the store begins nothing.
    _as_slow(tmp_path, first, seconds=1e9)
    before = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert in_world(2, _attempt, tmp_path, first + 1, 100.0, checkpoint_every=100) == [143, 143]
    status = _status(tmp_path)
    lost = status["step"] - first
    assert lost in {1, 2}  # the step in flight is dropped: it could not be saved either
    assert (status["state"], status["lost_steps"]) == ("preempted", lost)
    assert status["checkpoint"] == f"step-{first:08d}"
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == before
    assert f"the {lost} steps after the checkpoint of step {first} will be trained again" in status["reason"]


def test_T07_a_stop_between_the_parts_of_a_step_lets_it_end_where_there_is_time(tmp_path: Path) -> None:
    in_world(2, _stop_between_parts, tmp_path)
    assert (_status(tmp_path)["step"], _status(tmp_path)["lost_steps"]) == (4, 0)


def _stop_between_parts(world: World, place: Path) -> int:
    """A step of two parts votes in each, and beside its update; before the first step there are two votes."""
    votes = iter(range(1000))
    stop = StopWhen(lambda: next(votes) >= 2 + 3 * 3)  # the first vote of the fourth step
    return run_in(world, _config(place, gradient_accumulation_steps=2), {}, stop)


def test_T09_a_stop_while_a_checkpoint_is_written_waits_for_it_and_saves_its_own(tmp_path: Path) -> None:
    # The vote of the step after a save that goes on beside the training.
    assert in_world(2, _stop_right_after_a_save, tmp_path) == [143, 143]
    found = sorted(path.name for path in (tmp_path / "checkpoints").glob("step-*"))
    assert found == ["step-00000003", "step-00000004"]
    assert _status(tmp_path)["lost_steps"] == 0


def _stop_right_after_a_save(world: World, place: Path) -> int:
    votes = iter(range(1000))
    stop = StopWhen(lambda: next(votes) >= 2 + 3 * 2)
    return run_in(world, _config(place), {}, stop)


@pytest.mark.thorough
def test_T09_a_stop_before_torch_is_loaded_or_while_blocks_are_compiled_leaves_in_order(
    tmp_path: Path,
) -> None:
    job = Job.under(tmp_path / "job", "--steps", "9", "--checkpoint_every", "2", "--sequence_length", "32")
    early = job.start()
    _wait_for_the_handler(early)
    early.send_signal(signal.SIGTERM)
    while_loading = finished(early)
    assert (while_loading.exit_code, while_loading.errors) == (143, "")
    assert while_loading.lines[-1] == "stopped on SIGTERM before the first step"
    assert job.run_until(4, signal.SIGTERM).exit_code == 143
    kept = {path.name for path in job.checkpoints.glob("step-*")}

    compiling = job.start("--compile", "aot_eager")
    assert compiling.stdout is not None
    lines = []
    for line in compiling.stdout:
        lines.append(line)
        if line.startswith("resumed"):  # what comes next is the first step, which compiles
            compiling.send_signal(signal.SIGTERM)
            break
    stopped = finished(compiling)
    assert stopped.exit_code == 143, stopped.errors
    assert kept & {path.name for path in job.checkpoints.glob("step-*")}
    rest = job.run()
    assert rest.exit_code == 0, rest.errors
    assert rest.resumed_from is not None


def _wait_for_the_handler(process: "subprocess.Popen[str]") -> None:
    """Until the program catches SIGTERM, which it does before it loads torch."""
    mask = re.compile(r"^SigCgt:\s+(\w+)$", re.MULTILINE)
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        caught = mask.search(status.read_text())
        if caught and int(caught[1], 16) >> (signal.SIGTERM - 1) & 1:
            return
        os.sched_yield()


def test_gradients_that_are_not_finite_end_the_attempt_before_they_reach_the_weights(tmp_path: Path) -> None:
    first, second = in_world(2, _diverge, tmp_path)
    assert first == second
    assert first.startswith("the gradients of step 4 are not finite")
    status = _status(tmp_path)
    assert (status["state"], status["checkpoint"]) == ("failed", "step-00000003")
    assert status["reason"] == first
    # The same job with a learning rate that does no harm resumes from there.
    assert in_world(2, _attempt, tmp_path, 0, 100.0) == [0, 0]
    assert _reported(tmp_path) == _STEPS


def _diverge(world: World, place: Path) -> str:
    """From the fourth step on one rank sees what no loss can be made of."""
    whole = functional.cross_entropy
    calls = iter(range(1000))

    def broken(*arguments: Any, **keywords: Any) -> Tensor:
        losses = whole(*arguments, **keywords)
        return losses * float("inf") if world.rank == 1 and next(calls) >= 3 else losses

    functional.cross_entropy = broken  # in this process alone
    try:
        run_in(world, _config(place, log_every=4), {}, StopRequest())
    except NotFiniteError as error:
        return str(error)
    return "trained on"


if sys.platform != "linux":
    pytest.skip("signals are looked up in /proc", allow_module_level=True)
