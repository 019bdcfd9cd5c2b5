"""One process without torch.distributed, as any script may be."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter

from tests.integration.training.checkpoint.learner import Learner
from training.checkpoint import LocalStore, Retention
from training.errors import CheckpointMismatchError, CheckpointReadError, CheckpointSaveError


def _saved(root: Path, *steps: int, **options: Any) -> Learner:
    """A learner that saved after these steps and trained no further."""
    learner = Learner(root, **options)
    learner.load()
    for step in steps:
        learner.learn(step - learner.step)
        learner.save()
    learner.checkpointer.wait()
    return learner


def _names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def test_weights_and_moments_come_back_into_a_fresh_model(tmp_path: Path) -> None:
    saved = _saved(tmp_path, 4)
    fresh = Learner(tmp_path)
    assert fresh.sha256() != saved.sha256()
    assert fresh.load() == 4
    assert fresh.sha256() == saved.sha256()
    assert fresh.learn(3) == saved.learn(3)


def test_a_save_before_the_first_step_changes_nothing(tmp_path: Path) -> None:
    expected = Learner(tmp_path / "other").learn(4)
    saved = _saved(tmp_path / "job", 0)
    assert saved.learn(4) == expected
    fresh = Learner(tmp_path / "job")
    fresh.load()
    assert fresh.learn(4) == expected


def test_what_is_carried_comes_back(tmp_path: Path) -> None:
    learner = Learner(tmp_path)
    learner.load()
    learner.save(carried={"useful_seconds": 12.5})
    learner.checkpointer.wait()
    resumed = Learner(tmp_path).checkpointer.load_newest()
    assert resumed is not None
    assert resumed.carried == {"useful_seconds": 12.5}


def test_changes_after_the_save_do_not_leak_into_it(tmp_path: Path) -> None:
    learner = _saved(tmp_path, 2)
    before = learner.sha256()
    learner.checkpointer.save(3)  # into buffers that were used once
    with torch.no_grad():
        for one in learner.model.parameters():
            one.zero_()
            learner.optimizer.state[one]["exp_avg"].zero_()
    learner.checkpointer.wait()
    fresh = Learner(tmp_path)
    assert fresh.load() == 3
    assert fresh.sha256() == before


class _Held(LocalStore):
    """Its first file waits until it may go on: a pipe instead of a sleep."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._read, self._write = os.pipe()

    def writer(self, checkpoint: str) -> StorageWriter:
        os.read(self._read, 1)
        return super().writer(checkpoint)

    def go_on(self, *, saves: int = 1) -> None:
        os.write(self._write, b"." * saves)


def test_a_save_returns_before_its_files_are_written_and_the_next_one_waits(tmp_path: Path) -> None:
    held = _Held(tmp_path)
    learner = Learner(held)
    learner.load()
    learner.checkpointer.save(1)
    assert learner.checkpointer.newest_step == 0
    assert not learner.checkpointer.wait(0.0)
    held.go_on(saves=2)
    learner.checkpointer.save(2)
    assert learner.checkpointer.newest_step >= 1
    learner.checkpointer.wait()
    assert learner.checkpointer.newest_step == 2


def test_the_line_about_the_resume_names_file_and_hash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _saved(tmp_path, 20)
    Learner(tmp_path).load()
    first, second = capsys.readouterr().out.splitlines()
    assert first == "starting from scratch"
    assert second.startswith("resumed from step=20 file=step-00000020/__0_0.distcp sha256=")
    assert len(second.rpartition("=")[2]) == 64


def test_the_newest_are_kept_and_every_nth(tmp_path: Path) -> None:
    _saved(tmp_path, 5, 10, 12, 15, 16, 17, keep=Retention(newest=2, every=10))
    assert _names(tmp_path) == ["status.json", "step-00000010", "step-00000016", "step-00000017"]


def test_a_step_that_is_saved_is_not_saved_again(tmp_path: Path) -> None:
    learner = _saved(tmp_path, 5)
    before = (tmp_path / "step-00000005/manifest.json").stat().st_mtime_ns
    learner.save()
    learner.checkpointer.wait()
    assert (tmp_path / "step-00000005/manifest.json").stat().st_mtime_ns == before


def test_a_checkpoint_of_another_training_is_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    _saved(tmp_path, 5, 10, guard={"seed": "1", "preset": "tiny"})
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    other = Learner(tmp_path, guard={"seed": "2", "preset": "tiny"})
    before = other.sha256()
    with pytest.raises(CheckpointMismatchError) as caught:
        other.load()
    assert caught.value.differences == {"seed": ("1", "2")}
    assert str(caught.value) == (
        "checkpoint step-00000010 is of another training: seed was 1, now 2; use another checkpoint directory"
    )
    other.checkpointer.end("failed", step=0, reason="refused")
    assert other.sha256() == before
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


