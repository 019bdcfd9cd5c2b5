"""The port to the place of a job's checkpoints, the names in it, and what is never done there.

    step-00000020/           a checkpoint; whole when its manifest is there and every file has its size
        __0_0.distcp ...     the shards, written by torch.distributed.checkpoint, a file or more a rank
        .metadata            torch's index of them
        metadata             the same: a mirror may leave out files that begin with a dot
        manifest.json        written last
    status.json              how far the job is

Names are relative to the store, with slashes. Checkpoints are written in place and never renamed.
"""

from collections.abc import Mapping
from typing import Protocol

from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter

STATUS = "status.json"
PREFIX = "step-"
_DIGITS = 8


class CheckpointStore(Protocol):
    """A place for the checkpoints of one job. Called from one thread at a time, on any rank."""

    @property
    def location(self) -> str:
        """The location as people write it: a path or ``s3://BUCKET/PREFIX``."""

    @property
    def is_shared(self) -> bool:
        """True where every host sees by nature what any host wrote (S3).

        False for directories: each host may have its own, with only its part of a checkpoint.
        """

    @property
    def original(self) -> "CheckpointStore | None":
        """This store without the copies that hosts read from; None if they read from none."""

    def checkpoints(self) -> list[str]:
        """Return the names of all checkpoints here, whole or torn, in any order."""

    def sizes(self, checkpoint: str) -> Mapping[str, int]:
        """Return the bytes of each file of a checkpoint, by its name within it; empty if there is none."""

    def read(self, name: str) -> bytes | None:
        """Read a small file, e.g. ``step-00000020/manifest.json``; None if it is not there."""

    def write(self, name: str, content: bytes) -> None:
        """Write a small file at once and durably: a reader sees the old one or the new one."""

    def remove(self, checkpoint: str) -> None:
        """Remove what is here of a checkpoint, the manifest first, so that half of it is torn.

        A checkpoint that is not here is no error.
        """

    def abort_uploads(self) -> None:
        """End uploads to checkpoints that were never finished: what is stored of them is paid for, unseen.

        No upload of this job may be under way.
        """

    def writer(self, checkpoint: str) -> StorageWriter:
        """Make what torch writes the shards with.

        It takes hashes, and expects tensors that are on the CPU.
        """

    def reader(self, checkpoint: str, index: Metadata, seconds: dict[str, float]) -> StorageReader:
        """Make what torch reads the shards with.

        It verifies hashes, and adds to ``seconds`` where the time goes.
        """

    def explained(self, error: BaseException) -> str | None:
        """Say what is wrong with the store and what to do, in words for the user.

        Returns None for an error that is not the store's. The error is one that any other method, a reader or
        a writer raised, perhaps pickled on another rank: its ``__context__`` is lost by then.
        """


def name_of(step: int) -> str:
    return f"{PREFIX}{step:0{_DIGITS}d}"


def is_checkpoint(name: str) -> bool:
    """Tell whether a folder of a store is a checkpoint: ``step-`` and digits."""
    digits = name.removeprefix(PREFIX)
    return name.startswith(PREFIX) and digits.isascii() and digits.isdigit()
