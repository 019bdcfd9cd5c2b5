"""Two and more ranks with FSDP, one host and two, killed and changed in number."""

import io
import os
import shutil
import signal
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from io import IOBase
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist
from torch.distributed.checkpoint.filesystem import FileSystem, FileSystemWriter
from torch.distributed.checkpoint.storage import StorageWriter

from tests.integration.training.checkpoint.learner import Learner, saved_at
from tests.integration.training.worlds import RankFailedError, in_world
from tools.training.verify import verdicts
from training.preemptible import CheckpointMismatchError, CheckpointReadError, CheckpointSaveError
from training.preemptible.checkpoint import LocalStore
from training.preemptible.checkpoint.manifest import Whole
from training.ranks.world import World


def _learn(world: World, root: Path, *, until: int, save_at: tuple[int, ...] = ()) -> dict[str, Any]:
    """One attempt: from the newest checkpoint to a step; what it did, told by one rank."""
    learner = Learner(root)
    with redirect_stdout(io.StringIO()) as said:
        began_at = learner.load()
    sha256, losses = learner.sha256(), {}
    while learner.step < until:
        (loss,) = learner.learn(1)
        losses[learner.step] = loss
        if learner.step in save_at:
            learner.save()
    learner.checkpointer.wait()
    return {
        "began_at": began_at,
        "said": said.getvalue(),
        "sha256": sha256,
        "losses": losses,
        "sha256_at_end": learner.sha256(),
    }


def _learn_each(world: World, roots: list[Path], *, until: int) -> list[dict[str, Any]]:
    return [_learn(world, root, until=until) for root in roots]


class _Deadly(LocalStore):
    """Kills its process when a file of step 8 is half written."""

    def writer(self, checkpoint: str) -> StorageWriter:
        writer = super().writer(checkpoint)
        if checkpoint == "step-00000008":
            assert isinstance(writer, FileSystemWriter)
            writer.fs = _DeadlyFiles()
        return writer


class _DeadlyFiles(FileSystem):
    @contextmanager
    def create_stream(self, path: str | os.PathLike[str], mode: str) -> Generator[IOBase, None, None]:
        Path(path).write_bytes(b"PK")
        os.kill(os.getpid(), signal.SIGKILL)
        with super().create_stream(path, mode) as stream:
            yield stream


def _die_while_writing(world: World, root: Path) -> None:
    """All ranks but the first are killed, in their save at step 8."""
    learner = Learner(_Deadly(root) if world.rank else root)
    learner.load()
    for _ in range(2):
        learner.learn(4)
        learner.save()
    learner.checkpointer.wait()


def test_T05_killed_or_torn_it_goes_on_from_the_checkpoint_before_with_the_same_losses(
    tmp_path: Path,
) -> None:
    whole = in_world(2, _learn, tmp_path / "whole", until=12)[0]
    killed = tmp_path / "killed"
    with pytest.raises(RankFailedError):  # the killed one, or the one that misses it
        in_world(2, _die_while_writing, killed)
    assert (killed / "step-00000008/__1_0.distcp").read_bytes() == b"PK"
    resumed = in_world(2, _learn, killed, until=12, save_at=(8,))[0]
    assert "skipping torn checkpoint step-00000008: manifest.json is missing" in resumed["said"]
    assert resumed["began_at"] == 4
    assert resumed["losses"].items() <= whole["losses"].items()
    assert resumed["sha256_at_end"] == whole["sha256_at_end"]

    torn = {
        "a shard is cut": lambda place: os.truncate(place / "__1_0.distcp", 100),
        "a shard is gone": lambda place: (place / "__0_0.distcp").unlink(),
        "the manifest is gone": lambda place: (place / "manifest.json").unlink(),
    }
    for name, tear in torn.items():
        shutil.copytree(killed, tmp_path / name)
        assert (tmp_path / name / "step-00000008/manifest.json").exists()
        tear(tmp_path / name / "step-00000008")
    for again in in_world(2, _learn_each, [tmp_path / name for name in torn], until=12)[0]:
        assert again["began_at"] == 4
        assert again["losses"].items() <= whole["losses"].items()


