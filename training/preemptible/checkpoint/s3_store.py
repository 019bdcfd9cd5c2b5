"""CheckpointStore over a prefix in S3: the shards by s3torchconnector, all else by boto3.

S3 shows an object whole or not at all, and to all readers at once (Amazon S3 user guide, data consistency
model), so every host sees what any host wrote, and a manifest that is there is whole.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter

from training.preemptible.checkpoint.host_copy import HostCopies
from training.preemptible.checkpoint.local_store import LocalStore
from training.preemptible.checkpoint.manifest import MANIFEST
from training.preemptible.checkpoint.s3_shards import (
    DENIED,
    Connection,
    Place,
    S3Reader,
    S3RequestError,
    S3Writer,
    connected,
    explained,
)
from training.preemptible.checkpoint.store import PREFIX, STATUS, CheckpointStore, is_checkpoint

_ATTEMPTS = 10
"""The most attempts of one request; the waits between them double, up to 20 s."""
_DELETED_AT_ONCE = 1000
"""The most keys in one request (S3 API reference, DeleteObjects)."""
_NO_UPLOAD = "NoSuchUpload"
_MISSING = frozenset({"NoSuchKey", "404"})
_ACTIONS = {
    "ListObjectsV2": "s3:ListBucket",
    "HeadBucket": "s3:ListBucket",
    "HeadObject": "s3:GetObject",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "DeleteObjects": "s3:DeleteObject",
}
"""IAM actions by operation, where their names differ (Amazon S3 user guide, required permissions for API
operations)."""


class S3Store:
    is_shared = True

    def __init__(
        self,
        place: Place,
        *,
        endpoint: str | None = None,
        attempts: int = _ATTEMPTS,
        copies: HostCopies | None = None,
        mirrored: Path | None = None,
    ) -> None:
        """Make the store of one job's checkpoints; no request is sent yet.

        Args:
            place: Bucket and prefix.
            endpoint: The address of an S3 other than AWS's.
            attempts: The most attempts of each request.
            copies: Copies of the newest checkpoint on this host's disk.
            mirrored: The directory that SageMaker copies to ``checkpoint_s3_uri``. It gets ``status.json``,
                so that the scheduler, which looks there, knows of these checkpoints.
        """
        self._place, self._endpoint, self._attempts = place, endpoint, attempts
        self.location = place.uri
        self._copies, self._mirrored = copies, mirrored
        self._may_list_uploads = True

    @classmethod
    def at(cls, uri: str, env: Mapping[str, str], *, cache_dir: str = "") -> Self:
        """Make the store of ``s3://BUCKET/PREFIX``, at the endpoint that AWS's own variables name."""
        parts = urlsplit(uri)
        endpoint = env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL")
        copies = HostCopies(Path(cache_dir), of=uri.rstrip("/")) if cache_dir else None
        mirrored = Path(env["SM_CHECKPOINT_DIR"]) if env.get("SM_CHECKPOINT_DIR") else None
        place = Place(parts.netloc, parts.path.strip("/"))
        return cls(place, endpoint=endpoint, copies=copies, mirrored=mirrored)

    @property
    def original(self) -> CheckpointStore | None:
        if self._copies is None:
            return None
        return S3Store(self._place, endpoint=self._endpoint, attempts=self._attempts)

    def checkpoints(self) -> list[str]:
        start = len(self._place.key(""))
        pages = self._pages("list_objects_v2", "", Delimiter="/")
        folders = [folder["Prefix"][start:-1] for page in pages for folder in page.get("CommonPrefixes", ())]
        return [name for name in folders if is_checkpoint(name)]

    def sizes(self, checkpoint: str) -> Mapping[str, int]:
        start = len(self._place.key(f"{checkpoint}/"))
        pages = self._pages("list_objects_v2", f"{checkpoint}/")
        return {
            stored["Key"][start:]: stored["Size"] for page in pages for stored in page.get("Contents", ())
        }

    def read(self, name: str) -> bytes | None:
        try:
            content: bytes = self._call(self._client.get_object, key=self._place.key(name))["Body"].read()
        except S3RequestError as error:
            if error.code in _MISSING:
                return None
            raise
        return content

    def write(self, name: str, content: bytes) -> None:
        self._call(self._client.put_object, key=self._place.key(name), Body=content)
        if name == STATUS and self._mirrored is not None:
            self._mirror(self._mirrored, content)

    def _mirror(self, folder: Path, status: bytes) -> None:
        try:
            LocalStore(folder).write(STATUS, status)
        except OSError as error:  # the checkpoint itself is safe
            print(f"{STATUS} is in {self.location}, but not in {folder}: {error}", flush=True)

    def remove(self, checkpoint: str) -> None:
        files = self.sizes(checkpoint)
        if MANIFEST in files:
            self._delete([self._place.key(f"{checkpoint}/{MANIFEST}")])
        keys = [self._place.key(f"{checkpoint}/{name}") for name in files if name != MANIFEST]
        for first in range(0, len(keys), _DELETED_AT_ONCE):
            self._delete(keys[first : first + _DELETED_AT_ONCE])

    def abort_uploads(self) -> None:
        if not self._may_list_uploads:
            return
        try:
            pages = self._pages("list_multipart_uploads", PREFIX)
        except S3RequestError as error:
            if error.code not in DENIED:
                raise
            self._may_list_uploads = False
            print(f"uploads that were never finished are not removed: {explained(error)}", flush=True)
            return
        for upload in (upload for page in pages for upload in page.get("Uploads", ())):
            self._abort(upload["Key"], upload["UploadId"])

    def _abort(self, key: str, upload: str) -> None:
        try:
            self._call(self._client.abort_multipart_upload, key=key, UploadId=upload)
        except S3RequestError as error:
            if error.code != _NO_UPLOAD:  # it ended meanwhile
                raise

    def writer(self, checkpoint: str) -> StorageWriter:
        return S3Writer(self._connection, checkpoint, self._copies)

    def reader(self, checkpoint: str, index: Metadata, seconds: dict[str, float]) -> StorageReader:
        return S3Reader(self._connection, checkpoint, self._copies, index=index, seconds=seconds)

    def explained(self, error: BaseException) -> str | None:
        if isinstance(error, S3RequestError):
            return explained(error)
        if isinstance(error, BotoCoreError):
            return (
                f"{self.location} cannot be reached: {error}; the job needs credentials and, in a VPC, "
                "a gateway endpoint for S3"
            )
        if isinstance(error, OSError):
            return f"the copy of a checkpoint on this host cannot be read: {error}; run without cache_dir"
        return None

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401  boto3 makes its clients at run time
        config = Config(
            s3={"addressing_style": "path"} if self._endpoint else None,
            retries={"mode": "standard", "total_max_attempts": self._attempts},
        )
        return boto3.client("s3", endpoint_url=self._endpoint, config=config)

    @cached_property
    def _connection(self) -> Connection:
        return connected(
            self._place,
            region=self._call(self._client.head_bucket)["BucketRegion"],
            endpoint=self._endpoint,
            attempts=self._attempts,
            code_of=self._code_of,
        )

    def _pages(self, operation: str, name: str, **parameters: str) -> list[dict[str, Any]]:
        """Read all pages of a list of what begins with the name."""
        prefix, pages = self._place.key(name), self._client.get_paginator(operation)
        pages_read: list[dict[str, Any]] = self._call(
            lambda **where: list(pages.paginate(**where)), about=prefix, Prefix=prefix, **parameters
        )
        return pages_read

    def _delete(self, keys: list[str]) -> None:
        objects = [{"Key": key} for key in keys]
        answer = self._call(
            self._client.delete_objects, about=keys[0], Delete={"Objects": objects, "Quiet": True}
        )
        for error in answer.get("Errors", ()):
            raise S3RequestError(self._place, "s3:DeleteObject", error["Key"], error["Code"], "")

    def _code_of(self, *, key: str, is_write: bool) -> str:
        """Return the code with which S3 refuses such a request now, or "" if it does not.

        The connector's error is only a sentence. Asking for a write leaves an empty object in a checkpoint
        that has failed anyway.
        """
        try:
            if is_write:
                self._call(self._client.put_object, key=key, Body=b"")
            else:
                self._call(self._client.head_object, key=key)
        except S3RequestError as error:
            return error.code
        return ""

    def _call(
        self, operation: Callable[..., Any], *, key: str = "", about: str = "", **parameters: object
    ) -> Any:  # noqa: ANN401  as boto3 answers
        """Send one request, about ``key`` or, in a message only, ``about``. Raises S3RequestError."""
        request = {"Key": key, **parameters} if key else parameters
        try:
            return operation(Bucket=self._place.bucket, **request)
        except ClientError as error:
            name = error.operation_name
            action = _ACTIONS.get(name, f"s3:{name}")
            refusal = error.response["Error"]
            raise S3RequestError(
                self._place, action, key or about, refusal["Code"], refusal.get("Message", "")
            ) from error
