"""The shards of a checkpoint in S3: s3torchconnector's writer and reader for torch.distributed.checkpoint.

This module adds hashes, errors that name the request, and a copy on this host's disk.
"""

import atexit
import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Any

from s3torchconnector import S3ClientConfig, S3ReaderConstructor
from s3torchconnector._s3client import S3Client
from s3torchconnector.dcp import S3StorageReader, S3StorageWriter
from s3torchconnector.dcp.s3_file_system import S3FileSystem, StorageMetadata
from s3torchconnectorclient import S3Exception
from s3torchconnectorclient._mountpoint_s3_client import join_all_managed_threads
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from training.preemptible.checkpoint.hashes import HashingWriter, Seconds, VerifyingReader
from training.preemptible.checkpoint.host_copy import HostCopies, HostCopy
from training.preemptible.checkpoint.manifest import sizes_of

DENIED = frozenset({"AccessDenied", "Forbidden", "403"})
_BUSY = frozenset({"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "503", "500"})
_KEYS = frozenset({"ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"})
_NO_BUCKET = "NoSuchBucket"
_SHOWN = 200
"""The most characters of S3's own words in a message."""
_PART_BYTES = 32 * 2**20
"""An upload has 10,000 parts at most (Amazon S3 user guide), so a rank's file may have 312 GiB."""
_JOIN_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Place:
    """The bucket and prefix where the checkpoints of a job are."""

    bucket: str
    prefix: str
    """The prefix, no slashes around it; empty for the whole bucket."""

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    def key(self, name: str) -> str:
        return f"{self.prefix}/{name}" if self.prefix else name


class S3RequestError(Exception):
    """A request that failed for good.

    Args:
        place: Bucket and prefix of the store.
        action: The IAM action, e.g. ``s3:PutObject``.
        key: The object that was asked for; empty for the bucket.
        code: S3's error code; empty when it has none to offer, as the same request works now.
        text: The client's own message.
    """

    def __init__(self, place: Place, action: str, key: str, code: str, text: str) -> None:
        super().__init__(place, action, key, code, text)  # positional, so that it can be pickled
        self.place, self.action, self.key, self.code, self.text = place, action, key, code, text


def explained(error: S3RequestError) -> str:
    """Say what is wrong, and what to do."""
    place = error.place
    what = f"{error.action} on s3://{place.bucket}/{error.key}".rstrip("/")
    if error.code in DENIED:
        return f"{what} was denied: {_rights(place)}; also on the bucket's KMS key, if it has one"
    if error.code == _NO_BUCKET:
        return f"bucket {place.bucket} of {place.uri} does not exist: correct the name, or create it"
    if error.code in _BUSY or error.code == "":
        return (
            f"{what} failed again and again ({error.code or error.text[:_SHOWN]}): that is S3 or the way "
            "to it; start the job again, it resumes from the newest checkpoint"
        )
    if error.code in _KEYS:
        return f"{what} failed: the credentials are not accepted ({error.code}); renew them"
    return f"{what} failed: {error.code}: {error.text[:_SHOWN]}"


def _rights(place: Place) -> str:
    """Name the permissions that a job needs in short; the guide has the whole statement."""
    folder = f"{place.bucket}/{place.prefix}".rstrip("/")
    return (
        f"the job's role needs s3:ListBucket on arn:aws:s3:::{place.bucket} and s3:GetObject, s3:PutObject, "
        f"s3:DeleteObject, s3:AbortMultipartUpload on arn:aws:s3:::{folder}/*"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    place: Place
    region: str
    """The region of the bucket; the connector follows no redirection."""
    client: S3Client
    code_of: Callable[..., str]
    """Takes ``key`` and ``is_write``; returns the code with which S3 refuses such a request now, or ""."""


def connected(
    place: Place, *, region: str, endpoint: str | None, attempts: int, code_of: Callable[..., str]
) -> Connection:
    config = S3ClientConfig(
        part_size=_PART_BYTES, max_attempts=attempts, force_path_style=endpoint is not None
    )
    client = S3Client(region, endpoint=endpoint, s3client_config=config)
    atexit.register(released, weakref.ref(client))
    return Connection(place=place, region=region, client=client, code_of=code_of)


def released(client: "weakref.ref[S3Client]") -> None:
    """End the threads of the client, if it is still alive, as the connector does before a fork.

    A thread that logs a request's end when the interpreter is gone panics, and the exit code would be lost.
    """
    if alive := client():
        alive._native_client = None  # noqa: SLF001  it has no method for this
        gc.collect()
        join_all_managed_threads(_JOIN_SECONDS)


class S3Writer(HashingWriter, S3StorageWriter):
    def __init__(self, connection: Connection, checkpoint: str, copies: HostCopies | None) -> None:
        # Nothing is copied ahead: the tensors are on the CPU.
        super().__init__(connection.region, f"{connection.place.uri}/{checkpoint}", per_thread_copy_ahead=0)
        self._objects = _Objects(connection, S3ReaderConstructor.default())
        self.fs = self._objects  # type: ignore[assignment]  # as the connector itself does
        self._checkpoint, self._copies = checkpoint, copies

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give each rank's plan the identifier of this save, as the index will have it.

        Runs on the first rank.
        """
        return [
            replace(plan, storage_data=_Share(prefix=plan.storage_data.prefix, save=self.save_id))
            for plan in super().prepare_global_plan(plans)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        share: _Share = plan.storage_data
        if self._copies is not None:
            self._objects.copy = self._copies.begun(self._checkpoint, share.save)
        return super().write_data(plan, planner)

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        self._objects.copy = None  # the index is always read from S3: it says which copy is the right one
        super().finish(metadata, results)


@dataclass
class _Share(StorageMetadata):
    """The part of one rank in a save: its prefix, and the identifier that the index gives the save."""

    save: str


class S3Reader(VerifyingReader, S3StorageReader):
    def __init__(
        self,
        connection: Connection,
        checkpoint: str,
        copies: HostCopies | None,
        *,
        index: Metadata,
        seconds: Seconds,
    ) -> None:
        constructor = S3ReaderConstructor.dcp_optimized()
        path = f"{connection.place.uri}/{checkpoint}"
        super().__init__(
            connection.region, path, reader_constructor=constructor, index=index, seconds=seconds
        )
        self._objects = _Objects(connection, constructor)
        self.fs = self._objects
        if copies is not None and index.storage_meta is not None:
            save, sizes = index.storage_meta.save_id, sizes_of(index.storage_data)
            self._objects.copy = copies.found(checkpoint, str(save), sizes)


class _Objects(S3FileSystem):
    def __init__(self, connection: Connection, constructor: Any) -> None:  # noqa: ANN401  a union of protocols
        super().__init__(connection.region, s3_client=connection.client, reader_constructor=constructor)
        self._connection = connection
        self.copy: HostCopy | None = None

    @contextmanager
    def create_stream(self, path: str | PathLike[str], mode: str) -> Iterator[Any]:
        name = fspath(path).rpartition("/")[2]
        if self.copy is not None and mode == "rb" and (file := self.copy.file(name)):
            with file.open("rb") as local:
                yield local
            return
        action = "s3:PutObject" if mode == "wb" else "s3:GetObject"
        with self._named(action, path), super().create_stream(path, mode) as stream:
            if self.copy is not None and mode == "wb":
                with self.copy.beside(name, stream) as both:
                    yield both
            else:
                yield stream

    def exists(self, path: str | PathLike[str]) -> bool:
        with self._named("s3:GetObject", path):
            return bool(super().exists(path))

    def rename(self, old_path: str | PathLike[str], new_path: str | PathLike[str]) -> None:
        with self._named("s3:PutObject", new_path):
            super().rename(old_path, new_path)

    @contextmanager
    def _named(self, action: str, path: str | PathLike[str]) -> Iterator[None]:
        """Replace the connector's errors, which are only a sentence, by S3RequestError with S3's code."""
        try:
            yield
        except (S3Exception, RuntimeError) as error:
            # A writer of torch.save that is interrupted raises a RuntimeError of its own over it.
            refusal = error if isinstance(error, S3Exception) else error.__context__
            if not isinstance(refusal, S3Exception):
                raise
            place = self._connection.place
            key = fspath(path).removeprefix(f"s3://{place.bucket}/")
            code = self._connection.code_of(key=key, is_write=action == "s3:PutObject")
            raise S3RequestError(place, action, key, code, str(refusal)) from error