def test_a_model_with_other_tensors_is_refused_with_their_names(tmp_path: Path) -> None:
    _saved(tmp_path, 5, depth=1)
    other = Learner(tmp_path, depth=2)
    before = [one.clone() for one in other.model.parameters()]
    with pytest.raises(CheckpointMismatchError) as caught:
        other.load()
    assert caught.value.differences["model.2.weight"] == ("12x48 float32", "absent")
    assert caught.value.differences["model.3.weight"] == ("absent", "12x48 float32")
    assert "and 19 more" in str(caught.value)
    assert all(map(torch.equal, before, other.model.parameters()))


def test_a_torn_checkpoint_is_skipped_and_removed_by_the_next_save(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _saved(tmp_path, 5, 10)
    newest = tmp_path / "step-00000010/__0_0.distcp"
    newest.write_bytes(newest.read_bytes()[:-1])
    learner = Learner(tmp_path)
    assert learner.load() == 5
    assert "skipping torn checkpoint step-00000010: __0_0.distcp has" in capsys.readouterr().out
    assert (tmp_path / "step-00000010").exists()
    learner.learn(2)
    learner.save()
    learner.checkpointer.wait()
    assert _names(tmp_path) == ["status.json", "step-00000005", "step-00000007"]


def test_one_with_the_right_sizes_that_cannot_be_read_is_skipped_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = _saved(tmp_path, 5)
    at_five = saved.sha256()
    saved.learn(5)
    saved.save()
    saved.checkpointer.wait()
    _spoil(tmp_path / "step-00000010")
    learner = Learner(tmp_path)
    assert learner.load() == 5
    assert learner.sha256() == at_five
    assert "skipping damaged checkpoint step-00000010: rank 0: " in capsys.readouterr().out


def _spoil(checkpoint: Path) -> None:
    size = (checkpoint / "__0_0.distcp").stat().st_size
    (checkpoint / "__0_0.distcp").write_bytes(b"\0" * size)


def test_when_none_can_be_read_the_job_does_not_start_over(tmp_path: Path) -> None:
    _saved(tmp_path, 5)
    _spoil(tmp_path / "step-00000005")
    learner = Learner(tmp_path)
    with pytest.raises(CheckpointReadError, match="no checkpoint can be read: step-00000005: rank 0: "):
        learner.load()
    with pytest.raises(RuntimeError, match=r"call load_newest\(\)"):
        learner.save()
    assert _names(tmp_path) == ["status.json", "step-00000005"]


class _Failing(LocalStore):
    """A shard goes after the look at what is there."""

    def reader(self, checkpoint: str) -> StorageReader:
        (Path(self.location) / checkpoint / "__0_0.distcp").unlink()
        return super().reader(checkpoint)


def test_a_disk_that_refuses_to_be_read_is_no_reason_to_go_back(tmp_path: Path) -> None:
    _saved(tmp_path, 5, 10)
    with pytest.raises(CheckpointReadError, match=r"step-00000010 could not be read: rank 0: .*No such file"):
        Learner(_Failing(tmp_path)).load()


def test_a_copy_without_dotfiles_loads(tmp_path: Path) -> None:
    _saved(tmp_path, 5)
    (tmp_path / "step-00000005/.metadata").unlink()
    assert Learner(tmp_path).load() == 5


def test_saving_before_looking_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"call load_newest\(\) before the first save"):
        Learner(tmp_path).save()


@pytest.mark.parametrize("asynchronous", [pytest.param(True, id="async"), pytest.param(False, id="sync")])
def test_a_full_disk_is_told_and_the_checkpoint_before_stays_whole(
    small_disk: Path, *, asynchronous: bool
) -> None:
    learner = Learner(small_disk, asynchronous=asynchronous)
    learner.load()
    learner.learn(5)
    learner.save()
    learner.checkpointer.wait()
    at_five = learner.sha256()
    learner.learn(5)
    with pytest.raises(CheckpointSaveError) as caught:
        _save_and_wait(learner)
    assert str(caught.value) == (
        f"checkpoint step-00000010 could not be saved: rank 0: no space left in {small_disk}: "
        "ask for a larger volume, or keep fewer checkpoints; the newest whole one is step-00000005"
    )
    assert _names(small_disk) == ["status.json", "step-00000005"]
    (small_disk / "failure").write_bytes(b"there is room to say so" * 40)
    fresh = Learner(small_disk)
    assert fresh.load() == 5
    assert fresh.sha256() == at_five


def _save_and_wait(learner: Learner) -> None:
    learner.save()
    learner.checkpointer.wait()


