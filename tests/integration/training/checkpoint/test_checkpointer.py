"""One process without torch.distributed, as any script may be."""

import pickletools
from pathlib import Path

import pytest
import torch
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.storage import StorageReader

from tests.integration.training.checkpoint.learner import HeldStore, Learner, names_in, saved_at
from training.preemptible import CheckpointMismatchError, CheckpointReadError
from training.preemptible.checkpoint import LocalStore, Retention


def test_weights_and_moments_come_back_into_a_fresh_model(tmp_path: Path) -> None:
    saved = saved_at(tmp_path, 4)
    fresh = Learner(tmp_path)
    assert fresh.sha256() != saved.sha256()
    assert fresh.load() == 4
    assert fresh.sha256() == saved.sha256()
    assert fresh.learn(3) == saved.learn(3)


def test_what_is_saved_names_no_module_of_ours_so_a_module_may_move(tmp_path: Path) -> None:
    saved_at(tmp_path, 4)
    (index,) = tmp_path.glob("step-*/metadata")
    words = [str(word) for _, word, _ in pickletools.genops(index.read_bytes()) if word is not None]
    assert any("torch" in word for word in words)
    assert [word for word in words if word.startswith(("training", "tools"))] == []


def test_a_save_before_the_first_step_changes_nothing(tmp_path: Path) -> None:
    expected = Learner(tmp_path / "other").learn(4)
    saved = saved_at(tmp_path / "job", 0)
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
    learner = saved_at(tmp_path, 2)
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


def test_a_save_returns_before_its_files_are_written_and_the_next_one_waits(tmp_path: Path) -> None:
    held = HeldStore(tmp_path)
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
    saved_at(tmp_path, 20)
    Learner(tmp_path).load()
    first, second = capsys.readouterr().out.splitlines()
    assert first == "starting from scratch"
    assert second.startswith("resumed from step=20 file=step-00000020/__0_0.distcp sha256=")
    assert len(second.rpartition("=")[2]) == 64


def test_the_newest_are_kept_and_every_nth(tmp_path: Path) -> None:
    saved_at(tmp_path, 5, 10, 12, 15, 16, 17, keep=Retention(newest=2, every=10))
    assert names_in(tmp_path) == ["status.json", "step-00000010", "step-00000016", "step-00000017"]


def test_a_step_that_is_saved_is_not_saved_again(tmp_path: Path) -> None:
    learner = saved_at(tmp_path, 5)
    before = (tmp_path / "step-00000005/manifest.json").stat().st_mtime_ns
    learner.save()
    learner.checkpointer.wait()
    assert (tmp_path / "step-00000005/manifest.json").stat().st_mtime_ns == before


def test_a_checkpoint_of_another_training_is_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    saved_at(tmp_path, 5, 10, guard={"seed": "1", "preset": "tiny"})
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
    saved_at(tmp_path, 5, depth=1)
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
    saved_at(tmp_path, 5, 10)
    newest = tmp_path / "step-00000010/__0_0.distcp"
    newest.write_bytes(newest.read_bytes()[:-1])
    learner = Learner(tmp_path)
    assert learner.load() == 5
    assert "skipping torn checkpoint step-00000010: __0_0.distcp has" in capsys.readouterr().out
    assert (tmp_path / "step-00000010").exists()
    learner.learn(2)
    learner.save()
    learner.checkpointer.wait()
    assert names_in(tmp_path) == ["status.json", "step-00000005", "step-00000007"]


def test_one_with_the_right_sizes_that_cannot_be_read_is_skipped_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = saved_at(tmp_path, 5)
    at_five = saved.sha256()
    saved.learn(5)
    saved.save()
    saved.checkpointer.wait()
    _spoil(tmp_path / "step-00000010")
    learner = Learner(tmp_path)
    assert learner.load() == 5
    assert learner.sha256() == at_five
    assert "skipping torn checkpoint step-00000010: rank 0: " in capsys.readouterr().out


def _spoil(checkpoint: Path) -> None:
    size = (checkpoint / "__0_0.distcp").stat().st_size
    (checkpoint / "__0_0.distcp").write_bytes(b"\0" * size)


def test_when_none_can_be_read_the_job_does_not_start_over(tmp_path: Path) -> None:
    saved_at(tmp_path, 5)
    _spoil(tmp_path / "step-00000005")
    learner = Learner(tmp_path)
    with pytest.raises(CheckpointReadError, match="no checkpoint can be read: step-00000005: rank 0: "):
        learner.load()
    with pytest.raises(RuntimeError, match=r"call load_newest\(\)"):
        learner.save()
    assert names_in(tmp_path) == ["status.json", "step-00000005"]


class _Failing(LocalStore):
    """A shard goes after the look at what is there."""

    def reader(self, checkpoint: str, index: Metadata, seconds: dict[str, float]) -> StorageReader:
        (Path(self.location) / checkpoint / "__0_0.distcp").unlink()
        return super().reader(checkpoint, index, seconds)


def test_a_disk_that_refuses_to_be_read_is_no_reason_to_go_back(tmp_path: Path) -> None:
    saved_at(tmp_path, 5, 10)
    with pytest.raises(CheckpointReadError, match=r"step-00000010 could not be read: rank 0: .*No such file"):
        Learner(_Failing(tmp_path)).load()


def test_a_copy_without_dotfiles_loads(tmp_path: Path) -> None:
    saved_at(tmp_path, 5)
    (tmp_path / "step-00000005/.metadata").unlink()
    assert Learner(tmp_path).load() == 5


def test_saving_before_looking_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"call load_newest\(\) before the first save"):
        Learner(tmp_path).save()
