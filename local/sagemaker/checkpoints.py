"""Keeps CheckpointConfig.S3Uri and the container's checkpoint folder alike.

Before the start everything in S3 comes down, whoever wrote it. From then on what is new or changed goes up
and what is deleted is deleted in S3; what others put into S3 later does not come down.
Source: SageMaker developer guide, "Checkpoints in Amazon SageMaker".
"""

import contextlib
import logging
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from local.sagemaker.inputs import PrepareError, path_in
from local.sagemaker.ports import ObjectStore
from local.sagemaker.s3_uri import S3Location

logger = logging.getLogger(__name__)

_PERIOD_SECONDS = 1.0
"""Real time between two looks at the folder."""


@dataclass(frozen=True, slots=True)
class _State:
    """A file's appearance from outside; a file renamed into place has another inode."""

    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, path: Path) -> "_State":
        stat = path.stat()
        return cls(stat.st_ino, stat.st_size, stat.st_mtime_ns)


class CheckpointMirror:
    """While running, a file goes up when two looks in a row found it the same: it is complete.

    Files go up in the order of their last change, so a file that tells of others (``latest``) follows them.
    """

    def __init__(
        self, folder: Path, location: S3Location, store: ObjectStore, *, by_prefix: bool = False
    ) -> None:
        """Take the location; with ``by_prefix`` it is a prefix of keys, as S3 has it: ``a`` begins ``ab``."""
        self._prefix = location.key if by_prefix else location.folder
        self._folder = folder
        self._location = location
        self._store = store
        self._seen: dict[Path, _State] = {}
        self._stored: dict[Path, _State] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def restore(self) -> None:
        """Bring down what is in S3. Raises ``PrepareError``."""
        bucket = self._location.bucket
        for key in self._store.keys(bucket, self._prefix):
            target = path_in(self._folder, self._name(key))
            if target is None:
                continue
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(self._store.read(bucket, key))
            except OSError as error:
                raise PrepareError(f"Data download failed: s3://{bucket}/{key}: {error}") from error
            self._stored[target] = _State.of(target)

    def _name(self, key: str) -> str:
        """Return the object's path in the folder; objects beside the location keep their name there."""
        folder = self._location.folder
        return (
            key.removeprefix(folder) if key.startswith(folder) else key[folder.rstrip("/").rfind("/") + 1 :]
        )

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="checkpoint-mirror", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop uploads until ``finish``."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def finish(self) -> None:
        """Bring S3 to the final state: the container has ended, so every file is complete."""
        self.stop()
        self._seen = self._look()
        self.sync()

    def sync(self) -> None:
        """Look at the folder once, and store or delete what changed."""
        files = self._look()
        complete, self._seen = self._seen.items() & files.items(), files
        for path, state in files.items():
            if self._stored.get(path) != state and (path, state) in complete:
                self._upload(path, state)
        for path in self._stored.keys() - files.keys():
            self._store.delete(self._location.bucket, self._key(path))
            del self._stored[path]

    def _run(self) -> None:
        while not self._stopping.wait(_PERIOD_SECONDS):
            try:
                self.sync()
            except Exception:  # the bulkhead of the mirror: the next look tries again
                logger.exception("checkpoints in %s stay behind", self._location.uri)

    def _look(self) -> dict[Path, _State]:
        """Return all files, longest unchanged first; files that vanish meanwhile are left out."""
        states = {}
        for folder, _, names in os.walk(self._folder):
            for path in (Path(folder, name) for name in names):
                with contextlib.suppress(FileNotFoundError):
                    states[path] = _State.of(path)
        return dict(sorted(states.items(), key=lambda item: (item[1].modified_ns, item[0])))

    def _upload(self, path: Path, state: _State) -> None:
        try:
            body = path.read_bytes()
            if _State.of(path) != state:
                return  # changed while it was read: its turn comes when it rests
        except FileNotFoundError:
            return
        self._store.write(self._location.bucket, self._key(path), body)
        self._stored[path] = state

    def _key(self, path: Path) -> str:
        return self._location.folder + path.relative_to(self._folder).as_posix()
