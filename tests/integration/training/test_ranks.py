"""More than one process, under torchrun."""

import json
import signal
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.integration.training.attempts import Attempt, Job

pytestmark = pytest.mark.long

_OPTIONS = ("--steps", "20", "--checkpoint_every", "8", "--seed", "1", "--precision", "fp32")


def _job(root: Path, *, ranks: int, options: tuple[str, ...] = _OPTIONS) -> Job:
    job = Job.under(root, *options)
    job.launcher = _torchrun(ranks)
    return job


def _torchrun(ranks: int) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]


def _apart(one: Attempt, other: Attempt) -> float:
    """The largest difference of the losses of a step."""
    both = one.losses.keys() & other.losses.keys()
    return max(abs(float(one.losses[step]) - float(other.losses[step])) for step in both)


def test_the_number_of_ranks_changes_nothing_but_the_last_digits(tmp_path: Path) -> None:
    alone = Job.under(tmp_path / "alone", *_OPTIONS).run()
    two = _job(tmp_path / "two", ranks=2).run()
    assert (alone.exit_code, two.exit_code) == (0, 0)
    assert len(alone.losses) == len(two.losses) == 20
    assert _apart(alone, two) <= 1e-6


def test_two_ranks_agree_to_stop_and_one_rank_goes_on(tmp_path: Path) -> None:
    alone = Job.under(tmp_path / "alone", *_OPTIONS).run()
    job = _job(tmp_path / "two", ranks=2)
    stopped = job.run_until(10, signal.SIGTERM, "--min_step_seconds", "0.3")
    assert stopped.exit_code != 0
    last = max(stopped.losses)
    assert json.loads((job.checkpoints / "status.json").read_bytes())["step"] == last < 20
    job.launcher = _torchrun(1)
    resumed = job.run()
    assert resumed.exit_code == 0, resumed.errors
    assert min(resumed.losses) == last + 1
    assert _apart(alone, resumed) <= 1e-6
    model = load_file(job.root / "model/model.safetensors")
    assert all(one.dtype is torch.float32 for one in model.values())


def test_a_batch_that_the_ranks_cannot_share_is_refused(tmp_path: Path) -> None:
    job = _job(tmp_path / "job", ranks=2, options=("--batch_size", "3", "--steps", "1"))
    assert job.run().exit_code != 0
    shared = "batch_size 3 does not divide by 2 ranks x 1 gradient_accumulation_steps; take 2 or 4"
    shared += ", or train on 1 or 3 ranks"
    assert (job.root / "output/failure").read_text() == f"hyperparameters: {shared}"
