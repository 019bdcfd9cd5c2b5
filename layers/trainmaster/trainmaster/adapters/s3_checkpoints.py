"""CheckpointReader over S3."""

import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.core.errors import UnavailableError
from trainmaster.core.jobs.observations import Newest

STATUS = "status.json"
"""The file that trainmaster's training program rewrites with each checkpoint and at the end of an attempt."""
_CHECKPOINT_AT = "checkpoint_at"
_READ_BYTES = 65_536
"""Bytes read of a status file; trainmaster's own are shorter."""
_NOT_THERE = frozenset({"404", "NoSuchKey", "NotFound"})
_DENIED = frozenset({"403", "AccessDenied", "NoSuchBucket"})
_KEY_TROUBLE = "KMS."
"""Prefix of the codes that S3 passes on from KMS: KMS.DisabledException, KMS.NotFoundException ..."""
_UNREADABLE = Newest(is_certain=False, is_readable=False)


class S3Checkpoints:
    def __init__(self, client: Any) -> None:
        self._client = client

    def newest(self, uri: str) -> Newest:
        """Read ``checkpoint_at`` of ``status.json``, else the file's age; without it the newest object's age.

        A page comes in the order of keys: where a job keeps more than 1,000 objects there may be a newer one.
        A status file that the stack may not decrypt (parameter ``CheckpointKmsKeyArns``) leaves the listing,
        and a bucket that it may not read (parameter ``CheckpointBuckets``) tells nothing.
        """
        parts = urlsplit(uri)
        bucket, prefix = parts.netloc, parts.path.strip("/")
        try:
            return self._newest(bucket, f"{prefix}/" if prefix else "")
        except ClientError as error:
            if _is_denied(error):
                return _UNREADABLE
            raise UnavailableError(f"S3 refused: {error.response['Error']['Code']}") from error
        except BotoCoreError as error:
            raise UnavailableError("S3 did not answer") from error

    def _newest(self, bucket: str, folder: str) -> Newest:
        try:
            written_at = self._status(bucket, folder)
        except ClientError as error:
            if not _is_denied(error):
                raise
            return replace(self._listed(bucket, folder), is_certain=False)
        return Newest(written_at=written_at) if written_at else self._listed(bucket, folder)

    def _status(self, bucket: str, folder: str) -> datetime | None:
        """Return None if there is no such file, or if it says that the job has no checkpoint yet."""
        try:
            answer = self._client.get_object(Bucket=bucket, Key=folder + STATUS)
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_THERE:
                return None
            raise
        return _checkpoint_at(answer["Body"].read(_READ_BYTES), otherwise=_utc(answer["LastModified"]))

    def _listed(self, bucket: str, folder: str) -> Newest:
        page = self._client.list_objects_v2(Bucket=bucket, Prefix=folder)
        objects = [s3_object for s3_object in page.get("Contents", []) if s3_object["Key"] != folder + STATUS]
        newest = max((_utc(s3_object["LastModified"]) for s3_object in objects), default=None)
        return Newest(written_at=newest, is_certain=not page.get("IsTruncated", False))


def _is_denied(error: ClientError) -> bool:
    code = error.response["Error"]["Code"]
    return code in _DENIED or code.startswith(_KEY_TROUBLE)


def _checkpoint_at(body: bytes, *, otherwise: datetime) -> datetime | None:
    """Read the instant a status file states; a missing, unreadable or future one counts as ``otherwise``.

    None if the file states that there is no checkpoint.
    """
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        written = json.loads(body)[_CHECKPOINT_AT]
        if written is None:
            return None
        instant = datetime.fromisoformat(written)
        if instant.tzinfo is not None:
            return min(_utc(instant), otherwise)
    return otherwise


def _utc(instant: datetime) -> datetime:
    return instant.astimezone(UTC)
