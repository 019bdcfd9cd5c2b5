"""Packs a source directory as an SDK would, for the door that has no SDK."""

import io
import tarfile

import boto3

from demos.client.doors import settings


def uploaded(session: boto3.Session, uri: str) -> str:
    """Upload the training program as an archive to S3; return its URI."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(settings.SOURCE, arcname=".", filter=_without_caches)
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    session.client("s3").put_object(Bucket=bucket, Key=key, Body=packed.getvalue())
    return uri


def _without_caches(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if entry.name.endswith("__pycache__") else entry
