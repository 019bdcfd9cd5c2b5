"""A corpus in S3, read by range GETs: a job starts without a copy of it. The one user of boto3 here.

Endpoint, region and credentials are boto3's business (AWS_ENDPOINT_URL_S3, AWS_REGION, the job's role).
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, IncompleteReadError

from training.errors import ConfigError, DataError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_T = TypeVar("_T")
_ATTEMPTS = 6
"""Of one request, at most 20 s apart (botocore's standard mode): many ranks at once make S3 say SlowDown."""
_READS = 2
"""Of a body that breaks off: botocore retries requests, not their bodies."""
_TIMEOUT_SECONDS = 15
_BROKEN = (HTTPClientError, IncompleteReadError)
_DENIED = frozenset({"AccessDenied", "403"})
_ABSENT = frozenset({"NoSuchKey", "NoSuchBucket", "404"})


def s3_place(url: str) -> "S3Place":
    """Of `s3://BUCKET/PREFIX`."""
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    if not bucket:
        raise ConfigError([f"data must be s3://BUCKET/PREFIX, not {url!r}"])
    return S3Place(s3_client(attempts=_ATTEMPTS), bucket=bucket, prefix=prefix.strip("/"))


def s3_client(*, attempts: int) -> "S3Client":
    return boto3.client(
        "s3",
        config=Config(
            connect_timeout=_TIMEOUT_SECONDS,
            read_timeout=_TIMEOUT_SECONDS,
            retries={"mode": "standard", "total_max_attempts": attempts},
        ),
    )


class S3Place:
    def __init__(self, client: "S3Client", *, bucket: str, prefix: str) -> None:
        self._client, self._bucket = client, bucket
        self._folder = f"{prefix}/" if prefix else ""

    @property
    def told(self) -> str:
        return f"s3://{self._bucket}/{self._folder}"

    def sizes(self) -> Mapping[str, int]:
        return self._call("s3:ListBucket", "", self._list)

    def read(self, name: str, offset: int, size: int) -> bytes:
        def get() -> bytes:
            answer = self._client.get_object(
                Bucket=self._bucket, Key=self._folder + name, Range=f"bytes={offset}-{offset + size - 1}"
            )
            return answer["Body"].read()

        return self._call("s3:GetObject", name, get)

    def _list(self) -> Mapping[str, int]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._folder, Delimiter="/"
        )
        objects = (one for page in pages for one in page.get("Contents", []))
        return {one["Key"].removeprefix(self._folder): one["Size"] for one in objects}

    def _call(self, action: str, name: str, call: Callable[[], _T]) -> _T:
        for left in reversed(range(_READS)):
            try:
                return call()
            except ClientError as error:
                raise self._refused(action, name, error) from error
            except BotoCoreError as error:
                if left == 0 or not isinstance(error, _BROKEN):
                    raise self._failed(name, f"{type(error).__name__}: {error}") from error
        raise AssertionError

    def _refused(self, action: str, name: str, error: ClientError) -> DataError:
        code = error.response["Error"]["Code"]
        if code in _DENIED:
            return DataError(
                place=self.told + name,
                problem=f"{code} on {action}",
                remedy=f"the job's role needs s3:ListBucket on arn:aws:s3:::{self._bucket} and s3:GetObject "
                f"on arn:aws:s3:::{self._bucket}/{self._folder}*, and kms:Decrypt where a KMS key of yours "
                "encrypts it",
            )
        if code in _ABSENT:
            return DataError(
                place=self.told + name,
                problem=f"{code}: it is not there",
                remedy="upload the whole folder that python -m training.prepare wrote, "
                "and check bucket and prefix",
            )
        return self._failed(name, f"S3 answers {code}")

    def _failed(self, name: str, problem: str) -> DataError:
        return DataError(
            place=self.told + name,
            problem=f"{problem}, after retries",
            remedy="start the job again: it resumes from its newest checkpoint",
        )
