"""Store each study as one S3 object below its trials' output path, changed by one process at a time."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from botocore.exceptions import ClientError

from trainmaster_client.errors import InvalidArgumentError, MalformedStudyError
from trainmaster_client.tuning.study import Study, from_document, to_document

FILE = "trainmaster-study.json"
_ABSENT = frozenset({"NoSuchKey", "NoSuchBucket", "404"})
_LOST = frozenset({"PreconditionFailed", "ConditionalRequestConflict"})
"""S3's codes for a conditional write that lost. Source: S3 User Guide, "How to prevent object overwrites with
conditional writes"."""
_S3_PATH = re.compile(r"s3://([^/]+)/?(.*)")


class StudyChangedError(Exception):
    """Raised when another process wrote the study after it was read; what that process wrote counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlace:
    output_path: str
    """S3OutputPath of the study's trials."""
    tuning_job: str
    bucket: str
    key: str

    @classmethod
    def below(cls, output_path: str, tuning_job: str) -> Self:
        """Raises InvalidArgumentError if the output path is not an S3 URL."""
        match = _S3_PATH.fullmatch(output_path)
        if match is None:
            raise InvalidArgumentError(
                f"{output_path!r} is not a place for a study.",
                hint="Give the S3OutputPath as s3://bucket/prefix.",
            )
        key = "/".join(part for part in (match[2].strip("/"), tuning_job, FILE) if part)
        return cls(output_path=output_path, tuning_job=tuning_job, bucket=match[1], key=key)

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStudy:
    study: Study
    etag: str
    """ETag of the object that was read: a change is written only while S3 still has this one."""


class StudyStore:
    """Reads and writes studies in S3.

    S3's errors are raised as they are: they name the operation and the permission that is missing.

    Args:
        s3: Makes or finds the client.
    """

    def __init__(self, s3: Callable[[], Any]) -> None:
        self._s3 = s3

    def read(self, place: StudyPlace) -> StoredStudy | None:
        """Return the stored study, or None if there is none. Raises MalformedStudyError."""
        try:
            answer = self._s3().get_object(Bucket=place.bucket, Key=place.key)
        except ClientError as error:
            if error.response["Error"]["Code"] in _ABSENT:
                return None
            raise
        try:
            study = from_document(json.loads(answer["Body"].read()))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise MalformedStudyError(place.url, why=f"{type(error).__name__}: {error}") from error
        return StoredStudy(study=study, etag=answer["ETag"])

    def create(self, place: StudyPlace, study: Study, *, kms_key: str | None) -> StoredStudy:
        """Raises StudyChangedError if there is a study already."""
        return self._put(place, study, kms_key, IfNoneMatch="*")

    def save(self, place: StudyPlace, study: Study, *, etag: str, kms_key: str | None) -> StoredStudy:
        """Raises StudyChangedError if the object is no longer the one with this ``etag``."""
        return self._put(place, study, kms_key, IfMatch=etag)

    def _put(self, place: StudyPlace, study: Study, kms_key: str | None, **condition: str) -> StoredStudy:
        encryption = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": kms_key} if kms_key else {}
        try:
            answer = self._s3().put_object(
                Bucket=place.bucket,
                Key=place.key,
                Body=json.dumps(to_document(study), indent=1).encode(),
                ContentType="application/json",
                **encryption,
                **condition,
            )
        except ClientError as error:
            if error.response["Error"]["Code"] in _LOST:
                raise StudyChangedError(place.url) from error
            raise
        return StoredStudy(study=study, etag=answer["ETag"])