def test_T06_any_number_of_ranks_goes_on_from_any_other(tmp_path: Path) -> None:
    plain = Learner(tmp_path / "plain").learn(30)
    two = in_world(2, _learn, tmp_path / "job", until=10, save_at=(10,))[0]
    one = in_world(1, _learn, tmp_path / "job", until=20, save_at=(20,))[0]
    four = in_world(4, _learn, tmp_path / "job", until=30)[0]
    assert (one["began_at"], one["sha256"]) == (10, two["sha256_at_end"])
    assert (four["began_at"], four["sha256"]) == (20, one["sha256_at_end"])
    losses = {**two["losses"], **one["losses"], **four["losses"]}
    assert list(losses) == list(range(1, 31))
    assert max(abs(one - other) for one, other in zip(losses.values(), plain, strict=True)) < 2e-6


def _learn_in_bf16(world: World, root: Path) -> tuple[str, str]:
    learner = Learner(root, pure=True)
    learner.load()
    before = learner.sha256()
    learner.learn(6)
    learner.save()
    learner.checkpointer.wait()
    return before, learner.sha256()


def test_T06_what_sums_of_bf16_lose_is_carried_over_too(tmp_path: Path) -> None:
    (_, saved), _ = in_world(2, _learn_in_bf16, tmp_path)
    ((loaded, _),) = in_world(1, _learn_in_bf16, tmp_path)
    assert loaded == saved


def _host(world: World, root: Path) -> Path:
    """The upper half of the ranks has a directory of its own."""
    return root / ("a" if world.rank < world.size / 2 else "b")


def _refusal(world: World, root: Path) -> str:
    dist.barrier()
    try:
        Learner(_host(world, root)).load()
    except CheckpointReadError as error:
        return str(error)
    return "taken"


def _save_then_look(world: World, root: Path) -> tuple[dict[str, Any], str]:
    saved = _learn(world, _host(world, root), until=6, save_at=(2, 4, 6))
    return saved, _refusal(world, root)


def _go_on_then_lose_the_manifest(world: World, root: Path) -> tuple[dict[str, Any], str]:
    resumed = _learn(world, _host(world, root), until=8, save_at=(8,))
    if world.rank == 0:
        _mirror(root)
        (root / "a/step-00000008/manifest.json").unlink()
    return resumed, _refusal(world, root)


def _mirror(root: Path) -> None:
    """As SageMaker's mirror at the start of a job: each host gets all objects."""
    for source, target in (("a", "b"), ("b", "a")):
        shutil.copytree(root / source, root / target, dirs_exist_ok=True)


