"""Saves that fail, the last save before the end, and what status.json tells of it."""

import json
from pathlib import Path

import pytest
from torch.distributed.checkpoint.storage import StorageWriter

from tests.integration.training.checkpoint.learner import HeldStore, Learner, names_in, saved_at
from training.preemptible import CheckpointSaveError
from training.preemptible.checkpoint import LocalStore, Retention


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
    assert names_in(small_disk) == ["status.json", "step-00000005"]
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
    learner = saved_at(tmp_path, 5)
    running = {
        "state": "running",
        "step": 5,
        "steps": 60,
        "checkpoint": "step-00000005",
        "checkpoint_at": "2026-11-21T12:00:00.000+00:00",
        "updated_at": "2026-11-21T12:00:00.000+00:00",
        "lost_steps": 0,
        "reason": "",
        "skipped": [],
        "carried": {},
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
    held = HeldStore(tmp_path)
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


def test_a_status_that_cannot_be_written_does_not_take_the_place_of_the_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learner = saved_at(tmp_path, 5)
    (tmp_path / ".status.json.draft").mkdir()
    learner.checkpointer.end("failed", step=8, reason="loss is nan")
    assert "the status could not be written: [Errno 21] Is a directory" in capsys.readouterr().out
    assert _status(tmp_path)["state"] == "running"


class _Broken(LocalStore):
    def writer(self, checkpoint: str) -> StorageWriter:
        return LocalStore(Path("/proc")).writer(checkpoint)


def test_an_attempt_that_ends_without_a_save_names_the_checkpoint_it_came_from(tmp_path: Path) -> None:
    saved_at(tmp_path, 5)
    later = Learner(tmp_path)
    later.load()
    later.checkpointer.end("preempted", step=7, reason="no time to save")
    found = _status(tmp_path)
    assert (found["checkpoint"], found["lost_steps"], found["state"]) == ("step-00000005", 2, "preempted")


def test_a_last_save_fits_or_is_not_begun(tmp_path: Path) -> None:
    learner = saved_at(tmp_path, 5)
    learner.learn(2)
    assert not learner.checkpointer.save_within(7, 4.9)  # 5 s for whatever else there is to do
    assert names_in(tmp_path) == ["status.json", "step-00000005"]
    assert learner.checkpointer.save_within(7, 60.0)
    assert learner.checkpointer.newest_step == 7
    assert learner.checkpointer.save_within(7, 0.0)  # done already


def test_the_time_of_a_last_save_follows_from_the_speed_of_the_newest(tmp_path: Path) -> None:
    saved_at(tmp_path, 5)
    manifest = tmp_path / "step-00000005/manifest.json"
    slow = json.loads(manifest.read_bytes()) | {"seconds": 40.0}
    manifest.write_text(json.dumps(slow))
    learner = Learner(tmp_path)
    learner.load()
    learner.learn(1)
    assert learner.checkpointer.seconds_to_save() == pytest.approx(65.0, abs=0.05)
    assert not learner.checkpointer.save_within(6, 64.9)
    assert learner.checkpointer.save_within(6, 70.0)  # 40 s, half as much again, and 5


def test_the_last_save_waits_for_the_one_in_flight_while_there_is_time(tmp_path: Path) -> None:
    held = HeldStore(tmp_path)
    learner = Learner(held)
    learner.load()
    alone = learner.checkpointer.seconds_to_save()
    learner.checkpointer.save(1)
    assert learner.checkpointer.seconds_to_save() == pytest.approx(2 * alone, rel=0.01)
    assert not learner.checkpointer.save_within(2, 0.01)
    held.go_on(saves=2)
    assert learner.checkpointer.save_within(2, 60.0)
    assert names_in(tmp_path) == ["status.json", "step-00000001", "step-00000002"]


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
