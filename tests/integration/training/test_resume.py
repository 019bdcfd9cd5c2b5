"""An attempt goes on as if nothing had happened: the real program, killed and asked to stop."""

import hashlib
import json
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.integration.training.attempts import Job, finished
from tests.integration.training.worlds import in_world
from tests.unit.training.data.corpora import written
from training.config import read_config
from training.errors import ConfigError, TrainingError
from training.job import run_in
from training.preemptible.preempt import StopRequest
from training.ranks.world import World

_OPTIONS = ("--preset", "tiny", "--steps", "12", "--checkpoint_every", "5", "--seed", "1")
_SLOWLY = ("--min_step_seconds", "0.2")  # so that a signal arrives well before the last step


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.long
def test_killed_then_stopped_then_finished_it_is_bit_for_bit_the_uninterrupted_run(tmp_path: Path) -> None:
    reference, job = Job.under(tmp_path / "reference", *_OPTIONS), Job.under(tmp_path / "job", *_OPTIONS)
    uninterrupted = reference.start()  # beside the first attempt of the other

    killed = job.run_until(6, signal.SIGKILL, *_SLOWLY)
    assert killed.exit_code == -signal.SIGKILL
    assert "starting from scratch" in killed.lines

    stopped = job.run_until(7, signal.SIGTERM, *_SLOWLY)
    assert stopped.exit_code == 143
    assert stopped.resumed_from is not None
    assert stopped.resumed_from[:2] == (5, "step-00000005/__0_0.distcp")
    assert min(stopped.losses) == 6
    last = max(stopped.losses)
    assert 7 <= last < 12
    saved = job.checkpoints / f"step-{last:08d}" / "__0_0.distcp"
    saved_sha256 = _sha256(saved)

    resumed = job.run()
    assert resumed.exit_code == 0, resumed.errors
    assert resumed.resumed_from == (last, f"step-{last:08d}/__0_0.distcp", saved_sha256)
    assert sorted(resumed.losses) == list(range(last + 1, 13))

    whole = finished(uninterrupted)
    assert whole.exit_code == 0, whole.errors
    assert sorted(whole.losses) == list(range(1, 13))
    for attempt in (killed, stopped, resumed):
        assert attempt.losses.items() <= whole.losses.items()
    main_file = Path("checkpoints/step-00000012/__0_0.distcp")
    assert _sha256(job.root / main_file) == _sha256(reference.root / main_file)

    metrics = json.loads((job.root / "model/metrics.json").read_bytes())
    assert f"{metrics['loss']:.9f}" == whole.losses[12]
    weights = [load_file(one.root / "model/model.safetensors") for one in (job, reference)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[1])
    assert whole.errors == resumed.errors == ""


def test_bad_options_fail_at_once_with_all_their_mistakes_in_the_failure_file(tmp_path: Path) -> None:
    job = Job.under(tmp_path / "job", "--step", "3", "--lr", "fast")
    attempt = job.run()
    assert attempt.exit_code == 1
    failure = (job.root / "output/failure").read_text()
    assert "'steps'" in failure
    assert "'fast'" in failure
    assert not job.checkpoints.exists()


def _refused(world: World, *arguments: str) -> str:
    try:
        run_in(world, read_config(arguments, {}), {}, StopRequest())
    except ConfigError as error:
        return str(error)
    raise AssertionError


def test_a_directory_that_cannot_be_made_is_named_before_anything_is_trained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file/folder"
    cached = (f"--cache_dir={folder}", f"--model_dir={tmp_path / 'model'}")
    assert in_world(1, _refused, f"--model_dir={folder}", "--steps=1") == [
        f"hyperparameters: model_dir {folder} cannot be made: Not a directory"
    ]
    assert in_world(1, _refused, *cached, "--steps=1") == [
        f"hyperparameters: cache_dir {folder} cannot be made: Not a directory"
    ]


class _StopAfterLoading(StopRequest):
    """As if the signal had come after the vote that lets an attempt begin."""

    votes = 0

    @property
    def asked(self) -> bool:
        self.votes += 1
        return self.votes > 1


def _stopped(world: World, *arguments: str) -> int:
    return run_in(world, read_config(arguments, {}), {}, _StopAfterLoading())


def test_a_stop_before_the_first_step_claims_no_checkpoint(tmp_path: Path) -> None:
    places = (f"--checkpoint_dir={tmp_path}", f"--model_dir={tmp_path / 'model'}")
    assert in_world(1, _stopped, *places) == [143]
    status = json.loads((tmp_path / "status.json").read_bytes())
    assert (status["checkpoint"], status["reason"]) == (None, "stopped on SIGTERM before the first step")


def _with_a_channel_of_its_own(world: World, root: Path, *arguments: str) -> str:
    env = {"SM_CHANNEL_TRAIN": str(root / f"host-{world.rank}")}
    try:
        run_in(world, read_config(arguments, env), env, StopRequest())
    except TrainingError as error:
        return str(error)
    raise AssertionError


def test_what_one_host_lacks_is_said_by_all(tmp_path: Path) -> None:
    written(tmp_path / "host-0", range(100))
    places = (f"--checkpoint_dir={tmp_path}", f"--model_dir={tmp_path / 'model'}")
    options = ("--data=channel:train", "--sequence_length=4", *places)
    first, second = in_world(2, _with_a_channel_of_its_own, tmp_path, *options)
    assert second.startswith(f"data channel train: No such file or directory: {tmp_path}/host-1")
    assert first == f"rank 1: {second}"
