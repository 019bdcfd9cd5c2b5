"""What is special about directories; the rest is the contract of all stores."""

import errno
from pathlib import Path

import pytest
import torch
from torch.distributed.checkpoint.api import CheckpointException

from training.preemptible.checkpoint import LocalStore
from training.preemptible.checkpoint.shards import write


def test_half_a_removal_leaves_a_checkpoint_without_a_manifest(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.write("step-00000001/manifest.json", b"{}")
    (tmp_path / "step-00000001/a folder that is not ours").mkdir()
    with pytest.raises(OSError, match="a folder that is not ours"):
        store.remove("step-00000001")
    assert store.checkpoints() == ["step-00000001"]
    assert store.read("step-00000001/manifest.json") is None


def test_a_file_is_never_seen_half_and_leaves_nothing_else(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.write("step-00000001/metadata", b"copy")
    (tmp_path / "step-00000001/.metadata").write_bytes(b"original")
    store.write("step-00000001/metadata", b"copy")
    assert store.sizes("step-00000001") == {"metadata": 4, ".metadata": 8}


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_a_disk_that_fills_up_within_a_tensor_is_an_error_of_the_disk(small_disk: Path) -> None:
    with pytest.raises(CheckpointException) as caught:
        write({"a": torch.zeros(250_000)}, LocalStore(small_disk).writer("step-00000001"), None)
    ((error, _),) = caught.value.failures.values()
    assert isinstance(error, OSError)
    assert error.errno == errno.ENOSPC


@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param(
            OSError(errno.ENOSPC, "No space left on device", "/disk/step-00000001/__0_0.distcp"),
            "no space left in /disk: ask for a larger volume, or keep fewer checkpoints",
            id="full",
        ),
        pytest.param(
            PermissionError(errno.EACCES, "Permission denied", "/disk/status.json"),
            "/disk/status.json may not be written or read: Permission denied",
            id="forbidden",
        ),
        pytest.param(OSError(errno.EIO, "Input/output error"), "/disk: Input/output error", id="broken"),
        pytest.param(RuntimeError("of the program"), None, id="not the disk's"),
    ],
)
def test_errors_are_told_with_what_to_do(error: Exception, told: str | None) -> None:
    assert LocalStore(Path("/disk")).explained(error) == told
