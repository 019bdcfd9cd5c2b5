"""CheckpointReader over S3."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.errors import UnavailableError
from trainmaster.ports import Newest

STATUS = "status.json"
"""What trainmaster's own training program rewrites with each checkpoint."""
_NOT_THERE = frozenset({"404", "NoSuchKey", "NotFound"})
_NOT_OURS = frozenset({"403", "AccessDenied", "NoSuchBucket"})
_UNKNOWN = Newest(is_certain=False)


class S3Checkpoints:
    def __init__(self, client: Any) -> None:
        self._client = client

    def newest(self, uri: str) -> Newest:
        """The age of ``status.json``, else of the newest object on the first page of the listing.

        A page comes in the order of keys: where a job keeps more than 1,000 objects there may be a newer one.
        A bucket that the stack may not read (parameter ``CheckpointBuckets``) tells nothing.
        """
        parts = urlsplit(uri)
        bucket, prefix = parts.netloc, parts.path.strip("/")
        folder = f"{prefix}/" if prefix else ""
        try:
            written_at = self._status(bucket, folder)
            return Newest(written_at=written_at) if written_at else self._listed(bucket, folder)
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_OURS:
                return _UNKNOWN
            raise UnavailableError(f"S3 refused: {error.response['Error']['Code']}") from error
        except BotoCoreError as error:
            raise UnavailableError("S3 did not answer") from error

    def _status(self, bucket: str, folder: str) -> datetime | None:
        try:
            answer = self._client.head_object(Bucket=bucket, Key=folder + STATUS)
        except ClientError as error:
            if error.response["Error"]["Code"] in _NOT_THERE:
                return None
            raise
        return _utc(answer["LastModified"])

    def _listed(self, bucket: str, folder: str) -> Newest:
        page = self._client.list_objects_v2(Bucket=bucket, Prefix=folder)
        newest = max((_utc(one["LastModified"]) for one in page.get("Contents", [])), default=None)
        return Newest(written_at=newest, is_certain=not page.get("IsTruncated", False))


def _utc(instant: datetime) -> datetime:
    return instant.astimezone(UTC)
