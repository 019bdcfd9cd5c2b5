import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

_SMALL = ("--modes", "eager", "--batch-size", "2", "--warm-up", "1", "--lap", "1", "--laps", "3")


def _bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "training.bench", *arguments],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.long
def test_the_training_step_is_timed_here_and_now(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    done = _bench(*_SMALL, "--json", str(path))
    assert done.returncode == 0, done.stderr
    facts = json.loads(path.read_bytes())["facts"]
    (eager,) = facts["modes"]
    assert (facts["preset"], facts["batch_size"], facts["ranks"]) == ("tiny", 2, 1)
    assert len(eager["step_seconds"]) == 3
    # 2 sequences of 128 tokens in the median step.
    assert round(eager["tok_s"] * sorted(eager["step_seconds"])[1]) == 256
    assert f"{eager['tok_s']:.1f}" in done.stdout


def test_wrong_options_are_told_at_once() -> None:
    done = _bench("--modes", "fast")
    assert (done.returncode, done.stderr) == (
        2,
        "error: hyperparameters: modes must be eager, compiled or both, not 'fast'\n",
    )