def _files(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


def test_T16_hosts_with_directories_of_their_own_go_on_from_the_union_of_their_files(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    told = in_world(4, _save_then_look, tmp_path)
    ends = ("step-00000004", "step-00000006")
    of_first = (".metadata", "__0_0.distcp", "__1_0.distcp", "manifest.json", "metadata")
    assert _files(a) == ["status.json", *(f"{end}/{name}" for end in ends for name in of_first)]
    assert _files(b) == [f"{end}/__{rank}_0.distcp" for end in ends for rank in (2, 3)]
    # Each host lacks the files of the other: all ranks say so, and none waits for another.
    (refusal,) = {one for _, one in told}
    assert refusal.startswith("checkpoint step-00000006 cannot be used: on ")
    assert f"{a} __2_0.distcp is missing" in refusal
    assert f"{b} manifest.json is missing" in refusal

    _mirror(tmp_path)
    told_again = in_world(2, _go_on_then_lose_the_manifest, tmp_path)
    (resumed, _), (saved, _) = told_again[0], told[0]
    assert (resumed["began_at"], resumed["sha256"]) == (6, saved["sha256_at_end"])
    # Each removed its copy of the oldest, also of files that the other host wrote.
    assert sorted(path.name for path in b.iterdir()) == ["status.json", "step-00000006", "step-00000008"]
    # By its own files the first host would go back to step 6.
    assert {one.rpartition(":")[2] for _, one in told_again} == {f"{a} manifest.json is missing"}


class _Nowhere(LocalStore):
    def writer(self, checkpoint: str) -> StorageWriter:
        return LocalStore(Path("/proc")).writer(checkpoint)


def _one_rank_cannot_write(world: World, root: Path) -> tuple[str, int]:
    learner = Learner(_Nowhere(root) if world.rank else root)
    learner.load()
    learner.checkpointer.save(7)
    try:
        learner.checkpointer.save(8)
    except CheckpointSaveError as error:
        return str(error), learner.checkpointer.newest_step
    return "saved", learner.checkpointer.newest_step


class _Unlistable(LocalStore):
    def checkpoints(self) -> list[str]:
        raise PermissionError(13, "Permission denied", self.location)


def _one_host_cannot_look(world: World, root: Path) -> str:
    place = _host(world, root)
    try:
        Learner(_Unlistable(place) if world.rank else place).load()
    except CheckpointReadError as error:
        return str(error)
    return "taken"


def _another_seed(world: World, root: Path) -> str:
    learner = Learner(root, guard={"seed": "2"})
    try:
        learner.load()
    except CheckpointMismatchError as error:
        return str(error)
    return "taken"


def test_what_one_rank_runs_into_is_raised_on_all(tmp_path: Path) -> None:
    told, told_too = in_world(2, _one_rank_cannot_write, tmp_path)
    assert told == told_too
    assert told[0].startswith("checkpoint step-00000007 could not be saved: rank 1: /proc/step-00000007")
    assert told[1] == 0
    assert not list(tmp_path.iterdir())
    in_world(2, _learn, tmp_path, until=1, save_at=(1,))
    (refused,) = set(in_world(2, _another_seed, tmp_path))
    assert "checkpoint step-00000001 is of another training: seed was unset, now 2" in refused
    (unseen,) = set(in_world(2, _one_host_cannot_look, tmp_path))
    told_of = f"{tmp_path / 'b'} may not be written or read: Permission denied"
    assert unseen == f"the checkpoints cannot be listed: rank 1: {told_of}"


@pytest.mark.thorough
def test_M7_another_number_of_ranks_saves_the_step_in_which_four_were_killed(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    in_world(4, _learn, whole, until=4, save_at=(4,))
    never_killed = in_world(2, _learn, whole, until=10)[0]
    with pytest.raises(RankFailedError):
        in_world(4, _die_while_writing, killed)
    assert {"__0_0.distcp", "__3_0.distcp"} & set(_files(killed / "step-00000008"))
    resumed = in_world(2, _learn, killed, until=10, save_at=(8,))[0]
    assert resumed["began_at"] == 4
    assert _files(killed / "step-00000008") == [
        ".metadata", "__0_0.distcp", "__1_0.distcp", "manifest.json", "metadata"
    ]  # fmt: skip
    assert all(isinstance(one, Whole) for one in verdicts(killed))
    assert resumed["losses"] == never_killed["losses"]
    assert resumed["sha256_at_end"] == never_killed["sha256_at_end"]


class _Overtaken(LocalStore):
    """While it saves, another attempt that still runs writes its shard of the same step."""

    def __init__(self, root: Path, other: Path) -> None:
        super().__init__(root)
        self._other = other

    def write(self, name: str, content: bytes) -> None:
        if name == "step-00000010/manifest.json":
            shutil.copy(self._other / "step-00000010/__0_0.distcp", Path(self.location) / "step-00000010")
        super().write(name, content)


def test_M7_shards_of_two_attempts_at_once_are_never_mixed(tmp_path: Path) -> None:
    root, other = tmp_path / "job", tmp_path / "other"
    orphan = saved_at(other, 5)
    orphan.learn(9)
    orphan.step = 10
    orphan.save()
    orphan.checkpointer.wait()
    learner = Learner(_Overtaken(root, other))
    learner.load()
    learner.learn(5)
    learner.save()
    at_five = learner.sha256()
    learner.learn(5)
    learner.save()
    learner.checkpointer.wait()
    fresh = Learner(root)
    assert fresh.load() == 5
    assert fresh.sha256() == at_five