def _status(root: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((root / "status.json").read_bytes())
    return found


def test_the_status_tells_how_far_the_job_is_and_how_it_ended(tmp_path: Path) -> None:
    learner = _saved(tmp_path, 5)
    running = {
        "state": "running",
        "step": 5,
        "steps": 60,
        "checkpoint": "step-00000005",
        "checkpoint_at": "2026-11-21T12:00:00.000+00:00",
        "updated_at": "2026-11-21T12:00:00.000+00:00",
        "lost_steps": 0,
        "reason": "",
    }
    assert _status(tmp_path) == running
    learner.checkpointer.end("failed", step=8, reason="loss is nan")
    assert _status(tmp_path) == running | {
        "state": "failed",
        "step": 8,
        "lost_steps": 3,
        "reason": "loss is nan",
    }


def test_a_save_in_flight_may_come_through_after_a_failure(tmp_path: Path) -> None:
    held = _Held(tmp_path)
    learner = Learner(held)
    learner.load()
    learner.checkpointer.save(5)
    held.go_on()
    learner.checkpointer.end("failed", step=8, reason="loss is nan")
    assert learner.checkpointer.newest_step == 5
    found = _status(tmp_path)
    assert (found["state"], found["checkpoint"], found["lost_steps"]) == ("failed", "step-00000005", 3)


def test_what_a_save_in_flight_runs_into_after_a_failure_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learner = Learner(_Broken(tmp_path))
    learner.load()
    learner.checkpointer.save(5)
    learner.checkpointer.end("failed", step=8, reason="loss is nan")
    assert "the save in flight failed: checkpoint step-00000005 could not be saved" in capsys.readouterr().out
    assert _status(tmp_path)["reason"] == "loss is nan"


class _Broken(LocalStore):
    def writer(self, checkpoint: str) -> StorageWriter:
        return LocalStore(Path("/proc")).writer(checkpoint)


def test_an_attempt_that_ends_without_a_save_names_the_checkpoint_it_came_from(tmp_path: Path) -> None:
    _saved(tmp_path, 5)
    later = Learner(tmp_path)
    later.load()
    later.checkpointer.end("preempted", step=7, reason="no time to save")
    found = _status(tmp_path)
    assert (found["checkpoint"], found["lost_steps"], found["state"]) == ("step-00000005", 2, "preempted")


def test_a_last_save_fits_or_is_not_begun(tmp_path: Path) -> None:
    learner = _saved(tmp_path, 5)
    learner.learn(2)
    assert not learner.checkpointer.save_within(7, 4.9)  # 5 s for whatever else there is to do
    assert _names(tmp_path) == ["status.json", "step-00000005"]
    assert learner.checkpointer.save_within(7, 60.0)
    assert learner.checkpointer.newest_step == 7
    assert learner.checkpointer.save_within(7, 0.0)  # done already


def test_the_time_of_a_last_save_follows_from_the_speed_of_the_newest(tmp_path: Path) -> None:
    _saved(tmp_path, 5)
    manifest = tmp_path / "step-00000005/manifest.json"
    slow = json.loads(manifest.read_bytes()) | {"seconds": 40.0}
    manifest.write_text(json.dumps(slow))
    learner = Learner(tmp_path)
    learner.load()
    learner.learn(1)
    assert not learner.checkpointer.save_within(6, 64.9)
    assert learner.checkpointer.save_within(6, 70.0)  # 40 s, half as much again, and 5


def test_the_last_save_waits_for_the_one_in_flight_while_there_is_time(tmp_path: Path) -> None:
    held = _Held(tmp_path)
    learner = Learner(held)
    learner.load()
    learner.checkpointer.save(1)
    assert not learner.checkpointer.save_within(2, 0.01)
    held.go_on(saves=2)
    assert learner.checkpointer.save_within(2, 60.0)
    assert _names(tmp_path) == ["status.json", "step-00000001", "step-00000002"]


class _Undeletable(LocalStore):
    def remove(self, checkpoint: str) -> None:
        raise PermissionError(1, "Operation not permitted", checkpoint)


def test_a_save_whose_clean_up_fails_is_told_apart_and_stays(tmp_path: Path) -> None:
    learner = Learner(_Undeletable(tmp_path), asynchronous=False, keep=Retention(newest=1))
    learner.load()
    learner.learn(1)
    learner.save()
    learner.learn(1)
    with pytest.raises(CheckpointSaveError) as caught:
        learner.save()
    assert str(caught.value) == (
        "checkpoint step-00000002 is saved, and older ones could not be removed: "
        "rank 0: step-00000001 may not be written or read: Operation not permitted"
    )
    assert Learner(tmp_path).load() == 2
