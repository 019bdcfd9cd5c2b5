"""A corpus in S3, read by range GETs: a job starts without a copy of it. Its client of boto3 is made here.

Endpoint, region and credentials are those of boto3 (AWS_ENDPOINT_URL_S3, AWS_REGION, the job's role). Ranges
are read from addresses that it has signed (`signed.py`), or by boto3 itself where that does not work.

An object is read as it was when its folder was listed: each GET has its ETag as a condition.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
)

from training.data.signed import DIRECTORY_BUCKET, TIMEOUT_SECONDS, Body, SignedReads, Span
from training.errors import ConfigError, DataError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_T = TypeVar("_T")
_ATTEMPTS = 6
"""Tries of a request, at most 20 s apart (botocore's standard mode): many ranks make S3 answer SlowDown."""
_READS = 3
"""Tries of a body that breaks off or is not the range: botocore retries requests, not their bodies."""
_DENIED = frozenset({"AccessDenied", "403"})
_ABSENT = frozenset({"NoSuchKey", "NoSuchBucket", "404"})
_REPLACED = frozenset({"PreconditionFailed", "412"})
_EXPIRED = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken", "InvalidAccessKeyId"}
)
_KEYLESS = (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError)


class _WrongRangeError(Exception):
    """The answer has other bytes than the requested ones."""


_BROKEN = (HTTPClientError, IncompleteReadError, _WrongRangeError)


def s3_place(url: str) -> "S3Place":
    """Make the place that `s3://BUCKET/PREFIX` names. Raises ConfigError if that has no bucket."""
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    if not bucket:
        raise ConfigError([f"data must be s3://BUCKET/PREFIX, not {url!r}"])
    return S3Place(s3_client(attempts=_ATTEMPTS, bucket=bucket), bucket=bucket, prefix=prefix.strip("/"))


def s3_client(*, attempts: int, bucket: str = "") -> "S3Client":
    return boto3.client(
        "s3",
        config=Config(
            # The default signs addresses as S3 did before 2014, which objects with a KMS key do not accept.
            signature_version=None if bucket.endswith(DIRECTORY_BUCKET) else "s3v4",
            connect_timeout=TIMEOUT_SECONDS,
            read_timeout=TIMEOUT_SECONDS,
            retries={"mode": "standard", "total_max_attempts": attempts},
        ),
    )


class S3Place:
    def __init__(self, client: "S3Client", *, bucket: str, prefix: str) -> None:
        self._client, self._bucket = client, bucket
        self._folder = f"{prefix}/" if prefix else ""
        self.title = f"s3://{bucket}/{self._folder}"
        self._signed = SignedReads(client, bucket=bucket)
        self._etags: dict[str, str] = {}

    def sizes(self) -> Mapping[str, int]:
        return self._call("s3:ListBucket", "", self._list)

    def read(self, name: str, offset: int, size: int) -> bytes:
        if size == 0:
            return b""  # no range says that
        key = self._folder + name
        span = Span(offset=offset, size=size, etag=self._etags.get(name))
        body = self._signed.read(key, span) or self._call("s3:GetObject", name, lambda: self._get(key, span))
        if body.etag:
            self._etags.setdefault(name, body.etag)
        return body.content

    def stream(self, name: str, offset: int, sizes: Sequence[int]) -> Iterator[bytes]:
        """Yield parts side by side, each as it arrives; end early where ``read`` has to try."""
        etag = self._etags.get(name)
        if etag is None:
            return iter(())  # parts of two requests could be of two versions
        span = Span(offset=offset, size=sum(sizes), etag=etag)
        return self._signed.stream(self._folder + name, span, sizes)

    def _get(self, key: str, span: Span) -> Body:
        get = partial(self._client.get_object, Bucket=self._bucket, Key=key, Range=span.range)
        answer = get(IfMatch=span.etag) if span.etag else get()
        content_range = answer.get("ContentRange")
        if not span.is_answered_by(content_range, answer["ContentLength"]):
            answer["Body"].close()
            given = content_range or "without a range"
            raise _WrongRangeError(f"{span.range} was asked for, S3 answers {given}")
        return Body(content=answer["Body"].read(), etag=answer["ETag"])

    def _list(self) -> Mapping[str, int]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._folder, Delimiter="/"
        )
        objects = [entry for page in pages for entry in page.get("Contents", [])]
        self._etags = {entry["Key"].removeprefix(self._folder): entry["ETag"] for entry in objects}
        return {entry["Key"].removeprefix(self._folder): entry["Size"] for entry in objects}

    def _call(self, action: str, name: str, call: Callable[[], _T]) -> _T:
        for left in reversed(range(_READS)):
            try:
                return call()
            except ClientError as error:
                raise self._refused(action, name, error) from error
            except _KEYLESS as error:
                raise self._keyless(name, str(error)) from error
            except (BotoCoreError, _WrongRangeError) as error:
                if left == 0 or not isinstance(error, _BROKEN):
                    raise self._failed(name, f"{type(error).__name__.strip('_')}: {error}") from error
        raise AssertionError

    def _refused(self, action: str, name: str, error: ClientError) -> DataError:
        code = error.response["Error"]["Code"]
        if code in _EXPIRED:
            return self._keyless(name, f"S3 answers {code}")
        if code in _DENIED:
            problem = f"{code} on {action}"
            remedy = (
                f"the job's role needs s3:ListBucket on arn:aws:s3:::{self._bucket} and s3:GetObject "
                f"on arn:aws:s3:::{self._bucket}/{self._folder}*, and kms:Decrypt where a KMS key of yours "
                "encrypts it"
            )
        elif code in _ABSENT:
            problem = f"{code}: it is not there"
            remedy = (
                "upload the whole folder that python -m tools.training.prepare wrote, "
                "and check bucket and prefix"
            )
        elif code in _REPLACED:
            problem = f"{code}: the object was replaced since this attempt began"
            remedy = "write changed data to another prefix; to train on the new data, start the job again"
        else:
            return self._failed(name, f"S3 answers {code}")
        return DataError(place=self.title + name, problem=problem, remedy=remedy)

    def _keyless(self, name: str, problem: str) -> DataError:
        return DataError(
            place=self.title + name,
            problem=problem,
            remedy="the credentials of this process are missing or have expired: let it use the job's role, "
            "which boto3 renews, not keys in the environment; then start the job again",
        )

    def _failed(self, name: str, problem: str) -> DataError:
        return DataError(
            place=self.title + name,
            problem=f"{problem}, after retries",
            remedy="start the job again: it resumes from its newest checkpoint",
        )
