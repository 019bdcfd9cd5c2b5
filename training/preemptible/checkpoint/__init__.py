"""Checkpoints that a crash, a stop or a half-finished upload cannot spoil; for any PyTorch script."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from training.preemptible import CheckpointPackageError, CheckpointPlaceError
from training.preemptible.checkpoint.checkpointer import Checkpointer, Resumed
from training.preemptible.checkpoint.loader import newest_manifest
from training.preemptible.checkpoint.local_store import LocalStore
from training.preemptible.checkpoint.manifest import Manifest
from training.preemptible.checkpoint.retention import Retention
from training.preemptible.checkpoint.saver import JobState
from training.preemptible.checkpoint.schedule import SaveTimer
from training.preemptible.checkpoint.store import CheckpointStore

__all__ = [
    "CheckpointStore",
    "Checkpointer",
    "JobState",
    "LocalStore",
    "Manifest",
    "Resumed",
    "Retention",
    "SaveTimer",
    "newest_manifest",
    "open_store",
]

_S3 = "s3://"
_PACKAGES = {
    "boto3": "boto3",
    "s3torchconnector": "s3torchconnector[dcp]",
    "tenacity": "s3torchconnector[dcp]",
}
"""The requirement to install for each package that S3 needs to import."""


def open_store(location: str, env: Mapping[str, str], *, cache_dir: str = "") -> CheckpointStore:
    """Make the store for a directory or ``s3://BUCKET/PREFIX``; nothing is read or written yet.

    Args:
        location: The text of ``checkpoint_dir``.
        env: Environment variables: AWS's own may name an endpoint for S3.
        cache_dir: A directory that outlives the job, where a copy of the newest checkpoint from S3 stays.

    Raises:
        CheckpointPlaceError: It is no location.
        CheckpointPackageError: S3 needs packages that are not installed.
    """
    if not location.startswith(_S3):
        return LocalStore(Path(location))
    if not location.removeprefix(_S3).partition("/")[0]:
        raise CheckpointPlaceError(location)
    missing = sorted({needed for module, needed in _PACKAGES.items() if find_spec(module) is None})
    if missing:
        raise CheckpointPackageError(location=location, packages=missing)
    from training.preemptible.checkpoint.s3_store import S3Store  # noqa: PLC0415  needs the packages

    return S3Store.at(location, env, cache_dir=cache_dir)
